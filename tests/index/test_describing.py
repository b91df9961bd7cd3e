"""Descriptions and statistics of indices, beside those of the reference."""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
import uuid
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import lance_dataset
from lance_dataset.errors import CorruptFileError, IndexNotFoundError, InvalidInputError, MissingFileError
from lance_dataset.indices import IndexDescription

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 600
FIXTURES = Path(__file__).parents[1] / "fixtures" / "indices"
_SEGMENT = ("uuid", "dataset_version_at_last_update", "fragment_ids", "index_version", "size_bytes", "base_id")
_DESCRIPTION = ("name", "index_type", "type_url", "num_rows_indexed", "fields", "field_names", "details")


def rows() -> pa.Table:
    vectors = np.random.default_rng(0).random(ROWS * 8, dtype=np.float32)
    return pa.table(
        {
            "i": pa.array([None if n % 7 == 0 else n for n in range(ROWS)]),
            "s": [f"text {n} word" for n in range(ROWS)],
            "l": [[n % 3] for n in range(ROWS)],
            "st": [{"x": n} for n in range(ROWS)],
            "f": np.arange(ROWS) / 3,
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 8),
            "j": pa.array([json.dumps({"x": n}) for n in range(ROWS)], pa.json_()),
        }
    )


#: Column, kind and keywords of indices by name.
SCALAR: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "btree": ("i", "BTREE", {}),
    "text": ("s", "BTREE", {}),
    "bitmap": ("st.x", "BITMAP", {}),
    "labels": ("l", "LABEL_LIST", {}),
    "ngram": ("s", "NGRAM", {}),
    "zones": ("f", "ZONEMAP", {}),
    "bloom": ("f", "BLOOMFILTER", {}),
    "full text": ("s", "INVERTED", {"with_position": True, "stem": False}),
    "untrained": ("i", "BTREE", {"train": False}),
    "substrings": ("s", IndexConfig("fm", {}), {}),
    "hashes": ("s", IndexConfig("minhashlsh", {}), {}),
    "json": ("j", IndexConfig("json", {"target_index_type": "btree", "path": "x"}), {}),
}
VECTOR: dict[str, tuple[str, dict[str, Any]]] = {
    "pq": ("IVF_PQ", {"num_sub_vectors": 4}),
    "sq": ("IVF_SQ", {"metric": "cosine"}),
    "rq": ("IVF_RQ", {}),
    "flat": ("IVF_FLAT", {"metric": "dot"}),
    "graph": ("IVF_HNSW_SQ", {}),
    "untrained vectors": ("IVF_PQ", {"num_sub_vectors": 4, "train": False}),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset with an index of every kind that the reference makes."""
    path = tmp_path_factory.mktemp("indices") / "kinds.lance"
    dataset = lance.write_dataset(rows(), path, max_rows_per_file=300)
    for name, (column, kind, options) in SCALAR.items():
        dataset.create_scalar_index(column, kind, name=name, **options)
    for name, (kind, options) in VECTOR.items():
        dataset.create_index("v", kind, name=name, num_partitions=2, **options)
    return path


def plain(value: Any) -> Any:
    """Make values comparable: NaN, bitmaps of the reference, and floats of which it drops the last digit."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else f"{value:.12g}"
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(plain, value))
    return set(value) if type(value).__name__ == "Bitmap" else value


def described(index: Any) -> dict[str, Any]:
    segments = [{name: plain(getattr(each, name)) for name in _SEGMENT} for each in index.segments]
    created = [each.created_at and round(each.created_at.timestamp(), 2) for each in index.segments]
    found = {name: plain(getattr(index, name)) for name in _DESCRIPTION}
    return {**found, "segments": segments, "created": created, "bytes": index.total_size_bytes}


def assert_same(path: Path) -> None:
    """Assert that this package describes the indices of a dataset as the reference does."""
    theirs, ours = lance.dataset(path), lance_dataset.dataset(path)
    assert plain(ours.list_indices()) == plain(theirs.list_indices())
    assert list(map(described, ours.describe_indices())) == list(map(described, theirs.describe_indices()))
    for name in dict.fromkeys(each["name"] for each in theirs.list_indices()):
        assert plain(ours.stats.index_stats(name)) == plain(theirs.stats.index_stats(name))
        assert ours.index_statistics(name) == ours.stats.index_stats(name)
    assert ours.has_index is theirs.has_index


