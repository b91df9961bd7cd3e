"""Tests of new addresses of the rows of rewritten fragments."""

from __future__ import annotations

import numpy as np
import pyroaring
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_dataset.errors import CorruptFileError
from lance_dataset.table.indices.moved_rows import MovedRows, Relocation, RewrittenGroup
from lance_dataset.table.roaring import encode_bitmap, encode_treemap


def survivors(kept: dict[int, list[int]]) -> bytes:
    return encode_treemap({fragment: encode_bitmap(rows) for fragment, rows in kept.items() if rows})


@st.composite
def rewrites(draw: st.DrawFn) -> tuple[list[RewrittenGroup], dict[int, int | None]]:
    """Draw groups of a rewrite, and the new address of every old address."""
    ids = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=8, unique=True))
    cuts = sorted(draw(st.lists(st.integers(0, len(ids)), max_size=3)))
    next_id, groups, expected = 2000, [], {}
    for low, high in zip([0, *cuts], [*cuts, len(ids)], strict=True):
        if low == high:
            continue
        old = [(fragment, draw(st.integers(1, 20))) for fragment in ids[low:high]]
        kept = {fragment: [row for row in range(rows) if draw(st.integers(0, 3))] for fragment, rows in old}
        live = [(fragment << 32) + row for fragment, _ in old for row in kept[fragment]]
        new, left = [], len(live)
        while left:
            new.append((next_id, min(left, draw(st.integers(1, 30)))))
            left -= new[-1][1]
            next_id += 1
        targets = [(fragment << 32) + row for fragment, rows in new for row in range(rows)]
        groups.append(RewrittenGroup(survivors(kept), tuple(old), tuple(new)))
        expected |= {(fragment << 32) + row: None for fragment, rows in old for row in range(rows)}
        expected |= dict(zip(live, targets, strict=True))
    return groups, expected


@given(rewrites(), st.randoms())
@settings(max_examples=200, deadline=None)
def test_every_row_is_found(
    made: tuple[list[RewrittenGroup], dict[int, int | None]], random: np.random.Generator
) -> None:
    groups, expected = made
    others = [1001 << 32, (1500 << 32) + 7, (3000 << 32) - 1, (1 << 64) - 1]
    addresses = [*expected, *others]
    random.shuffle(addresses)
    moved, gone = MovedRows(groups, "test").locate(np.array(addresses, np.uint64))
    found = {
        before: None if lost else after
        for before, after, lost in zip(addresses, moved.tolist(), gone.tolist(), strict=True)
    }
    assert found == expected | {address: address for address in others}
    assert moved[gone].tolist() == [address for address, lost in zip(addresses, gone, strict=True) if lost]


def test_rewrites_one_after_the_other() -> None:
    first = MovedRows([RewrittenGroup(survivors({0: [0, 2], 1: [1]}), ((0, 3), (1, 2)), ((5, 3),))], "test")
    second = MovedRows([RewrittenGroup(survivors({5: [0, 2]}), ((5, 3),), ((6, 2),))], "test")
    moved, gone = Relocation((first, second)).locate(np.array([0, 1, 2, 1 << 32, (1 << 32) + 1], np.uint64))
    assert gone.tolist() == [False, True, True, True, False]
    assert moved[[0, 4]].tolist() == [6 << 32, (6 << 32) + 1]


def test_without_rows() -> None:
    nothing = MovedRows([], "test")
    assert not nothing.loses_rows
    assert nothing.locate(np.array([1], np.uint64))[0].tolist() == [1]
    all_gone = MovedRows([RewrittenGroup(survivors({}), ((3, 2),), ())], "test")
    assert all_gone.loses_rows
    assert all_gone.locate(np.array([3 << 32, 4 << 32], np.uint64))[1].tolist() == [True, False]


def test_numbers_at_their_limits() -> None:
    """Runs stay runs, and ids and rows may have all 32 bits."""
    rows = (1 << 32) - 1
    kept = encode_treemap({rows: pyroaring.BitMap(range(rows)).serialize()})
    moved = MovedRows([RewrittenGroup(kept, ((rows, rows),), ((1 << 31, rows - 7), (rows - 1, 7)))], "test")
    addresses, gone = moved.locate(np.array([rows << 32, (rows << 32) + rows - 1, (rows << 32) + rows], np.uint64))
    assert addresses[:2].tolist() == [1 << 63, (rows - 1 << 32) + 6]
    assert gone.tolist() == [False, False, True]


@pytest.mark.parametrize(
    "groups",
    [
        [RewrittenGroup(survivors({}), ((1 << 32, 1),), ())],
        [RewrittenGroup(survivors({}), ((0, 1 << 40),), ())],
        [RewrittenGroup(survivors({}), ((0, 1),), ((1 << 60, 0),))],
        [RewrittenGroup(survivors({}), ((0, 1),), ((1, (1 << 64) - 1),))],
        [RewrittenGroup(survivors({0: [0]}), ((0, 1),), ((1, 2),))],
        [RewrittenGroup(survivors({0: [5]}), ((0, 2),), ((1, 1),))],
        [RewrittenGroup(survivors({7: [0]}), ((0, 2),), ((1, 1),))],
        [RewrittenGroup(b"\x01", ((0, 2),), ((1, 1),))],
        [RewrittenGroup(survivors({0: [0]}), ((0, 1),), ((1, 1),))] * 2,
    ],
)
def test_contradictions(groups: list[RewrittenGroup]) -> None:
    with pytest.raises(CorruptFileError, match="here"):
        MovedRows(groups, "here")
