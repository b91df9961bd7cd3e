"""FM indices: built by either implementation, used by both, kept up to date, and damaged."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.indices import IndexConfig as TheirConfig
from support.stores.s3_server import S3Server

import lance_dataset
from lance_dataset.errors import CorruptFileError, InvalidIndexError, LanceError
from lance_dataset.index.files import IndexFolder, IndexTable, NewIndexFolder
from lance_dataset.index.scalar import fm_training
from lance_dataset.indices import IndexConfig
from lance_dataset.io.local import LocalStore

_WORDS = ["quick", "brown", "fox", "jumps", "über", "den", "lazy", "狗", "x", "%_", "\U0001f600", "tab\t", "'", ""]
_PATTERNS = ["quick", "x", "ü", "狗", "\U0001f600", "ox j", " ", "%", "den den", "no such", "q", "\t", "lazy brown"]


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


@pytest.fixture
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let partitions have up to 100 documents."""
    monkeypatch.setattr(fm_training, "_MOST_DOCUMENTS", 100)


def _texts(count: int, seed: int, kind: pa.DataType | None = None) -> pa.Array:
    draw = random.Random(seed)
    rows = [None if draw.random() < 0.1 else " ".join(draw.choices(_WORDS, k=draw.randrange(7))) for _ in range(count)]
    return pa.array(rows, kind or pa.string())


def _table(count: int, seed: int, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"n": np.arange(count) + 10_000 * seed, "s": _texts(count, seed, kind)})


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _filters(patterns: list[str]) -> list[str]:
    return [f"contains(s, {_quoted(each)})" for each in patterns]


def _check(path: Path, patterns: list[str] = _PATTERNS, *, theirs: bool = True, uses: bool = True) -> None:
    """Compare answers with the scans of both implementations."""
    ours, other = lance_dataset.dataset(path), lance.dataset(path)
    for each in _filters(patterns):
        assert ("@s_idx(Fm)" in ours.scanner(filter=each).explain_plan()) == uses, each
        expected = other.scanner(filter=each, use_scalar_index=False).to_table()
        assert ours.to_table(filter=each).equals(expected), each
        if theirs:
            assert ("@s_idx(Fm)" in other.scanner(filter=each).explain_plan()) == uses, each
            assert other.to_table(filter=each).equals(expected), each


def _files(path: Path) -> Iterator[tuple[Path, IndexTable]]:
    for segment in lance_dataset.dataset(path).describe_indices()[0].segments:
        folder = path / "_indices" / segment.uuid
        for file in sorted(folder.iterdir()):
            yield file, IndexFolder(LocalStore(), str(folder)).open(file.name)


# -- building --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_both_use_the_indices_of_either(
    tmp_path: Path, kind: pa.DataType, stable: bool, small_partitions: None
) -> None:
    for name in ("ours", "theirs"):
        path = tmp_path / name
        lance_dataset.write_dataset(
            _table(900, 1, kind), path, max_rows_per_file=350, enable_stable_row_ids=stable, data_storage_version="2.1"
        )
        if name == "ours":
            lance_dataset.dataset(path).create_scalar_index("s", IndexConfig("fm", {}))
        else:
            lance.dataset(path).create_scalar_index("s", TheirConfig("fm", {}))
        _check(path)
        found = lance_dataset.dataset(path).describe_indices()[0]
        assert (found.index_type, found.segments[0].index_version, found.num_rows_indexed) == ("Fm", 10, 900)
        assert (
            lance.dataset(path).stats.index_stats("s_idx")["indices"][0]["total_docs"]
            == 900 - _table(900, 1)["s"].null_count
        )


def test_files_are_like_those_of_the_reference(tmp_path: Path) -> None:
    """All but the shape of the tree, where codes of equal frequency may differ, is the same."""
    table = pa.table({"n": np.arange(25_000), "s": [f"row {n * 7919 % 30_000} of many" for n in range(25_000)]})
    found = {}
    for name in ("ours", "theirs"):
        lance_dataset.write_dataset(table, tmp_path / name)
        dataset = (lance_dataset if name == "ours" else lance).dataset(tmp_path / name)
        config = IndexConfig if name == "ours" else TheirConfig
        dataset.create_scalar_index("s", config("fm", {}))
        found[name] = list(_files(tmp_path / name))
    assert [file.name for file, _ in found["ours"]] == [f"part_{number}_fm.lance" for number in range(3)]
    same = ("row_ids", "doc_start_positions", "c_table", "bwt_len", "sa_samples_len", "num_sa_blocks", "num_bwt_nodes")
    for (file, ours), (other, theirs) in zip(found["ours"], found["theirs"], strict=True):
        assert file.name == other.name
        assert [ours.metadata[key] for key in same] == [theirs.metadata[key] for key in same]
        assert ours.schema.storage_arrow.remove_metadata().equals(theirs.schema.storage_arrow.remove_metadata())
        assert ours.read(ours.num_rows - 1, ours.num_rows).to_pylist() == theirs.read(theirs.num_rows - 1).to_pylist()
        bits = [sum(len(words.as_py()) for words in each.read().column(2)) for each in (ours, theirs)]
        assert abs(bits[0] - bits[1]) <= 8 * 256
        assert file.stat().st_size <= 1.02 * other.stat().st_size


