"""Tests of arithmetic of row addresses."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.table.row_addresses import (
    addresses_in,
    by_fragment,
    first_address,
    first_addresses,
    fragments_of,
    last_addresses,
    offsets_of,
    places_of,
    split_address,
    split_places,
)

HALF = st.integers(0, 2**32 - 1)


@given(HALF, st.lists(HALF, max_size=5))
def test_addresses_and_back(fragment_id: int, offsets: list[int]) -> None:
    addresses = addresses_in(fragment_id, np.array(offsets, np.int64))
    assert addresses.tolist() == [(fragment_id << 32) | offset for offset in offsets]
    assert addresses.dtype == np.uint64
    assert offsets_of(addresses).tolist() == offsets
    assert fragments_of(addresses).tolist() == [fragment_id] * len(offsets)
    assert [split_address(address) for address in addresses.tolist()] == [(fragment_id, each) for each in offsets]


@given(HALF)
def test_limits_of_fragments(fragment_id: int) -> None:
    ids = np.array([fragment_id], np.int64)
    assert first_addresses(ids).tolist() == [first_address(fragment_id)] == [fragment_id * 2**32]
    assert last_addresses(ids).tolist() == [first_address(fragment_id) + 2**32 - 1]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), HALF), max_size=5))
def test_places_and_back(pairs: list[tuple[int, int]]) -> None:
    positions, offsets = np.array(pairs, np.int64).reshape(-1, 2).T
    found = split_places(places_of(positions, offsets))
    assert [each.tolist() for each in found] == [positions.tolist(), offsets.tolist()]


@given(st.lists(st.tuples(st.sampled_from([0, 3, 2**32 - 1]), HALF), max_size=20))
def test_addresses_by_fragment(pairs: list[tuple[int, int]]) -> None:
    addresses = np.array([(owner << 32) | offset for owner, offset in pairs], np.uint64)
    found = [(owner, places.tolist()) for owner, places in by_fragment(addresses)]
    owners = [owner for owner, _ in pairs]
    assert found == [(owner, [at for at, each in enumerate(owners) if each == owner]) for owner in sorted(set(owners))]
