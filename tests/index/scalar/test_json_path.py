"""Indices of values at a path of JSON documents: built by either implementation, used by both, kept up to date."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig as TheirConfig

import lance_dataset
from lance_dataset.errors import CorruptFileError, InvalidIndexError, InvalidInputError, UnsupportedError
from lance_dataset.index.scalar import btree_training
from lance_dataset.indices import IndexConfig

#: Path of an index, the accessor of its values, and a value.
_VALUES = {
    "x": ("json_get_int(j, 'x')", "30"),
    "f": ("json_get_float(j, 'f')", "7.5"),
    "s": ("json_get_string(j, 's')", "'name 4'"),
    "b": ("json_get_bool(j, 'b')", "true"),
    "n.m": ("json_get_int(json_get(j, 'n'), 'm')", "3"),
    "$.x": ("json_get_int(j, 'x')", "30"),
}
#: Paths that the reference uses, too.
_SHARED = ("x", "f", "s", "b")


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


def _document(rng: random.Random, number: int) -> str | None:
    members = {
        "x": rng.choice([number % 50, -number, None, 2**62 + number]),
        "f": rng.choice([number / 2, number, 7.5, -0.0, 0.0, None]),
        "s": f"name {number % 20}",
        "b": number % 3 == 0,
        "n": rng.choice([{"m": number % 7}, [1], "text", None]),
        "list": ["a", number],
    }
    kept = {key: value for key, value in members.items() if rng.random() < 0.8}
    return None if number % 17 == 5 else json.dumps(kept)


def _json(texts: Sequence[str | None]) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts, pa.string()))


def _table(documents: Sequence[Any], start: int = 0) -> pa.Table:
    texts = [each if each is None or isinstance(each, str) else json.dumps(each) for each in documents]
    return pa.table({"i": pa.array(range(start, start + len(texts)), pa.int64()), "j": _json(texts)})


def _rows(start: int, count: int) -> pa.Table:
    """Return documents of which the first has all members: the first value decides the type."""
    rng = random.Random(start)
    first = json.dumps({"x": start, "f": start + 0.5, "s": "name 4", "b": True, "n": {"m": 3}})
    return _table([first, *(_document(rng, number) for number in range(start + 1, start + count))], start)


def _config(path: str, target: str, **parameters: Any) -> dict[str, Any]:
    return {"path": path, "target_index_type": target, **parameters}


def _create(path: Path, json_path: str, target: str, by_us: bool, name: str | None = None) -> None:
    if by_us:
        ours = lance_dataset.dataset(path)
        ours.create_scalar_index("j", IndexConfig("json", _config(json_path, target)), name=name)
    else:
        theirs = lance.dataset(path)
        theirs.create_scalar_index("j", TheirConfig("json", _config(json_path, target)), name=name)


def _filters(json_path: str) -> list[str]:
    value, constant = _VALUES[json_path]
    found = [f"{value} {operator} {constant}" for operator in ("=", "!=", "<", "<=", ">", ">=")]
    found += [f"{value} IN ({constant})", f"{value} NOT IN ({constant})", f"{value} IS NULL", f"{value} IS NOT NULL"]
    found += [f"{value} BETWEEN {constant} AND {constant}", f"NOT ({value} < {constant} OR i > 120)"]
    if json_path == "f":
        found += [f"{value} = 0.0", f"{value} < -0.0", f"{value} IN (0.0, 7.5)"]
    if json_path == "s":
        found += [f"{value} LIKE 'name 1%'", f"starts_with({value}, 'name 1')"]
    if json_path == "b":
        found += [value, f"NOT {value}", f"{value} IS TRUE", f"{value} IS NOT TRUE", f"{value} IS NOT FALSE"]
    return found


def _is_used(dataset: Any, filter: str) -> bool:
    return "ScalarIndexQuery" in dataset.scanner(filter=filter).explain_plan()


def _check(path: Path, json_paths: Sequence[str], used: bool = True, step: int = 1) -> None:
    """Compare ours, theirs and the scan without index, for each `step`-th filter."""
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for json_path in json_paths:
        for each in _filters(json_path)[::step]:
            expected = sorted(theirs.scanner(filter=each, use_scalar_index=False).to_table()["i"].to_pylist())
            assert sorted(ours.to_table(filter=each)["i"].to_pylist()) == expected, each
            assert sorted(theirs.to_table(filter=each)["i"].to_pylist()) == expected, each
            if used:
                assert _is_used(ours, each), each


# -- building and using ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by_us", "target", "stable"),
    [
        (by_us, target, stable)
        for by_us in (True, False)
        for target in ("btree", "bitmap")
        for stable in (False, True)
        if by_us or not stable or target != "btree"  # which the reference refuses
    ],
)
def test_either_uses_the_index_of_the_other(tmp_path: Path, by_us: bool, target: str, stable: bool) -> None:
    table = _rows(0, 300)
    lance_dataset.write_dataset(table, tmp_path, max_rows_per_file=120, enable_stable_row_ids=stable)
    for json_path in _VALUES:
        _create(tmp_path, json_path, target, by_us, name=f"index of {json_path}")
    _check(tmp_path, list(_VALUES), step=3)
    theirs = lance.dataset(tmp_path)
    for json_path in _SHARED[:3]:
        assert any(_is_used(theirs, each) for each in _filters(json_path))
    details = [each.details for each in lance_dataset.dataset(tmp_path).describe_indices()]
    assert details == [each.details for each in theirs.describe_indices()]
    ours = lance_dataset.dataset(tmp_path)
    for name in ("index of x", "index of s"):
        mine, other = ours.stats.index_stats(name), theirs.stats.index_stats(name)
        assert mine["index_type"] == {"btree": "BTree", "bitmap": "Bitmap"}[target]  # always BTree in the reference
        different = ("index_type", "updated_at_timestamp_ms")
        assert {**mine, **dict.fromkeys(different)} == {**other, **dict.fromkeys(different)}


@pytest.mark.parametrize("target", ["btree", "bitmap"])
@pytest.mark.parametrize("json_path", list(_VALUES))
def test_files_are_those_of_the_reference(tmp_path: Path, json_path: str, target: str) -> None:
    lance_dataset.write_dataset(_rows(0, 3000), tmp_path)
    found = []
    for by_us in (True, False):
        _create(tmp_path, json_path, target, by_us, name="n")
        theirs = lance.dataset(tmp_path)
        (segment,) = theirs.describe_indices()[0].segments
        assert segment.index_version == 0
        folder = tmp_path / "_indices" / str(segment.uuid)
        files = {each.name: lance.file.LanceFileReader(str(each)).read_all().to_table() for each in folder.iterdir()}
        assert theirs.describe_indices()[0].total_size_bytes == sum(each.stat().st_size for each in folder.iterdir())
        found.append((files, segment.size_bytes))
    (mine, my_size), (other, their_size) = found
    assert mine.keys() == other.keys()
    for name, table in mine.items():
        assert table.schema == other[name].schema
        assert table.column(0) == other[name].column(0)
    assert my_size <= 1.02 * their_size


def test_targets_get_their_parameters(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_rows(0, 300), tmp_path)
    config = _config("x", "BTree", target_index_parameters='{"zone_size": 50, "other": 1}')
    dataset.create_scalar_index("j", IndexConfig("JSON", config))
    assert dataset.stats.index_stats("j_idx")["indices"][0]["num_pages"] == 6
    assert lance.dataset(tmp_path).stats.index_stats("j_idx")["indices"][0]["num_pages"] == 6
    dataset.insert(_rows(300, 100))
    dataset.optimize.optimize_indices()
    assert dataset.stats.index_stats("j_idx")["indices"][0]["num_pages"] == 8
    _check(tmp_path, ["x"])


@pytest.mark.parametrize(
    ("json_path", "expected"),
    [
        ("list[1]", [7, 8, None]),
        ("list[last]", [7, 8, None]),
        ("$.list[*] ? (@ > 7)", [None, 8, None]),
        ("$.x > 2", [False, True, False]),
        ('$["a.b"]', ["dots", None, None]),
        ("n.m", [5, None, 6]),
        ("$.**.m", [5, None, 6]),
    ],
)
def test_paths_are_evaluated_as_json_paths(tmp_path: Path, json_path: str, expected: list[Any]) -> None:
    documents = [{"x": 1, "list": ["a", 7], "a.b": "dots", "n": {"m": 5}}, {"x": 3, "list": ["b", 8]}, {"n": {"m": 6}}]
    lance_dataset.write_dataset(_table(documents), tmp_path)
    for by_us in (True, False):
        _create(tmp_path, json_path, "btree", by_us, name="n")
        folder = tmp_path / "_indices" / str(lance.dataset(tmp_path).describe_indices()[0].segments[0].uuid)
        found = lance.file.LanceFileReader(str(folder / "page_data.lance")).read_all().to_table()
        values = dict(zip(found["ids"].to_pylist(), found["values"].to_pylist(), strict=True))
        assert [values[row] for row in range(3)] == expected


def test_numbers_that_only_floats_can_be(tmp_path: Path) -> None:
    texts = ['{"x": 18446744073709551615}', '{"x": 3}', '{"x": NaN}', '{"x": Infinity}', '{"x": -0.0}']
    dataset = lance_dataset.write_dataset(_table(texts), tmp_path)
    _create(tmp_path, "x", "btree", by_us=True)
    dataset = lance_dataset.dataset(tmp_path)
    for each in ("> 4", "= 0.0", "IS NULL", "= 18446744073709551615.0", "!= 3", "< 1"):
        rows = lance.dataset(tmp_path).to_table(filter=f"json_get_float(j, 'x') {each}")["i"].to_pylist()
        assert dataset.to_table(filter=f"json_get_float(j, 'x') {each}")["i"].to_pylist() == rows, each


def test_documents_in_a_struct(tmp_path: Path) -> None:
    documents = _json([json.dumps({"x": n % 10}) for n in range(100)])
    table = pa.table({"s": pa.StructArray.from_arrays([documents, pa.array(range(100))], ["j", "n"])})
    dataset = lance_dataset.write_dataset(table, tmp_path)
    dataset.create_scalar_index("s.j", IndexConfig("json", _config("x", "bitmap")))
    assert [each["name"] for each in dataset.list_indices()] == ["s.j_idx"]
    assert dataset.count_rows("json_get_int(s.j, 'x') = 3") == 10
    assert _is_used(dataset, "json_get_int(s.j, 'x') = 3")


def test_plain_binary_columns(tmp_path: Path) -> None:
    """Documents in binary form may be in columns of no JSON type; text among them is read as text."""
    stored = lance_dataset.write_dataset(_table([{"x": 5}, {"x": 6}, {"x": 5}]), tmp_path / "a")
    documents = stored.to_table(columns={"d": "json_get(j, 'missing')"})["d"].to_pylist()
    documents = [b'{"x": 5}', *documents]
    table = pa.table({"j": pa.array(documents, pa.large_binary())})
    dataset = lance_dataset.write_dataset(table, tmp_path / "b")
    dataset.create_scalar_index("j", IndexConfig("json", _config("x", "btree")))
    assert dataset.count_rows("json_get_int(j, 'x') = 5") == 1


# -- which calls an index answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("json_path", "filter"),
    [
        ("x", "json_get_float(j, 'x') IS NULL"),
        ("x", "json_get_string(j, 'x') = '3'"),
        ("f", "json_get_int(j, 'f') = 4"),
        ("s", "json_get_int(j, 's') IS NULL"),
        ("n.m", "json_get_int(j, 'n.m') = 3"),
        ("list[1]", "json_get_string(j, 'list[1]') IS NULL"),
        ("x", "json_get_int(json_get(j, 'x'), 'x') IS NULL"),
    ],
)
def test_calls_of_another_type_or_path_are_not_answered(tmp_path: Path, json_path: str, filter: str) -> None:
    documents = [{"x": n, "f": n / 3, "s": "5", "n": {"m": 3}, "list": [1, n]} for n in range(20)]
    lance_dataset.write_dataset(_table(documents), tmp_path)
    for by_us in (True, False):
        _create(tmp_path, json_path, "btree", by_us)
        dataset = lance_dataset.dataset(tmp_path)
        assert not _is_used(dataset, filter)
        expected = lance.dataset(tmp_path).scanner(filter=filter, use_scalar_index=False).count_rows()
        assert dataset.count_rows(filter) == expected


def test_numbers_as_keys_are_not_answered(tmp_path: Path) -> None:
    """The accessors use them as places in arrays, and paths do not."""
    lance_dataset.write_dataset(_table([{"0": 5}, "[5]", {"0": 6}]), tmp_path)
    _create(tmp_path, "0", "btree", by_us=True)
    dataset = lance_dataset.dataset(tmp_path)
    assert dataset.to_table(filter="json_get_int(j, '0') = 5")["i"].to_pylist() == [0, 1]


def test_a_filter_that_fails_without_an_index_fails_with_one(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table([{"x": n, "y": n if n else "text"} for n in range(20)]), tmp_path)
    _create(tmp_path, "x", "btree", by_us=True)
    dataset = lance_dataset.dataset(tmp_path)
    with pytest.raises(pa.ArrowInvalid, match="'y' is not a valid integer"):
        dataset.to_table(filter="json_get_int(j, 'x') = 3 AND json_get_int(j, 'y') = 3")
    dataset.insert(_table([{"x": "text"}], 20))
    with pytest.raises(pa.ArrowInvalid, match="'x' is not a valid integer"):
        dataset.to_table(filter="json_get_int(j, 'x') = 3")


def test_fragments_without_proof_are_scanned(tmp_path: Path) -> None:
    """An index of another column covers a fragment whose documents may make the filter fail."""
    dataset = lance_dataset.write_dataset(_table([{"x": n} for n in range(20)]), tmp_path)
    _create(tmp_path, "x", "btree", by_us=True)
    dataset = lance_dataset.dataset(tmp_path)
    dataset.insert(_table([{"x": "5"}, {"x": 7}], 20))
    dataset.create_scalar_index("i", "BTREE")
    assert dataset.to_table(filter="i >= 19 AND json_get_int(j, 'x') < 8")["i"].to_pylist() == [20, 21]
    assert _is_used(dataset, "i >= 19 AND json_get_int(j, 'x') < 8")
    dataset.insert(_table([{"x": "text"}], 22))
    with pytest.raises(pa.ArrowInvalid, match="not a valid integer"):
        dataset.to_table(filter="i >= 19 AND i < 22 AND json_get_int(j, 'x') < 8")


def test_segments_of_several_types(tmp_path: Path) -> None:
    """Each answers the calls of its type; the fragments of the others are scanned."""
    dataset = lance_dataset.write_dataset(_table([{}, None]), tmp_path)
    _create(tmp_path, "x", "btree", by_us=True)
    dataset = lance_dataset.dataset(tmp_path)
    for start, value in ((2, 5), (4, 5.5), (6, "5")):
        dataset.insert(_table([{"x": value}, {}], start))
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(dataset.describe_indices()[0].segments) == 4
    found = {kind: f"json_get_{kind}(j, 'x')" for kind in ("int", "float", "string")}
    assert dataset.to_table(filter=f"{found['int']} = 5")["i"].to_pylist() == [2, 6]
    assert dataset.to_table(filter=f"{found['float']} = 5.5")["i"].to_pylist() == [4]
    assert dataset.to_table(filter=f"{found['string']} = '5'")["i"].to_pylist() == [2, 6]
    assert dataset.to_table(filter=f"{found['string']} IS NULL")["i"].to_pylist() == [0, 1, 3, 5, 7]
    assert _is_used(dataset, f"{found['int']} = 5")


def test_texts_of_older_releases_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases before 12 converted other values to text, and left them out of order. Their numbers are right."""
    dataset = lance_dataset.write_dataset(_table([{"s": "a", "x": 1}, {"s": "b", "x": 2}]), tmp_path)
    monkeypatch.setattr(btree_training, "WRITTEN_VERSION", "2.1")
    for json_path in ("s", "x"):
        _create(tmp_path, json_path, "btree", by_us=True, name=json_path)
    dataset = lance_dataset.dataset(tmp_path)
    assert not _is_used(dataset, "json_get_string(j, 's') = 'a'")
    assert _is_used(dataset, "json_get_int(j, 'x') = 1")
    assert dataset.count_rows("json_get_string(j, 's') = 'a'") == 1


