"""Tests of sets of row addresses, many in one buffer."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyroaring
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.errors import CorruptFileError
from lance_dataset.table.row_sets import ROW_SETS, TREEMAPS, SetForm, decode_sets, encode_sets, layout_of_sets

FORMS = [ROW_SETS, TREEMAPS]
#: Few values in several bitmaps and containers, or a container of bits.
SETS = st.lists(
    st.builds(
        lambda few, many: np.union1d(few, many).astype(np.uint64),
        st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 65535, 65536, 2**32 - 1])).map(
                lambda pair: pair[0] << 32 | pair[1]
            ),
            max_size=8,
        ),
        st.sampled_from([[], [], np.arange(5000, dtype=np.uint64) * 3 + (2 << 32)]),
    ),
    max_size=6,
)


def _serialized(values: np.ndarray, form: SetForm, *, runs: bool = False) -> bytes:
    parts = []
    for key in np.unique(values >> np.uint64(32)).tolist():
        bitmap = pyroaring.BitMap((values[values >> np.uint64(32) == key] & np.uint64(0xFFFFFFFF)).tolist())
        if runs:
            bitmap.run_optimize()
        content = bitmap.serialize()
        parts.append(struct.pack("<I", key) + (struct.pack("<I", len(content)) if form.sized else b"") + content)
    return struct.pack("<I" if form.sized else "<Q", len(parts)) + b"".join(parts)


def _array(sets: list[bytes]) -> pa.Array:
    return pa.array([b"before", *sets, b"behind"], pa.large_binary()).slice(1, len(sets))


@pytest.mark.parametrize("form", FORMS)
@given(sets=SETS)
def test_round_trip(form: SetForm, sets: list[np.ndarray]) -> None:
    """Written sets equal those of CRoaring, and reading returns the values, or the bitmaps of bits and runs."""
    owners = np.repeat(np.arange(len(sets)), [len(values) for values in sets])
    values = np.concatenate([np.empty(0, np.uint64), *sets])
    written = encode_sets(owners, values, len(sets), form)
    written.validate(full=True)
    assert written.to_pylist() == [_serialized(each, form) for each in sets]
    for runs in (False, True):
        layout = layout_of_sets(_array([_serialized(each, form, runs=runs) for each in sets]), form, "file")
        sparse = ~layout.dense
        found_owners, found = decode_sets(layout, sparse, "file")
        chosen = sparse[owners]
        assert np.array_equal(found_owners, owners[chosen])
        assert np.array_equal(found, values[chosen])
        for number in np.flatnonzero(layout.dense).tolist():
            parts = [(part.key, pyroaring.BitMap.deserialize(part.bitmap)) for part in layout.parts(number)]
            assert [key << 32 | low for key, bitmap in parts for low in bitmap] == sets[number].tolist()


def test_all_rows_of_a_fragment() -> None:
    """A bitmap without bytes stands for all rows, in the form that has sizes."""
    layout = layout_of_sets(_array([struct.pack("<III", 1, 7, 0), bytes(4)]), ROW_SETS, "file")
    assert layout.dense.tolist() == [True, False]
    assert [(part.key, part.bitmap) for part in layout.parts(0)] == [(7, None)]


BITMAP = pyroaring.BitMap([1, 2]).serialize()
SIZED = struct.pack("<II", 5, len(BITMAP)) + BITMAP


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(3),
        bytes(5),
        struct.pack("<I", 2) + SIZED,
        struct.pack("<I", 2) + SIZED + SIZED,
        struct.pack("<I", 1) + SIZED + b"\0",
        struct.pack("<I", 1) + SIZED[:-1],
        struct.pack("<III", 1, 5, len(BITMAP) - 2) + BITMAP[:-2],
        struct.pack("<III", 1, 5, 8) + b"\x39\x30\0\0\0\0\0\0",
        struct.pack("<IIIII", 1, 5, 8, 0x303A, 0xFFFFFFFF),
        struct.pack("<III", 1, 5, 6) + b"\x3b\x30\xff\xff\0\0",
        struct.pack("<III", 1, 5, len(BITMAP)) + BITMAP[:-4] + struct.pack("<HH", 2, 1),
        None,
    ],
)
def test_what_is_no_set_is_refused(data: bytes | None) -> None:
    """Bytes that are not a set raise an error that names the file."""
    with pytest.raises(CorruptFileError, match=r"^file: "):
        decode_sets(layout_of_sets(_array([bytes(4), data]), ROW_SETS, "file"), np.ones(2, bool), "file")


@pytest.mark.parametrize("form", FORMS)
def test_damaged_sets(form: SetForm) -> None:
    """Sets with any changed bytes are read, or raise an error."""
    random = np.random.default_rng(3)
    whole = np.concatenate([np.arange(100), [70_000], np.arange(5000) * 2 + (1 << 32)]).astype(np.uint64)
    sets = [bytearray(_serialized(whole, form, runs=runs)) for runs in (False, True)]
    for _ in range(300):
        changed = [bytearray(each) for each in sets]
        for each in changed:
            for place in random.integers(0, min(len(each), 60), 2):
                each[place] = int(random.choice([0, 255, random.integers(256)]))
        try:
            layout = layout_of_sets(_array([bytes(each) for each in changed]), form, "file")
            decode_sets(layout, ~layout.dense, "file")
        except CorruptFileError:
            continue
