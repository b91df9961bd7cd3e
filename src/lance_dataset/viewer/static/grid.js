// Grid of any number of rows and columns: only what is seen exists, and only that is fetched.

import { element, sparkline } from "./elements.js";
import { mediaAddress } from "./api.js";

const HEAD = 44;
const ROW = 28;
const TALL_ROW = 84;
const PAGE = 100;
const GROUP = 12;
const MOST_PAGES = 240;
// Browsers draw nothing beyond some 33 million pixels; longer tables are scrolled in proportion.
const TALLEST = 8_000_000;
const MOST_IMAGE_BYTES = 4_000_000;
const WIDTHS = { number: 150, boolean: 80, time: 190, vector: 170, binary: 130, blob: 130 };

export class Grid {
  constructor(onOpen, label) {
    this.onOpen = onOpen;
    this.layer = element("div", { className: "layer" });
    this.extent = element("div", { className: "extent" }, this.layer);
    this.node = element("div", { className: "grid", tabIndex: 0, role: "grid", "aria-label": label }, this.extent);
    this.node.addEventListener("scroll", () => this.scrolled());
    this.node.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.node.addEventListener("keydown", (event) => this.key(event));
    this.layer.addEventListener("click", (event) => this.click(event));
    this.layer.addEventListener("dblclick", () => this.open());
    new ResizeObserver(() => this.draw()).observe(this.node);
    this.top = 0;
    this.focus = { row: 0, column: 0 };
    this.source = null;
  }

  show(source) {
    this.stop();
    this.source = source;
    this.pages = new Map();
    this.pending = new Map();
    this.top = 0;
    this.expected = 0;
    this.focus = { row: 0, column: 0 };
    const media = source.columns.some(({ kind }) => kind === "binary" || kind === "blob") && !source.isResult;
    this.rowHeight = media ? TALL_ROW : ROW;
    this.placeWidth = 40 + 8 * String(source.rows).length;
    this.lefts = [this.placeWidth];
    for (const { kind, name } of source.columns) {
      const width = Math.max(WIDTHS[kind] ?? 220, Math.min(260, 30 + 8 * (name ?? "").length));
      this.lefts.push(this.lefts.at(-1) + width);
    }
    this.node.setAttribute("aria-rowcount", source.rows + 1);
    this.node.setAttribute("aria-colcount", source.columns.length + 1);
    this.measure();
    this.node.scrollTop = 0;
    this.node.scrollLeft = 0;
    this.draw();
  }

  stop() {
    for (const controller of this.pending?.values() ?? []) controller.abort();
  }

  measure() {
    this.height = HEAD + this.source.rows * this.rowHeight;
    this.isScaled = this.height > TALLEST;
    this.extent.style.width = `${this.lefts.at(-1)}px`;
    this.extent.style.height = `${Math.min(this.height, TALLEST)}px`;
  }

  // -- where we are ------------------------------------------------------------------------------------------------

  scrolled() {
    if (!this.source) return;
    if (!this.isScaled) this.top = this.node.scrollTop;
    else if (Math.abs(this.node.scrollTop - this.expected) > 1.5) {
      const share = this.node.scrollTop / (TALLEST - this.node.clientHeight);
      this.top = share * (this.height - this.node.clientHeight);
      this.expected = this.node.scrollTop;
    }
    this.draw();
  }

  wheel(event) {
    if (!this.isScaled || event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    event.preventDefault();
    this.moveTo(this.top + event.deltaY * (event.deltaMode === 1 ? this.rowHeight : 1));
  }

  moveTo(top) {
    const last = Math.max(this.height - this.node.clientHeight, 0);
    this.top = Math.min(Math.max(top, 0), last);
    this.expected = this.isScaled ? (this.top / last) * (TALLEST - this.node.clientHeight) : this.top;
    this.node.scrollTop = this.expected;
    this.draw();
  }

  key(event) {
    const steps = Math.max(Math.floor((this.node.clientHeight - HEAD) / this.rowHeight) - 1, 1);
    const { row, column } = this.focus;
    const lastRow = this.source.rows - 1;
    const lastColumn = this.source.columns.length - 1;
    const moves = {
      ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1], PageDown: [row + steps, column], PageUp: [row - steps, column],
      Home: event.ctrlKey ? [0, column] : [row, 0], End: event.ctrlKey ? [lastRow, column] : [row, lastColumn],
    };
    if (event.key === "Enter") this.open();
    else if (event.key in moves) {
      const [to, place] = moves[event.key];
      this.go(Math.min(Math.max(to, 0), Math.max(lastRow, 0)), Math.min(Math.max(place, 0), Math.max(lastColumn, 0)));
    } else return;
    event.preventDefault();
  }