def test_partitions_end_at_some_bytes_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fm_training, "_MOST_BYTES", 1000)
    texts = ["a" * 400, "b" * 599, "c", "d" * 5000, "e" * 999, "f", "g"]
    dataset = lance_dataset.write_dataset(pa.table({"n": np.arange(7), "s": texts}), tmp_path)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    counts = [len(table.metadata["row_ids"]) // 16 for _, table in _files(tmp_path)]
    assert counts == [3, 1, 2, 1]
    _check(tmp_path, ["a", "bb", "cd", "c", "dddd", "g"])


def test_little_memory_makes_smaller_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_dataset.changes.indexing.segments.default_memory_limit", lambda: 50_000)
    dataset = lance_dataset.write_dataset(_table(1500, 3), tmp_path)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    assert len(list(_files(tmp_path))) > 3
    _check(tmp_path)


@pytest.mark.parametrize("texts", [[], [None, None], ["", ""], ["", None, "a"]], ids=str)
def test_few_or_no_texts(tmp_path: Path, texts: list[str | None]) -> None:
    table = pa.table({"n": np.arange(len(texts)), "s": pa.array(texts, pa.string())})
    dataset = lance_dataset.write_dataset(table, tmp_path)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    assert [file.name for file, _ in _files(tmp_path)] == ["part_0_fm.lance"]
    if texts:
        _check(tmp_path, ["a", "b", " "])
    dataset.insert(_table(50, 2))
    dataset.optimize.optimize_indices()
    _check(tmp_path)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"ab", b"\xff\0b", None, b""], pa.binary()),
        pa.array([b"ab", b"\xfe\xff"], pa.large_binary()),
        pa.array(['{"a": 1}', None], pa.json_()),
    ],
    ids=lambda values: str(values.type),
)
def test_binaries_have_the_index_of_the_reference(tmp_path: Path, values: pa.Array) -> None:
    """No filter uses it, as in the reference; but it is there, and can be brought up to date."""
    found = []
    for module, config in ((lance_dataset, IndexConfig), (lance, TheirConfig)):
        path = tmp_path / module.__name__
        lance.write_dataset(pa.table({"s": values}), path)
        module.dataset(path).create_scalar_index("s", config("fm", {}))
        lance.write_dataset(pa.table({"s": values}), path, mode="append")
        module.dataset(path).optimize.optimize_indices()
        (table,) = (each for _, each in _files(path))
        found.append({key: table.metadata[key] for key in ("c_table", "row_ids", "doc_start_positions")})
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "values",
    [pa.array([1]), pa.array([["a"]]), pa.array([{"a": "b"}]), pa.array([b"ab"], pa.binary(2)), pa.array([True])],
    ids=lambda values: str(values.type),
)
def test_other_types_are_refused(tmp_path: Path, values: pa.Array) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"s": values}), tmp_path)
    with pytest.raises(ValueError, match="FM"):
        lance.dataset(tmp_path).create_scalar_index("s", TheirConfig("fm", {}))
    with pytest.raises(InvalidIndexError, match="FM index column s must be str") as caught:
        dataset.create_scalar_index("s", IndexConfig("fm", {}))
    assert isinstance(caught.value, ValueError)
    for name in ("FM", "fm"):
        with pytest.raises(NotImplementedError):
            dataset.create_scalar_index("s", name)


def test_nested_fields(tmp_path: Path) -> None:
    table = pa.table({"t": pa.StructArray.from_arrays([_texts(200, 4)], names=["s"])})
    dataset = lance_dataset.write_dataset(table, tmp_path)
    dataset.create_scalar_index("t.s", IndexConfig("fm", {}))
    expected = sum("fox" in (each or "") for each in _texts(200, 4).to_pylist())
    assert "ScalarIndexQuery" in dataset.scanner(filter="contains(t.s, 'fox')").explain_plan()
    assert dataset.count_rows("contains(t.s, 'fox')") == expected
    assert lance.dataset(tmp_path).count_rows("contains(t.s, 'fox')") == expected  # it does not use its own either


