"""Tests of blobs that are written beside a data file before it, and of managed objects."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lance.blob
import lance.file
import pyarrow as pa
import pytest

import lance_dataset
import lance_dataset.blob
import lance_dataset.file
from lance_dataset import BlobDescriptorArrayBuilder, blob_array, blob_field
from lance_dataset.errors import AlreadyExistsError, CorruptFileError, InvalidInputError, OutOfRangeError
from lance_dataset.file import LanceFileSession, LanceFileWriter


def commit(module: Any, path: Path, name: str, array: pa.Array, field: pa.Field) -> None:
    """Write an array of descriptors to a data file, and append it."""
    schema = pa.schema([field])
    with module.file.LanceFileWriter(str(path / "data" / name), schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([array], schema=schema))
    file = module.fragment.DataFile(name, [0], [0], 2, 2, file_size_bytes=(path / "data" / name).stat().st_size)
    fragment = module.fragment.FragmentMetadata(id=0, files=[file], physical_rows=len(array))
    version = module.dataset(path).version
    module.LanceDataset.commit(path, module.LanceOperation.Append([fragment]), read_version=version)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = pa.Table.from_arrays([blob_array([b"first"])], schema=pa.schema([blob_field("b")]))
    lance_dataset.write_dataset(table, tmp_path / "t")
    return tmp_path / "t"


def read(path: Path) -> list[Any]:
    ours, theirs = (each.dataset(path) for each in (lance_dataset, lance))
    values = ours.to_table(blob_handling="all_binary")["b"].to_pylist()
    assert theirs.to_table(blob_handling="all_binary")["b"].to_pylist() == values
    assert ours.to_table().to_pylist() == theirs.to_table().to_pylist()
    return values


@pytest.mark.parametrize("module", [lance, lance_dataset], ids=["reference", "own"])
def test_distributed_write(path: Path, module: Any) -> None:
    session = module.file.LanceFileSession(str(path / "data"))
    pack = session.open_packed_blob_writer("new.lance", 1)
    assert (pack.blob_id, Path(pack.path).name) == (1, "1" + "0" * 31 + ".blob")
    pack.write_blob(b"one")
    pack.write_blobs(pa.array([b"", None, b"three"]))
    array = pack.finish_array("b")
    commit(module, path, "new.lance", array, pack.field)
    large = session.open_dedicated_blob_writer("other.lance", 2)
    large.write(b"la")
    large.write(b"rge")
    values = session.open_packed_blob_writer("other.lance", 1)
    values.write_blob(b"x")
    values.write_blob(b"yy")
    builder = module.blob.BlobDescriptorArrayBuilder("b")
    builder.extend(values.finish())
    builder.append(large.finish())
    builder.append_inline(b"inline")
    builder.append_null()
    builder.append_dedicated(2, 5)
    builder.extend_packed(1, [0, 1], [1, 2])
    commit(module, path, "other.lance", builder.finish(), builder.field)
    expected = [b"first", b"one", b"", None, b"three", b"x", b"yy", b"large", b"inline", None, b"large", b"x", b"yy"]
    assert read(path) == expected
    lance_dataset.dataset(path).optimize.compact_files()
    assert read(path) == expected


def test_equal_arrays() -> None:
    arrays = []
    for module in (lance, lance_dataset):
        builder = module.blob.BlobDescriptorArrayBuilder("b")
        builder.append_inline(b"inline")
        builder.append_managed("_blobs/x.blob", 2, 5)
        builder.append_managed("y.blob", 0, 3, base_id=4)
        builder.append_dedicated(7, 9)
        builder.extend_packed(3, [4, 5], [1, 6])
        builder.append_null()
        arrays.append((builder.finish(), builder.field))
    (theirs, their_field), (ours, our_field) = arrays
    assert ours.type == theirs.type
    assert ours.to_pylist() == theirs.to_pylist()
    assert our_field.equals(their_field, check_metadata=True)


def test_managed_objects(path: Path, tmp_path: Path) -> None:
    (path / "_blobs").mkdir()
    (path / "_blobs" / "x.blob").write_bytes(b"0123456789")
    place = tmp_path / "place"
    place.mkdir()
    (place / "y.blob").write_bytes(b"abcdef")
    lance_dataset.dataset(path).add_bases([lance_dataset.DatasetBasePath(str(place), "place", is_dataset_root=False)])
    builder = BlobDescriptorArrayBuilder("b")
    builder.append_managed("_blobs/x.blob", 2, 3)
    builder.append_managed("y.blob", 1, 4, base_id=1)
    commit(lance_dataset, path, "new.lance", builder.finish(), builder.field)
    assert read(path) == [b"first", b"234", b"bcde"]
    dataset = lance_dataset.dataset(path)
    assert [blob and blob.read() for blob in dataset.take_blobs("b", indices=[2, 1])] == [b"bcde", b"234"]
    dataset.shallow_clone(tmp_path / "clone", dataset.version)
    assert read(tmp_path / "clone") == [b"first", b"234", b"bcde"]
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    (place / "y.blob").unlink()
    assert read(path) == [b"first", b"234", b"bcde"]


def test_wrong_base(path: Path) -> None:
    builder = BlobDescriptorArrayBuilder("b")
    builder.append_managed("y.blob", 1, 4, base_id=9)
    commit(lance_dataset, path, "new.lance", builder.finish(), builder.field)
    with pytest.raises(CorruptFileError, match="base path 9, which the manifest does not list"):
        lance_dataset.dataset(path).to_table(blob_handling="all_binary")


ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"kind": 9}, "has a kind that cannot be prepared"),
    "external": ({"kind": 3, "uri": "x"}, "has a kind that cannot be prepared"),
    "no data": ({"kind": 0}, "has no data"),
    "no number": ({"kind": 1, "blob_size": 3, "position": 0}, "needs the number of a file"),
    "no size": ({"kind": 2, "blob_id": 3}, "needs the number of a file, and a size"),
    "no path": ({"kind": 4, "blob_size": 3, "position": 0}, "needs a path"),
}


@pytest.mark.parametrize(("row", "message"), ROWS.values(), ids=ROWS.keys())
def test_wrong_descriptors(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    field = BlobDescriptorArrayBuilder("b").field
    schema = pa.schema([field])
    writer = LanceFileWriter(tmp_path / "x.lance", schema)
    with pytest.raises(InvalidInputError, match=message):
        writer.write_batch(pa.RecordBatch.from_arrays([pa.array([row], field.type)], schema=schema))


def test_wrong_use(tmp_path: Path) -> None:
    session = LanceFileSession(tmp_path)
    for name, number, kind in (
        ("x.txt", 1, InvalidInputError),
        ("x.lance", 0, InvalidInputError),
        ("x.lance", 2**32, OutOfRangeError),
        ("../x.lance", 1, InvalidInputError),
    ):
        with pytest.raises(kind):
            session.open_packed_blob_writer(name, number)
    writer = session.open_packed_blob_writer("x.lance", 1)
    with pytest.raises(InvalidInputError, match="payloads must be"):
        writer.write_blobs([b"a"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="available after finish_array"):
        _ = writer.field
    writer.finish()
    with pytest.raises(InvalidInputError, match="already finished"):
        writer.write_blob(b"a")
    with pytest.raises(AlreadyExistsError):
        session.open_dedicated_blob_writer("x.lance", 1)
    builder = BlobDescriptorArrayBuilder("b")
    for path in ("", "/x", "a//b", "../a", "s3://a/b"):
        with pytest.raises(InvalidInputError, match="canonical relative object path"):
            builder.append_managed(path, 0, 1)
    with pytest.raises(InvalidInputError, match="Blob id 0 is reserved"):
        builder.append_dedicated(0, 1)
    with pytest.raises(InvalidInputError, match="same length"):
        builder.extend_packed(1, [0], [])
    with pytest.raises(TypeError, match="not an instance of 'BlobDescriptor'"):
        builder.append(b"a")  # type: ignore[arg-type]
    builder.finish()
    with pytest.raises(InvalidInputError, match="already finished"):
        builder.append_null()
