// The world as a picture: ranks on a circle, a line for each link.

import { micros, rate, set, svg, write } from "./text.js";

const CENTRE = 320, RADIUS = 232;
const FAR = 5000; // µs: a round trip from which on a link is far

let chosen = null, follow = true, drawn = "", last = null;
const map = document.getElementById("map");
let lines = new Map(), nodes = [], labels = null, onChoose = () => {};

/** Has f called with the rank that is chosen, whenever it is another. */
export function choosing(f) { onChoose = f; }
export const chosenRank = () => chosen;

function at(i, n, radius = RADIUS) {
  const a = (2 * Math.PI * i) / n - Math.PI / 2;
  return [CENTRE + radius * Math.cos(a), CENTRE + radius * Math.sin(a), a];
}

/** A node's radius: as large as its neighbours let it be. */
const size = (n) => Math.min(24, (Math.PI * RADIUS) / Math.max(n, 2) - 1.5);

/** Draws what stays as long as the ranks do. */
function build(s) {
  map.replaceChildren();
  lines = new Map();
  nodes = [];
  const places = s.ranks.length + s.gone.length, r = size(places);
  map.append(svg("g", { id: "lines" }));
  labels = map.appendChild(svg("g", { "aria-hidden": true }));
  for (let i = 0; i < places; i++) {
    const [x, y, a] = at(i, places);
    const g = svg("g", { class: "node", role: "button", tabindex: -1 });
    const rank = s.ranks[i];
    g.append(svg("circle", { class: "ring", cx: x, cy: y, r: r + 2 }), svg("circle", { class: "body", cx: x, cy: y, r }));
    g.append(svg("text", { x, y, "font-size": Math.min(15, r * 1.15) }, rank ? rank.rank : "×"));
    // The word beside a rank goes outwards, so that it is in nobody's way.
    const flip = Math.cos(a) < -0.001, degrees = (a * 180) / Math.PI + (flip ? 180 : 0);
    const [wx, wy] = at(i, places, RADIUS + r + 8);
    g.append(svg("text", { class: flip ? "word end" : "word", x: wx, y: wy, transform: `rotate(${degrees} ${wx} ${wy})` }, ""));
    g.addEventListener("click", () => choose(i, true));
    g.addEventListener("focus", () => choose(i, true));
    map.append(g);
    nodes.push(g);
  }
}

/** Chooses a place: a rank, or one who is gone. */
function choose(i, byHand) {
  if (byHand) follow = false;
  if (i === chosen || !last) return;
  chosen = i;
  draw(last);
  onChoose(last);
}

map.addEventListener("keydown", (e) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
  const to = step ? (chosen + step + nodes.length) % nodes.length : { Home: 0, End: nodes.length - 1 }[e.key];
  if (to === undefined || !nodes.length) return;
  e.preventDefault();
  choose(to, true);
  nodes[to].focus();
});

/** Draws a state. */
export function draw(s) {
  last = s;
  const shape = [s.world.epoch, s.ranks.length, s.gone.length].join();
  if (shape !== drawn) {
    const focused = map.contains(document.activeElement);
    drawn = shape;
    if (follow || chosen === null || chosen >= s.ranks.length) chosen = s.world.rank;
    build(s);
    if (focused && nodes[chosen]) nodes[chosen].focus();
  }
  if (!s.ranks.length) {
    write(map.querySelector(".middle") ?? map.appendChild(svg("text", { class: "middle", x: CENTRE, y: CENTRE })),
      `waiting for ${s.world.wanted || "the"} ranks to meet`);
    return;
  }
  s.ranks.forEach((r, i) => node(i, r.state, word(r, s), `rank ${r.rank}, ${r.state}, step ${r.step}, ${r.peer}`, r.rank === s.world.rank));
  s.gone.forEach((g, i) => node(s.ranks.length + i, "gone", "gone", `${g.peer}, gone, was rank ${g.rank} of world ${g.epoch}`, false));
  links(s);
}

function word(r, s) {
  if (r.rank === s.world.rank && r.state === "here") return "this rank";
  return r.state === "here" || r.state === "unknown" ? "" : r.state;
}

function node(i, state, text, label, self) {
  set(nodes[i], { class: `node ${state}${self ? " self" : ""}`, "aria-label": label, "aria-pressed": i === chosen, tabindex: i === chosen ? 0 : -1 });
  write(nodes[i].lastChild, text);
}

/** Lines; those of the chosen rank stand out, and are labelled while there is room. */
function links(s) {
  const places = s.ranks.length + s.gone.length, seen = new Set();
  const most = Math.max(1, ...s.links.map((l) => l[3]));
  const quiet = Math.min(0.5, 3 / s.ranks.length);
  const room = s.ranks.length <= 10;
  labels.replaceChildren();
  for (const [a, b, rtt, now, , relayed] of s.links) {
    const key = `${a}-${b}`, mine = a === chosen || b === chosen;
    seen.add(key);
    let line = lines.get(key);
    if (!line) {
      const [x1, y1] = at(a, places), [x2, y2] = at(b, places);
      line = map.firstChild.appendChild(svg("line", { x1, y1, x2, y2 }));
      lines.set(key, line);
    }
    set(line, {
      class: `link${rtt > FAR ? " far" : ""}${relayed ? " relayed" : ""}`,
      "stroke-width": (0.8 + 5 * Math.sqrt(now / most)).toFixed(1),
      "stroke-opacity": mine ? 0.95 : quiet.toFixed(2),
    });
    if (mine && room) label(a === chosen ? a : b, a === chosen ? b : a, places, rtt, now);
  }
  for (const [key, line] of lines) {
    if (!seen.has(key)) { line.remove(); lines.delete(key); }
  }
}

function label(from, to, places, rtt, now) {
  const [x1, y1] = at(from, places), [x2, y2] = at(to, places), part = 0.58;
  const x = x1 + (x2 - x1) * part, y = y1 + (y2 - y1) * part;
  const text = svg("text", { class: "linklabel", x, y });
  text.append(svg("tspan", { x, dy: now > 0 ? "-0.2em" : "0.35em" }, micros(rtt)));
  if (now > 0) text.append(svg("tspan", { x, dy: "1.15em" }, rate(now)));
  labels.append(text);
}