# -- conditions ------------------------------------------------------------------------------------------------------


def test_conditions(tmp_path: Path, small_partitions: None) -> None:
    """Shadow mode compares each with the scan."""
    dataset = lance_dataset.write_dataset(_table(700, 5), tmp_path)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    used = {
        "contains(s, 'fox') AND contains(s, 'lazy')": True,
        "contains(s, 'fox') OR s LIKE '%ü%'": True,
        "s LIKE '%den%'": True,
        "s LIKE 'quick%fox'": True,
        "s LIKE '%quick%fox%'": True,
        "starts_with(s, 'la')": True,
        "ends_with(s, 'x')": True,
        "regexp_like(s, 'fox (jumps|lazy)')": True,
        "contains(s, 'fox') AND n < 100": True,
        "contains(s, '')": False,
        "NOT contains(s, 'fox')": False,
        "s IS NULL": False,
        "s = 'fox'": False,
    }
    theirs = lance.dataset(tmp_path)
    for each, is_used in used.items():
        assert ("ScalarIndexQuery" in dataset.scanner(filter=each).explain_plan()) == is_used, each
        assert dataset.count_rows(each) == theirs.scanner(filter=each, use_scalar_index=False).count_rows(), each


@pytest.mark.parametrize("built_by", ["ours", "theirs"])
def test_nul_is_not_a_space(tmp_path: Path, built_by: str) -> None:
    """The reference stores NUL as a space, and answers wrongly from its own files; we check such answers again."""
    texts = ["a\0b", "a b", "\0", "\0\0", "plain", "b a", "", None]
    lance_dataset.write_dataset(pa.table({"n": np.arange(8), "s": texts}), tmp_path)
    if built_by == "ours":
        lance_dataset.dataset(tmp_path).create_scalar_index("s", IndexConfig("fm", {}))
    else:
        lance.dataset(tmp_path).create_scalar_index("s", TheirConfig("fm", {}))
    _check(tmp_path, ["a b", " ", "a", "in", "\0", "\0\0", "a\0", "\0b"], theirs=False)
    _check(tmp_path, ["a", "b", "in", "zz"])
    if built_by == "ours":
        _check(tmp_path, ["a b", " ", "b a"])
    dataset = lance_dataset.dataset(tmp_path)
    plan = dataset.scanner(filter="contains(s, 'a b')").explain_plan()
    assert ("Filter" in plan) == (built_by == "theirs")
    assert "Filter" not in dataset.scanner(filter="contains(s, 'in')").explain_plan()
    dataset.insert(pa.table({"n": [8, 9], "s": ["x\0y", "x y"]}))
    dataset.optimize.optimize_indices()
    _check(tmp_path, ["a b", " ", "\0", "x\0", "x y"], theirs=False)


def test_random_texts_of_few_symbols(tmp_path: Path, small_partitions: None) -> None:
    draw = random.Random(8)
    texts = ["".join(draw.choices("ab\0 é", k=draw.choice([0, 1, 5, 60]))) for _ in range(500)]
    dataset = lance_dataset.write_dataset(pa.table({"n": np.arange(500), "s": texts}), tmp_path)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    for _ in range(60):
        pattern = "".join(draw.choices("ab\0 é", k=draw.choice([1, 1, 2, 3, 8])))
        expected = [number for number, text in enumerate(texts) if pattern in text]
        assert dataset.to_table(filter=f"contains(s, {_quoted(pattern)})")["n"].to_pylist() == expected


# -- changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("optimizer", ["ours", "theirs"])
def test_changes_of_the_table(tmp_path: Path, optimizer: str, stable: bool, small_partitions: None) -> None:
    dataset = lance_dataset.write_dataset(_table(600, 1), tmp_path, max_rows_per_file=250, enable_stable_row_ids=stable)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))

    def optimize(**options: Any) -> None:
        (lance_dataset if optimizer == "ours" else lance).dataset(tmp_path).optimize.optimize_indices(**options)
        _check(tmp_path, _PATTERNS[:8])

    for step in range(3):
        lance_dataset.dataset(tmp_path).insert(_table(60, 10 + step))
        _check(tmp_path, _PATTERNS[:6])
        dataset = lance_dataset.dataset(tmp_path)
        dataset.delete(f"n % 7 = {step}")
        dataset.update({"s": "'the lazy fox'"}, where=f"n % 50 = {step}")
        _check(tmp_path, _PATTERNS[:8])
        optimize(num_indices_to_merge=[0, 1, 9][step])
    lance_dataset.dataset(tmp_path).optimize.compact_files()
    assert lance_dataset.dataset(tmp_path).describe_indices()[0].num_rows_indexed == 0
    _check(tmp_path, _PATTERNS[:6], uses=False)
    optimize()


