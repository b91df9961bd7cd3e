import { arrow } from "./api.js";
import { element, problem } from "./elements.js";
import { change } from "./state.js";

const MOST_SELECTED = 500;
const METHODS = [["pca", "principal components"], ["umap", "UMAP (neighbors)"]];

// Vectors as points of a plane; a frame around points selects their rows.
export function mapPanel(page, now) {
  const vectors = page.table.columns.flatMap(({ kind, name }, place) => (kind === "vector" ? [[name, place]] : []));
  if (!vectors.length) return { nodes: [element("p", {}, "The dataset has no column of vectors.")] };
  const column = Number(now.map ?? vectors[0][1]);
  const options = vectors.map(([name, place]) => element("option", { value: place, selected: place === column }, name));
  const choice = element("select", { "aria-label": "Column of vectors", onchange: () => change({ map: choice.value }) }, ...options);
  const method = now.method ?? METHODS[0][0];
  const methods = METHODS.map(([value, text]) => element("option", { value, selected: value === method }, text));
  const kind = element("select", { "aria-label": "Method of the map", onchange: () => change({ method: kind.value }) }, ...methods);
  const note = element("span", { role: "status", className: "dim" });
  const canvas = element("canvas", { role: "img", "aria-label": `Vectors as points of a sample of rows: ${METHODS.find(([value]) => value === method)?.[1] ?? method}` });
  let points = [];
  let frame = null;

  async function start() {
    if (method === "umap") note.textContent = "computing the map, which takes some seconds";
    try {
      const found = await arrow("map", { version: now.version, column, filter: now.filter, method });
      const [x, y, row] = ["x", "y", "row"].map((name) => found.getChild(name));
      points = Array.from({ length: found.numRows }, (_, i) => ({ x: x.get(i), y: y.get(i), row: row.get(i) }));
      note.textContent = `${points.length.toLocaleString("en")} rows; draw a frame to select some`;
      draw();
    } catch (error) {
      note.replaceChildren(problem(error, now.filter));
    }
  }

  function at(point) {
    return [((point.x + 1.05) / 2.1) * canvas.width, ((1.05 - point.y) / 2.1) * canvas.height];
  }

  function draw() {
    const scale = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * scale;
    canvas.height = canvas.clientHeight * scale;
    const context = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    context.fillStyle = style.getPropertyValue("--bar");
    for (const point of points) {
      const [x, y] = at(point);
      context.fillRect(x - 1.5 * scale, y - 1.5 * scale, 3 * scale, 3 * scale);
    }
    if (!frame) return;
    context.strokeStyle = style.getPropertyValue("--text");
    context.strokeRect(frame[0], frame[1], frame[2] - frame[0], frame[3] - frame[1]);
  }

  function place(event) {
    const scale = canvas.width / canvas.clientWidth;
    return [event.offsetX * scale, event.offsetY * scale];
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    frame = [...place(event), ...place(event)];
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!frame) return;
    frame = [frame[0], frame[1], ...place(event)];
    draw();
  });
  canvas.addEventListener("pointerup", () => {
    if (!frame) return;
    const [left, right] = [frame[0], frame[2]].sort((a, b) => a - b);
    const [top, bottom] = [frame[1], frame[3]].sort((a, b) => a - b);
    const rows = points.filter((point) => {
      const [x, y] = at(point);
      return x >= left - 3 && x <= right + 3 && y >= top - 3 && y <= bottom + 3;
    }).map(({ row }) => row);
    frame = null;
    draw();
    if (rows.length) change({ tab: "rows", filter: `_rowoffset in (${rows.slice(0, MOST_SELECTED).join(", ")})` });
  });
  return { nodes: [element("div", { className: "bar" }, choice, kind, note), canvas], start };
}
