import { DatasetRows, exportAddress, facts } from "./api.js";
import { complete } from "./completion.js";
import { element, problem } from "./elements.js";
import { Grid } from "./grid.js";
import { change } from "./state.js";

// Rows that a filter selects.
export function rowsPanel(page, now) {
  const { columns } = page.table;
  const grid = new Grid(page.open, "Rows");
  const note = element("div", { role: "status" });
  const bar = filterBar(columns, now);
  const downloads = ["parquet", "arrow", "csv"].map((format) =>
    element("a", { href: exportAddress({ version: now.version, filter: now.filter, format }), download: "" }, format),
  );
  const download = element("span", { className: "dim" }, "Download: ");
  downloads.forEach((link) => download.append(link, " "));

  async function start() {
    const version = now.version ?? null;
    try {
      const { rows } = now.filter ? await facts("count", { version, filter: now.filter }) : page.table;
      if (now.filter) note.replaceChildren(`${rows.toLocaleString("en")} of ${page.table.rows.toLocaleString("en")} rows`);
      grid.show(new DatasetRows(columns, rows, version, now.filter ?? null));
    } catch (error) {
      note.replaceChildren(problem(error, now.filter));
      const input = bar.querySelector("input");
      if (error.position !== null) {
        input.focus();
        input.setSelectionRange(error.position, input.value.length);
      }
    }
  }

  return { nodes: [bar, note, grid.node, element("div", {}, download)], start, stop: () => grid.stop() };
}

export function filterBar(columns, now) {
  const input = element("input", { id: "filter", value: now.filter ?? "", spellcheck: false, autocomplete: "off", "aria-label": "Filter: rows for which this is true", placeholder: "Filter, as: price > 3 and city = 'Bern'" });
  const grow = element("div", { className: "grow" }, input);
  complete(input, columns, false);
  const form = element("form", { className: "bar" }, grow, element("button", { className: "main" }, "Filter"));
  form.append(element("button", { type: "button", onclick: () => change({ filter: null }) }, "All rows"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change({ filter: input.value.trim() });
  });
  return form;
}
