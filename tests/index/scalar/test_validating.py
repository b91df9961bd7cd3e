"""Validation of scalar indices: healthy ones pass after any history, and every sort of damage is described."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.processes.cli_runs import run, run_json

import lance_dataset
from lance_dataset.changes.commit import commit_change
from lance_dataset.errors import CorruptFileError, DamagedIndexError, IndexProblem
from lance_dataset.file.jsonb import encode_document
from lance_dataset.index.files import NewIndexFolder
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.trainer import Training
from lance_dataset.index.training import TRAINERS
from lance_dataset.indices import IndexConfig
from lance_dataset.io.local import LocalStore
from lance_dataset.scan.validating import validate_indices
from lance_dataset.table.operations import CreateIndex
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.types.schema import Schema

#: Name, column, kind and parameters of an index of each kind.
_INDICES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("btree", "k", "btree", {"zone_size": 32}),
    ("floats", "f", "btree", {"zone_size": 50}),
    ("texts", "s", "btree", {}),
    ("bitmap", "s", "bitmap", {}),
    ("labels", "l", "labellist", {}),
    ("ngram", "t", "ngram", {}),
    ("fm", "t", "fm", {}),
    ("minhash", "t", "minhashlsh", {"num_hashes": 8, "num_bands": 4, "shingle_size": 2}),
    ("zones", "f", "zonemap", {"rows_per_zone": 40}),
    ("text_zones", "s", "zonemap", {"rows_per_zone": 30}),
    ("bloom", "k", "bloomfilter", {"number_of_items": 40}),
    ("rtree", "p", "rtree", {"page_size": 8}),
    ("numbers", "j", "json", {"path": "x", "target_index_type": "btree"}),
    ("names", "j", "json", {"path": "s", "target_index_type": "bitmap"}),
)
_WORDS = ("alpha", "Beta", "gamma délta", "straße", "ﬁne", "Ｗide", "x")
_ROWS = 360


def _text(number: int) -> str | None:
    return None if number % 9 == 2 else " ".join(f"{_WORDS[(number + i) % 7]}{number}" for i in range(number % 4))


def _float(number: int) -> float:
    return float("nan") if number % 9 == 3 else -0.0 if number % 9 == 4 else number / 3


def _table(numbers: Sequence[int]) -> pa.Table:
    n = np.array(numbers, np.int64)
    floats = pa.array([None if i % 9 == 2 else _float(i) for i in numbers], pa.float64())
    lists = [None if i % 10 == 1 else [] if i % 10 == 2 else [i % 5, None if i % 6 == 0 else i % 7] for i in numbers]
    documents = [None if i % 12 == 3 else json.dumps({"x": i, "s": f"n{i % 4}"}) for i in numbers]
    points = pa.StructArray.from_arrays(
        [pa.array(n % 37 * 1.0), pa.array(n % 11 * 1.5)], ["x", "y"], mask=pa.array(n % 13 == 4)
    )
    table = pa.table(
        {
            "n": n,
            "k": pa.array(n * 7 % 1001, mask=n % 11 == 3),
            "s": pa.array([None if i % 7 == 5 else f"v{i % 90}" for i in numbers], pa.string()),
            "f": floats,
            "l": pa.array(lists, pa.list_(pa.int64())),
            "t": pa.array([_text(i) for i in numbers], pa.string()),
            "j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(documents, pa.string())),
        }
    )
    field = pa.field("p", points.type, metadata={"ARROW:extension:name": "geoarrow.point"})
    return table.append_column(field, points)


def _create(module: Any, path: Path, names: Sequence[str] = ()) -> None:
    make = lance.indices.IndexConfig if module is lance else IndexConfig
    for name, column, kind, parameters in _INDICES:
        if not names or name in names:
            module.dataset(path).create_scalar_index(column, make(kind, parameters), name=name)


def _write(path: Path) -> None:
    lance_dataset.write_dataset(_table(range(_ROWS)), path, max_rows_per_file=150)
    lance_dataset.dataset(path).delete("n IN (20, 160, 300)")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset with an index of each kind, and a few deleted rows."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    _write(path)
    _create(lance_dataset, path)
    return path


@pytest.fixture
def copied(indexed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed, tmp_path / "t"))


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that returns a dataset with nothing but an index of some name."""
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("single") / "t"
            _write(made[name])
            _create(lance_dataset, made[name], [name])
        return made[name]

    return make