  go(row, column) {
    this.focus = { row, column };
    const y = row * this.rowHeight;
    const room = this.node.clientHeight - HEAD - this.rowHeight;
    if (y < this.top) this.moveTo(y);
    else if (y > this.top + room) this.moveTo(y - room);
    const [left, right] = [this.lefts[column] - this.placeWidth, this.lefts[column + 1]];
    if (left < this.node.scrollLeft) this.node.scrollLeft = left;
    else if (right > this.node.scrollLeft + this.node.clientWidth) this.node.scrollLeft = right - this.node.clientWidth;
    this.draw();
  }

  click(event) {
    const cell = event.target.closest(".cell[data-row]");
    if (!cell) return;
    this.focus = { row: Number(cell.dataset.row), column: Number(cell.dataset.column) };
    this.draw();
  }

  open() {
    const { row, column } = this.focus;
    const page = this.page(row, column);
    if (!page) return;
    this.onOpen({
      row: page.found.number(row % PAGE), column, place: row, source: this.source,
      value: page.found.cell(row % PAGE, column % GROUP),
    });
  }

  // -- what is fetched ---------------------------------------------------------------------------------------------

  page(row, column) {
    return this.pages.get(`${Math.floor(row / PAGE)}:${Math.floor(column / GROUP)}`);
  }

  fetchSeen(rows, columns) {
    const wanted = new Set();
    for (let page = Math.floor(rows[0] / PAGE); page * PAGE < rows[1]; page += 1) {
      for (let group = Math.floor(columns[0] / GROUP); group * GROUP < columns[1]; group += 1) wanted.add(`${page}:${group}`);
    }
    for (const [key, controller] of this.pending) {
      if (!wanted.has(key)) {
        controller.abort();
        this.pending.delete(key);
      }
    }
    for (const key of wanted) if (!this.pages.has(key) && !this.pending.has(key)) this.load(key);
  }

  async load(key) {
    const source = this.source;
    const [page, group] = key.split(":").map(Number);
    const controller = new AbortController();
    this.pending.set(key, controller);
    const start = page * PAGE;
    const count = Math.min(PAGE, source.rows - start);
    const places = [];
    for (let place = group * GROUP; place < Math.min((group + 1) * GROUP, source.columns.length); place += 1) places.push(place);
    let entry;
    try {
      if (this.isScaled) await new Promise((resolve) => setTimeout(resolve, 40));
      if (controller.signal.aborted) return;
      entry = { found: await source.fetch(start, count, places, controller.signal) };
    } catch (error) {
      if (controller.signal.aborted) return;
      entry = { error, found: null };
    }
    if (source !== this.source) return;
    this.pending.delete(key);
    this.pages.set(key, entry.found ? entry : { ...entry, found: { cell: () => undefined, number: () => null, rows: 0 } });
    if (this.pages.size > MOST_PAGES) this.pages.delete(this.pages.keys().next().value);
    this.draw();
  }

  // -- what is drawn -----------------------------------------------------------------------------------------------

