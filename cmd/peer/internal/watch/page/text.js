// Numbers and elements, as text and as nodes.

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes. */
export function svg(name, attributes = {}, text) {
  const e = document.createElementNS(SVG, name);
  set(e, attributes);
  if (text !== undefined) e.textContent = text;
  return e;
}

/** Sets attributes that differ: what stays costs the browser nothing. */
export function set(e, attributes) {
  for (const [k, v] of Object.entries(attributes)) {
    if (e.getAttribute(k) !== String(v)) e.setAttribute(k, v);
  }
}

/** Sets an element's text if it differs. */
export function write(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

function scaled(x, units, step) {
  let i = 0;
  while (x >= step && i < units.length - 1) { x /= step; i++; }
  return `${x >= 100 || i === 0 ? Math.round(x) : x.toPrecision(3)} ${units[i]}`;
}

export const bytes = (n) => scaled(n, ["B", "kB", "MB", "GB", "TB"], 1000);
export const rate = (n) => (n > 0 ? scaled(n, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], 1000) : "–");
export const micros = (us) => (us > 0 ? scaled(us, ["µs", "ms", "s"], 1000) : "–");
export const count = (n) => (n < 1e6 ? Math.round(n).toLocaleString("en") : scaled(n, ["", "k", "M", "G"], 1000));

/** A number with as many digits as tell something; "–" for none. */
export function short(x) {
  if (x === null || x === undefined) return "–";
  const a = Math.abs(x);
  if (a === 0) return "0";
  return a >= 1000 ? count(x) : a >= 100 ? x.toFixed(0) : a >= 1 ? x.toFixed(2) : a >= 0.001 ? x.toFixed(4) : x.toExponential(1);
}

/** Seconds as a person says them. */
export function span(s) {
  if (s < 1) return micros(s * 1e6);
  if (s < 90) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 5400) return `${Math.floor(s / 60)} min ${String(Math.round(s % 60)).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.round((s % 3600) / 60)).padStart(2, "0")} min`;
}

/** Fills a table's body with rows of texts. */
export function fill(body, rows, none) {
  const columns = body.parentElement.querySelectorAll("th").length;
  const want = rows.length || 1;
  while (body.rows.length > want) body.deleteRow(-1);
  for (let i = 0; i < want; i++) {
    const row = body.rows[i] ?? body.insertRow();
    const cells = rows.length ? rows[i] : [none];
    while (row.cells.length > cells.length) row.deleteCell(-1);
    cells.forEach((text, k) => {
      const cell = row.cells[k] ?? row.insertCell();
      write(cell, text);
      cell.colSpan = rows.length ? 1 : columns;
      cell.className = rows.length ? "" : "none";
    });
  }
}