@pytest.fixture
def copied_single(single: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(single(name), tmp_path / name))


def _validate(path: Path) -> None:
    lance_dataset.dataset(path).validate(indices=True)


def _problems(path: Path) -> tuple[IndexProblem, ...]:
    with pytest.raises(DamagedIndexError) as caught:
        _validate(path)
    return caught.value.problems


def _problem(path: Path, name: str) -> IndexProblem:
    (found,) = _problems(path)
    assert found.index == name
    return found


def _segment(path: Path, name: str) -> Segment:
    (found,) = (each for each in index_segments(lance_dataset.dataset(path).snapshot.reader) if each.name == name)
    return found


def _replace(path: Path, name: str, write: Callable[[Segment, NewIndexFolder], None]) -> str:
    """Publish other files as those of an index with one segment; return the id of the segment."""
    old = _segment(path, name)
    new_id = f"{random.Random(name).getrandbits(128):032x}"
    new_id = "-".join([new_id[:8], new_id[8:12], new_id[12:16], new_id[16:20], new_id[20:]])
    target = NewIndexFolder(LocalStore(), f"{path}/_indices/{new_id}")
    write(old, target)
    changed = replace(old.metadata, uuid=new_id, files=target.files)
    commit_change(lance_dataset.dataset(path).snapshot, CreateIndex((changed,), (old.metadata,)))
    return new_id


# -- healthy indices -------------------------------------------------------------------------------------------------


