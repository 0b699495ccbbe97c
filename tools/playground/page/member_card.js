// The card of one member: its state, its queues, what it delivered, and what can be done with it.
"use strict";

const NAMED = [[224, "urgent"], [160, "elevated"], [96, "routine"], [32, "background"]];
const STATE_PILLS = { active: "good", down: "bad", "no quorum": "bad", paused: "warn", "view change": "warn", joining: "quiet", starting: "quiet", "state transfer": "quiet" };

function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== "") made.textContent = text;
  return made;
}

function nameOf(priority) {
  const found = NAMED.find(([value]) => value === priority);
  return found ? found[1] : `priority ${priority}`;
}

class MemberCard {
  constructor(name, act) {
    this.name = name;
    this.root = element("article", "card member");
    this.root.dataset.member = name;
    const heading = element("div", "heading");
    const title = element("div");
    this.pill = element("span", "pill quiet");
    title.append(element("h2", "", name), this.pill);
    this.view = element("span", "soft");
    heading.append(title, this.view);
    this.root.append(heading, this.makeButtons(act));
    this.queues = this.lane("queued for\na position");
    this.unconsumed = this.lane("ordered,\nnot consumed");
    this.undelivered = this.lane("its own, not\ndelivered here");
    this.delivered = this.lane("delivered,\nthe last right");
    this.delivered.classList.add("newest");
  }

  makeButtons(act) {
    const row = element("div", "buttons");
    const button = (text, className, action) => {
      const made = element("button", className, text);
      made.addEventListener("click", () => act(typeof action === "function" ? action() : action));
      row.append(made);
      return made;
    };
    this.sends = [
      button("Send urgent", "send p3", `send:${this.name}:224:1`),
      button("routine", "send p1", `send:${this.name}:96:1`),
      button("10 × background", "send p0", `send:${this.name}:32:10`),
    ];
    row.append(element("span", "gap"));
    this.killing = button("Kill", "kill", () => `${this.isDown ? "start" : "kill"}:${this.name}`);
    this.pausing = button("Pause", "pause", () => `${this.isPaused ? "resume" : "pause"}:${this.name}`);
    this.cutting = button("Cut off", "cut", `cut:${this.name}`);
    return row;
  }

  lane(label) {
    const lane = element("div", "lane");
    const chips = element("div", "chips");
    const text = element("span");
    text.append(label.split("\n")[0], element("br"), " " + label.split("\n")[1]);
    lane.append(text, chips);
    this.root.append(lane);
    return chips;
  }

  show(member, over) {
    this.isDown = member.state === "down";
    this.isPaused = member.paused;
    this.root.classList.toggle("down", this.isDown);
    this.pill.textContent = member.state + (member.cut ? ", cut off" : "");
    this.pill.className = `pill ${member.cut ? "warn" : STATE_PILLS[member.state]}`;
    const incarnation = member.incarnation > 1 ? ` · incarnation ${member.incarnation}` : "";
    const role = member.coordinator ? " · coordinator" : "";
    this.view.textContent = member.view ? `view ${member.view}: ${member.view_members.join(" ")}${role}${incarnation}` : "in no view";
    this.killing.textContent = this.isDown ? "Start" : "Kill";
    this.pausing.textContent = member.paused ? "Resume" : "Pause";
    for (const send of this.sends) send.disabled = over || this.isDown;
    this.killing.disabled = over || member.state === "starting";
    this.pausing.disabled = this.cutting.disabled = over || this.isDown;
    const queues = member.queues.map(([priority, count]) => chip(priority, `${count} ${member.is_plain ? "in order of arrival" : nameOf(priority)}`));
    const backlog = member.backlog && !queues.length ? [element("span", "more", `${member.backlog} that others order`)] : [];
    const blocked = member.bottleneck && queues.length ? [element("span", "more", `waits for ${member.bottleneck}`)] : [];
    this.queues.replaceChildren(...queues, ...backlog, ...blocked);
    this.unconsumed.replaceChildren(element("span", "more", [member.unconsumed || "–", member.stall_reason].filter(Boolean).join(", ")));
    const more = member.undelivered_count > member.undelivered.length;
    this.undelivered.replaceChildren(...member.undelivered.map(messageChip), ...(more ? [element("span", "more", "…")] : []));
    this.undelivered.title = `${member.undelivered_count} messages`;
    const count = element("span", "more", `${member.delivered_count}: …`);
    this.delivered.replaceChildren(...(member.delivered_count ? [count] : []), ...member.delivered.slice(-24).map(messageChip));
  }
}

function chip(priority, text) {
  return element("span", `chip p${classOf(priority)}`, text);
}

// An urgent message that overtook others has a ring, and says how many.
function messageChip(message) {
  const made = chip(message.priority, message.name);
  made.title = `${nameOf(message.priority)} message ${message.name}`;
  if (message.overtook && classOf(message.priority) === 3) {
    made.classList.add("overtook");
    made.append(element("small", "", ` ↷${message.overtook}`));
    made.title += `, which overtook ${message.overtook} less urgent ones`;
  }
  return made;
}
