"""Tests of files below one folder, against those of pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.file
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, MissingFileError
from lance_dataset.file import LanceFileSession, ListResult

TABLE = pa.table({"x": pa.array([1, 2, None], pa.int32()), "y": ["a", None, "c"]})


@pytest.fixture
def session(tmp_path: Path) -> Any:
    found = LanceFileSession(tmp_path / "files")
    for name in ("a/b.lance", "c.lance", "a/d/e.lance"):
        with found.open_writer(name, schema=TABLE.schema) as writer:
            writer.write_batch(TABLE)
    return found


def test_files(session: LanceFileSession, tmp_path: Path) -> None:
    """Both packages list, read and find the same files."""
    theirs = lance.file.LanceFileSession(str(tmp_path / "files"))
    assert session.open_reader("a/b.lance").read_all().to_table() == TABLE
    assert session.open_reader("a/b.lance", columns=["y"]).read_all().to_table() == TABLE.select(["y"])
    for folder in (None, "a", "a/d", "nothing"):
        assert session.list(folder) == sorted(theirs.list(folder))
        ours, other = session.list_with_delimiter(folder), theirs.list_with_delimiter(folder)
        assert ours == ListResult(sorted(other.common_prefixes), sorted(other.objects))
    assert session.contains("c.lance")
    assert not session.contains("d.lance")
    assert session.read_range("c.lance", 2, 9) == theirs.read_range("c.lance", 2, 9)


def test_copies(session: LanceFileSession, tmp_path: Path) -> None:
    """Files of any format are copied both ways, replaced and removed."""
    local, back = tmp_path / "local", tmp_path / "back"
    for content in (b"", b"hello", bytes(range(256)) * 99):
        local.write_bytes(content)
        session.upload_file(local, "any/thing.bin")
        session.download_file("any/thing.bin", back)
        assert back.read_bytes() == content
    session.delete_file("any/thing.bin")
    assert not session.contains("any/thing.bin")


def test_refused(session: LanceFileSession, tmp_path: Path) -> None:
    """Paths outside the folder, files that do not exist, and ranges outside a file raise an error."""
    for path in ("../x", "/etc/passwd", "", "a//b", "a/./b"):
        for call in (session.open_reader, session.contains, session.delete_file, session.list):
            with pytest.raises(InvalidInputError, match="not a path below"):
                call(path)
    for call in (session.open_reader, session.delete_file, lambda path: session.download_file(path, tmp_path / "x")):
        with pytest.raises(MissingFileError):
            call("none.lance")
    assert not (tmp_path / "x").exists()
    with pytest.raises(FileNotFoundError):
        session.upload_file(tmp_path / "none", "a")
    with pytest.raises(InvalidInputError, match="bytes"):
        session.read_range("c.lance", 0, 1 << 40)
    with pytest.raises(FieldNotFoundError):
        session.open_reader("c.lance", columns=["q"])
    with pytest.raises(InvalidInputError, match="must be provided together"):
        LanceFileSession(tmp_path, table_id=["t"])


def test_session_of_a_dataset(tmp_path: Path) -> None:
    """The session of a dataset has its files."""
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "t.lance")
    names = dataset.new_file_session().list()
    assert sorted(names) == sorted(lance.file.LanceFileSession(str(tmp_path / "t.lance")).list())
    data = next(name for name in names if name.startswith("data/"))
    assert dataset.new_file_session().open_reader(data).read_all().to_table() == TABLE
