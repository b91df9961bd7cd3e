"""Entries of the log of a shard: streams of Arrow with the epoch of their writer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.memwal.schemas import FIELD_ID, TOMBSTONE

__all__ = ["LogEntry", "decode_entry", "encode_entry", "encode_sentinel", "row_names"]

_EPOCH, _GENERATION, _SENTINEL = b"writer_epoch", b"generation", b"fence_sentinel"
_TARGET = b"mem_wal_target_generation_dir"


@dataclass(frozen=True)
class LogEntry:
    """Entry of the log.

    Attributes
    ----------
    epoch
        Epoch of its writer.
    generation
        Generation of the memtable that the rows went to, None in old releases.
    is_sentinel
        True if the entry only takes the place of those of an earlier writer.
    batches
        The rows, as they were written.
    """

    epoch: int
    generation: int | None = None
    is_sentinel: bool = False
    batches: tuple[pa.RecordBatch, ...] = ()


def encode_entry(epoch: int, generation: int, schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    """Return the content of an entry.

    Parameters
    ----------
    epoch, generation
        See `LogEntry`.
    schema
        Schema of `log_schema`.
    batches
        Rows of the same types.
    """
    metadata = {**(schema.metadata or {}), _EPOCH: b"%d" % epoch, _GENERATION: b"%d" % generation}
    return _stream(schema.with_metadata(metadata), batches)


def encode_sentinel(epoch: int) -> pa.Buffer:
    """Return the content of an entry without rows that fences earlier writers."""
    return _stream(pa.schema([], metadata={_EPOCH: b"%d" % epoch, _SENTINEL: b"true"}), ())


def _stream(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
    return sink.getvalue()


def decode_entry(data: bytes, where: str) -> LogEntry:
    """Read an entry and check all of its rows.

    Raises
    ------
    CorruptFileError
        It contradicts the format, or was cut.
    UnsupportedError
        Values of blob columns are in other files.
    """
    try:
        reader = pa.ipc.open_stream(pa.py_buffer(data))
        batches = tuple(reader)
        for batch in batches:
            batch.validate(full=True)
    except (pa.ArrowException, EOFError, OSError, ValueError, MemoryError) as error:
        raise CorruptFileError(
            f"{where}: the entry of the log is torn or not a stream of Arrow ({error}); restore the file, or remove "
            "this entry and all later ones to give up their rows"
        ) from error
    metadata = reader.schema.metadata or {}
    if _TARGET in metadata:
        raise UnsupportedError(f"{where}: the log has blobs in other files, which this release cannot replay")
    epoch = _number(metadata, _EPOCH, where)
    if epoch is None:
        raise CorruptFileError(f"{where}: the entry of the log does not name the epoch of its writer")
    is_sentinel = metadata.get(_SENTINEL) == b"true"
    rows = tuple(batch for batch in batches if batch.num_rows)
    if is_sentinel and rows:
        raise CorruptFileError(f"{where}: a fence of the log has {len(rows)} batches of rows")
    return LogEntry(epoch, _number(metadata, _GENERATION, where), is_sentinel, rows)


def _number(metadata: dict[bytes, bytes], key: bytes, where: str) -> int | None:
    text = metadata.get(key)
    if text is None:
        return None
    if not text.isdigit() or len(text) > 19:
        raise CorruptFileError(f"{where}: {key.decode()} of the entry is {text[:30]!r}, not a number")
    return int(text)


def row_names(schema: pa.Schema, fallback: dict[str, int]) -> dict[int, str]:
    """Return the names of the columns of an entry by field id: by that in their metadata, or else by their name.

    Parameters
    ----------
    schema
        Schema of the batches.
    fallback
        Ids of the columns of the table by name.
    """
    found: dict[int, str] = {}
    for field in schema:
        if field.name == TOMBSTONE:
            continue
        text = (field.metadata or {}).get(FIELD_ID, b"")
        number = int(text) if text.isdigit() and len(text) < 10 else fallback.get(field.name)
        if number is not None:
            found.setdefault(number, field.name)
    return found