# -- keeping up to date ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stable", "deferred"), [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("target", ["btree", "bitmap"])
def test_answers_stay_right(tmp_path: Path, target: str, stable: bool, deferred: bool) -> None:
    dataset = lance_dataset.write_dataset(_rows(0, 200), tmp_path, max_rows_per_file=70, enable_stable_row_ids=stable)
    for json_path in ("x", "s"):
        _create(tmp_path, json_path, target, by_us=True, name=json_path)
    rng = random.Random(f"{target}{stable}")
    for step in range(3):
        dataset = lance_dataset.dataset(tmp_path)
        dataset.insert(_rows(200 + 50 * step, 50))
        writer = lance.dataset(tmp_path) if step % 2 else lance_dataset.dataset(tmp_path)
        writer.delete(f"i % 11 = {step}")
        writer.update({"i": "i + 1000"}, where=f"i % 13 = {step}")
        changed = _rows(5000 + step, 3).set_column(0, "i", pa.array([20 + step, 40 + step, 230 + step]))
        writer.merge_insert("i").when_matched_update_all().when_not_matched_insert_all().execute(changed)
        _check(tmp_path, ["x", "s"], step=4)
        compactor = lance.dataset(tmp_path) if rng.random() < 0.5 else lance_dataset.dataset(tmp_path)
        compactor.optimize.compact_files(target_rows_per_fragment=150, defer_index_remap=deferred)
        _check(tmp_path, ["x", "s"], step=4)
        by_them = target == "btree" and not stable and step % 2  # it refuses the others
        optimizer = lance.dataset(tmp_path) if by_them else lance_dataset.dataset(tmp_path)
        # the reference mixes up several segments of row ids
        optimizer.optimize.optimize_indices(num_indices_to_merge=rng.choice([1, 2] if stable else [0, 1, 2]))
        _check(tmp_path, ["x", "s"], step=4)
    covered = lance_dataset.dataset(tmp_path).describe_indices()[0]
    assert covered.num_rows_indexed == lance_dataset.dataset(tmp_path).count_rows()


