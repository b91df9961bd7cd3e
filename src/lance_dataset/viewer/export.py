"""Rows that a filter selects, as a file to download."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.reports.columns import quoted
from lance_dataset.viewer.parameters import Parameters
from lance_dataset.viewer.source import Source

__all__ = ["Export", "export"]


@dataclass(frozen=True)
class Export:
    """A file: its name, its media type, and its parts, which are made as the client takes them."""

    name: str
    type: str
    parts: Iterator[bytes]


def export(source: Source, given: Parameters) -> Export:
    """Return the rows that a filter selects as an Arrow, Parquet or CSV file."""
    dataset = source.dataset(given.text("version"))
    kind = given.required("format")
    if kind not in _FORMATS:
        raise InvalidInputError(f"the format {kind[:40]!r} must be one of {', '.join(_FORMATS)}")
    places = given.integers("columns", most=len(dataset.schema), longest=2_000)
    names = None if places is None else [quoted(source.column(dataset, place).name) for place in places]
    reader = dataset.scanner(names, filter=given.text("filter")).to_reader()
    media_type, open_writer = _FORMATS[kind]
    nested = [field.name for field in reader.schema if field.type.num_fields]
    if kind == "csv" and nested:
        raise UnsupportedError(f"CSV files cannot have nested columns: {', '.join(nested[:5])}; leave them out")
    return Export(f"rows.{kind}", media_type, _parts(reader, open_writer))


def _parts(reader: pa.RecordBatchReader, open_writer: Callable) -> Iterator[bytes]:
    """Yield what a writer writes, a batch at a time."""
    written = _Taken()
    with reader, open_writer(written, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            yield written.take()
    yield written.take()


class _Taken(io.RawIOBase):
    """File that is written to, and whose content is taken away from time to time."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Keep a copy of some bytes."""
        self._parts.append(bytes(data))
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._size

    def take(self) -> bytes:
        """Return what was written since the last call."""
        taken, self._parts = b"".join(self._parts), []
        return taken


def _arrow(sink: io.RawIOBase, schema: pa.Schema) -> pa.ipc.RecordBatchFileWriter:
    return pa.ipc.new_file(sink, schema)


def _parquet(sink: io.RawIOBase, schema: pa.Schema) -> pa.parquet.ParquetWriter:
    import pyarrow.parquet

    return pyarrow.parquet.ParquetWriter(sink, schema)


def _csv(sink: io.RawIOBase, schema: pa.Schema) -> pa.csv.CSVWriter:
    import pyarrow.csv

    return pyarrow.csv.CSVWriter(sink, schema)


_FORMATS: dict[str, tuple[str, Callable]] = {
    "arrow": ("application/vnd.apache.arrow.file", _arrow),
    "parquet": ("application/vnd.apache.parquet", _parquet),
    "csv": ("text/csv", _csv),
}
