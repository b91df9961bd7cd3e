"""Entries of an index: keys and the rows that they name, with digests of keys that stand for them in comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.scalar.bloom_filters import hashed
from lance_dataset.index.scalar.value_order import KeyedOrder, order_of

__all__ = ["NULL", "Digests", "KeyedContent", "KeyedRows", "digests", "mixed", "shown"]

#: Digests, or rows, one of 64 bits for each.
Digests = NDArray[np.uint64]

#: Digest of null.
NULL: Final = np.uint64(0x9B05688C2B3E6C1F)
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHOWN_CHARACTERS: Final = 60


@dataclass(frozen=True)
class KeyedRows:
    """Keys and rows.

    Attributes
    ----------
    keys
        The keys, to be shown to users.
    digests : uint64[len(keys)]
        Digests of the keys. A key always has the same one, and two keys hardly ever have.
    rows : uint64[n]
        Rows: ids or addresses if they come from files, positions in a batch if they come from values.
    owners : int64[n]
        Number of the key of each row; None if each key has one row.
    name
        Text of the only key, if that is not a value.
    """

    keys: pa.Array
    digests: Digests
    rows: Digests
    owners: NDArray[np.int64] | None = None
    name: str | None = None

    @property
    def row_digests(self) -> Digests:
        """Digest of the key of each row."""
        return self.digests if self.owners is None else self.digests[self.owners]

    def key(self, place: int) -> str:
        """Return the key of a row as text."""
        if self.name is not None:
            return self.name
        return shown(self.keys[place if self.owners is None else int(self.owners[place])])

    @staticmethod
    def named(name: str, digest: np.uint64, rows: Digests) -> KeyedRows:
        """Return the rows of one key that is not a value."""
        return KeyedRows(pa.nulls(1), np.array([digest]), rows, np.zeros(len(rows), np.int64), name)


class KeyedContent(Protocol):
    """Files of one segment of an index that say for each row which keys it has.

    Attributes
    ----------
    is_exact
        True if queries take an answer for granted, so that no row may have a wrong key; False if they check the rows.
    """

    is_exact: bool

    def entries(self) -> Iterator[KeyedRows]:
        """Yield all entries of the files. Each call reads them again.

        Raises
        ------
        CorruptFileError
            The files contradict the format or themselves.
        """

    def expected(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that values of the column should have."""

    def required(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that queries need values of the column to have, if `is_exact` is false."""


def mixed(numbers: Digests) -> Digests:
    """Return numbers whose bits all depend on all bits of others (the finalizer of SplitMix64, Steele and others)."""
    found = numbers + _STEP
    found = (found ^ (found >> np.uint64(30))) * _FIRST
    found = (found ^ (found >> np.uint64(27))) * _SECOND
    return found ^ (found >> np.uint64(31))


def digests(values: pa.Array) -> Digests:
    """Return the digests of values of a type that is not nested; floats are told apart bit by bit."""
    found = np.full(len(values), NULL)
    if values.null_count == len(values):
        return found
    valid = np.asarray(values.is_valid(), bool)
    known = values.drop_null() if values.null_count else values
    order = order_of(known.type)
    found[valid] = mixed(order.keys(known) if isinstance(order, KeyedOrder) else hashed(known))
    return found


def shown(value: Any) -> str:
    """Return a value as text of limited length."""
    try:
        plain = value.as_py() if isinstance(value, pa.Scalar) else value
        text = "null" if plain is None else repr(plain)
    except (ValueError, OverflowError, ImportError):  # Python has no such date, or no nanoseconds
        text = str(value.cast(pa.string()))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