@pytest.mark.parametrize("by_us", [True, False], ids=["ours", "theirs"])
@pytest.mark.parametrize(
    ("target", "json_path", "filter"),
    [
        ("zonemap", "x", "json_get_int(j, 'x') BETWEEN 30 AND 32"),
        ("zonemap", "f", "json_get_float(j, 'f') IS NULL"),
        ("zonemap", "s", "json_get_string(j, 's') LIKE 'name 1%'"),
        ("fm", "s", "contains(json_get_string(j, 's'), 'ame 1')"),
        ("ngram", "s", "contains(json_get_string(j, 's'), 'name')"),
        ("bloomfilter", "x", "json_get_int(j, 'x') = 30"),
    ],
)
def test_other_targets(tmp_path: Path, target: str, json_path: str, filter: str, by_us: bool) -> None:
    lance_dataset.write_dataset(_rows(0, 200), tmp_path, max_rows_per_file=70)
    _create(tmp_path, json_path, target, by_us)
    is_typed = target != "bloomfilter"  # its files do not say of which type their values are
    for _ in range(2):
        dataset = lance_dataset.dataset(tmp_path)
        assert _is_used(dataset, filter) == is_typed
        _check(tmp_path, [json_path], used=False, step=3)
        assert dataset.to_table(filter=filter) == dataset.scanner(filter=filter, use_scalar_index=False).to_table()
        dataset.delete("i % 7 = 3")
        dataset.insert(_rows(200, 50))
        dataset.optimize.compact_files(target_rows_per_fragment=1000)
        _check(tmp_path, [json_path], used=False, step=3)
        dataset.optimize.optimize_indices()
        assert dataset.describe_indices()[0].num_rows_indexed == dataset.count_rows()