  draw() {
    if (!this.source || this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      this.paint();
    });
  }

  paint() {
    const { clientWidth: width, clientHeight: height, scrollLeft: left } = this.node;
    this.layer.style.width = `${width}px`;
    this.layer.style.height = `${height}px`;
    const first = Math.floor(this.top / this.rowHeight);
    const rows = [first, Math.min(first + Math.ceil((height - HEAD) / this.rowHeight) + 1, this.source.rows)];
    const columns = this.seenColumns(left, left + width);
    if (rows[1] > rows[0] && columns[1] > columns[0]) this.fetchSeen(rows, columns);
    const lines = [this.headLine(columns, left)];
    for (let row = rows[0]; row < rows[1]; row += 1) lines.push(this.line(row, columns, left));
    this.layer.replaceChildren(...lines);
    const focused = this.layer.querySelector(".focused");
    if (focused) this.node.setAttribute("aria-activedescendant", focused.id);
    else this.node.removeAttribute("aria-activedescendant");
  }

  seenColumns(left, right) {
    const count = this.source.columns.length;
    let [low, high] = [0, count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.lefts[middle + 1] <= left + this.placeWidth) low = middle + 1;
      else high = middle;
    }
    let end = low;
    while (end < count && this.lefts[end] < right) end += 1;
    return [low, end];
  }

  headLine(columns, left) {
    const line = element("div", { role: "row", "aria-rowindex": 1 });
    for (let place = columns[0]; place < columns[1]; place += 1) {
      const { name, type } = this.source.columns[place];
      const cell = element("div", { className: "cell head", role: "columnheader", "aria-colindex": place + 2, title: `${name}: ${type}` });
      cell.append(name, element("small", {}, type));
      line.append(this.placed(cell, this.lefts[place] - left, 0, this.lefts[place + 1] - this.lefts[place], HEAD));
    }
    const corner = element("div", { className: "cell head place", role: "columnheader", "aria-colindex": 1 }, "row");
    line.append(this.placed(corner, 0, 0, this.placeWidth, HEAD));
    return line;
  }

  line(row, columns, left) {
    const line = element("div", { role: "row", "aria-rowindex": row + 2 });
    const y = HEAD + row * this.rowHeight - this.top;
    let number = null;
    for (let place = columns[0]; place < columns[1]; place += 1) {
      const page = this.page(row, place);
      if (page) number ??= page.found.number(row % PAGE);
      const cell = this.cell(row, place, page);
      line.append(this.placed(cell, this.lefts[place] - left, y, this.lefts[place + 1] - this.lefts[place], this.rowHeight));
    }
    const head = element("div", { className: "cell place", role: "rowheader", "aria-colindex": 1 }, number === null ? "" : String(number));
    line.append(this.placed(head, 0, y, this.placeWidth, this.rowHeight));
    return line;
  }

  cell(row, place, page) {
    const { kind } = this.source.columns[place];
    const isFocused = row === this.focus.row && place === this.focus.column;
    const names = ["cell", kind === "number" ? "number" : "", isFocused ? "focused" : ""];
    const made = element("div", { role: "gridcell", "aria-colindex": place + 2, id: `cell-${row}-${place}` });
    made.dataset.row = row;
    made.dataset.column = place;
    const value = page ? page.found.cell(row % PAGE, place % GROUP) : undefined;
    if (page?.error) {
      made.textContent = "unreadable";
      made.title = page.error.message;
      names.push("null");
    } else if (value === null) {
      made.textContent = "null";
      names.push("null");
    } else if (Array.isArray(value)) made.append(sparkline(value));
    else if (value !== undefined) this.fill(made, value, kind, page.found.number(row % PAGE), place);
    made.className = names.join(" ");
    made.style.lineHeight = `${ROW - 2}px`;
    return made;
  }

  fill(cell, value, kind, row, place) {
    cell.textContent = value;
    if ((kind !== "binary" && kind !== "blob") || this.source.isResult) return;
    const address = mediaAddress({ version: this.source.version, row, column: place, most: MOST_IMAGE_BYTES });
    this.images ??= new Map();
    let image = this.images.get(address);
    if (image === null) return;
    if (!image) {
      image = element("img", { alt: "", src: address });
      image.addEventListener("error", () => {
        this.images.set(address, null);
        image.replaceWith(value);
      });
      this.images.set(address, image);
      if (this.images.size > 500) this.images.delete(this.images.keys().next().value);
    }
    cell.title = value;
    cell.replaceChildren(image);
  }

  placed(cell, left, top, width, height) {
    Object.assign(cell.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    return cell;
  }
}
