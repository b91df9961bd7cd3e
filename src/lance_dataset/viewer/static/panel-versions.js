import { facts } from "./api.js";
import { element, problem, shown, table } from "./elements.js";
import { change } from "./state.js";

// The versions of a branch, tags and branches, and what changed between two versions.
export function versionsPanel(page, now) {
  const body = element("div", {}, "reading");
  const result = element("div", { "aria-live": "polite" });

  async function start() {
    try {
      const found = await facts("versions", { version: now.version, before: now.before });
      body.replaceChildren(...list(found));
      if (now.old) result.replaceChildren(...difference(await facts("compare", { old: now.old, new: now.new })));
    } catch (error) {
      if (body.textContent === "reading") body.replaceChildren();
      result.replaceChildren(problem(error));
    }
  }

  function list(found) {
    const tags = new Map();
    for (const [name, { version }] of Object.entries(found.tags)) tags.set(version, [...(tags.get(version) ?? []), name]);
    const rows = found.versions.map((each, i) => {
      const before = found.versions[i + 1]?.version;
      const links = element("span", { className: "bar" }, element("button", { onclick: () => change({ version: each.version, tab: "rows", filter: null }) }, "Show"));
      if (before) links.append(element("button", { onclick: () => change({ old: before, new: each.version }) }, "Changes"));
      const rowsBefore = found.versions[i + 1]?.rows;
      const more = Number.isInteger(rowsBefore) && Number.isInteger(each.rows) ? each.rows - rowsBefore : null;
      return [each.version, each.timestamp.replace("T", " ").slice(0, 19), each.operation, each.rows, more, each.message, (tags.get(each.version) ?? []).join(", "), links];
    });
    const nodes = [table(["version", "time", "operation", "rows", "more rows", "message", "tags", ""], rows, "Versions")];
    if (found.earlier) nodes.push(element("button", { onclick: () => change({ before: found.versions.at(-1).version }) }, `${found.earlier} earlier versions`));
    if (now.version || now.before) nodes.push(element("button", { onclick: () => change({ version: null, before: null }) }, "Back to the first view"));
    if (found.branches.length) {
      const buttons = found.branches.map((name) => element("button", { onclick: () => change({ version: `${name}:` }) }, name));
      nodes.push(element("h2", {}, "Branches"), element("div", { className: "bar" }, ...buttons));
    }
    return nodes;
  }

  return { nodes: [body, result], start };
}

function difference(found) {
  const pairs = (facts) => Object.entries(facts).map(([name, value]) => [name.replaceAll("_", " "), value]);
  const nodes = [element("h2", {}, `From version ${found.old_version} to ${found.new_version}`)];
  nodes.push(table(["rows", ""], pairs(found.rows), "Rows"), table(["fragments", ""], pairs(found.fragments), "Fragments"));
  if (found.schema.length) {
    const lines = found.schema.map((each) => [each.column, each.change, each.type, each.old_type ?? ""]);
    nodes.push(table(["column", "change", "type", "type before"], lines, "Columns"));
  }
  const { note, ...changed } = found.changed_rows;
  for (const [name, { count, columns, rows }] of Object.entries(changed)) {
    const part = rows.length < count ? `, the first ${rows.length} of them` : "";
    nodes.push(element("h2", {}, `${shown(count)} rows ${name}${part}`));
    if (count) nodes.push(table(["row id", ...columns], rows, `Rows ${name}`));
  }
  if (note) nodes.push(element("p", { className: "dim" }, note));
  return nodes;
}