def test_signatures_of_texts(tmp_path: Path) -> None:
    """No scan uses them, but either implementation describes them, and optimization keeps their parameters."""
    lance_dataset.write_dataset(_rows(0, 100), tmp_path)
    config = _config("s", "minhashlsh", target_index_parameters='{"num_hashes": 32, "num_bands": 8}')
    for by_us in (True, False):
        if by_us:
            lance_dataset.dataset(tmp_path).create_scalar_index("j", IndexConfig("json", config))
        else:
            lance.dataset(tmp_path).create_scalar_index("j", TheirConfig("json", config))
        dataset = lance_dataset.dataset(tmp_path)
        details = dataset.describe_indices()[0].details
        assert details == lance.dataset(tmp_path).describe_indices()[0].details
        assert details["target_details"]["num_hashes"] == 32
        dataset.insert(_rows(100, 50))
        dataset.optimize.optimize_indices()
        assert dataset.describe_indices()[0].details == details
        assert dataset.stats.index_stats("j_idx")["indices"][0]["num_hashes"] == 32


@pytest.mark.parametrize("target", ["zonemap", "bloomfilter", "fm"])
def test_addresses_are_not_mixed_up_with_row_ids(tmp_path: Path, target: str) -> None:
    """The reference would answer wrongly from such indices, its own ones too."""
    dataset = lance_dataset.write_dataset(_rows(0, 100), tmp_path, enable_stable_row_ids=True)
    with pytest.raises(UnsupportedError, match="use btree, bitmap or ngram"):
        dataset.create_scalar_index("j", IndexConfig("json", _config("x", target)))


