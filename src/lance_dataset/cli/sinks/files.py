"""Single files: Parquet, CSV, JSON, NDJSON and Arrow. A file appears when all rows are in it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, TypeAlias

import pyarrow as pa

from lance_dataset.errors import AlreadyExistsError, UnsupportedError

__all__ = ["SUFFIXES", "file_suffix", "opened_new", "write_file"]

_Batches: TypeAlias = Iterable[pa.RecordBatch]
_Write: TypeAlias = Callable[[IO[bytes], pa.Schema, _Batches], None]


def file_suffix(target: str) -> str | None:
    """Return the suffix of a file that can be written, or None."""
    suffix = os.path.splitext(target)[1].lower()
    return suffix if suffix in _WRITERS else None


def write_file(
    target: str, schema: pa.Schema, batches: _Batches, *, overwrite: bool, suffix: str | None = None
) -> None:
    """Write rows to a file, in the format that its name ends with, or that another suffix stands for.

    Raises
    ------
    AlreadyExistsError
        The file exists, and is not to be overwritten.
    UnsupportedError
        The format cannot have columns of these types.
    """
    write = _WRITERS[suffix or os.path.splitext(target)[1].lower()]
    if os.path.lexists(target) and not overwrite:
        raise AlreadyExistsError(f"{target} exists already; replace it with --overwrite")
    with opened_new(target) as opened:
        write(opened, schema, batches)


@contextmanager
def opened_new(target: str) -> Iterator[IO[bytes]]:
    """Open a file that gets its name at the end of the block, and is removed if that raises."""
    partial = f"{target}.{secrets.token_hex(4)}.partial"  # another name than files of others may have
    with open(partial, "xb") as opened:
        try:
            yield opened
            opened.close()
            os.replace(partial, target)
        except BaseException:
            opened.close()
            os.unlink(partial)
            raise


def _write_parquet(opened: IO[bytes], schema: pa.Schema, batches: _Batches) -> None:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetWriter(opened, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_csv(opened: IO[bytes], schema: pa.Schema, batches: _Batches) -> None:
    import pyarrow.csv

    nested = [field.name for field in schema if field.type.num_fields]
    if nested:
        raise UnsupportedError(
            f"CSV files cannot have nested columns ({', '.join(nested)}); leave them out, or use NDJSON"
        )
    with pyarrow.csv.CSVWriter(opened, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_lines(opened: IO[bytes], schema: pa.Schema, batches: _Batches) -> None:
    from lance_dataset.cli.output import json_lines

    for batch in batches:
        opened.writelines(f"{row}\n".encode() for row in json_lines(batch))


def _write_json(opened: IO[bytes], schema: pa.Schema, batches: _Batches) -> None:
    from lance_dataset.cli.output import json_lines

    between = b"["
    for row in chain.from_iterable(map(json_lines, batches)):
        opened.write(between + b"\n" + row.encode())
        between = b","
    opened.write(b"[]\n" if between == b"[" else b"\n]\n")


def _write_arrow(opened: IO[bytes], schema: pa.Schema, batches: _Batches) -> None:
    with pa.ipc.new_file(opened, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


_WRITERS: dict[str, _Write] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".json": _write_json,
    ".ndjson": _write_lines,
    ".jsonl": _write_lines,
    ".arrow": _write_arrow,
}
#: Suffixes of files that can be written.
SUFFIXES = tuple(_WRITERS)
