"""Rows of a new index, gathered by partition: in memory or, above a budget, in sorted runs in temporary files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import StorageError

__all__ = ["PartitionedRows"]

#: Bytes of columns in a run, even with a smaller budget: there must not be too many files.
_LEAST_BYTES = 4 << 20
#: Rows that are regrouped together.
_BLOCK_ROWS = 1 << 16


class PartitionedRows:
    """Rows by partition, to be used as a context manager that removes its temporary files.

    The algorithm is a bucket sort with runs on disk: each run is sorted by partition, so a partition is one range of
    every run. Rows of a partition keep their order.

    Parameters
    ----------
    partitions
        Number of partitions.
    budget
        Maximum number of bytes of columns to hold in memory, approximately. Sorting a run takes up to as much again.

    Attributes
    ----------
    lengths : int64[partitions]
        Numbers of rows.
    """

    def __init__(self, partitions: int, budget: int) -> None:
        self.lengths = np.zeros(partitions, np.int64)
        self._budget = max(budget, _LEAST_BYTES)
        self._places: list[NDArray[np.int32]] = []
        self._held: list[dict[str, NDArray[Any]]] = []
        self._held_bytes = 0
        self._runs: list[_Run] = []

    @property
    def is_spilled(self) -> bool:
        """True if rows are in temporary files."""
        return any(isinstance(run, _FileRun) for run in self._runs)

    def add(self, places: NDArray[np.int32], columns: Mapping[str, NDArray[Any]]) -> None:
        """Append rows.

        Parameters
        ----------
        places : int32[n]
            Their partitions.
        columns
            Arrays ``[n]`` or ``[n, width]``, of the same names, types and widths each time.

        Raises
        ------
        StorageError
            A temporary file cannot be written.
        """
        if not len(places):
            return
        self.lengths += np.bincount(places, minlength=len(self.lengths))
        self._places.append(places)
        self._held.append(dict(columns))
        self._held_bytes += places.nbytes + sum(values.nbytes for values in columns.values())
        if self._held_bytes > self._budget:
            self._runs.append(_FileRun(*self._taken(), len(self.lengths)))

    def partitions(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the columns of each partition, in order; nothing in them if there never were rows.

        Raises
        ------
        StorageError
            A temporary file cannot be read.
        """
        if self._held:
            self._runs.append(_HeldRun(*self._taken(), len(self.lengths)))
        for partition in range(len(self.lengths)):
            parts = [run.read(partition) for run in self._runs]
            yield parts[0] if len(parts) == 1 else _joined(parts)

    def _taken(self) -> tuple[NDArray[np.int32], _Pieces]:
        places, held = np.concatenate(self._places), self._held
        self._places, self._held, self._held_bytes = [], [], 0
        return places, {name: [part[name] for part in held] for name in held[0]}

    def close(self) -> None:
        """Remove the temporary files."""
        for run in self._runs:
            run.close()
        self._runs, self._held, self._places = [], [], []

    def __enter__(self) -> PartitionedRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


#: Blocks of each column.
_Pieces = dict[str, list[NDArray[Any]]]


class _Run(Protocol):
    def read(self, partition: int) -> dict[str, NDArray[Any]]:
        """Return the rows of a partition."""

    def close(self) -> None:
        """Remove the file, if there is one."""


def _order(places: NDArray[np.int32], partitions: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the order of rows by partition, and the start of each partition in it, with the end of the last one."""
    narrow = places.astype(np.min_scalar_type(max(partitions - 1, 0)), copy=False)  # few bytes are sorted fastest
    starts = np.zeros(partitions + 1, np.int64)
    np.cumsum(np.bincount(places, minlength=partitions), out=starts[1:])
    return np.argsort(narrow, kind="stable"), starts


class _HeldRun:
    """Rows in memory."""

    def __init__(self, places: NDArray[np.int32], pieces: _Pieces, partitions: int) -> None:
        self._rows, self._starts = _order(places, partitions)
        self._columns = {name: np.concatenate(pieces.pop(name)) for name in list(pieces)}

    def read(self, partition: int) -> dict[str, NDArray[Any]]:
        """Return the rows of a partition."""
        mine = self._rows[self._starts[partition] : self._starts[partition + 1]]
        return {name: values[mine] for name, values in self._columns.items()}

    def close(self) -> None:
        """Do nothing: there is no file."""


class _FileRun:
    """Rows in a temporary file, column by column, each in the order of partitions."""

    def __init__(self, places: NDArray[np.int32], pieces: _Pieces, partitions: int) -> None:
        order, self._starts = _order(places, partitions)
        self._columns: list[tuple[str, np.dtype[Any], tuple[int, ...], int]] = []
        with _told_where():
            self._file: IO[bytes] = tempfile.TemporaryFile(prefix="lance-")  # noqa: SIM115
            try:
                for name in list(pieces):
                    self._write(name, np.concatenate(pieces.pop(name)), order)
                self._file.flush()
            except BaseException:
                self._file.close()
                raise

    def _write(self, name: str, values: NDArray[Any], order: NDArray[np.int64]) -> None:
        self._columns.append((name, values.dtype, values.shape[1:], self._file.tell()))
        for start in range(0, len(order), _BLOCK_ROWS):
            self._file.write(np.ascontiguousarray(values[order[start : start + _BLOCK_ROWS]]).data)

    def read(self, partition: int) -> dict[str, NDArray[Any]]:
        """Return the rows of a partition."""
        start, stop = int(self._starts[partition]), int(self._starts[partition + 1])
        found = {}
        for name, kind, shape, offset in self._columns:
            width = kind.itemsize * int(np.prod(shape))
            values = np.empty((stop - start, *shape), kind)
            with _told_where():
                _read_into(self._file.fileno(), values, offset + start * width)
            found[name] = values
        return found

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


def _read_into(descriptor: int, values: NDArray[Any], offset: int) -> None:
    if not values.nbytes:
        return
    left = values.data.cast("B")
    while len(left):
        count = os.preadv(descriptor, [left], offset)
        if not count:
            raise OSError("it is shorter than what was written to it")
        left, offset = left[count:], offset + count


def _joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


@contextmanager
def _told_where() -> Iterator[None]:
    """Convert errors of a temporary file to errors that name its folder."""
    try:
        yield
    except OSError as error:
        folder = tempfile.tempdir or "none"
        raise StorageError(
            f"cannot keep rows of an index in a temporary file (in folder {folder}): {error}; make room there, or set "
            "TMPDIR"
        ) from error
