"""Interface of the contenders, so that one loop can measure them all."""

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
        """Read all rows."""

    @abstractmethod
    def batches(self, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows, one batch at a time."""

    @abstractmethod
    def take(self, rows: np.ndarray, columns: Sequence[str] | None = None) -> pa.Table:
        """Take the rows with these numbers (int64), in this order."""

    @abstractmethod
    def filtered(self, comparison: Comparison) -> pa.Table:
        """Read the rows that pass, with all columns."""

    @abstractmethod
    def count(self, comparison: Comparison | None = None) -> int:
        """Count the rows, or those that pass."""


class Contender(ABC):
    """A format, the library that handles it, and a set of options.

    Attributes
    ----------
    requires
        Distribution that has to be installed.
    stored_by
        Name of the contender whose file it reads; its own name if it writes one.
    reads
        True if its reads are measured; False if it differs from another contender only in its writes.
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
        """Import the library; raise ImportError if it is missing."""

    @abstractmethod
    def write(self, source: pa.Table | pa.RecordBatchReader, path: Path) -> None:
        """Write to `path`, which does not exist."""

    @abstractmethod
    def open(self, path: Path) -> Handle:
        """Open a table that `write` wrote."""
