"""Calls whose errors or results once differed from those of the reference."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import lance as reference
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.commit import CommitConflictError
from lance_dataset.errors import InvalidInputError, OutOfRangeError, VersionNotFoundError, WrongTypeError
from lance_dataset.file import LanceFileReader, LanceFileWriter
from lance_dataset.fragment import LanceFragment

ROWS = pa.table({"id": [1, 2, 3], "void": pa.nulls(3), "text": ["red apple", "pear", None]})


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, tmp_path / "t")


WRONG_TYPES: dict[str, Callable[[lance.LanceDataset, Path], Any]] = {
    "version": lambda ds, _: ds.read_transaction("a"),  # type: ignore[arg-type]
    "no version": lambda ds, _: ds.read_transaction(None),  # type: ignore[arg-type]
    "time": lambda ds, _: lance.dataset(ds.uri, asof=5),  # type: ignore[arg-type]
    "location": lambda _, __: lance.dataset(b"x"),  # type: ignore[arg-type]
    "options": lambda ds, _: lance.dataset(ds.uri, storage_options=5),  # type: ignore[arg-type]
    "options of writes": lambda _, path: lance.write_dataset(ROWS, path / "u", storage_options=[1]),  # type: ignore[arg-type]
    "storage version": lambda _, path: lance.write_dataset(ROWS, path / "u", data_storage_version=2.1),  # type: ignore[arg-type]
    "file version": lambda _, path: LanceFileWriter(path / "f.lance", ROWS.schema, version=5),  # type: ignore[arg-type]
    "file": lambda _, __: LanceFileReader(b"x"),  # type: ignore[arg-type]
    "row numbers": lambda ds, _: ds.take(["a"]),  # type: ignore[list-item]
    "fragment": lambda ds, _: LanceFragment.create(ds.uri, ROWS, "a"),  # type: ignore[arg-type]
    "limit": lambda ds, _: ds.to_table(limit="a"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_wrong_types_are_errors_of_types_and_of_values(dataset: lance.LanceDataset, tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongTypeError) as caught:
        WRONG_TYPES[name](dataset, tmp_path)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, InvalidInputError)


def test_numbers_out_of_range(dataset: lance.LanceDataset) -> None:
    for options in ({"limit": 2**63}, {"offset": 2**64}, {"batch_size": -1}):
        with pytest.raises(OverflowError):
            dataset.to_table(**options)  # type: ignore[arg-type]
    with pytest.raises(OutOfRangeError):
        LanceFragment.create(dataset.uri, ROWS, -1)


def test_changes_of_a_version_to_come(dataset: lance.LanceDataset) -> None:
    with pytest.raises(VersionNotFoundError, match=r"version 99, but the newest version is 1"):
        lance.LanceDataset.commit(dataset, lance.LanceOperation.Append([]), read_version=99)


@pytest.mark.parametrize(
    "text",
    ["null = null", "void = void", "void != null", "null between id and null", "void < null", "NOT (void = void)"],
)
def test_comparisons_of_nulls_are_null(dataset: lance.LanceDataset, text: str) -> None:
    assert dataset.count_rows(text) == reference.dataset(dataset.uri).count_rows(text) == 0


def test_conflicts_are_made_like_those_of_the_reference() -> None:
    assert CommitConflictError().retryable
    error = pickle.loads(pickle.dumps(CommitConflictError("x", False)))
    assert (str(error), error.retryable) == ("x", False)


def test_bitmaps_of_other_numbers() -> None:
    numbers = lance.bitmap.Bitmap([1, 2, 5])
    assert not numbers.isdisjoint(pa.array([1, 9]).to_numpy())
    assert [1] not in numbers  # type: ignore[comparison-overlap]
    assert list(lance.bitmap.Bitmap(None)) == []
    for call in (numbers.discard, numbers.remove, numbers.isdisjoint, numbers.union):
        with pytest.raises(TypeError):
            call(None)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        numbers.remove(9)


@pytest.mark.parametrize("place", [(-1, 2), (1, -2)])
def test_ranges_of_blobs_are_not_negative(place: tuple[int, int]) -> None:
    with pytest.raises(InvalidInputError, match="must be non-negative"):
        lance.Blob.from_uri("a", *place)


@pytest.mark.parametrize("writer", [lance, reference])
def test_full_text_indices_are_prewarmed(tmp_path: Path, writer: Any) -> None:
    writer.write_dataset(ROWS.drop_columns(["void"]), tmp_path / "t").create_scalar_index("text", "INVERTED")
    dataset = lance.dataset(tmp_path / "t")
    dataset.prewarm_index("text_idx", with_position=True)
    assert dataset.to_table(["id"], full_text_query="apple")["id"].to_pylist() == [1]


def test_columns_without_vectors_are_found_first(tmp_path: Path) -> None:
    """All columns are checked before kinds and parameters, as in the reference."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0] * 8, pa.float32()), 2)
    for library in (reference, lance):
        made = library.write_dataset(pa.table({"v": vectors, "id": range(4)}), tmp_path / library.__name__)
        for column, kind in (("id", "BTREE"), ("id", "nope"), ("id", "IVF_PQ"), (["v", "id"], "IVF_FLAT")):
            with pytest.raises(TypeError, match=r"column id must be"):
                made.create_index(column, kind)
        with pytest.raises(TypeError, match="num_partitions"):
            made.create_index("v", "IVF_PQ", num_partitions="a")


def test_empty_sequences_and_tables() -> None:
    for name in ("lance", "lance_dataset"):
        fragment, vector = import_module(f"{name}.fragment"), import_module(f"{name}.vector")
        empty = fragment.RowIdSequence([]).to_inline_metadata()
        assert empty.json() == '{"Inline":[]}'
        assert list(fragment.RowIdSequence.from_inline_metadata(empty)) == []
        assert vector.vec_to_table([], ndim=3).schema.field("vector").type.list_size == 3
