// Requests to the server, and windows of rows that it answers with.

export class ServerError extends Error {
  constructor(facts) {
    super(facts.message);
    this.position = facts.position;
  }
}

function address(path, given) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  return `${path}?${query}`;
}

async function answer(path, given, signal) {
  const response = await fetch(address(path, given), { signal });
  if (response.ok) return response;
  let facts;
  try {
    facts = (await response.json()).error;
  } catch {
    facts = { message: `the server answered ${response.status}`, position: null };
  }
  throw new ServerError(facts);
}

export async function facts(name, given = {}, signal = undefined) {
  return (await answer(`api/${name}`, given, signal)).json();
}

export async function arrow(name, given = {}, signal = undefined) {
  const response = await answer(`api/${name}`, given, signal);
  return window.Arrow.tableFromIPC(new Uint8Array(await response.arrayBuffer()));
}

export const mediaAddress = (given) => address("media", given);
export const exportAddress = (given) => address("export", given);

// Rows of the dataset, fetched by pages as they are looked at.
export class DatasetRows {
  constructor(columns, rows, version, filter) {
    Object.assign(this, { columns, rows, version, filter });
  }

  async fetch(start, count, places, signal) {
    const given = { version: this.version, filter: this.filter, start, count, columns: places.join(",") };
    const found = await arrow("rows", given, signal);
    const numbers = found.getChild("row");
    const values = places.map((place, i) => found.getChildAt(i));
    return { cell: (row, i) => value(values[i], row), number: (row) => numbers.get(row), rows: found.numRows };
  }
}

// The result of a query, which is here as a whole.
export class ResultRows {
  constructor(found, version) {
    const fields = found.schema.fields;
    const types = (found.schema.metadata.get("types") ?? "").split("\n");
    this.columns = fields.map((field, i) => ({
      name: field.metadata.get("name"), kind: field.metadata.get("kind"), type: types[i] ?? "",
    }));
    this.values = fields.map((_, i) => found.getChildAt(i));
    this.rows = found.numRows;
    this.more = found.schema.metadata.get("more") === "true";
    this.version = version;
    this.isResult = true;
  }

  async fetch(start, count, places) {
    return {
      cell: (row, i) => value(this.values[places[i]], start + row),
      number: (row) => start + row,
      rows: Math.min(count, this.rows - start),
    };
  }
}

function value(column, row) {
  const found = column.get(row);
  return found !== null && typeof found === "object" ? Array.from(found) : found;
}
