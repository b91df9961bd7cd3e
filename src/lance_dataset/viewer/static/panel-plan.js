import { facts } from "./api.js";
import { element, problem } from "./elements.js";
import { filterBar } from "./panel-rows.js";

// How rows of a filter are found, and what finding them read.
export function planPanel(page, now) {
  const body = element("div", {}, "running");

  async function start() {
    try {
      const { plan, analysis } = await facts("plan", { version: now.version, filter: now.filter });
      const part = (title, text) => [element("h2", {}, title), element("pre", { tabIndex: 0, className: "wide" }, text)];
      body.replaceChildren(...part("What it read", analysis), ...part("Plan", plan));
    } catch (error) {
      body.replaceChildren(problem(error, now.filter));
    }
  }

  return { nodes: [filterBar(page.table.columns, now), body], start };
}
