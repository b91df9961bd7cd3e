import { facts } from "./api.js";
import { quoted } from "./completion.js";
import { element, problem, shown } from "./elements.js";
import { filterBar } from "./panel-rows.js";
import { change } from "./state.js";

const AT_ONCE = 2;

// Statistics of every column, made as the column is scrolled to. A bar adds its range to the filter.
export function columnsPanel(page, now) {
  const queue = [];
  let running = 0;
  const controller = new AbortController();
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      queue.push(target);
    }
    next();
  }, { rootMargin: "200px" });

  async function next() {
    while (running < AT_ONCE && queue.length) {
      running += 1;
      const card = queue.shift();
      await fill(card, Number(card.dataset.column));
      running -= 1;
    }
  }

  async function fill(card, column) {
    try {
      const found = await facts("statistics", { version: now.version, column, filter: now.filter }, controller.signal);
      card.append(...describe(found, now.filter));
    } catch (error) {
      if (!controller.signal.aborted) card.append(problem(error, now.filter));
    }
  }

  const cards = page.table.columns.map(({ name, type }, place) => {
    const card = element("section", { className: "card", "aria-label": name }, element("h2", {}, name), element("p", { className: "dim" }, type));
    card.dataset.column = place;
    card.dataset.name = name.toLowerCase();
    return card;
  });
  const find = element("input", { "aria-label": "Show columns whose name has", placeholder: "column", oninput: () => {
    for (const card of cards) card.hidden = !card.dataset.name.includes(find.value.toLowerCase());
  } });
  const bar = filterBar(page.table.columns, now);
  bar.append(find);
  const list = element("div", { className: "cards" }, ...cards);
  return {
    nodes: [bar, list],
    start: () => cards.forEach((card) => observer.observe(card)),
    stop: () => { observer.disconnect(); controller.abort(); queue.length = 0; },
  };
}

function describe(found, filter) {
  const nodes = [];
  const line = (...parts) => nodes.push(element("p", {}, parts.filter(Boolean).join(" · ")));
  const part = found.read < found.rows ? `of a sample of ${shown(found.read)} rows` : "";
  line(`${shown(found.nulls)} null`, found.nans ? `${shown(found.nans)} NaN` : "", found.distinct === null ? "" : `${shown(found.distinct)} distinct`, part);
  if (found.minimum !== null) line(`${brief(found.minimum)} to ${brief(found.maximum)}`);
  if (found.mean !== null) line(`mean ${Number(found.mean.toPrecision(6))}`, `deviation ${Number(found.deviation.toPrecision(6))}`);
  if (found.histogram.length) nodes.push(histogram(found, filter));
  if (found.frequent.length) nodes.push(frequent(found, filter));
  return nodes;
}

function histogram(found, filter) {
  const most = Math.max(...found.histogram.map(({ count }) => count), 1);
  const isRange = found.of === "values";
  const what = isRange ? "" : ` (${found.of})`;
  const bars = found.histogram.map(({ low, high, count }, i) => {
    const label = `${low} to ${high}: ${shown(count)}`;
    const bar = element("button", { title: label, "aria-label": label, disabled: !isRange });
    bar.style.height = `${count ? Math.max((100 * count) / most, 3) : 0}%`;
    if (isRange) bar.addEventListener("click", () => change({ filter: joined(filter, range(found, low, high, i === found.histogram.length - 1)) }));
    return bar;
  });
  return element("div", { role: "group", "aria-label": `Histogram of ${found.column}${what}` }, element("div", { className: "bars" }, ...bars), element("span", { className: "dim" }, isRange ? "" : found.of));
}

function frequent(found, filter) {
  const items = found.frequent.map(({ low, count }) => {
    const condition = `${quoted(found.column)} = ${literal(found, low)}`;
    const button = element("button", { onclick: () => change({ filter: joined(filter, condition) }) }, element("span", {}, low), element("span", {}, shown(count)));
    return element("li", {}, button);
  });
  return element("ul", { className: "frequent", "aria-label": `Most frequent values of ${found.column}` }, ...items);
}

function range(found, low, high, isLast) {
  const name = quoted(found.column);
  return `${name} >= ${literal(found, low)} and ${name} ${isLast ? "<=" : "<"} ${literal(found, high)}`;
}

function literal({ kind, type }, text) {
  if (kind === "number" || kind === "boolean") return text;
  const quotedText = `'${text.replaceAll("'", "''")}'`;
  if (kind !== "time") return quotedText;
  return type.startsWith("date") ? `date ${quotedText}` : type.startsWith("timestamp") ? `timestamp ${quotedText}` : quotedText;
}

function brief(text) {
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function joined(filter, condition) {
  return filter ? `(${filter}) and ${condition}` : condition;
}
