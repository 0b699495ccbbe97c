// The live page: receives updates of one or several nodes, and shows one of their groups.
"use strict";

const NAMES = { 255: "highest", 224: "urgent", 160: "elevated", 96: "routine", 32: "background", 0: "lowest" };
const CLASS_NAMES = ["background", "routine", "elevated", "urgent"];
const WINDOW_MS = 10000;
const RENDER_MS = 200;
const STALE_MS = 3000;
const SLOW_MS = 500;
const BUCKET_SERIES = [1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8];

const byId = (id) => document.getElementById(id);
const strip = new Strip(byId("strip"));
const nodes = new Map(); // by address: the last update, and totals of the last seconds by group
let greeting = { orders: [], token_file: "", title: "" };
let shown = null; // the name of the group that is shown
let token = ""; // in memory only: it is gone when the page is closed
let orderTouched = false;
let lastUpdate = 0;
let lastOvertaking = null;

function connect() {
  const events = new EventSource("events");
  events.addEventListener("hello", (event) => {
    greeting = JSON.parse(event.data);
    fillOrders();
    setConnection("live", "good");
  });
  events.addEventListener("update", (event) => {
    lastUpdate = performance.now();
    for (const node of JSON.parse(event.data).nodes) receive(node);
  });
  events.onerror = () => setConnection("connection lost, retrying", "bad");
}

function receive(node) {
  const known = nodes.get(node.address) || { history: new Map() };
  known.node = node;
  nodes.set(node.address, known);
  for (const group of node.groups) {
    const name = group.status.group;
    if (shown === null) show(name);
    const history = known.history.get(name) || [];
    history.push({ clock: node.clock_ms, member: group.status.member, priorities: group.priorities });
    while (history.length > 2 && history[1].clock < node.clock_ms - WINDOW_MS) history.shift();
    if (history[0].member !== group.status.member || history[0].clock > node.clock_ms) history.splice(0, history.length - 1);
    known.history.set(name, history);
    if (name !== shown) continue;
    const mayShow = nodes.size === 1 || firstOf(shown) === known;
    const own = group.status.member.split("#")[0];
    strip.add(group.deliveries.filter((each) => mayShow || each[4] === own), lastUpdate);
    for (const each of group.deliveries) {
      if (each[6] > 0 && classOf(each[3]) === 3) lastOvertaking = { count: each[6], priority: each[3], sender: each[4], waited: each[5], at: lastUpdate };
    }
  }
}

function firstOf(name) {
  return members(name).map(({ known }) => known)[0];
}

// The members of a group that report here.
function members(name) {
  const found = [];
  for (const known of nodes.values()) {
    for (const group of known.node.groups) {
      if (group.status.group === name) found.push({ known, group, status: group.status, name: group.status.member.split("#")[0] });
    }
  }
  return found.sort((a, b) => a.name.localeCompare(b.name));
}

function show(name) {
  shown = name;
  orderTouched = false;
  lastOvertaking = null;
  strip.clear();
}

// What was counted in the last seconds at one member: by priority, the messages and the delivery times.
function recent(known, name) {
  const history = known.history.get(name) || [];
  if (history.length < 2) return { seconds: 0, priorities: new Map() };
  const first = history[0], last = history[history.length - 1];
  const before = new Map(first.priorities.map((each) => [each.priority, each]));
  const priorities = new Map();
  for (const each of last.priorities) {
    const earlier = before.get(each.priority) || { broadcast: 0, delivered: 0, times: [] };
    const times = new Map(each.times);
    for (const [bucket, count] of earlier.times) times.set(bucket, (times.get(bucket) || 0) - count);
    priorities.set(each.priority, { broadcast: each.broadcast - earlier.broadcast, delivered: each.delivered - earlier.delivered, times });
  }
  return { seconds: (last.clock - first.clock) / 1000, priorities };
}

