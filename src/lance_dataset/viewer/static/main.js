// The page: which panel shows what, the value that is open, keys.

import { facts } from "./api.js";
import { element } from "./elements.js";
import { change, onChange, state } from "./state.js";
import { Detail } from "./detail.js";
import { columnsPanel } from "./panel-columns.js";
import { mapPanel } from "./panel-map.js";
import { planPanel } from "./panel-plan.js";
import { rowsPanel } from "./panel-rows.js";
import { searchPanel } from "./panel-search.js";
import { sqlPanel } from "./panel-sql.js";
import { storagePanel } from "./panel-storage.js";
import { versionsPanel } from "./panel-versions.js";

const PANELS = {
  rows: ["Rows", rowsPanel], sql: ["SQL", sqlPanel], search: ["Search", searchPanel], columns: ["Columns", columnsPanel],
  versions: ["Versions", versionsPanel], storage: ["Storage", storagePanel], map: ["Map", mapPanel], plan: ["Plan", planPanel],
};

const panel = document.getElementById("panel");
const tabs = document.getElementById("tabs");
const detail = new Detail(document.getElementById("detail"), () => page.table);
const page = { table: null, open: (found) => detail.show(found), shown: null };

async function draw() {
  const now = state();
  const version = now.version ?? null;
  try {
    if (page.table === null || page.version !== version) {
      page.table = await facts("table", { version });
      page.version = version;
    }
  } catch (error) {
    panel.replaceChildren(
      element("p", { className: "problem", role: "alert" }, error.message),
      element("button", { onclick: () => change({ version: null }) }, "Show the first version"),
    );
    return;
  }
  describe();
  const name = now.tab in PANELS ? now.tab : "rows";
  for (const tab of tabs.children) {
    const isShown = tab.dataset.name === name;
    tab.setAttribute("aria-selected", String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
    if (isShown) panel.setAttribute("aria-labelledby", tab.id);
  }
  page.shown?.stop?.();
  page.shown = PANELS[name][1](page, now);
  panel.replaceChildren(...page.shown.nodes);
  page.shown.start?.();
}

function describe() {
  const { uri, version, branch, latest, rows, columns } = page.table;
  const name = uri.split("/").filter(Boolean).at(-1) ?? uri;
  document.title = `${name} · Lance`;
  const title = document.getElementById("title");
  title.textContent = name;
  title.title = uri;
  const newest = latest > version && !branch ? `, the newest is ${latest}` : "";
  document.getElementById("summary").textContent =
    `version ${branch ? `${branch}:` : ""}${version}${newest} · ${rows.toLocaleString("en")} rows · ${columns.length.toLocaleString("en")} columns`;
}

function isTyping(event) {
  return event.target.closest("input, textarea, select, dialog") !== null;
}

function keys(event) {
  if (event.key === "Escape") {
    detail.close();
    return;
  }
  if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  const names = Object.keys(PANELS);
  if (event.key === "/") panel.querySelector("input, textarea")?.focus();
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (/^[1-9]$/u.test(event.key) && Number(event.key) <= names.length) change({ tab: names[Number(event.key) - 1] });
  else return;
  event.preventDefault();
}

function moveTab(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const all = [...tabs.children];
  const to = all[(all.indexOf(event.target) + step + all.length) % all.length];
  to.focus();
  to.click();
}

for (const [name, [label]] of Object.entries(PANELS)) {
  const tab = element("button", { role: "tab", id: `tab-${name}`, "aria-controls": "panel", onclick: () => change({ tab: name }) }, label);
  tab.dataset.name = name;
  tabs.append(tab);
}
tabs.addEventListener("keydown", moveTab);
document.addEventListener("keydown", keys);
document.querySelector("[data-skip]").addEventListener("click", (event) => {
  event.preventDefault();
  panel.focus();
});
onChange(draw);
draw();
