"""Tests of public fragment records, exchanged with the reference as JSON."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path

import lance
import lance.fragment
import pyarrow as pa
import pytest

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.records.fragment import (
    DataFile,
    DeletionFile,
    FragmentMetadata,
    RowDatasetVersionMeta,
    RowIdMeta,
)
from lance_dataset.table.fragment import DataFile as TableDataFile
from lance_dataset.table.fragment import Fragment, Spilled


@pytest.fixture
def reference(tmp_path: Path) -> lance.fragment.FragmentMetadata:
    """Return a fragment of the reference with every kind of metadata."""
    table = pa.table({"a": range(10), "s": [{"x": 1}] * 10})
    dataset = lance.write_dataset(table, tmp_path / "d", enable_stable_row_ids=True, data_storage_version="2.0")
    dataset.delete("a < 3")
    return lance.dataset(tmp_path / "d").get_fragments()[0].metadata


def _records() -> list[FragmentMetadata]:
    plain = DataFile("a.lance", [0, 1])
    full = DataFile("b.lance", [0, 1], [0, -1], 2, 0, 100, 3)
    return [
        FragmentMetadata(4, [plain], 10),
        FragmentMetadata(4, [plain, full], 10, DeletionFile(1, 2, "bitmap", 3, 5)),
        FragmentMetadata(0, [], 10, DeletionFile(1, 2, "array", 3), RowIdMeta.from_json('{"Inline":[1,2]}')),
        FragmentMetadata(0, [full], 1, created_at_version_meta=RowDatasetVersionMeta.from_json('{"inline":[1,2]}')),
    ]


def test_reads_the_reference(reference: lance.fragment.FragmentMetadata) -> None:
    text = json.dumps(reference.to_json())
    found = FragmentMetadata.from_json(text)
    assert found.to_json() == reference.to_json()
    assert (found.num_rows, found.num_deletions) == (reference.num_rows, reference.num_deletions) == (7, 3)
    assert found.deletion_file.path(found.id) == reference.deletion_file.path(reference.id)
    assert found.deletion_file.path(0, "b/x") == reference.deletion_file.path(0, "b/x")
    assert repr(found.deletion_file) == repr(reference.deletion_file)
    assert repr(found.files) == repr(reference.files)
    assert found.row_id_meta.json() == reference.row_id_meta.json()
    assert found.row_id_meta.asdict() == reference.row_id_meta.asdict()
    assert found.last_updated_at_version_meta.json() == reference.last_updated_at_version_meta.json()


@pytest.mark.parametrize("record", _records())
def test_the_reference_reads_it(record: FragmentMetadata) -> None:
    text = json.dumps(record.to_json())
    reference = lance.fragment.FragmentMetadata.from_json(text)
    assert json.dumps(reference.to_json()) == text
    assert FragmentMetadata.from_json(json.dumps(reference.to_json())) == record


@pytest.mark.parametrize("record", _records())
def test_value_semantics(record: FragmentMetadata) -> None:
    assert pickle.loads(pickle.dumps(record)) == record
    assert FragmentMetadata.from_fragment(record.to_fragment()) == record
    assert dataclasses.replace(record, id=99) != record
    assert dataclasses.asdict(record)["physical_rows"] == record.physical_rows
    with pytest.raises(TypeError):
        hash(record)


def test_signatures_as_the_reference() -> None:
    for ours, theirs in [(FragmentMetadata, lance.fragment.FragmentMetadata), (DataFile, lance.fragment.DataFile)]:
        names = [field.name.lstrip("_") for field in dataclasses.fields(theirs)]
        assert [field.name for field in dataclasses.fields(ours) if field.init] == names


def test_data_files_is_deprecated() -> None:
    record = _records()[1]
    with pytest.warns(DeprecationWarning, match="use .files"):
        assert record.data_files() == record.files
    assert record.files[0].field_ids() == [0, 1]


def test_manifest_details_survive() -> None:
    file = TableDataFile("a.lance", (0,), (0,), 2, 0, 7, None, 5)
    fragment = Fragment(
        3, (file,), physical_rows=4, row_ids=Spilled.COLUMN, clustering_id=8, metadata={"k": "v"},
        created_at_versions=b"abc",
    )  # fmt: skip
    record = pickle.loads(pickle.dumps(FragmentMetadata.from_fragment(fragment)))
    assert record.to_fragment() == fragment
    assert record.row_id_meta.json() == lance.fragment.RowIdMeta.from_json('"Column"').json()
    assert RowIdMeta.from_json(record.row_id_meta.json()) == record.row_id_meta


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id":1', "Could not load fragment"),
        ("[]", "must be an object"),
        ('{"files":[],"physical_rows":1}', "'id'"),
        ('{"id":1,"files":[]}', "'physical_rows'"),
        ('{"id":"x","files":[],"physical_rows":1}', "'id' must be a non-negative integer"),
        ('{"id":1,"files":[{"fields":[0]}],"physical_rows":1}', "'path'"),
        ('{"id":1,"files":[{"path":"a","fields":["x"]}],"physical_rows":1}', "'fields'"),
        ('{"id":1,"files":[{"path":"a","fields":[0],"base_id":"q"}],"physical_rows":1}', "'base_id'"),
        ('{"id":1,"files":[],"physical_rows":1,"row_id_meta":{"zz":1}}', "RowIdMeta"),
        ('{"id":1,"files":[],"physical_rows":1,"row_id_meta":{"Inline":[999]}}', "RowIdMeta"),
        ('{"id":1,"files":[],"physical_rows":1,"created_at_version_meta":7}', "RowDatasetVersionMeta"),
    ],
)
def test_bad_json(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        FragmentMetadata.from_json(text)


def test_errors() -> None:
    with pytest.raises(ValueError, match="'array' or 'bitmap', got 'zzz'"):
        DeletionFile(1, 2, "zzz", 3)
    with pytest.raises(TypeError):
        FragmentMetadata.from_json({"id": 1})  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="overlays"):
        FragmentMetadata(1, [], 1, overlays=[object()]).to_json()
    with pytest.raises(UnsupportedError, match="overlays"):
        FragmentMetadata.from_fragment(Fragment(1, (), overlays=(b"x",)))