// A percentile in ms from the counts of a histogram whose bounds are those of `TimeHistogram`.
function percentile(times, share) {
  const buckets = [...times].filter(([, count]) => count > 0).sort((a, b) => a[0] - b[0]);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  if (!total) return null;
  let left = share * total;
  for (const [bucket, count] of buckets) {
    if (left <= count) {
      const low = bucket ? bound(bucket - 1) : 0;
      return low + ((bound(bucket) - low) * left) / count;
    }
    left -= count;
  }
  return bound(buckets[buckets.length - 1][0]);
}

function bound(bucket) {
  return BUCKET_SERIES[bucket % 10] * 10 ** Math.floor(bucket / 10) * 0.01;
}

function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 120000) return `${Math.round(ms / 60000)} min`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return ms >= 10 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}

function number(value) {
  return Math.round(value).toLocaleString("en");
}

function nameOf(priority) {
  return NAMES[priority] || `${priority} (${CLASS_NAMES[classOf(priority)]})`;
}

// Elements are made here, and whatever comes from a node becomes text, never markup.
function element(name, text, css) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (css) made.className = css;
  return made;
}

function replace(parent, children) {
  parent.replaceChildren(...children);
}

function setConnection(text, kind) {
  const pill = byId("connection");
  pill.textContent = text;
  pill.className = `pill ${kind}`;
}

function summary() {
  const found = members(shown);
  const rows = new Map();
  let seconds = 0, rate = 0;
  for (const { known, status } of found) {
    const own = recent(known, shown);
    seconds = Math.max(seconds, own.seconds);
    let delivered = 0;
    for (const [priority, counted] of own.priorities) {
      const row = rowOf(rows, priority);
      for (const [bucket, count] of counted.times) row.times.set(bucket, (row.times.get(bucket) || 0) + count);
      if (own.seconds) row.rate = Math.max(row.rate, counted.delivered / own.seconds);
      delivered += counted.delivered;
    }
    if (own.seconds) rate = Math.max(rate, delivered / own.seconds);
    for (const queue of status.queues) {
      const row = rowOf(rows, queue.priority);
      row.waiting += queue.messages;
      row.oldest = Math.max(row.oldest, queue.longest_wait_ms);
    }
  }
  return { found, rows: [...rows.values()].sort((a, b) => b.priority - a.priority), seconds, rate };
}

function rowOf(rows, priority) {
  if (!rows.has(priority)) rows.set(priority, { priority, times: new Map(), rate: 0, waiting: 0, oldest: 0 });
  return rows.get(priority);
}

function render() {
  const isStale = lastUpdate && performance.now() - lastUpdate > STALE_MS;
  if (isStale) setConnection(`no update for ${duration(performance.now() - lastUpdate)}`, "warn");
  else if (lastUpdate && byId("connection").classList.contains("warn")) setConnection("live", "good");
  renderProblems();
  if (shown === null) return;
  const now = summary();
  renderHeader(now);
  renderTiles(now);
  renderPriorities(now);
  renderBlocked(now);
  renderMembers(now);
}

function renderProblems() {
  const problems = [...nodes.values()].filter(({ node }) => node.problem).map(({ node }) => `${node.address}: ${node.problem}`);
  for (const { name, status } of members(shown)) {
    if (status.state === "suspended") problems.push(`${name} is suspended: no quorum can be reached, so nothing is ordered`);
    for (const each of status.storage_problems) problems.push(`${name}: ${each}`);
  }
  byId("problems").hidden = !problems.length;
  replace(byId("problems"), problems.map((text) => element("div", text)));
}

function renderHeader({ found }) {
  const names = new Set();
  for (const { node } of nodes.values()) for (const group of node.groups) names.add(group.status.group);
  document.title = `${shown} – Priocast`;
  byId("title").textContent = shown;
  const status = found.length ? found[0].status : null;
  const kind = status && (status.prioritised ? "urgent first" : "plain");
  byId("subtitle").textContent = status ? `${status.order}, ${kind} · seen from ${found.map((each) => each.name).join(", ")}` : "no member reports";
  byId("version").textContent = found.length ? `Priocast ${found[0].known.node.version}` : "";
  byId("groups").hidden = names.size < 2;
  replace(byId("groups"), [...names].sort().map((name) => {
    const button = element("button", name);
    button.setAttribute("aria-pressed", String(name === shown));
    button.onclick = () => show(name);
    return button;
  }));
  if (status && !orderTouched) {
    byId("order").value = status.order;
    byId("prioritised").value = String(status.prioritised);
  }
}

