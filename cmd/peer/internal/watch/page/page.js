// The page: states come by server-sent events, twice a second, and are drawn.

import { curve } from "./curve.js";
import { choosing, chosenRank, draw } from "./map.js";
import { bytes, count, fill, micros, rate, set, short, span, write } from "./text.js";

const $ = (id) => document.getElementById(id);

function connection(state, text) {
  set($("connection"), { "data-state": state });
  write($("connection"), text);
}

function numbers({ train: t }) {
  write($("n-epoch"), t.epoch ? `${t.epoch} / ${t.epochs}` : "–");
  write($("n-step"), t.steps ? `${count(t.step)} / ${count(t.steps)}` : "–");
  write($("n-loss"), t.step ? short(t.loss) : "–");
  write($("n-accuracy"), t.accuracy === null ? "–" : `${(100 * t.accuracy).toFixed(2)} %`);
  write($("n-rate"), t.rate ? count(t.rate) : "–");
  write($("n-bytes"), rate(t.bytes));
  write($("n-left"), t.done ? "done" : t.left ? span(t.left) : "–");
  const part = t.steps ? Math.min(100, (100 * t.step) / t.steps) : 0;
  set($("bar"), { "aria-valuenow": Math.round(part) });
  set($("bar").querySelector("rect"), { width: part.toFixed(1) });
}

function standing({ world: w, ranks, title, gone }) {
  write($("title"), title ? `· ${title}` : "");
  const count = (state) => ranks.filter((r) => r.state === state).length;
  const odd = ["slow", "silent", "gone"].filter(count).map((state) => `${count(state)} ${state}`);
  if (gone.length) odd.push(`${gone.length} lost before`);
  const size = w.wanted > w.size ? `${w.size} of ${w.wanted} ranks` : `${w.size} ranks`;
  write($("standing"), !w.epoch ? `no world yet: waiting for ${w.wanted} ranks`
    : [`world ${w.epoch}${w.ended ? " has ended" : ""}`, size, ...odd].join(" · "));
}

/** Tells of the rank that is chosen, and of its links. */
function about(s) {
  const i = chosenRank(), r = s.ranks[i], g = s.gone[i - s.ranks.length];
  if (!r) {
    if (g) write($("about"), `${g.peer} is gone; it was rank ${g.rank} of world ${g.epoch}.`);
    fill($("links"), [], "none");
    return;
  }
  const parts = [`Rank ${r.rank}${r.rank === s.world.rank ? " (this one)" : ""} is ${r.state === "here" ? "at work" : r.state}`, `step ${count(r.step)}`];
  if (r.work > 0) parts.push(`works ${span(r.work)} a step`);
  if (r.doing && r.waited > 0.5) parts.push(`${r.doing} for ${span(r.waited)}`);
  write($("about"), `${parts.join(", ")}. ${r.peer}`);
  const rows = s.links.filter((l) => l[0] === i || l[1] === i).map(([a, b, rtt, now, can, relayed]) =>
    [`rank ${a + b - i}`, micros(rtt), rate(now), rate(can), relayed ? "relay" : rtt > 0 || now > 0 ? "direct" : "–"]);
  fill($("links"), rows, s.ranks.length > 1 ? "nothing measured yet" : "this rank is alone");
}

function operations(s) {
  fill($("flights"), s.flights.slice(0, 24).map((f) => [
    f.op + (f.peer === undefined ? "" : f.peer < 0 ? " any rank" : ` rank ${f.peer}`) + (f.group ? ` in a group of ${f.ranks}` : ""),
    bytes(f.bytes), f.via || "–", f.started ? span(f.seconds) : `${span(f.seconds)}, queued`]), "nothing at this moment");
  fill($("kinds"), s.kinds.map((k) => [k.kind, count(k.count), span(k.mean), bytes(k.bytes), k.failed ? count(k.failed) : "–"]), "none yet");
}

let newest = "";

/** Events change seldom: the list is made anew when it does. */
function events(s) {
  const mark = s.events.length + (s.events.at(-1)?.time ?? "");
  if (mark === newest) return;
  newest = mark;
  $("events").replaceChildren(...s.events.toReversed().map((e) => {
    const li = document.createElement("li"), time = document.createElement("time"), kind = document.createElement("b");
    li.className = e.kind;
    time.dateTime = e.time;
    time.textContent = new Date(e.time).toLocaleTimeString("en-GB");
    kind.textContent = e.kind;
    li.append(time, kind, e.text);
    return li;
  }));
}

function show(s) {
  numbers(s);
  standing(s);
  draw(s);
  about(s);
  curve("c-loss", "Loss", s.curves.loss.points);
  curve("c-accuracy", "Test accuracy", s.curves.accuracy.points, { dots: true, most: 1, show: (v) => `${(100 * v).toFixed(v < 1 ? 1 : 0)} %` });
  curve("c-rate", "Samples per second", s.curves.rate.points, { zero: true, show: (v) => (v ? count(v) : "0") });
  operations(s);
  events(s);
  document.body.dataset.updates = Number(document.body.dataset.updates ?? 0) + 1;
}

choosing(about);
const source = new EventSource("events");
source.onmessage = (e) => {
  connection("live", "live");
  show(JSON.parse(e.data));
};
source.onerror = () => connection("lost", "the peer does not answer; trying again");