@pytest.mark.parametrize("release", sorted(path.name for path in FIXTURES.glob("pylance-*")))
def test_indices_of_old_releases(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_INCLUDE_VECTOR_CENTROIDS", "true")
    assert_same(FIXTURES / release)


@pytest.fixture
def copied(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LANCE_INCLUDE_VECTOR_CENTROIDS", "true")
    return Path(shutil.copytree(original, tmp_path / "kinds.lance"))


def test_every_kind(copied: Path) -> None:
    assert_same(copied)
    assert len(lance_dataset.dataset(copied).describe_indices()) == len(SCALAR) + len(VECTOR)


def append(dataset: Any) -> None:
    dataset.insert(rows().slice(0, 100))


def append_segments(dataset: Any) -> None:
    append(dataset)
    # The reference cannot optimize an index of JSON paths, or of a nested column.
    names = [name for name in [*SCALAR, *VECTOR] if name not in ("json", "bitmap")]
    dataset.optimize.optimize_indices(num_indices_to_merge=0, index_names=names)


def update(dataset: Any) -> None:
    dataset.update({"f": "f + 1"}, where="i < 20")
    dataset.delete("i > 590")


def compact(dataset: Any) -> None:
    update(dataset)
    append(dataset)
    dataset.optimize.compact_files(defer_index_remap=True)


def compact_at_once(dataset: Any) -> None:
    update(dataset)
    dataset.drop_index("substrings")
    dataset.optimize.compact_files()


@pytest.mark.parametrize("change", [append, append_segments, update, compact, compact_at_once])
def test_after_changes(copied: Path, change: Callable[[Any], None]) -> None:
    change(lance.dataset(copied))
    assert_same(copied)


@pytest.mark.parametrize("change", [append, update])
def test_after_changes_of_this_package(copied: Path, change: Callable[[Any], None]) -> None:
    change(lance_dataset.dataset(copied))
    assert_same(copied)


VALUES = {
    "f32": pa.array([1.5, None, 1e20, 3e-7], pa.float32()),
    "f64": pa.array([1e300, -0.0, float("nan"), 5.0]),
    "small": pa.array([3e-7, 0.1, 2.5, 1e16]),
    "bool": pa.array([True, False, None, True]),
    "text": ["a'b", "ü\n", "", None],
    "binary": pa.array([b"\x00\xff", b"a", b"b", b"c"]),
    "date32": pa.array([0, 1, -1, 20000], pa.date32()),
    "date64": pa.array([0, 86400000, -86400000, None], pa.date64()),
    "timestamp": pa.array([0, 1, -1, 1700000000123456789], pa.timestamp("ns", "UTC")),
    "time32": pa.array([0, 1, 5, 7], pa.time32("s")),
    "time64": pa.array([0, 1, 5000000, None], pa.time64("us")),
    "duration": pa.array([0, 1, 5000000, None], pa.duration("us")),
    "decimal": pa.array([Decimal("1.50"), Decimal("0.07"), Decimal("-2"), Decimal("0.01")], pa.decimal128(5, 2)),
    "decimal with null": pa.array([Decimal("1.50"), None, Decimal("-2"), Decimal("0.01")], pa.decimal128(5, 2)),
    "uint64": pa.array([2**64 - 1, 0, None, 3], pa.uint64()),
    "fixed": pa.array([b"ab", b"cd", b"\x00\xff", b"zz"], pa.binary(2)),
    "null": pa.array([None] * 4, pa.int64()),
    "half": pa.array(np.array([1.5, 2, 3, 4], np.float16)),
}


def test_bounds_of_every_type(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table(VALUES), tmp_path / "types.lance")
    for name in VALUES:
        dataset.create_scalar_index(name, "BTREE", name=name)
    assert_same(tmp_path / "types.lance")


def test_several_pages_with_nulls(tmp_path: Path) -> None:
    values = pa.array([None] * 5000 + list(range(5000)))
    dataset = lance.write_dataset(pa.table({"n": values}), tmp_path / "pages.lance")
    dataset.create_scalar_index("n", "BTREE")
    assert_same(tmp_path / "pages.lance")


@pytest.mark.parametrize(("points", "page"), [(100, 4096), (51, 8), (600, 8), (1, 8)])
def test_geometries(tmp_path: Path, points: int, page: int) -> None:
    kind = pa.struct([pa.field("x", pa.float64(), nullable=False), pa.field("y", pa.float64(), nullable=False)])
    marks = {"ARROW:extension:name": "geoarrow.point", "ARROW:extension:metadata": "{}"}
    values = pa.array([{"x": float(n), "y": float(n % 7)} for n in range(points)], kind)
    table = pa.table([values], schema=pa.schema([pa.field("p", kind, metadata=marks)]))
    dataset = lance.write_dataset(table, tmp_path / "points.lance")
    dataset.create_scalar_index("p", IndexConfig("rtree", {"page_size": page}))
    assert_same(tmp_path / "points.lance")


@pytest.mark.parametrize(
    "details", [None, ("/lance.table.FooIndexDetails", b""), ("lance.table.BTreeIndexDetails", b"")]
)
def test_entries_without_a_known_kind(copied: Path, details: tuple[str, bytes] | None) -> None:
    dataset = lance.dataset(copied)
    commits = (dataset.read_transaction(version).operation for version in range(2, dataset.version + 1))
    index = next(each for commit in commits for each in commit.new_indices if each.name == "btree")
    new = str(uuid.uuid4())
    shutil.copytree(copied / "_indices" / index.uuid, copied / "_indices" / new)
    changed = replace(index, uuid=new, name="odd", index_details=details)
    lance.LanceDataset.commit(
        str(copied), lance.LanceOperation.CreateIndex([changed], []), read_version=dataset.version
    )
    assert_same(copied)
    assert "odd" not in {each.name for each in lance_dataset.dataset(copied).describe_indices()} or details is None


def test_no_indices(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(rows(), tmp_path / "none.lance")
    assert (dataset.list_indices(), dataset.describe_indices(), dataset.has_index) == ([], [], False)
    with pytest.raises(KeyError, match='Index "x" not found'):
        dataset.stats.index_stats("x")


# -- dropping ----------------------------------------------------------------------------------------------------------


def test_drop(copied: Path) -> None:
    dataset = lance_dataset.dataset(copied)
    before = dataset.version
    dataset.drop_index("btree")
    assert dataset.version == before + 1
    assert "btree" not in {each["name"] for each in dataset.list_indices()}
    assert "btree" in {each["name"] for each in dataset.checkout_version(before).list_indices()}
    assert_same(copied)
    operation = lance.dataset(copied).read_transaction(before + 1).operation
    assert [each.name for each in operation.removed_indices] == ["btree"]
    for name in [*SCALAR, *VECTOR]:
        if name != "btree":
            lance_dataset.dataset(copied).drop_index(name)
    assert not lance.dataset(copied).has_index
    assert lance.dataset(copied).count_rows("i = 8") == 1


def test_all_segments_are_dropped(copied: Path) -> None:
    append_segments(lance.dataset(copied))
    dataset = lance_dataset.dataset(copied)
    assert len([each for each in dataset.list_indices() if each["name"] == "ngram"]) == 2
    dataset.drop_index("ngram")
    assert "ngram" not in {each["name"] for each in lance.dataset(copied).list_indices()}


def test_bad_names(copied: Path) -> None:
    compact(lance.dataset(copied))
    dataset = lance_dataset.dataset(copied)
    with pytest.raises(RuntimeError, match="Index 'btre' not found; did you mean 'btree'"):
        dataset.drop_index("btre")
    with pytest.raises(IndexNotFoundError):
        dataset.index_statistics("nothing")
    with pytest.raises(InvalidInputError, match="belongs to the table itself"):
        dataset.drop_index("__lance_frag_reuse")
    for call in (dataset.drop_index, dataset.index_statistics):
        with pytest.raises(TypeError, match="must be text"):
            call(3)  # type: ignore[arg-type]


def test_two_writers(copied: Path) -> None:
    first, second = lance_dataset.dataset(copied), lance_dataset.dataset(copied)
    first.drop_index("btree")
    second.drop_index("bitmap")
    assert {"btree", "bitmap"}.isdisjoint(each["name"] for each in second.list_indices())
    with pytest.raises(IndexNotFoundError):
        lance_dataset.dataset(copied).drop_index("btree")


# -- damage ------------------------------------------------------------------------------------------------------------


def test_damaged_files_are_named(copied: Path) -> None:
    found: dict[str, IndexDescription] = {each.name: each for each in lance_dataset.dataset(copied).describe_indices()}
    for name in [*SCALAR, *VECTOR]:
        if name.startswith("untrained"):
            continue
        folder = copied / "_indices" / found[name].segments[0].uuid
        for file in folder.rglob("*"):
            if file.is_file():
                file.write_bytes(b"x" * file.stat().st_size)
        with pytest.raises((CorruptFileError, MissingFileError), match=folder.name):
            lance_dataset.dataset(copied).stats.index_stats(name)
        shutil.rmtree(folder)
        with pytest.raises(MissingFileError, match=folder.name):
            lance_dataset.dataset(copied).stats.index_stats(name)
    assert len(lance_dataset.dataset(copied).list_indices()) == len(found)


def test_times_are_in_utc(copied: Path) -> None:
    created = lance_dataset.dataset(copied).describe_indices()[0].segments[0].created_at
    assert created is not None
    assert created.tzinfo is dt.timezone.utc
