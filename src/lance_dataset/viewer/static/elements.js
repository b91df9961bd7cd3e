// Elements of the page. All text that comes from data goes through textContent, never through markup.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && !key.startsWith("aria")) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function sparkline(points) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 100 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const finite = points.filter(Number.isFinite);
  const low = Math.min(...finite);
  const high = Math.max(...finite);
  const line = document.createElementNS(SVG, "polyline");
  const step = points.length > 1 ? 100 / (points.length - 1) : 0;
  const height = (value) => (high === low ? 50 : 95 - (90 * (value - low)) / (high - low));
  const shown = points.map((value, i) => [i * step, height(value)]).filter(([, y]) => Number.isFinite(y));
  line.setAttribute("points", shown.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "));
  svg.append(line);
  return svg;
}

export function table(heads, rows, label) {
  const numeric = heads.map((_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === "number"));
  const cell = (name, content, i) =>
    element(name, { className: numeric[i] ? "number" : "" }, content instanceof Node ? content : shown(content));
  const head = element("tr", {}, ...heads.map((text, i) => cell("th", text, i)));
  const body = rows.map((row) => element("tr", {}, ...row.map((content, i) => cell("td", content, i))));
  const made = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
  return element("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": label }, made);
}

export function shown(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "number" ? value.toLocaleString("en") : String(value);
}

export function bytes(size) {
  if (size === null || size === undefined) return "";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let place = 0;
  for (; size >= 1000 && place < units.length - 1; place += 1) size /= 1000;
  return `${place ? size.toPrecision(3) : size} ${units[place]}`;
}

// The message of an error, and the text that caused it with its place marked.
export function problem(error, text) {
  const made = element("p", { className: "problem", role: "alert" }, error.message);
  if (error.position !== null && error.position !== undefined && text) {
    const rest = text.slice(error.position);
    const end = /^(\w+|\s*\S?)/u.exec(rest)[0].length || 1;
    made.append(
      element("br"),
      element("code", {}, text.slice(0, error.position), element("mark", {}, rest.slice(0, end) || " "), rest.slice(end)),
    );
  }
  return made;
}
