import { arrow, ResultRows } from "./api.js";
import { complete } from "./completion.js";
import { element, problem } from "./elements.js";
import { Grid } from "./grid.js";
import { change } from "./state.js";

// Queries of the table `dataset`.
export function sqlPanel(page, now) {
  const grid = new Grid(page.open, "Result");
  const note = element("div", { role: "status" });
  const input = element("textarea", { id: "query", rows: 4, value: now.query ?? "select * from dataset limit 100", spellcheck: false, "aria-label": "SQL query of the table dataset" });
  const grow = element("div", { className: "grow" }, input);
  complete(input, page.table.columns, true);
  const form = element("form", { className: "bar" }, grow, element("button", { className: "main" }, "Run"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (now.query === input.value) start();
    else change({ query: input.value });
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  const controller = new AbortController();

  async function start() {
    if (!now.query) return;
    note.replaceChildren("running");
    try {
      const rows = new ResultRows(await arrow("sql", { version: now.version, query: now.query }, controller.signal), now.version);
      note.replaceChildren(`${rows.more ? "the first " : ""}${rows.rows.toLocaleString("en")} rows`);
      grid.show(rows);
    } catch (error) {
      if (controller.signal.aborted) return;
      note.replaceChildren(problem(error, now.query));
      if (error.position !== null) input.setSelectionRange(error.position, error.position);
    }
  }

  return { nodes: [form, note, grid.node], start, stop: () => { controller.abort(); grid.stop(); } };
}
