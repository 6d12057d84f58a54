// A curve with its axes: two lines of figures are all that it needs.

import { count, set, short, svg, write } from "./text.js";

const WIDTH = 420, HEIGHT = 130, LEFT = 40, RIGHT = 46, TOP = 8, BOTTOM = 20;

/** Draws points, pairs of step and value, into an element, which it names for readers. */
export function curve(id, name, points, { dots = false, zero = false, most: top = Infinity, show = short } = {}) {
  const e = document.getElementById(id);
  const real = points.filter((p) => p[1] !== null);
  if (!real.length) {
    if (e.dataset.empty !== "yes") {
      e.dataset.empty = "yes";
      e.replaceChildren(svg("text", { class: "tick", x: LEFT, y: HEIGHT / 2 }, "nothing yet"));
      set(e, { "aria-label": `${name}: nothing yet` });
    }
    return;
  }
  if (e.dataset.empty !== "no") {
    e.dataset.empty = "no";
    e.replaceChildren(...[0, 1, 2].map(() => svg("line", { class: "grid" })), ...[0, 1, 2, 3, 4].map(() => svg("text", { class: "tick" })),
      svg("path", { class: "curve" }), svg("g"), svg("text", { class: "now" }));
  }
  const [g0, g1, g2, lo, mid, hi, first, end, path, marks, now] = e.children;
  const values = real.map((p) => p[1]);
  let least = zero ? 0 : Math.min(...values), most = Math.max(...values);
  if (most - least < 1e-12) { least -= Math.abs(least) * 0.1 + 1e-6; most = Math.min(top, most + Math.abs(most) * 0.1 + 1e-6); }
  const from = real[0][0], to = real.at(-1)[0];
  const x = (s) => LEFT + (to > from ? ((s - from) / (to - from)) * (WIDTH - LEFT - RIGHT) : WIDTH - LEFT - RIGHT);
  const y = (v) => TOP + (1 - (v - least) / (most - least)) * (HEIGHT - TOP - BOTTOM);
  [[g0, lo, least], [g1, mid, (least + most) / 2], [g2, hi, most]].forEach(([grid, tick, v]) => {
    set(grid, { x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) });
    set(tick, { x: LEFT - 6, y: y(v) + 3, "text-anchor": "end" });
    write(tick, show(v));
  });
  set(first, { x: LEFT, y: HEIGHT - 4 }); write(first, `step ${count(from)}`);
  set(end, { x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }); write(end, to > from ? count(to) : "");
  set(path, { d: "M" + real.map((p) => `${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("L") });
  marks.replaceChildren(...(dots ? real.slice(-60).map((p) => svg("circle", { class: "dot", cx: x(p[0]), cy: y(p[1]), r: 3.5 })) : []));
  const [s, v] = real.at(-1);
  set(now, { x: x(s) + 6, y: y(v) + 3 }); write(now, show(v));
  set(e, { "aria-label": `${name}: ${show(v)} at step ${count(s)}, from ${show(values[0])} at step ${count(from)}` });
}