function renderTiles({ found, rows, rate }) {
  const status = found.length ? found[0].status : null;
  const top = rows.find((row) => percentile(row.times, 0.99) !== null) || rows[0];
  const waiting = rows.reduce((sum, row) => sum + row.waiting, 0);
  const oldest = Math.max(0, ...rows.map((row) => row.oldest));
  const view = viewOf(status);
  replace(byId("tiles"), [
    tile("delivered", `${number(rate)}/s`, "messages, at the fastest member"),
    tile(top ? `${nameOf(top.priority)}, p99` : "p99", duration(top ? percentile(top.times, 0.99) : null), top ? `p50 ${duration(percentile(top.times, 0.5))}` : "no own message yet"),
    tile("waiting", number(waiting), waiting ? `the oldest for ${duration(oldest)}` : "every message has its position"),
    tile("members", view ? String(view.members.length) : "–", view ? `view ${view.number}, for ${duration(status.last_change_seconds_ago * 1000)}` : "joining"),
  ]);
}

function tile(label, value, note) {
  const made = element("div", undefined, "tile");
  made.append(element("span", label, "label"), element("b", value), element("span", note));
  return made;
}

function swatch(priority) {
  const made = element("i", undefined, "swatch");
  made.style.background = `var(--p${classOf(priority)})`;
  return made;
}

function renderPriorities({ rows, seconds, found }) {
  byId("window").textContent = seconds ? `last ${Math.round(seconds)} s` : "";
  const most = Math.max(1, ...rows.map((row) => row.waiting));
  replace(byId("priorities").tBodies[0], rows.map((row) => {
    const line = element("tr");
    const name = element("td");
    name.append(swatch(row.priority), nameOf(row.priority));
    const waiting = element("td", number(row.waiting), "number");
    const bar = element("i", undefined, "bar");
    bar.style.background = `var(--p${classOf(row.priority)})`;
    bar.style.width = `${(row.waiting / most) * 6}rem`;
    name.append(bar);
    const p99 = element("td", undefined, "number");
    p99.append(element("b", duration(percentile(row.times, 0.99))));
    line.append(name, element("td", number(row.rate), "number rate"), element("td", duration(percentile(row.times, 0.5)), "number"),
      p99, waiting, element("td", row.waiting ? duration(row.oldest) : "–", "number"));
    return line;
  }));
  const seen = found.map((each) => each.name).join(", ");
  byId("times-note").textContent = `Delivery times are those of messages that ${seen} broadcast, from broadcast to delivery there. The bars are what waits for a position.`;
  const present = [...new Set(rows.map((row) => classOf(row.priority)))].sort().reverse();
  replace(byId("legend"), present.map((of) => {
    const item = element("li");
    item.append(swatch(of << 6), CLASS_NAMES[of]);
    return item;
  }));
  const last = lastOvertaking;
  byId("overtaking").textContent = last
    ? `Last: ${last.sender}'s ${nameOf(last.priority)} message, delivered after ${duration(last.waited)}, overtook ${number(last.count)} of its own earlier messages that still wait.`
    : "No overtaking seen yet: while nothing waits, there is nothing to overtake.";
}

