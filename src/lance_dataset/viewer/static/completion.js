// Completion of column names and words of SQL while one types.

import { element } from "./elements.js";

const WORDS = ["and", "or", "not", "is null", "is not null", "like", "in", "between", "true", "false"];
const SQL_WORDS = ["select", "from dataset", "where", "group by", "order by", "limit", "count(*)", "having", "as", "distinct"];
const MOST = 12;

export function complete(input, columns, isSql) {
  const list = element("ul", { className: "completion", role: "listbox", hidden: true, id: `${input.id}-words`, "aria-label": "Completions" });
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-expanded", "false");
  input.setAttribute("aria-controls", list.id);
  const words = [...columns.map(({ name }) => (/^[a-z_]\w*$/u.test(name) ? name : quoted(name, isSql))), ...WORDS, ...(isSql ? SQL_WORDS : [])];
  let chosen = 0;

  function prefix() {
    return /[\w"`]+$/u.exec(input.value.slice(0, input.selectionStart))?.[0] ?? "";
  }

  function show() {
    const typed = prefix().replace(/^["`]/u, "").toLowerCase();
    const found = typed ? words.filter((word) => word.replace(/^["`]/u, "").toLowerCase().startsWith(typed) && word !== typed).slice(0, MOST) : [];
    chosen = 0;
    list.replaceChildren(
      ...found.map((word, i) =>
        element("li", { role: "option", id: `${list.id}-${i}`, "aria-selected": String(i === 0), onmousedown: (event) => { event.preventDefault(); accept(word); } }, word),
      ),
    );
    toggle(found.length > 0);
  }

  function toggle(isOpen) {
    list.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) input.setAttribute("aria-activedescendant", list.children[chosen].id);
    else input.removeAttribute("aria-activedescendant");
  }

  function accept(word) {
    const end = input.selectionStart;
    input.setRangeText(word, end - prefix().length, end, "end");
    toggle(false);
    input.focus();
  }

  input.addEventListener("input", show);
  input.addEventListener("blur", () => toggle(false));
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      chosen = (chosen + step + list.children.length) % list.children.length;
      [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
      toggle(true);
    } else if (event.key === "Tab") accept(list.children[chosen].textContent);
    else if (event.key === "Escape") toggle(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  input.after(list);
}

export function quoted(name, isSql) {
  return isSql ? `"${name.replaceAll('"', '""')}"` : `\`${name}\``;
}