def _change(path: Path, rng: random.Random, count: int) -> int:
    """Make one change with either implementation; return the number of rows ever written."""
    module = rng.choice([lance, lance_dataset])
    dataset = module.dataset(path)
    stable = dataset.has_stable_row_ids
    kind = rng.choice(["append", "delete", "update", "change", "merge", "rewrite", "compact", "defer", "optimize"])
    names = {each["name"] for each in lance_dataset.dataset(path).list_indices()}
    # the reference loses rows if it compacts after a deferred compaction, and cannot extend JSON indices over bitmaps
    if (kind == "compact" and "__lance_frag_reuse" in names) or (kind == "optimize" and "names" in names):
        dataset = lance_dataset.dataset(path)
    if kind == "append":
        module.write_dataset(_table(range(count, count + 60)), path, mode="append")
        return count + 60
    if kind == "delete":
        dataset.delete(f"n % 8 = {rng.randrange(8)}")
    elif kind == "update":
        dataset.update({"k": str(rng.randrange(60))}, where=f"n % 7 = {rng.randrange(7)}")
    elif kind == "change":
        dataset.update({"t": "'new alpha words'", "f": "2.5", "s": "'zzz'"}, where=f"n % 9 = {rng.randrange(9)}")
    elif kind == "merge":
        start = rng.randrange(count)
        rows = _table(range(start + 1000, start + 1040)).set_column(0, "n", pa.array(range(start, start + 40)))
        dataset.merge_insert("n").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        return max(count, start + 40)
    elif kind == "rewrite":
        numbers = dataset.to_table(columns=["n"])["n"].combine_chunks()
        rows = pa.table({"n": numbers, "k": pc.multiply(numbers, 3)})
        dataset.merge_insert("n").when_matched_update_all().execute(rows)
    elif kind in ("compact", "defer"):
        options = {"defer_index_remap": True} if kind == "defer" and not stable else {}
        dataset.optimize.compact_files(materialize_deletions_threshold=0.01, **options)
    else:
        dataset.optimize.optimize_indices(**rng.choice([{}, {"num_indices_to_merge": 0}, {"num_indices_to_merge": 9}]))
    return count


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("seed", range(6))
def test_healthy_indices_pass(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path, stable = tmp_path / "t", seed % 2 == 1
    version = rng.choice(["2.1", "2.2"])
    lance.write_dataset(
        _table(range(240)), path, max_rows_per_file=100, enable_stable_row_ids=stable, data_storage_version=version
    )
    for name, _, kind, _ in _INDICES:
        if rng.random() < 0.7:
            # the reference refuses indices of JSON documents in tables with stable row ids
            _create(lance_dataset if stable and kind == "json" else rng.choice([lance, lance_dataset]), path, [name])
    count = 240
    for _ in range(6):
        count = _change(path, rng, count)
        _validate(path)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize(
    "name", ["pylance-0.10.18", "pylance-0.20.0", "pylance-1.0.0", "pylance-1.0.0-ngram", "zones-1.0.0", "zones-4.0.0"]
)
def test_indices_of_old_releases_pass(name: str) -> None:
    _validate(Path(__file__).parents[2] / "fixtures" / "indices" / name)


def test_little_memory_is_enough(indexed: Path) -> None:
    result = validate_indices(lance_dataset.dataset(indexed).snapshot, memory_limit=1)
    assert (sorted(result.checked), result.unchecked) == (sorted(each[0] for each in _INDICES), ())


@pytest.mark.filterwarnings("error::UserWarning")
def test_clones_and_branches(copied: Path, tmp_path: Path) -> None:
    dataset = lance_dataset.dataset(copied)
    dataset.shallow_clone(str(tmp_path / "clone"), dataset.version)
    dataset.create_branch("b").insert(_table(range(1000, 1010)))
    for each in (lance_dataset.dataset(tmp_path / "clone"), dataset.checkout_version(("b", None))):
        each.delete("n = 7")
        each.validate(indices=True)
    shutil.rmtree(copied / "_indices" / _segment(copied, "bitmap").metadata.uuid)
    with pytest.raises(FileNotFoundError, match="bitmap"):
        _validate(tmp_path / "clone")


def test_empty_and_untrained_indices(tmp_path: Path) -> None:
    lance_dataset.write_dataset(_table([]), tmp_path)
    _create(lance_dataset, tmp_path, [each[0] for each in _INDICES if each[2] != "json"])
    _validate(tmp_path)
    lance_dataset.dataset(tmp_path).insert(_table(range(10)))
    _validate(tmp_path)


def test_values_of_all_types(tmp_path: Path) -> None:
    numbers = list(range(40))
    columns = {
        "bool": pa.array([n % 3 == 0 for n in numbers]),
        "half": pa.array(np.array([n / 2 for n in numbers], np.float16)),
        "large": pa.array([f"{n % 7}" * (n % 4) for n in numbers], pa.large_string()),
        "binary": pa.array([bytes([n % 5]) * (n % 3) for n in numbers], pa.large_binary()),
        "fixed": pa.array([bytes([n % 5, n]) for n in numbers], pa.binary(2)),
        "decimal": pa.array(numbers, pa.int64()).cast(pa.decimal128(30, 2)),
        "wide": pa.array(numbers, pa.int64()).cast(pa.decimal256(50, 2)),
        "date": pa.array(numbers, pa.int32()).cast(pa.date32()),
        "time": pa.array([n << 56 for n in numbers], pa.int64()).cast(pa.timestamp("ns", "UTC")),
        "duration": pa.array(numbers, pa.int64()).cast(pa.duration("ms")),
        "null": pa.nulls(40, pa.int32()),
    }
    columns = {name: pc.if_else(pa.array([n % 6 != 1 for n in numbers]), each, None) for name, each in columns.items()}
    dataset = lance_dataset.write_dataset(pa.table(columns), tmp_path, max_rows_per_file=15)
    for name in columns:
        for kind in ("btree", "bitmap", "zonemap", "bloomfilter"):
            if kind != "bloomfilter" or TRAINERS[kind].fits(columns[name].type):
                dataset.create_scalar_index(name, IndexConfig(kind, {}), name=f"{name}_{kind}")
    dataset.create_scalar_index("binary", IndexConfig("fm", {}), name="fm")
    _validate(tmp_path)


# -- wrong entries ---------------------------------------------------------------------------------------------------


def _trained(path: Path, name: str, change: Callable[[list[Any], list[int]], tuple[list[Any], list[int]]]) -> None:
    """Replace an index by one that is trained from other entries than those of the table."""

    def write(old: Segment, target: NewIndexFolder) -> None:
        (column,) = old.column_names
        dataset = lance_dataset.dataset(path)
        table = dataset.to_table(columns=[column], with_row_address=True).combine_chunks()
        values = table[column].chunk(0)
        if isinstance(values, pa.ExtensionArray):
            documents = [None if each is None else encode_document(each) for each in values.storage.to_pylist()]
            values = pa.array(documents, pa.large_binary())
        numbers, rows = change(list(range(len(values))), table["_rowaddr"].to_pylist())
        entries = pa.RecordBatch.from_arrays(
            [values.take(pa.array(numbers, pa.int64())), pa.array(rows, pa.uint64())], names=["values", "ids"]
        )
        details = old.metadata.details
        assert details is not None
        trainer, parameters = TRAINERS[old.kind or ""].of_index(details.value, old.folder)
        trainer.write(Training([entries], values.type, target, parameters, 1 << 26))

    _replace(path, name, write)


def _lost(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    return values[:50] + values[51:], rows[:50] + rows[51:]


def _changed(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    return [*values[:50], 66, *values[51:]], rows


def _swapped(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    return [*values[:50], 66, *values[51:66], 50, *values[67:]], rows


def _other_row(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    return values, [*rows[:50], 1 << 40, *rows[51:]]


def _null_moved(values: list[Any], rows: list[int]) -> tuple[list[Any], list[int]]:
    """Put the first row with a null of each column under another value, and the row after it under null."""
    return [{2: 3, 3: 2, 1: 4, 4: 1, 5: 6, 6: 5}.get(each, each) for each in values], rows


_KEYED = [each[0] for each in _INDICES if each[2] not in ("zonemap", "bloomfilter")]


@pytest.mark.parametrize("damage", [_lost, _changed, _swapped, _other_row, _null_moved])
@pytest.mark.parametrize("name", _KEYED)
def test_wrong_entries_are_found(copied_single: Callable[[str], Path], name: str, damage: Any) -> None:
    copied = copied_single(name)
    _trained(copied, name, damage)
    found = _problem(copied, name)
    assert found.segment == _segment(copied, name).metadata.uuid
    assert found.segment in str(_problems(copied)[0])
    assert (found.num_rows or 0) >= 1
    if damage is not _null_moved:  # the 51st row is number 51: number 20 was deleted
        assert "row 51 of fragment 0 (address 51)" in found.what
    assert f"name={name!r}, replace=True" in found.remedy


@pytest.mark.parametrize("name", ["zones", "text_zones", "bloom"])
def test_wrong_zones_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)
    first = {"zones": 9, "text_zones": 1, "bloom": 1}[name]
    _trained(copied, name, lambda values, rows: ([first] * 100 + values[100:], rows))
    found = _problem(copied, name)
    assert (found.num_rows or 0) > 50
    assert "row 0 of fragment 0" in found.what or "row 1 of fragment 0" in found.what
    assert "zone 0" in found.what


@pytest.mark.parametrize("name", ["zones", "text_zones", "bloom"])
def test_rows_without_a_zone_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)
    _trained(copied, name, lambda values, rows: (values[:-20], rows[:-20]))
    found = _problem(copied, name)
    assert (found.num_rows or 0) >= 20
    assert "is in no zone" in found.what
    assert "fragment 2" in found.what


def test_the_remedy_mends(copied: Path) -> None:
    for name in ("btree", "labels", "numbers", "zones", "minhash"):
        _trained(copied, name, lambda values, rows: (values[:-9], rows[:-9]))
    problems = _problems(copied)
    assert {each.index for each in problems} == {"btree", "labels", "numbers", "zones", "minhash"}
    before = {name: _segment(copied, name).metadata.details for name in ("btree", "numbers", "zones", "minhash")}
    for each in problems:
        exec(each.remedy, {"ds": lance_dataset.dataset(copied), "IndexConfig": IndexConfig})
    _validate(copied)
    assert {name: _segment(copied, name).metadata.details for name in before} == before


def test_the_message_tells_rows_and_values(copied: Path) -> None:
    _trained(copied, "btree", _changed)
    (found,) = _problems(copied)
    assert found.what == (
        "is wrong about 1 rows: the row 51 of fragment 0 (address 51) has 357, and is not under 357 but is under 469"
    )
    error = DamagedIndexError("t", [found])
    assert pickle.loads(pickle.dumps(error)).problems == (found,)
    assert isinstance(error, CorruptFileError)


def test_stale_entries_in_tables_with_row_ids(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table(range(100)), tmp_path, enable_stable_row_ids=True)
    _create(lance_dataset, tmp_path, ["bitmap", "ngram", "labels"])
    dataset = lance_dataset.dataset(tmp_path)
    dataset.update({"s": "'new'", "t": "'other words'", "l": "[9]"}, where="n < 5")
    _validate(tmp_path)
    for name in ("bitmap", "ngram", "labels"):
        _cover(tmp_path, name, [0, 1])
    assert {each.index: each.num_rows for each in _problems(tmp_path)} == {"bitmap": 5, "ngram": 5, "labels": 5}


# -- coverage --------------------------------------------------------------------------------------------------------


def _cover(path: Path, name: str, fragment_ids: Sequence[int]) -> None:
    """Publish that an index covers other fragments."""
    old = _segment(path, name).metadata
    changed = replace(old, fragment_bitmap=encode_bitmap(fragment_ids))
    commit_change(lance_dataset.dataset(path).snapshot, CreateIndex((changed,), (old,)))


@pytest.mark.parametrize("name", [each[0] for each in _INDICES])
def test_uncovered_rows_in_the_bitmap_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)
    lance_dataset.dataset(copied).insert(_table(range(500, 530)))
    _validate(copied)
    _cover(copied, name, [0, 1, 2, 3])
    found = _problem(copied, name)
    assert (found.num_rows or 0) >= 16
    assert "fragment 3" in found.what


@pytest.mark.parametrize("name", ["btree", "bloom"])
def test_rewritten_columns_with_the_old_bitmap_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)
    dataset = lance_dataset.dataset(copied)
    numbers = dataset.to_table(columns=["n"])["n"].combine_chunks()
    rows = pa.table({"n": numbers, "k": pc.add(numbers, 5000)})
    dataset.merge_insert("n").when_matched_update_all().execute(rows)
    _validate(copied)
    ids = [fragment.fragment_id for fragment in lance_dataset.dataset(copied).get_fragments()]
    covered = _segment(copied, name).recorded
    _cover(copied, name, sorted(covered | set(ids)))
    found = _problem(copied, name)
    assert (found.num_rows or 0) >= 357


def test_overlapping_segments_are_found(copied: Path) -> None:
    dataset = lance_dataset.dataset(copied)
    dataset.insert(_table(range(500, 530)))
    dataset.optimize.optimize_indices(index_names=["btree"], num_indices_to_merge=0)
    old = [each.metadata for each in index_segments(dataset.snapshot.reader) if each.name == "btree"]
    changed = replace(old[1], fragment_bitmap=encode_bitmap([2, 3]))
    commit_change(dataset.snapshot, CreateIndex((changed,), (old[1],)))
    texts = [each.what for each in _problems(copied)]
    assert any(f"covers fragment 2, and so does segment {old[0].uuid}" in each for each in texts)


def test_unexplained_fragments_are_found(copied: Path) -> None:
    _cover(copied, "bitmap", [0, 1, 2, 77])
    assert "covers fragment 77, but no fragment had a higher id than 2 so far" in _problem(copied, "bitmap").what


# -- damaged files ---------------------------------------------------------------------------------------------------

_Edit = Callable[[pa.RecordBatch, dict[str, str], dict[str, bytes]], pa.RecordBatch]


_BUFFERS = ("null_bitmap", "lance:label_list_nulls", "minhash_lsh_page_table_buffer")


def _edited(path: Path, name: str, file: str, edit: _Edit) -> None:
    """Replace an index by one with a file that is changed."""

    def write(old: Segment, target: NewIndexFolder) -> None:
        for each in old.folder.names():
            table = old.folder.open(each)
            buffers = {key: table.global_buffer(key) or b"" for key in _BUFFERS if key in table.metadata}
            metadata = {key: value for key, value in table.metadata.items() if key not in buffers}
            batch = table.read()
            schema = table.schema
            if each == file:
                batch = edit(batch, metadata, buffers)
                if batch.schema != schema.storage_arrow:
                    schema = Schema.from_arrow(batch.schema)
            target.write(each, schema, table.version, [batch], metadata, buffers)

    _replace(path, name, write)


def _set(column: str, change: Callable[[list[Any]], list[Any]]) -> _Edit:
    def edit(batch: pa.RecordBatch, metadata: dict[str, str], buffers: dict[str, bytes]) -> pa.RecordBatch:
        at = batch.schema.get_field_index(column)
        field = batch.schema.field(at)
        return batch.set_column(at, field, pa.array(change(batch.column(at).to_pylist()), field.type))

    return edit


def _rows(change: Callable[[list[int]], list[int]]) -> _Edit:
    return lambda batch, metadata, buffers: batch.take(pa.array(change(list(range(batch.num_rows)))))


def _with(target: str, key: str, value: Any) -> _Edit:
    def edit(batch: pa.RecordBatch, metadata: dict[str, str], buffers: dict[str, bytes]) -> pa.RecordBatch:
        content: dict[str, Any] = metadata if target == "metadata" else buffers
        content[key] = value(content[key]) if callable(value) else value
        return batch

    return edit


def _put(place: int, value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [*values[:place], value, *values[place + 1 :]]


def _swap(one: int, other: int) -> Callable[[list[Any]], list[Any]]:
    def swapped(values: list[Any]) -> list[Any]:
        values = list(values)
        values[one], values[other] = values[other], values[one]
        return values

    return swapped


def _shrunk_box(values: list[Any]) -> list[Any]:
    return [*values[:-1], {**values[-1], "xmax": values[-1]["xmax"] - 1}]


def _cleared(filters: list[bytes]) -> list[bytes]:
    return [bytes([*filters[0][:-64], *bytes(64)]), *filters[1:]]


def _fewer_nulls(sets: bytes) -> bytes:
    return b"\0\0\0\0"


_DAMAGES: dict[str, tuple[str, str, _Edit, str]] = {
    "page order": ("btree", "page_data.lance", _set("values", _swap(100, 110)), "page 3 are not in order"),
    "null after values": ("btree", "page_data.lance", _set("values", _put(100, None)), "not in order: null"),
    "no row": ("btree", "page_data.lance", _set("ids", _put(1, 5)), "has 35, and is under null"),
    "page minimum": ("btree", "page_lookup.lance", _set("min", _put(4, 700)), "min of page 4 is 700"),
    "page maximum": ("btree", "page_lookup.lance", _set("max", _put(4, 5)), "max of page 4 is 5"),
    "page nulls": ("btree", "page_lookup.lance", _set("null_count", _put(2, 1)), "null_count of page 2 is 1"),
    "page number": ("btree", "page_lookup.lance", _set("page_idx", _put(2, 3)), "page_idx of page 2 is 3"),
    "pages": ("btree", "page_lookup.lance", _rows(lambda rows: rows[:-1]), "bounds of 11 pages"),
    "page size": ("btree", "page_lookup.lance", _with("metadata", "batch_size", "0"), "batch_size"),
    "key twice": ("bitmap", "bitmap_page_lookup.lance", _set("keys", _put(4, "v10")), "the key 'v10' several times"),
    "null key": ("bitmap", "bitmap_page_lookup.lance", _set("keys", _put(3, None)), "several keys that are null"),
    "key": ("bitmap", "bitmap_page_lookup.lance", _set("keys", _put(3, "w")), "but is under 'w'"),
    "sets swapped": ("bitmap", "bitmap_page_lookup.lance", _set("bitmaps", _swap(3, 4)), "is wrong about 8 rows"),
    "set": ("bitmap", "bitmap_page_lookup.lance", _set("bitmaps", _put(3, b"\1\0\0\0abc")), "row set"),
    "key count": (
        "bitmap",
        "bitmap_page_lookup.lance",
        _with("metadata", "lance:index_stats", '{"num_bitmaps":3}'),
        "counts 3 keys",
    ),
    "null lists": (
        "labels",
        "bitmap_page_lookup.lance",
        _with("buffers", "lance:label_list_nulls", _fewer_nulls),
        "has null, and is not under a null list",
    ),
    "token order": ("ngram", "ngram_postings.lance", _rows(_swap(5, 6)), "is not in order"),
    "token lost": ("ngram", "ngram_postings.lance", _rows(lambda rows: rows[:50] + rows[51:]), "is not under"),
    "token sets swapped": ("ngram", "ngram_postings.lance", _set("posting_list", _swap(50, 90)), "is not under"),
    "zone minimum": ("zones", "zonemap.lance", _set("min", _put(2, 28.0)), "zone 2, which has values from 28.0"),
    "zone maximum": ("text_zones", "zonemap.lance", _set("max", _put(2, "v60")), "zone 2, which has values from"),
    "zone bounds": ("text_zones", "zonemap.lance", _set("max", _put(2, "a")), "its least value is above its greatest"),
    "zone nulls": ("text_zones", "zonemap.lance", _set("null_count", _put(2, 0)), "has null, and is in zone 2"),
    "zone too many nulls": ("text_zones", "zonemap.lance", _set("null_count", _put(2, 99)), "99 nulls"),
    "zone NaNs": (
        "zones",
        "zonemap.lance",
        lambda batch, metadata, buffers: _set("max", _put(2, 39.0))(
            _set("nan_count", _put(2, 0))(batch, metadata, buffers), metadata, buffers
        ),
        "has nan, and is in zone 2",
    ),
    "zone length": ("text_zones", "zonemap.lance", _set("zone_length", _put(4, 20)), "is in no zone"),
    "zone beyond": ("text_zones", "zonemap.lance", _set("zone_length", _put(4, 200)), "beyond the rows"),
    "null rows": (
        "zones",
        "zonemap.lance",
        _with("buffers", "null_bitmap", _fewer_nulls),
        "has null, and is not under",
    ),
    "filter bits": ("bloom", "bloomfilter.lance", _set("bloom_filter_data", _cleared), "a filter without it"),
    "filter size": ("bloom", "bloomfilter.lance", _set("bloom_filter_data", _put(1, b"abc")), "filter of 3 bytes"),
    "filter nulls": ("bloom", "bloomfilter.lance", _set("has_null", _put(0, False)), "no nulls"),
    "page box": ("rtree", "page_data.lance", _set("bbox", _shrunk_box), "whose boxes reach"),
    "page of box": ("rtree", "page_data.lance", _set("id", lambda ids: [*ids[:-2], ids[-1], ids[-2]]), "names page"),
    "null boxes": ("rtree", "nulls.lance", _set("nulls", lambda sets: [_fewer_nulls(sets[0])]), "is not under null"),
    "samples": (
        "fm",
        "part_0_fm.lance",
        _set("words", lambda words: [*words[:-1], words[-1][:80] + words[-1][88:96] + words[-1][88:]]),
        "1 positions of suffixes are wrong",
    ),
    "ranks": ("fm", "part_0_fm.lance", _set("prefix_rank", _put(3, 9)), "9 bits before it are set"),
    "separators": (
        "fm",
        "part_0_fm.lance",
        _with("metadata", "separator_documents", lambda text: text[4:8] + text[:4] + text[8:]),
        "documents of its separators",
    ),
    "starts": (
        "fm",
        "part_0_fm.lance",
        _with("metadata", "doc_start_positions", lambda text: text[:16] + "03" + text[18:]),
        "documents",
    ),
    "bands": ("minhash", "bands.lance", _set("doc_id", _swap(40, 80)), "bands of 2 documents"),
    "band order": ("minhash", "bands.lance", _rows(_swap(40, 80)), "not in order"),
    "band pages": (
        "minhash",
        "bands.lance",
        _with("buffers", "minhash_lsh_page_table_buffer", lambda data: bytes([data[0] ^ 1]) + data[1:]),
        "last keys of its pages",
    ),
    "signature": (
        "minhash",
        "signatures.lance",
        _set("signature", _swap(40, 80)),
        "bands of 2 documents are not those of their signatures",
    ),
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_damaged_files_are_found(copied_single: Callable[[str], Path], damage: str) -> None:
    name, file, edit, text = _DAMAGES[damage]
    copied = copied_single(name)
    _edited(copied, name, file, edit)
    found = _problem(copied, name)
    assert text in found.what
    if found.num_rows is None and damage != "signature":
        assert f"{found.segment}/{file}" in found.what


@pytest.mark.parametrize("name", [each[0] for each in _INDICES])
def test_files_of_other_content_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)

    def write(old: Segment, target: NewIndexFolder) -> None:
        for number, each in enumerate(old.folder.names()):
            source = old.folder.open_input(each)
            content = bytes(source.read(0, source.size))
            target.put(each, content if number else bytes(64) + content[64 : len(content) // 2])

    uuid = _replace(copied, name, write)
    assert uuid in _problem(copied, name).what


def test_values_of_another_type_are_found(copied: Path) -> None:
    def write(old: Segment, target: NewIndexFolder) -> None:
        entries = pa.RecordBatch.from_arrays([pa.array([1.5]), pa.array([0], pa.uint64())], names=["values", "ids"])
        trainer = TRAINERS["btree"]
        trainer.write(Training([entries], pa.float64(), target, trainer.defaults, 1 << 26))

    _replace(copied, "texts", write)
    assert "has values of double, but the column has string" in _problem(copied, "texts").what


@pytest.mark.filterwarnings("ignore:the index")
@pytest.mark.parametrize("name", [each[0] for each in _INDICES])
def test_damaged_bytes_raise_no_other_errors(copied_single: Callable[[str], Path], name: str) -> None:
    path = copied_single(name)
    rng = random.Random(7)
    segment = _segment(path, name)
    for each in segment.folder.names():
        file = path / "_indices" / segment.metadata.uuid / each
        content = file.read_bytes()
        for _ in range(3):
            changed = bytearray(content)
            changed[rng.randrange(len(content))] = rng.randrange(256)
            file.write_bytes(changed)
            with suppress(DamagedIndexError):
                _validate(path)
        file.write_bytes(content)


# -- reports ---------------------------------------------------------------------------------------------------------


def test_unchecked_indices_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(300 * 4, np.float32)), 4)
    lance.write_dataset(pa.table({"v": vectors, "s": ["some words"] * 300, "n": range(300)}), tmp_path)
    dataset = lance.dataset(tmp_path)
    dataset.create_index("v", "IVF_FLAT", num_partitions=2)
    dataset.create_scalar_index("s", "INVERTED")
    dataset.create_scalar_index("n", "BTREE")
    with pytest.warns(UserWarning, match="was not checked") as caught:
        _validate(tmp_path)
    texts = sorted(str(each.message) for each in caught)
    assert len(texts) == 2
    assert "'s_idx'" in texts[0]
    assert "Inverted" in texts[0]
    assert "'v_idx'" in texts[1]
    assert caught[0].filename == __file__
    lance_dataset.dataset(tmp_path).validate()
    facts = run_json("validate", tmp_path, "--indices")
    assert facts["valid"] is True
    assert facts["indices"] == 3
    assert sorted(facts["warnings"]) == texts


def test_unknown_kinds_are_named(copied: Path) -> None:
    old = _segment(copied, "btree").metadata
    commit_change(lance_dataset.dataset(copied).snapshot, CreateIndex((replace(old, index_version=9),), (old,)))
    with pytest.warns(UserWarning, match="'btree' was not checked: this release does not know its kind"):
        _validate(copied)


def test_the_command_line(copied: Path) -> None:
    assert "3 fragments and 14 indices are valid" in run("validate", copied, "--indices").stdout
    _trained(copied, "btree", _changed)
    assert run_json("validate", copied)["valid"] is True
    failed = run("validate", copied, "--indices", "--json", status=1)
    error = json.loads(failed.stderr)["error"]
    assert error["type"] == "DamagedIndexError"
    (found,) = error["problems"]
    assert (found["index"], found["kind"], found["num_rows"]) == ("btree", "BTree", 1)
    assert found["remedy"] in error["message"]
    assert found["remedy"] in run("validate", copied, "--indices", status=1).stderr