@pytest.mark.parametrize("stable", [False, True])
def test_zones_of_the_reference_do_not_follow_rows(tmp_path: Path, stable: bool) -> None:
    """They are in the files by address, so the fragments of a compaction are scanned until they are optimized."""
    dataset = lance_dataset.write_dataset(_rows(0, 200), tmp_path, max_rows_per_file=70, enable_stable_row_ids=stable)
    _create(tmp_path, "x", "zonemap", by_us=False)
    dataset = lance_dataset.dataset(tmp_path)
    found = dataset.scanner(filter="json_get_int(j, 'x') < 30", use_scalar_index=False).to_table()
    assert dataset.to_table(filter="json_get_int(j, 'x') < 30") == found
    dataset.delete("i % 5 = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    existing = {fragment.fragment_id for fragment in dataset.get_fragments()}
    assert not existing & set(dataset.describe_indices()[0].segments[0].fragment_ids)
    _check(tmp_path, ["x"], used=False)


def test_untrained_indices_are_trained(tmp_path: Path) -> None:
    for number, documents in enumerate(([], [{"x": 1}, {"x": 2}])):
        path = tmp_path / str(number)
        dataset = lance_dataset.write_dataset(_table(documents), path)
        config = IndexConfig("json", _config("x", "bitmap"))
        dataset.create_scalar_index("j", config, train=False)
        assert dataset.describe_indices()[0].num_rows_indexed == 0
        dataset.insert(_table([{"x": 3}], 2))
        dataset.optimize.optimize_indices()
        assert dataset.describe_indices()[0].num_rows_indexed == len(documents) + 1
        assert dataset.to_table(filter="json_get_int(j, 'x') = 3")["i"].to_pylist() == [2]
        assert _is_used(dataset, "json_get_int(j, 'x') = 3")


def test_segments_are_built_apart_and_merged(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_rows(0, 200), tmp_path, max_rows_per_file=50)
    config = IndexConfig("json", _config("x", "btree", target_index_parameters='{"zone_size": 30}'))
    ids = [fragment.fragment_id for fragment in dataset.get_fragments()]
    parts = [dataset.create_index_uncommitted("j", config, name="n", fragment_ids=[each]) for each in ids]
    merged = dataset.merge_existing_index_segments(parts[:2])
    dataset.commit_existing_index_segments("n", "j", [merged, *parts[2:]])
    assert dataset.stats.index_stats("n")["indices"][0]["num_pages"] == 4
    _check(tmp_path, ["x"])


def test_rows_of_another_type_are_not_added(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table([{"x": 1}, {"x": 2}]), tmp_path)
    _create(tmp_path, "x", "btree", by_us=True)
    dataset = lance_dataset.dataset(tmp_path)
    dataset.insert(_table([{"x": "5"}], 2))
    version = dataset.version
    with pytest.raises(InvalidInputError, match="expected Int64, but batch row 0 has JSON type String"):
        dataset.optimize.optimize_indices()
    assert lance_dataset.dataset(tmp_path).version == version
    assert len(list((tmp_path / "_indices").iterdir())) == 1
    assert dataset.to_table(filter="json_get_int(j, 'x') = 5")["i"].to_pylist() == [2]


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["btree", "bitmap"])
@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5],
        [1, "5"],
        [1, True],
        [1, [1]],
        [1, 2**64 - 1],
        [1.5, 1, "5"],
        [1.5, False],
        [True, 1],
        [True, "true"],
        ["a", 1],
        ["a", None, {"k": 1}],
        [[1]],
        [None, {"k": 1}],
    ],
    ids=str,
)
def test_mixtures_are_refused_as_by_the_reference(tmp_path: Path, values: list[Any], target: str) -> None:
    lance_dataset.write_dataset(_table([{"x": each} for each in values]), tmp_path)
    errors = []
    for by_us in (True, False):
        with pytest.raises(ValueError, match="JSON path 'x'") as caught:
            _create(tmp_path, "x", target, by_us)
        errors.append(str(caught.value))
        assert not by_us or not list(tmp_path.glob("_indices/*"))
    mine, theirs = errors
    assert mine in theirs


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"path": "x"},
        {"target_index_type": "btree"},
        _config("x", "btree") | {"path": 1},
        _config("x", "btree") | {"path": None},
        _config("x", "btree") | {"target_index_type": None},
        _config("x", "btree", target_index_parameters={"zone_size": 5}),
        _config("x", "btree", target_index_parameters="no JSON"),
        _config("x", "btree", target_index_parameters='{"zone_size": "a"}'),
        _config("x y", "btree"),
        _config("$[", "btree"),
    ],
    ids=str,
)
def test_wrong_parameters(tmp_path: Path, config: dict[str, Any]) -> None:
    dataset = lance_dataset.write_dataset(_table([{"x": 1}]), tmp_path)
    with pytest.raises(InvalidIndexError):
        dataset.create_scalar_index("j", IndexConfig("json", config))
    with pytest.raises(RuntimeError):
        lance.dataset(tmp_path).create_scalar_index("j", TheirConfig("json", config))


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("inverted", UnsupportedError),
        ("labellist", InvalidInputError),
        ("json", InvalidInputError),
        ("nosuch", InvalidInputError),
    ],
)
def test_targets_that_cannot_be(tmp_path: Path, target: str, error: type[Exception]) -> None:
    dataset = lance_dataset.write_dataset(_table([{"x": 1}]), tmp_path)
    with pytest.raises(error):
        dataset.create_scalar_index("j", IndexConfig("json", _config("x", target)))
    with pytest.raises(NotImplementedError if target == "inverted" else ValueError):
        lance.dataset(tmp_path).create_scalar_index("j", TheirConfig("json", _config("x", target)))


