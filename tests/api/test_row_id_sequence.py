"""Tests of sequences of stable row ids against those of pylance."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import lance.fragment
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_dataset
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.fragment import RowIdMeta, RowIdSequence

NUMBERS = st.one_of(
    st.lists(st.integers(0, 40), max_size=20, unique=True),
    st.lists(st.integers(0, 2**64 - 2), max_size=20, unique=True),
    st.builds(range, st.integers(0, 100), st.integers(0, 100), st.integers(1, 9)),
)


@given(NUMBERS)
def test_both_read_what_the_other_writes(ids: Any) -> None:
    ours, theirs = RowIdSequence(ids), lance.fragment.RowIdSequence(ids)
    assert (list(ours), len(ours), repr(ours)) == (list(theirs), len(theirs), repr(theirs))
    assert ours.to_pyarrow().equals(theirs.to_pyarrow())
    text = ours.to_inline_metadata().json()
    read = lance.fragment.RowIdSequence.from_inline_metadata(lance.fragment.RowIdMeta.from_json(text))
    assert list(read) == list(ids)
    mine = RowIdSequence.from_inline_metadata(RowIdMeta.from_json(theirs.to_inline_metadata().json()))
    assert mine == ours == pickle.loads(pickle.dumps(ours))


def test_kinds_of_input() -> None:
    for ids in (np.array([3, 1]), pa.array([3, 1]), pa.chunked_array([[3], [1]]), iter([3, 1]), (np.int8(3), 1)):
        assert list(RowIdSequence(ids)) == [3, 1]
    assert list(RowIdSequence(pa.array([], pa.uint64()))) == list(RowIdSequence([])) == []
    assert RowIdSequence([1]) != [1]
    assert repr(RowIdSequence(range(11))) == repr(lance.fragment.RowIdSequence(range(11)))


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        *(([-1], OverflowError), ([2**64], OverflowError), (["a"], TypeError), (None, TypeError), (3, TypeError)),
        *(([1.5], TypeError), ([1, 1], ValueError), (pa.array([1, None]), ValueError), ([None], TypeError)),
    ],
    ids=str,
)
def test_refused_as_in_pylance(ids: Any, error: type[Exception]) -> None:
    for kind in (RowIdSequence, lance.fragment.RowIdSequence):
        with pytest.raises(error):
            kind(ids)


def test_metadata_of_a_fragment(tmp_path: Path) -> None:
    rows = pa.table({"a": range(10)})
    dataset = lance_dataset.write_dataset(rows, tmp_path / "t", max_rows_per_file=4, enable_stable_row_ids=True)
    metas = [each.metadata.row_id_meta for each in dataset.get_fragments()]
    assert [list(RowIdSequence.from_inline_metadata(each)) for each in metas if each is not None] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
    ]
    with pytest.raises(CorruptFileError):
        RowIdSequence.from_inline_metadata(RowIdMeta(b"\1\2"))
    with pytest.raises(UnsupportedError, match="column"):
        RowIdSequence.from_inline_metadata(RowIdMeta.from_dict("Column"))
    with pytest.raises(TypeError):
        RowIdSequence.from_inline_metadata({"Inline": []})  # type: ignore[arg-type]
