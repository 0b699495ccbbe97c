// The moving strip: a line for each message, from its broadcast (above) to its delivery (below).
"use strict";

const STRIP_SECONDS = 10;
const TICKS_MAX = 4000;
const LINE_SPACING_PX = [18, 18, 18, 30]; // of the lines of a class, so that each can be followed by the eye

class Strip {
  // The clock is that of the times that are added, in milliseconds.
  constructor(canvas, clock = () => performance.now()) {
    this.canvas = canvas;
    this.clock = clock;
    this.lines = [];
    this.lastLine = [0, 0, 0, 0]; // when the last message of each class that has a line was delivered
    this.isDrawing = false;
  }

  add(deliveries, receivedAt) {
    for (const [agoMs, position, count, priority, sender, waitedMs, overtaken] of deliveries) {
      const deliveredAt = receivedAt - agoMs;
      const broadcastAt = waitedMs < 0 || !this.hasRoom(classOf(priority), deliveredAt) ? null : deliveredAt - waitedMs;
      this.lines.push({ deliveredAt, broadcastAt, position, count, priority, sender, overtaken });
    }
    const oldest = receivedAt - STRIP_SECONDS * 1000;
    this.lines = this.lines.filter((line) => line.deliveredAt > oldest).slice(-TICKS_MAX);
    this.start();
  }

  // Whether there is room for a line. Every delivery has its tick below; lines are a selection.
  hasRoom(of, deliveredAt) {
    const spacingMs = (LINE_SPACING_PX[of] / (this.canvas.clientWidth || 1)) * STRIP_SECONDS * 1000;
    if (Math.abs(deliveredAt - this.lastLine[of]) < spacingMs) return false;
    this.lastLine[of] = deliveredAt;
    return true;
  }

  clear() {
    this.lines = [];
  }

  start() {
    if (!this.isDrawing) {
      this.isDrawing = true;
      requestAnimationFrame((time) => this.draw(time));
    }
  }

  // Draws until the last message has left the strip, or the clock stops: a page of an idle group costs nothing.
  draw() {
    const now = this.clock();
    const { width, height, context } = this.prepare();
    const styles = getComputedStyle(document.documentElement);
    const colours = [0, 1, 2, 3].map((of) => styles.getPropertyValue(`--p${of}`).trim());
    const soft = styles.getPropertyValue("--soft").trim();
    const top = 22, laneHeight = 26, bottom = height - laneHeight - 20;
    const x = (time) => width - ((now - time) / (STRIP_SECONDS * 1000)) * width;
    context.clearRect(0, 0, width, height);
    this.drawAxes(context, soft, width, top, bottom, laneHeight);
    for (const of of [0, 1, 2, 3]) {
      context.strokeStyle = context.fillStyle = colours[of];
      context.globalAlpha = of === 3 ? 1 : 0.7;
      context.lineWidth = of === 3 ? 2 : 1.2;
      for (const line of this.lines) {
        if (classOf(line.priority) === of) drawLine(context, line, x, top, bottom, laneHeight, of === 3);
      }
    }
    context.globalAlpha = 1;
    const isMoving = now !== this.drawnAt; // a clock can be stopped
    this.drawnAt = now;
    this.isDrawing = isMoving && this.lines.length > 0 && x(this.lines[this.lines.length - 1].deliveredAt) > 0;
    if (this.isDrawing) requestAnimationFrame(() => this.draw());
  }

  prepare() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const scale = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    return { width, height, context };
  }

  drawAxes(context, soft, width, top, bottom, laneHeight) {
    context.fillStyle = context.strokeStyle = soft;
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText("broadcast", 0, 12);
    context.fillText("delivered, in this order", 0, bottom + laneHeight + 16);
    context.textAlign = "right";
    context.fillText("now", width, bottom + laneHeight + 16);
    context.globalAlpha = 0.35;
    context.lineWidth = 1;
    for (const y of [top, bottom]) {
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(width, y);
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

function drawLine(context, line, x, top, bottom, laneHeight, isUrgent) {
  const end = x(line.deliveredAt);
  context.fillRect(end - 0.5, bottom + 4, isUrgent ? 2 : 1, laneHeight - 6);
  if (line.broadcastAt === null) return;
  context.beginPath();
  context.moveTo(x(line.broadcastAt), top);
  context.lineTo(end, bottom);
  context.stroke();
  if (isUrgent) {
    context.beginPath();
    context.arc(end, bottom, 3, 0, 7);
    context.fill();
  }
}

// The class of a priority, a quarter of the range: 3 is the most urgent.
function classOf(priority) {
  return Math.min(3, priority >> 6);
}
