"""What every contender can do, so that one loop can measure them all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from data import Comparison


class Handle(ABC):
    """A table opened for reading."""

    @abstractmethod
    def scan(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, one batch at a time."""

    @abstractmethod
    def take(self, rows: np.ndarray, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with these numbers (int64), in this order."""

    @abstractmethod
    def filtered(self, comparison: Comparison) -> pa.Table:
        """The rows that pass, all columns."""

    @abstractmethod
    def count(self, comparison: Comparison | None = None) -> int:
        """The number of rows, or of those that pass."""


class Contender(ABC):
    """A format in the hands of one library with one set of options.

    Attributes
    ----------
    requires
        The distribution that has to be installed.
    stored_by
        Name of the contender whose file it reads; its own name if it writes one.
    reads
        Whether its reads are measured; those of one that differs in how it writes only are another's.
    version
        Lance file version; None for other formats.
    """

    name: str
    description: str
    requires: str
    stored_by: str
    reads: bool = True
    version: str | None = None

    @property
    def writes(self) -> bool:
        return self.stored_by == self.name

    @abstractmethod
    def import_library(self) -> None:
        """Import the library, raising ImportError when it is missing."""

    @abstractmethod
    def write(self, source: pa.Table | pa.RecordBatchReader, path: Path) -> None:
        """Write to `path`, which does not exist."""

    @abstractmethod
    def open(self, path: Path) -> Handle:
        """Open what `write` wrote."""
