// The page: asks the worker to let time pass or to do something, and shows what it answers.
"use strict";

const SPEEDS = [5, 20, 50, 100, 250, 1000, 5000]; // virtual milliseconds per second
const UPDATE_MS = 100;
const STRIP_FACTOR = 20; // the ten seconds of the strip show 500 ms of virtual time
const STEP_MS = 5;

const $ = (id) => document.getElementById(id);
const state = { snapshot: null, playing: false, target: 0, shownAt: 0, cards: new Map(), busy: Promise.resolve() };
const strip = new Strip($("strip"), () => STRIP_FACTOR * virtualNow());

// The worker, and the calls that wait for its answers.

const waiting = new Map();
let lastNumber = 0;
const worker = location.protocol === "file:" ? null : new Worker("worker.js", { type: "module" });

function call(method, argument) {
  return new Promise((resolve, reject) => {
    waiting.set(++lastNumber, { resolve, reject });
    worker.postMessage({ number: lastNumber, method, argument });
  });
}

function onMessage({ data }) {
  if (data.number !== undefined) {
    const { resolve, reject } = waiting.get(data.number);
    waiting.delete(data.number);
    if (data.failed) reject(new Error(data.failed));
    else resolve(data.answer);
  } else if (data.failed) {
    fail(data.failed);
  } else {
    $("version").textContent = data.version;
  }
}

function fail(text) {
  state.playing = false;
  setStatus("failed", "bad");
  problem(`The playground does not run here: ${text}`);
}

// One call after the other: each answer is shown before the next call is made.
function ask(method, argument) {
  state.busy = state.busy.then(async () => {
    const { rejected, snapshot } = await call(method, argument);
    problem(rejected);
    show(snapshot, method === "start" && !rejected);
  }).catch((error) => fail(error.message));
  return state.busy;
}

// Time

function virtualNow() {
  if (!state.snapshot) return 0;
  const since = state.playing ? Math.min(performance.now() - state.shownAt, UPDATE_MS) : 0;
  return state.snapshot.time_ms + (since * speed()) / 1000;
}

function speed() {
  return SPEEDS[$("speed").value];
}

async function play() {
  let last = performance.now();
  while (state.playing) {
    await new Promise((resolve) => setTimeout(resolve, UPDATE_MS));
    if (!state.playing) break;
    const now = performance.now();
    const passed = Math.min(now - last, 3 * UPDATE_MS); // a slow machine plays more slowly
    last = now;
    state.target = Math.max(state.target + (passed * speed()) / 1000, state.snapshot.time_ms);
    await ask("advance", Math.floor(state.target));
  }
}

function setPlaying(playing) {
  const starts = playing && !state.playing && !state.snapshot?.over;
  state.playing = playing && !state.snapshot?.over;
  $("play").textContent = state.playing ? "Pause" : "Play";
  if (state.snapshot) setStatus(state.snapshot.over ? "over" : state.playing ? "running" : "stopped", state.playing ? "good" : "quiet");
  if (starts) {
    strip.start();
    play();
  }
}

// What is shown

function show(snapshot, isNew) {
  state.snapshot = snapshot;
  state.shownAt = performance.now();
  if (isNew) begin(snapshot);
  history.replaceState(null, "", `#${snapshot.link}`);
  $("time").textContent = snapshot.time_ms.toLocaleString("en");
  for (const member of snapshot.members) state.cards.get(member.name).show({ ...member, is_plain: !snapshot.prioritised }, snapshot.over);
  showDeliveries(snapshot);
  $("events").replaceChildren(...snapshot.events.map(eventItem).reverse());
  showVerdict(snapshot);
  for (const id of ["step", "play", "cut", "heal", "finish"]) $(id).disabled = snapshot.over;
  if (snapshot.over) setPlaying(false);
}

function begin(snapshot) {
  state.target = snapshot.time_ms;
  strip.clear();
  state.cards = new Map(snapshot.members.map(({ name }) => [name, new MemberCard(name, act)]));
  $("members").replaceChildren(...[...state.cards.values()].map((card) => card.root));
  $("overtaking").textContent = "A steep line that crosses others is a message that overtakes them.";
  const priorities = snapshot.prioritised ? "urgent first" : "plain";
  $("ordering").textContent = `${snapshot.order}, ${priorities}, ${snapshot.policy} group`;
  fillChoices(snapshot.link);
}

