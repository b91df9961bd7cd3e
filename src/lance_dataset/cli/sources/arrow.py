"""Parquet files, Arrow files and Arrow streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset

from lance_dataset.cli.sources.files import SourceFormat
from lance_dataset.errors import InvalidInputError
from lance_dataset.properties import cached_property

__all__ = ["ArrowFile", "ArrowStream", "open_arrow_files"]

_ARROW_FILE_MAGIC = b"ARROW1"
# Batches that Arrow reads ahead of the writer. Arrow's default of 16 uses more memory without benefit.
_READAHEAD = {"batch_readahead": 4, "fragment_readahead": 1}


@dataclass(frozen=True)
class ArrowFile:
    """A Parquet file, or an Arrow file with random access."""

    path: Path
    dataset: pa.dataset.Dataset

    @property
    def name(self) -> str:
        """Path, for messages."""
        return str(self.path)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the file."""
        return self.dataset.schema

    @cached_property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.dataset.count_rows())

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read columns."""
        yield from self.dataset.scanner(columns=list(columns), **_READAHEAD).to_batches()


@dataclass(frozen=True)
class ArrowStream:
    """An Arrow stream. Its number of rows is known only after reading."""

    path: Path
    schema: pa.Schema
    rows: None = None

    @property
    def name(self) -> str:
        """Path, for messages."""
        return str(self.path)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read columns."""
        with pa.memory_map(self.name) as source:
            for batch in pa.ipc.open_stream(source):
                yield batch.select(list(columns))


def open_arrow_files(files: Sequence[Path], kind: SourceFormat) -> list[ArrowFile | ArrowStream]:
    """Open files without reading their rows.

    Raises
    ------
    InvalidInputError
        A file is not of this format.
    """
    return [_open(file, kind) for file in files]


def _open(file: Path, kind: SourceFormat) -> ArrowFile | ArrowStream:
    try:
        if kind is SourceFormat.ARROW and not _has_random_access(file):
            with pa.memory_map(str(file)) as source:
                return ArrowStream(file, pa.ipc.open_stream(source).schema)
        return ArrowFile(file, pa.dataset.dataset(str(file.absolute()), format=_FORMATS[kind]))
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InvalidInputError(f"{file}: cannot be read as {_NAMES[kind]}: {error}") from error


_FORMATS = {SourceFormat.PARQUET: "parquet", SourceFormat.ARROW: "ipc"}
_NAMES = {SourceFormat.PARQUET: "a Parquet file", SourceFormat.ARROW: "an Arrow file or stream"}


def _has_random_access(file: Path) -> bool:
    """Return True if the file has the random access format; a stream starts with its schema instead."""
    with file.open("rb") as opened:
        return opened.read(len(_ARROW_FILE_MAGIC)) == _ARROW_FILE_MAGIC