def test_columns_without_documents(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"t": ["{}"], "n": [1]}), tmp_path)
    for column in ("t", "n"):
        with pytest.raises(ValueError, match=r"JSON.*binary"):
            dataset.create_scalar_index(column, IndexConfig("json", _config("x", "btree")))
    with pytest.raises(UnsupportedError):
        dataset.create_scalar_index("t", "JSON")


def test_damaged_documents(tmp_path: Path) -> None:
    bad = [b"\x40\x00\x00\x01\x10\x00\x00\x01\x10\x00\x00\x09x", b"\x40\x00\x00\x09", b"\xff", b"{"]
    for number, document in enumerate(bad):
        table = pa.table({"j": pa.array([document], pa.large_binary())})
        dataset = lance_dataset.write_dataset(table, tmp_path / str(number))
        with pytest.raises((CorruptFileError, InvalidInputError), match="JSON"):
            dataset.create_scalar_index("j", IndexConfig("json", _config("x", "btree")))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    lance_dataset.write_dataset(_rows(0, 300), tmp_path / "t")
    _create(tmp_path / "t", "x", "btree", by_us=True)
    for name in ("page_lookup.lance", "page_data.lance"):
        shutil.copytree(tmp_path / "t", tmp_path / name)
        (file,) = (tmp_path / name).glob(f"_indices/*/{name}")
        data = bytearray(file.read_bytes())
        data[-60:-20] = b"\xff" * 40
        file.write_bytes(data)
        with pytest.raises(CorruptFileError, match=name):
            lance_dataset.dataset(tmp_path / name).to_table(filter="json_get_int(j, 'x') = 3")