function renderBlocked({ found }) {
  const blocked = [];
  for (const { name, status } of found) {
    if (status.bottleneck) {
      blocked.push([status.bottleneck, `the order waits for the application of ${status.bottleneck}, for ${duration(status.bottleneck_ms)} now`, status.bottleneck_ms]);
    }
    if (status.stalls.reason) {
      blocked.push([name, `delivery has stalled for ${duration(status.stalls.lasting_ms)}: ${status.stalls.reason}`, status.stalls.lasting_ms]);
    }
    for (const peer of status.peers) {
      if (peer.unacknowledged_ms) blocked.push([peer.member.split("#")[0], `has acknowledged nothing to ${name} for ${duration(peer.unacknowledged_ms)}`, peer.unacknowledged_ms]);
    }
    if (status.state === "changing_view") blocked.push([name, "a new view is being agreed on: nothing is ordered meanwhile", SLOW_MS]);
  }
  replace(byId("blocked"), blocked.length ? blocked.map(([who, why, ms]) => {
    const item = element("li");
    item.append(element("span", who, `pill ${ms >= SLOW_MS ? "warn" : "quiet"}`), ` ${why}`);
    return item;
  }) : [element("li", "Nothing is blocked.", "soft")]);
  const views = found.length ? found[0].group.views.slice(-5).reverse() : [];
  replace(byId("views"), views.map((view) => {
    const item = element("li");
    const took = view.took_ms ? `, took ${duration(view.took_ms)}` : "";
    item.append(element("b", `view ${view.number}`), ` ${view.reason} `, element("span", `${duration(view.seconds_ago * 1000)} ago${took}: ${view.members.join(", ")}`, "soft"));
    return item;
  }));
}

const STATE_KINDS = { active: "good", changing_view: "warn", state_transfer: "warn", joining: "warn", suspended: "bad" };

function renderMembers({ found }) {
  const front = Math.max(0, ...found.map(({ status }) => status.position));
  const reporting = new Map(found.map((each) => [each.name, each]));
  const names = new Set(reporting.keys());
  for (const { status } of found) for (const member of viewOf(status)?.members || []) names.add(member);
  replace(byId("members").tBodies[0], [...names].sort().map((name) => {
    const line = element("tr");
    line.append(element("td", name));
    const suspected = found.filter(({ status }) => status.peers.some((peer) => peer.member.split("#")[0] === name && peer.suspicion >= 0.5)).map((each) => each.name).join(", ");
    const member = reporting.get(name);
    if (!member) {
      const state = element("td");
      state.append(element("span", "in the view", "pill quiet"));
      line.append(state, ...Array.from({ length: 7 }, () => element("td", "–", "number")), element("td", suspected || "–"));
      return line;
    }
    const { status, known } = member;
    const own = recent(known, shown);
    const total = (of) => (own.seconds ? number([...own.priorities.values()].reduce((sum, each) => sum + each[of], 0) / own.seconds) : "–");
    const state = element("td");
    state.append(element("span", status.state.replace("_", " "), `pill ${STATE_KINDS[status.state] || "quiet"}`));
    const cells = [viewOf(status)?.number ?? "–", number(status.position), number(front - status.position), total("delivered"), total("broadcast"), number(status.backlog), number(status.unconsumed)];
    line.append(state, ...cells.map((cell) => element("td", String(cell), "number")), element("td", suspected || "–"));
    return line;
  }));
}

// A view is encoded as a list: its number, and its members as pairs of a name and an incarnation.
function viewOf(status) {
  return status && status.view ? { number: status.view[0], members: status.view[1].map(([name]) => name) } : null;
}

function fillOrders() {
  replace(byId("order"), greeting.orders.map((order) => element("option", order)));
  const mayChange = greeting.token_file !== "";
  byId("change").hidden = !mayChange;
  byId("order-note").textContent = mayChange
    ? `The token is in ${greeting.token_file}, which only the user that runs the node can read. The page keeps it until it is closed.`
    : "";
}

async function changeOrder(event) {
  event.preventDefault();
  const result = byId("order-result");
  token = byId("token").value.trim() || token;
  if (!token) {
    result.textContent = "give the token of the node first";
    byId("token").focus();
    return;
  }
  const body = JSON.stringify({ group: shown, order: byId("order").value, prioritised: byId("prioritised").value === "true" });
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
  try {
    const response = await fetch("order", { method: "POST", headers, body });
    result.textContent = (await response.text()).trim();
    byId("token-label").hidden = response.ok;
    if (response.status === 403) token = "";
    byId("token").value = "";
    if (response.ok) orderTouched = false;
  } catch {
    result.textContent = "no reply: is the node running?";
  }
}

byId("order-form").addEventListener("submit", changeOrder);
for (const id of ["order", "prioritised"]) byId(id).addEventListener("change", () => { orderTouched = true; });
setInterval(render, RENDER_MS);
connect();
