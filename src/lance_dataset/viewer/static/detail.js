// The value that is open: text in full, a vector as a curve, images, audio, video and PDF.

import { facts, mediaAddress } from "./api.js";
import { bytes, element, problem, sparkline } from "./elements.js";
import { change } from "./state.js";

export class Detail {
  constructor(node, table) {
    this.node = node;
    this.table = table;
  }

  close() {
    this.node.hidden = true;
    this.node.replaceChildren();
    document.querySelector(".grid")?.focus();
  }

  async show({ row, column, value, source }) {
    const { name, type, kind } = source.columns[column];
    const body = element("div", {});
    this.node.replaceChildren(
      element("div", { className: "bar" }, element("button", { onclick: () => this.close() }, "Close")),
      element("h2", {}, `${name}, row ${row}`),
      element("p", { className: "dim" }, type),
      body,
    );
    this.node.hidden = false;
    if (Array.isArray(value)) body.append(sparkline(value));
    if (source.isResult) {
      if (!Array.isArray(value)) body.append(element("pre", { tabIndex: 0 }, value === null ? "null" : String(value)));
      return;
    }
    if (kind === "vector" && value !== null) {
      body.append(element("button", { onclick: () => change({ tab: "search", text: null, like: `${column}:${row}` }) }, "More like this row"));
    }
    const given = { version: source.version, row, column };
    try {
      if ((kind === "binary" || kind === "blob") && value !== null) body.append(await media(given));
      else {
        const found = await facts("cell", given);
        const text = found.text === null ? "null" : found.text;
        body.append(element("pre", { tabIndex: 0, "aria-label": "Value" }, text));
        if (found.cut) body.append(element("p", { className: "dim" }, `the first characters of ${found.characters.toLocaleString("en")}`));
      }
    } catch (error) {
      body.append(problem(error));
    }
  }
}

async function media(given) {
  const address = mediaAddress(given);
  const response = await fetch(address, { headers: { Range: "bytes=0-31" } });
  const size = Number(response.headers.get("X-Value-Size") ?? 0);
  if (!response.ok) return element("p", {}, size === 0 ? "no bytes" : "unreadable");
  const type = response.headers.get("Content-Type");
  const about = element("p", { className: "dim" }, `${type}, ${bytes(size)} `, element("a", { href: address, download: "value.bin" }, "download"));
  const shown = player(type.split(";")[0], address);
  return element("div", {}, about, ...(shown ? [shown] : []));
}

function player(type, address) {
  if (type.startsWith("image/")) return element("img", { src: address, alt: "the value as an image" });
  if (type.startsWith("audio/")) return element("audio", { src: address, controls: true });
  if (type.startsWith("video/")) return element("video", { src: address, controls: true });
  if (type === "application/pdf") return element("iframe", { src: address, title: "the value as a document" });
  return null;
}
