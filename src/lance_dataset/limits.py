"""Limits of the memory that content of files can make this package allocate.

Metadata and intermediate results may take `BASE_MEMORY` and `MEMORY_PER_BYTE` bytes for each byte that was read.
Results are limited only where a program asks for it, see `ResultLimit`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from lance_dataset.errors import InvalidInputError, MemoryLimitError
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "BASE_MEMORY",
    "MEMORY_PER_BYTE",
    "UNLIMITED",
    "ResultLimit",
    "ResultMeter",
    "check_allocation",
    "check_file_size",
    "check_memory",
    "memory_allowance",
]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


#: Bytes that are always allowed. The environment variable ``LANCE_METADATA_MEMORY`` can raise them.
BASE_MEMORY = 64 << 20
MEMORY_PER_BYTE = 4

#: Most bytes of a file that is read as a whole: manifests, transactions, deletion files, references.
MAX_WHOLE_FILE = 1 << 30

_VARIABLE = "LANCE_METADATA_MEMORY"


def memory_allowance(bytes_read: int) -> int:
    """Return how many bytes of memory metadata or intermediate results may take.

    Parameters
    ----------
    bytes_read
        Bytes of the files, or of the parts of files, that the memory is derived from.

    Raises
    ------
    InvalidInputError
        ``LANCE_METADATA_MEMORY`` is not a number of bytes.
    """
    return _base_memory() + MEMORY_PER_BYTE * bytes_read


def check_memory(needed: int, bytes_read: int, subject: str) -> None:
    """Raise `MemoryLimitError` if content needs more memory than it may take.

    Parameters
    ----------
    needed
        Bytes of memory that will be allocated.
    bytes_read
        See `memory_allowance`.
    subject
        What needs the memory, with its file and place, as the start of a sentence.
    """
    if needed <= BASE_MEMORY or needed <= memory_allowance(bytes_read):
        return
    raise MemoryLimitError(
        f"{subject} needs {needed:,} bytes of memory, more than the {memory_allowance(bytes_read):,} that "
        f"{bytes_read:,} bytes of a file may take; if the file is trusted, raise the limit with {_VARIABLE}"
    )


def check_file_size(size: int, path: str) -> None:
    """Raise `MemoryLimitError` if a file is too large to be read as a whole.

    Parameters
    ----------
    size
        Bytes of the file. Sparse files have any number of them.
    path
        Path of the file.
    """
    if size > MAX_WHOLE_FILE and size > (limit := max(MAX_WHOLE_FILE, _base_memory())):
        raise MemoryLimitError(
            f"{path}: has {size:,} bytes, more than the {limit:,} of a file that is read as a whole; if the file is "
            f"trusted, raise the limit with {_VARIABLE}"
        )


def _base_memory() -> int:
    text = os.environ.get(_VARIABLE)
    if not text:
        return BASE_MEMORY
    if not text.isascii() or not text.isdigit():
        raise InvalidInputError(f"{_VARIABLE} must be a number of bytes, not {text!r}")
    return max(BASE_MEMORY, int(text))


@dataclass(frozen=True)
class ResultLimit:
    """Limit of the memory of one result.

    Parameters
    ----------
    max_bytes
        Most bytes of a result; None for no limit.
    name
        Option that set the limit.
    """

    max_bytes: int | None = None
    name: str = "max_result_bytes"

    def within(self, memory: int | None) -> ResultLimit:
        """Return this limit, or that of memory if it is lower."""
        if memory is None or (self.max_bytes is not None and self.max_bytes <= memory):
            return self
        return ResultLimit(memory, "memory_limit")

    def check(self, nbytes: float, subject: str) -> None:
        """Raise `MemoryLimitError` if a result is larger than the limit.

        Parameters
        ----------
        nbytes
            Bytes of all buffers of the result, or of the part of it that is known.
        subject
            What the result is, as the start of a sentence.
        """
        if self.max_bytes is not None and nbytes > self.max_bytes:
            raise MemoryLimitError(
                f"{subject} needs {int(nbytes):,} bytes, more than {self.name}={self.max_bytes:,}; "
                "select fewer rows or columns, or read in batches"
            )

    def around(self, work: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        """Return the same work, during which `check_allocation` knows the limit."""
        most = self.max_bytes
        if most is None:
            return work

        def limited(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
            token = _most.set(most)
            try:
                return work(*arguments, **options)
            finally:
                _most.reset(token)

        return limited

    def meter(self, subject: str) -> ResultMeter:
        """Return a meter for the parts of one result. `subject` is as for `check`."""
        return ResultMeter(self, subject)


UNLIMITED = ResultLimit()

#: Limit of the result that this thread works on.
_most: ContextVar[int | None] = ContextVar("max_result_bytes", default=None)


class ResultMeter:
    """Bytes of the parts of one result, which several threads may add.

    Parameters
    ----------
    limit
        Limit of the result.
    subject
        See `ResultLimit.check`.
    """

    def __init__(self, limit: ResultLimit, subject: str) -> None:
        self._limit = limit
        self._subject = subject
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, nbytes: int) -> None:
        """Add a part. Raise `MemoryLimitError` if the result is larger than the limit now."""
        with self._lock:
            self._bytes += nbytes
            self._limit.check(self._bytes, self._subject)


def check_allocation(size: int) -> None:
    """Raise `MemoryLimitError` if a buffer is larger than any that the current result may need.

    What is read to get a part of a result may be larger than the result. So a buffer may have `BASE_MEMORY` bytes more
    than the limit.

    Parameters
    ----------
    size
        Bytes of the buffer, which is not allocated yet.
    """
    most = _most.get()
    if most is not None and size > most + BASE_MEMORY:
        raise MemoryLimitError(
            f"a buffer for a result needs {size:,} bytes, more than max_result_bytes={most:,}; "
            "select fewer rows or columns, or read in batches"
        )