def test_deferred_compaction(tmp_path: Path, small_partitions: None) -> None:
    """Addresses are translated. The reference does not do that for FM indices, and finds nothing or other rows."""
    dataset = lance_dataset.write_dataset(_table(600, 1), tmp_path, max_rows_per_file=200)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    dataset.delete("n % 3 = 1")
    dataset.optimize.compact_files(defer_index_remap=True)
    _check(tmp_path, theirs=False)
    dataset.insert(_table(90, 2))
    _check(tmp_path, theirs=False)
    dataset.optimize.optimize_indices()
    _check(tmp_path)


def test_whole_partitions_are_copied(tmp_path: Path, small_partitions: None) -> None:
    dataset = lance_dataset.write_dataset(_table(500, 1), tmp_path, max_rows_per_file=250)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    before = [file.read_bytes() for file, _ in _files(tmp_path)]
    assert len(before) == 5
    for step in range(3):
        dataset.insert(_table(30, 5 + step))
        dataset.optimize.optimize_indices()
    after = [file.read_bytes() for file, _ in _files(tmp_path)]
    assert before[:4] == after[:4]
    assert len(after) < 8
    counts = [len(table.metadata["row_ids"]) // 16 for _, table in _files(tmp_path)]
    assert all(count >= 50 for count in counts[:-1])  # smaller ones were merged with the new rows
    _check(tmp_path)


def test_rows_that_are_no_longer_covered_are_left_out(tmp_path: Path, small_partitions: None) -> None:
    dataset = lance_dataset.write_dataset(_table(500, 1), tmp_path, max_rows_per_file=250)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    column = pa.table({"n": np.arange(250) + 10_000, "s": ["rewritten"] * 250})
    fragment = dataset.get_fragment(0)
    assert fragment is not None
    updated, fields = fragment.update_columns(column, left_on="n")
    operation = lance_dataset.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
    dataset = lance_dataset.LanceDataset.commit(tmp_path, operation, read_version=dataset.version)
    assert [sorted(each.fragment_ids) for each in dataset.describe_indices()[0].segments] == [[1]]
    _check(tmp_path, [*_PATTERNS, "rewritten"])
    dataset.optimize.optimize_indices()
    assert sum(len(table.metadata["row_ids"]) // 16 for _, table in _files(tmp_path)) == 500 - int(
        dataset.to_table()["s"].null_count
    )
    _check(tmp_path, [*_PATTERNS, "rewritten"])


def test_segments_of_the_reference_are_extended(tmp_path: Path) -> None:
    table = pa.table({"n": np.arange(11_000), "s": [f"value {n} \0 {n % 97}" for n in range(11_000)]})
    lance.write_dataset(table, tmp_path)
    lance.dataset(tmp_path).create_scalar_index("s", TheirConfig("fm", {}))
    lance.write_dataset(table.slice(0, 100), tmp_path, mode="append")
    lance_dataset.dataset(tmp_path).optimize.optimize_indices()
    counts = [len(table.metadata["row_ids"]) // 16 for _, table in _files(tmp_path)]
    assert counts == [10_000, 1000, 100]
    _check(tmp_path, ["lue 99", "1", "\0 5", " 12"], theirs=False)
    _check(tmp_path, ["lue", "99", "1"])


def test_partitions_in_an_object_store(s3_server: S3Server) -> None:
    texts = [f"value {n * 7919 % 30_000}" for n in range(25_000)]
    uri, options = f"s3://{s3_server.new_bucket()}/t", s3_server.options
    dataset = lance_dataset.write_dataset(pa.table({"s": texts}), uri, storage_options=options)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    dataset = lance_dataset.dataset(uri, storage_options=options)
    assert "ScalarIndexQuery" in dataset.scanner(filter="contains(s, 'e 99')").explain_plan()
    assert dataset.count_rows("contains(s, 'e 99')") == sum("e 99" in text for text in texts)


# -- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset with an index of one partition."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    dataset = lance_dataset.write_dataset(_table(400, 1), path)
    dataset.create_scalar_index("s", IndexConfig("fm", {}))
    return path


def _rewritten(path: Path, change: Any) -> None:
    """Write the file of an index again with other rows and metadata."""
    ((file, table),) = _files(path)
    rows, metadata = table.read(), {key: str(value) for key, value in table.metadata.items()}
    rows = change(rows, metadata) or rows
    target = NewIndexFolder(LocalStore(), str(path / "other"))
    target.write(file.name, table.schema, "2.2", [rows], metadata)
    shutil.move(path / "other" / file.name, file)


def _with(column: int, change: Any) -> Any:
    def changed(rows: pa.RecordBatch, metadata: dict[str, str]) -> pa.RecordBatch:
        values = rows.column(column).to_pylist()
        change(values)
        return rows.set_column(column, rows.schema.field(column), pa.array(values, rows.schema.field(column).type))

    return changed


def _swap(values: list[Any]) -> None:
    values[0], values[1] = values[1], values[0]


def _set(key: str, value: Any) -> Any:
    def changed(rows: pa.RecordBatch, metadata: dict[str, str]) -> None:
        if value is None:
            del metadata[key]
        else:
            metadata[key] = value(metadata[key]) if callable(value) else value

    return changed


_DAMAGE = {
    "size": _set("bwt_len", "12"),
    "huge size": _set("bwt_len", "99999999999999999"),
    "no size": _set("bwt_len", "0"),
    "negative size": _set("bwt_len", "-1"),
    "missing size": _set("bwt_len", None),
    "rate": _set("sa_sample_rate", "0"),
    "other rate": _set("sa_sample_rate", "31"),
    "nodes": _set("num_bwt_nodes", "3"),
    "alphabet": _set("alphabet_size", "4"),
    "counts": _set("c_table", lambda text: text[16:] + text[:16]),
    "few counts": _set("c_table", ""),
    "codes": _set("huffman_codes", lambda text: "01" + text[2:]),
    "tree": _set("tree_topology", lambda text: text[:-2]),
    "no tree": _set("tree_topology", "00000000"),
    "rows": _set("row_ids", lambda text: text[16:]),
    "half a row": _set("row_ids", lambda text: text[8:]),
    "digits": _set("row_ids", lambda text: "xy" + text[2:]),
    "documents": _set("doc_start_positions", lambda text: text[16:]),
    "order of documents": _set("doc_start_positions", lambda text: text[:16] + text[32:48] + text[16:32] + text[48:]),
    "separators": _set("separator_documents", lambda text: text[4:]),
    "far separators": _set("separator_documents", lambda text: "ffff" + text[4:]),
    "zero": _set("zero_byte", "7"),
    "node": _with(0, _swap),
    "block": _with(1, lambda values: values.__setitem__(2, 7)),
    "short words": _with(2, lambda values: values.__setitem__(0, values[0][:-8])),
    "other words": _with(2, lambda values: values.__setitem__(0, bytes(len(values[0])))),
    "sample": _with(2, lambda values: values.__setitem__(-1, b"\xff" * len(values[-1]))),
    "bits": _with(4, lambda values: values.__setitem__(0, values[0] - 1)),
    "many bits": _with(4, lambda values: values.__setitem__(0, (1 << 64) - 1)),
    "missing block": lambda rows, _: rows.slice(1),
}


@pytest.mark.parametrize("damage", _DAMAGE)
def test_damaged_content_is_an_error(indexed: Path, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    _rewritten(path, _DAMAGE[damage])
    with pytest.raises(CorruptFileError, match="part_0_fm"):
        lance_dataset.dataset(path).count_rows("contains(s, 'fox')")
    dataset = lance_dataset.dataset(path)
    dataset.insert(_table(5, 2))
    with pytest.raises(CorruptFileError, match="part_0_fm"):
        dataset.optimize.optimize_indices()


def test_an_unchanged_rewrite_is_not_damaged(indexed: Path, tmp_path: Path) -> None:
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    _rewritten(path, lambda rows, metadata: None)
    _check(path)
    _rewritten(path, _set("separator_documents", None))
    _check(path, theirs=False)  # the reference does not read files whose size is not that in the manifest


def test_random_damage_is_found_or_harmless(indexed: Path, tmp_path: Path) -> None:
    """Shadow mode finds what the checks of the file do not."""
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    ((file, _),) = _files(path)
    content = file.read_bytes()
    for seed in range(60):
        draw = np.random.default_rng(seed)
        changed = bytearray(content)
        if seed % 6 == 0:
            del changed[int(draw.integers(len(content))) :]
        for _ in range(int(draw.integers(1, 4))):
            if changed:
                changed[int(draw.integers(len(changed)))] ^= 1 << int(draw.integers(8))
        file.write_bytes(changed)
        try:
            lance_dataset.dataset(path, session=lance_dataset.Session()).count_rows("contains(s, 'ox')")
        except LanceError:
            continue
