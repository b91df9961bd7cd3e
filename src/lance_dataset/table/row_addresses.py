"""Row addresses: the fragment id in the upper half, and the physical offset of the row in the lower half."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.container import MAX_ROWS

__all__ = [
    "addresses_in",
    "by_fragment",
    "first_address",
    "first_addresses",
    "fragments_of",
    "grouped",
    "last_addresses",
    "offsets_of",
    "places_of",
    "split_address",
    "split_places",
]

_BITS = 32
_LAST_OFFSET = np.uint64(MAX_ROWS - 1)
_UPPER = np.uint64(_BITS)


def fragments_of(addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the fragment ids of addresses."""
    return addresses >> _UPPER


def offsets_of(addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the physical offsets of addresses in their fragments."""
    return (addresses & _LAST_OFFSET).view(np.int64)


def split_address(address: int) -> tuple[int, int]:
    """Return the fragment id and physical offset of an address."""
    return divmod(address, MAX_ROWS)


def first_address(fragment_id: int) -> int:
    """Return the address of the first row of a fragment."""
    return fragment_id << _BITS


def addresses_in(fragment_id: int, offsets: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Return the addresses of physical offsets in a fragment."""
    return offsets.astype(np.uint64) + np.uint64(fragment_id << _BITS)


def first_addresses(fragment_ids: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Return the address of the first row of each fragment."""
    return fragment_ids.astype(np.uint64) << _UPPER


def last_addresses(fragment_ids: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Return the highest address that a row of each fragment could have."""
    return first_addresses(fragment_ids) | _LAST_OFFSET


def places_of(positions: NDArray[np.int64] | int, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return address-like values from fragment positions in a list and row offsets. Inverse of `split_places`."""
    return (positions << _BITS) | offsets


def split_places(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the fragments, and the offsets in them."""
    return places >> _BITS, places & (MAX_ROWS - 1)


def by_fragment(addresses: NDArray[np.uint64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the fragment ids of addresses, ascending, each with the positions of its addresses, ascending."""
    return grouped(fragments_of(addresses))


def grouped(owners: NDArray[np.integer[Any]]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the distinct values of an array, ascending, each with its positions, ascending."""
    order = np.argsort(owners, kind="stable")
    values = owners[order]
    begins = np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])
    for begin, end in pairwise([*begins.tolist(), len(values)]):
        yield int(values[begin]), order[begin:end]
