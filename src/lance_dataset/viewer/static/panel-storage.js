import { facts } from "./api.js";
import { bytes, element, problem, shown, table } from "./elements.js";

const MOST_TILES = 200;
const MOST_COLUMNS = 500;
const MOST_FRAGMENTS = 200;

// What a version occupies.
export function storagePanel(page, now) {
  const body = element("div", {}, "reading the metadata of the files");

  async function start() {
    try {
      const found = await facts("storage", { version: now.version });
      body.replaceChildren(...describe(found));
    } catch (error) {
      body.replaceChildren(problem(error));
    }
  }

  return { nodes: [body], start };
}

function describe(found) {
  const nodes = [element("p", {}, `${bytes(found.data_bytes)} in ${shown(found.num_fragments)} fragments, ${shown(found.small_fragments)} of them small; ${shown(found.deleted_rows)} deleted rows`)];
  for (const command of found.advice) nodes.push(element("p", {}, "To mend it: ", element("code", {}, command)));
  nodes.push(element("h2", {}, "Columns"), treemap(found.columns.slice(0, MOST_TILES)));
  const columns = found.columns.slice(0, MOST_COLUMNS).map((each) => [
    each.column, each.type, bytes(each.stored), each.plain ? `${((100 * each.stored) / each.plain).toFixed(0)} %` : "", each.pages, each.encodings.join("; "), each.reason,
  ]);
  nodes.push(table(["column", "type", "stored", "of plain", "pages", "encodings", "why"], columns, "Columns"));
  if (found.columns.length > MOST_COLUMNS) nodes.push(element("p", { className: "dim" }, `and ${shown(found.columns.length - MOST_COLUMNS)} smaller columns`));
  if (found.indices.length) {
    const indices = found.indices.map((each) => [
      each.name, each.type, each.columns.join(", "), each.segments, bytes(each.bytes), each.indexed_rows === null ? "" : `${((100 * each.indexed_rows) / Math.max(found.rows, 1)).toFixed(1)} %`,
    ]);
    nodes.push(element("h2", {}, "Indices"), table(["index", "kind", "columns", "segments", "size", "rows covered"], indices, "Indices"));
  }
  const fragments = found.fragments.slice(0, MOST_FRAGMENTS).map((each) => [each.id, each.rows, each.deleted, each.files, bytes(each.bytes)]);
  nodes.push(element("h2", {}, "Fragments"), table(["fragment", "rows", "deleted", "files", "size"], fragments, "Fragments"));
  if (found.fragments.length > MOST_FRAGMENTS) nodes.push(element("p", { className: "dim" }, `and ${shown(found.num_fragments - MOST_FRAGMENTS)} more`));
  return nodes;
}

function treemap(columns) {
  const map = element("div", { className: "treemap", role: "img", "aria-label": "Columns by their size" });
  const items = columns.filter(({ stored }) => stored > 0);
  const total = items.reduce((sum, { stored }) => sum + stored, 0);
  place(items, total, { left: 0, top: 0, width: 100, height: 100 }, map);
  return map;
}

// Halves of about equal size, side by side along the longer edge.
function place(items, total, box, map) {
  if (!items.length) return;
  if (items.length === 1) {
    const [item] = items;
    const tile = element("div", { title: `${item.column}: ${bytes(item.stored)}` }, `${item.column} ${bytes(item.stored)}`);
    for (const edge of ["left", "top", "width", "height"]) tile.style[edge] = `${box[edge]}%`;
    map.append(tile);
    return;
  }
  let count = 0;
  let first = 0;
  while (count < items.length - 1 && (count === 0 || first + items[count].stored <= total / 2)) first += items[count++].stored;
  const share = first / total;
  const isWide = box.width * 3 > box.height;
  const one = isWide ? { ...box, width: box.width * share } : { ...box, height: box.height * share };
  const two = isWide
    ? { ...box, left: box.left + one.width, width: box.width - one.width }
    : { ...box, top: box.top + one.height, height: box.height - one.height };
  place(items.slice(0, count), first, one, map);
  place(items.slice(count), total - first, two, map);
}