function showDeliveries(snapshot) {
  const at = STRIP_FACTOR * snapshot.time_ms;
  const ago = (us) => STRIP_FACTOR * (snapshot.time_ms - us / 1000);
  strip.add(snapshot.deliveries.map((each) => [ago(each.delivered_us), 0, 1, each.priority, each.name,
    ago(each.broadcast_us) - ago(each.delivered_us), each.overtook]), at);
  const overtaking = snapshot.overtaking;
  if (!overtaking) return;
  const took = (overtaking.delivered_us - overtaking.broadcast_us) / 1000;
  $("overtaking").textContent = `The ${nameOf(overtaking.priority)} message ${overtaking.name} overtook ${overtaking.overtook} less urgent ones that had been broadcast before it, and was delivered after ${took.toFixed(1)} ms.`;
}

function eventItem([time, text]) {
  const item = element("li");
  item.append(element("time", "", `${time.toLocaleString("en")} ms`), text);
  return item;
}

function showVerdict(snapshot) {
  const { violations, over } = snapshot;
  const broken = violations.map((each) => each.split(":")[0]);
  $("guarantees").replaceChildren(...snapshot.guarantees.map((name) => element("li", broken.includes(name) ? "broken" : "", name)));
  const verdict = violations.length ? "violated" : over ? "all hold" : "checked as it runs";
  $("verdict").textContent = verdict;
  $("verdict").className = `pill ${violations.length ? "bad" : over ? "good" : "quiet"}`;
  if (violations.length) problem(violations.join("; "));
  $("digest").textContent = snapshot.digest;
  $("digest-note").textContent = over ? "The digest of the trace, a hash of every event at every member:" : "The digest of the trace is computed at the end.";
  $("command").textContent = snapshot.command;
}

function problem(text) {
  $("problems").textContent = text;
  $("problems").hidden = !text;
}

function setStatus(text, kind) {
  $("status").textContent = text;
  $("status").className = `pill ${kind}`;
}

// What somebody does

function act(action) {
  return ask("act", action);
}

function cutInTwo() {
  const names = state.snapshot.members.map(({ name }) => name);
  return act(`cut:${names.slice(0, Math.floor(names.length / 2)).join("-")}`);
}

async function start(link) {
  setPlaying(false);
  await ask("start", link);
}

function fillChoices(link) {
  const values = new URLSearchParams(link);
  for (const field of $("choices").elements) {
    if (field.name) field.value = values.get(field.name) ?? { load: "200", priorities: "first" }[field.name] ?? "";
  }
  showFields();
}

function showFields() {
  const isDrawn = $("choices").elements.run.value === "drawn";
  for (const label of document.querySelectorAll(".of-group")) label.hidden = isDrawn;
  for (const name of ["order", "members"]) {
    const field = $("choices").elements[name];
    field.querySelector("option[value='']").hidden = !isDrawn;
    if (!isDrawn && !field.value) field.value = { order: "sequencer-ub", members: "4" }[name];
  }
}

function chosenLink() {
  const fields = [...$("choices").elements].filter((field) => field.name && field.value && !field.closest("[hidden]"));
  return fields.map((field) => `${field.name}=${field.value}`).join("&");
}

function offer(name, values) {
  const field = $("choices").elements[name];
  field.append(new Option("drawn", ""), ...values.map((value) => new Option(value, value)));
}

async function open() {
  if (!worker) return fail("a browser loads WebAssembly only from a web server; in this directory, `python3 -m http.server` is one");
  worker.onmessage = onMessage;
  worker.onerror = (event) => fail(event.message || "the worker could not be loaded");
  const { orders, members_min: least, members_max: most } = await call("choosable");
  offer("order", orders);
  offer("members", Array.from({ length: most - least + 1 }, (_, index) => String(least + index)));
  const given = location.hash;
  await start(given);
  setPlaying(!given.includes("do=") && !matchMedia("(prefers-reduced-motion: reduce)").matches);
}

$("choices").addEventListener("submit", async (event) => {
  event.preventDefault();
  await start(chosenLink());
  setPlaying(true);
});
$("choices").addEventListener("change", showFields);
$("play").addEventListener("click", () => setPlaying(!state.playing));
$("step").addEventListener("click", () => { setPlaying(false); ask("advance", state.snapshot.time_ms + STEP_MS); });
$("cut").addEventListener("click", cutInTwo);
$("heal").addEventListener("click", () => act("heal"));
$("finish").addEventListener("click", () => { setPlaying(false); setStatus("checking", "quiet"); ask("finish"); });
$("copy").addEventListener("click", () => navigator.clipboard.writeText(location.href));
$("speed").addEventListener("input", () => { $("speed-text").textContent = `1 s shows ${speed()} ms`; });
$("speed-text").textContent = `1 s shows ${speed()} ms`;
for (const change of ["resize", "focus"]) addEventListener(change, () => strip.start());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => strip.start());
addEventListener("hashchange", () => start(location.hash));
open().catch((error) => fail(error.message));
