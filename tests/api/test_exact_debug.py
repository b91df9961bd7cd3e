"""Texts of `lance.debug`, compared with those of the reference for the same tables."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import lance
import lance.debug
import pyarrow as pa
import pytest

import lance_dataset
import lance_dataset.debug
from lance_dataset import LanceOperation
from lance_dataset.file import LanceFileWriter
from lance_dataset.fragment import DataFile

ROWS = pa.table({"a": range(4), "s": ["x", "y\t\"'\\", None, "ä"]})
#: The reference shows where sections of a manifest begin, this package how long they are.
_SECTIONS = re.compile(r"(?<=_section: Some\(\n)\s+(\d+|<\d+ bytes>),")


def plain(text: str) -> list[str]:
    """Return the lines of a text, with the entries of mappings in order, which have none in the reference."""
    found: list[str] = []
    lines = _SECTIONS.sub("", text).splitlines()
    for is_entry, group in groupby(lines, lambda line: re.match(r' +"[^"]+": "', line) is not None):
        entries = list(group)
        found += sorted(entries) if is_entry else entries
    return found


def compared(path: Path) -> None:
    """Compare all texts of all versions of a table."""
    newest = lance.dataset(path).version
    for version in range(1, newest + 1):
        theirs, ours = lance.dataset(path, version=version), lance_dataset.dataset(path, version=version)
        for name in ("format_schema", "format_manifest"):
            texts = [getattr(module.debug, name)(each) for module, each in ((lance_dataset, ours), (lance, theirs))]
            assert plain(texts[0]) == plain(texts[1])
        for mine, other in zip(ours.get_fragments(), theirs.get_fragments(), strict=True):
            expected = plain(lance.debug.format_fragment(other.metadata, theirs))
            assert plain(lance_dataset.debug.format_fragment(mine.metadata, ours)) == expected
            assert plain(lance_dataset.debug.format_fragment(mine, ours)) == expected
    made = lance_dataset.debug.list_transactions(lance_dataset.dataset(path), 99)
    known = lance.debug.list_transactions(lance.dataset(path), 99)
    assert [plain(each) for each in made] == [plain(each) for each in known]


def test_changes_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = lance_dataset.write_dataset(
        ROWS, path, enable_stable_row_ids=True, commit_message="first", transaction_properties={"k": "v"}
    )
    dataset.insert(ROWS)
    dataset.update({"s": "'q'"}, where="a = 1")
    dataset.delete("a > 2")
    merge = dataset.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"a": [0, 99], "s": ["m", "n"]}))
    lance_dataset.dataset(path, version=3).restore()
    lance_dataset.dataset(path).delete("true")
    compared(path)


def test_changes_of_columns_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = lance_dataset.write_dataset(ROWS, path, max_rows_per_file=2)
    dataset.add_columns({"z": "a + 1"})
    dataset.drop_columns(["z"])
    dataset.alter_columns({"path": "s", "name": "t"})
    dataset.update_config({"a": "b", "c": "d"})
    dataset.delete_config_keys(["a"])
    dataset.update_metadata({"m": "1"})
    dataset.update_schema_metadata({"q": "1"})
    dataset.update_field_metadata({"a": {"u": "1"}})
    compared(path)


def test_indices_and_compaction(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = lance_dataset.write_dataset(pa.table({"a": range(60)}), path, max_rows_per_file=2)
    dataset.create_scalar_index("a", "BTREE")
    dataset.delete("a < 9")
    dataset.optimize.compact_files(target_rows_per_fragment=40)
    dataset.drop_index("a_idx")
    compared(path)


def test_files_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = lance_dataset.write_dataset(ROWS, path)
    with LanceFileWriter(str(path / "data" / "new.lance"), ROWS.select(["s"]).schema) as writer:
        writer.write_batch(ROWS.select(["s"]))
    group = LanceOperation.DataReplacementGroup(0, DataFile("new.lance", [1], [0], 2, 2))
    lance_dataset.LanceDataset.commit(path, LanceOperation.DataReplacement([group]), read_version=dataset.version)
    compared(path)


def test_other_places(tmp_path: Path) -> None:
    base = lance_dataset.DatasetBasePath(str(tmp_path / "base"), name="n")
    lance_dataset.write_dataset(ROWS, tmp_path / "t", initial_bases=[base], target_bases=["n"])
    dataset = lance_dataset.write_dataset(ROWS, tmp_path / "u")
    dataset.tags.create("tag", 1)
    dataset.shallow_clone(tmp_path / "clone", "tag")
    dataset.add_bases([lance_dataset.DatasetBasePath(str(tmp_path / "other"), name="o")])
    for name in ("t", "u", "clone"):
        compared(tmp_path / name)


TYPES = {
    "key": pa.field("v", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
    "dictionary": pa.field("v", pa.dictionary(pa.int8(), pa.string())),
    "map": pa.field("v", pa.map_(pa.string(), pa.int32())),
    "lists": pa.field("v", pa.large_list(pa.list_(pa.struct([pa.field("q", pa.float16())])))),
    "vectors": pa.field("v", pa.list_(pa.float32(), 4), metadata={"c": '"'}),
    "nulls": pa.field("v", pa.null()),
    "bytes": pa.field("v", pa.large_binary()),
    "moments": pa.field("v", pa.timestamp("us", "UTC")),
    "blobs": lance_dataset.blob_field("v"),
}


@pytest.mark.parametrize("name", TYPES)
def test_types(tmp_path: Path, name: str) -> None:
    schema = pa.schema([TYPES[name], pa.field("w", pa.bool_())])
    lance_dataset.write_dataset(schema.empty_table(), tmp_path / "t")
    compared(tmp_path / "t")


def test_legacy_tables(tmp_path: Path) -> None:
    lance_dataset.write_dataset(ROWS.select(["a"]), tmp_path / "t", data_storage_version="legacy")
    compared(tmp_path / "t")
