import { arrow, ResultRows } from "./api.js";
import { element, problem } from "./elements.js";
import { Grid } from "./grid.js";
import { change } from "./state.js";

// Search by words, by the vector of a row, or by both.
export function searchPanel(page, now) {
  const grid = new Grid(page.open, "Rows found");
  const note = element("div", { role: "status" });
  const words = element("input", { id: "text", value: now.text ?? "", "aria-label": "Words to search for", placeholder: "Words" });
  const vectors = page.table.columns.flatMap(({ kind, name }, place) => (kind === "vector" ? [[name, place]] : []));
  const [likeColumn, likeRow] = (now.like ?? "").split(":");
  const options = vectors.map(([name, place]) => element("option", { value: place, selected: String(place) === likeColumn }, name));
  const column = element("select", { "aria-label": "Column of vectors" }, ...options);
  const row = element("input", { type: "number", min: 0, value: likeRow ?? "", "aria-label": "Row whose vector is compared", placeholder: "row" });
  const form = element("form", { className: "bar" }, element("div", { className: "grow" }, words));
  if (vectors.length) form.append("like", column, row);
  form.append(element("button", { className: "main" }, "Search"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change({ text: words.value.trim(), like: row.value === "" ? null : `${column.value}:${row.value}` });
  });
  if (now.filter) form.append(element("span", { className: "dim" }, `in rows with ${now.filter}`));

  async function start() {
    if (!now.text && !now.like) {
      note.replaceChildren("Words are found in columns with a full-text index; a row number finds rows with similar vectors.");
      return;
    }
    try {
      const given = { version: now.version, filter: now.filter, text: now.text, column: likeColumn, row: likeRow };
      const rows = new ResultRows(await arrow("search", given), now.version);
      const why = now.text ? "; _why: share of each word in _score, and how often it is among the words of the text" : "";
      note.replaceChildren(`${rows.rows.toLocaleString("en")} rows, the most relevant first${why}`);
      grid.show(rows);
    } catch (error) {
      note.replaceChildren(problem(error));
    }
  }

  return { nodes: [form, note, grid.node], start, stop: () => grid.stop() };
}
