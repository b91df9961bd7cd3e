"""Tests of whole datasets whose manifests are listed in an SQL database."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.errors import AlreadyExistsError, DatasetNotFoundError
from lance_dataset.fragment import LanceFragment

TABLE = pa.table({"id": pa.array(range(10), pa.int64())})
WRITERS, ROUNDS = 8, 10

WRITER = """
import sys
import pyarrow as pa
import lance_dataset

path, url, number, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
options = {"manifest_store_url": url, "local_fsync": "false"}
for turn in range(rounds):
    start = 1000 * number + 10 * turn
    data = pa.table({"id": pa.array(range(start, start + 10), pa.int64())})
    lance_dataset.write_dataset(data, path, mode="append", storage_options=options)
"""


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    return {"manifest_store_url": f"sqlite:///{tmp_path}/manifests.db", "manifest_store_table": "mine"}


def entries(options: dict[str, str]) -> list[tuple[str, int, str]]:
    engine = sqlalchemy.create_engine(options["manifest_store_url"])
    with engine.connect() as connection:
        query = f"select location, version, path from {options['manifest_store_table']} order by location, version"
        found = [tuple(row) for row in connection.execute(sqlalchemy.text(query))]
    engine.dispose()
    return found


def test_every_way_in_sees_the_database(tmp_path: Path, options: dict[str, str]) -> None:
    path = str(tmp_path / "t")
    lance_dataset.write_dataset(TABLE, path, storage_options=options)
    names = ["_versions/18446744073709551614.manifest"]
    assert entries(options) == [(path, 1, names[0])]
    with pytest.raises(AlreadyExistsError):
        lance_dataset.write_dataset(TABLE, path, storage_options=options)
    lance_dataset.write_dataset(TABLE, path, mode="append", storage_options=options)
    opened = lance_dataset.dataset(path, storage_options=options)
    opened.delete("id = 3")
    fragment = LanceFragment.create(path, TABLE, storage_options=options)
    operation = lance_dataset.LanceOperation.Append([fragment])
    made = lance_dataset.LanceDataset.commit(path, operation, read_version=3, storage_options=options)
    made.delete("id = 4")
    pickle.loads(pickle.dumps(made)).delete("id = 5")
    opened.checkout_latest()
    opened.restore()
    assert [version for _, version, _ in entries(options)] == [1, 2, 3, 4, 5, 6, 7]
    assert all(name.endswith(".manifest") for _, _, name in entries(options))
    # A program that does not know of the database reads the same.
    assert_same(lance_dataset.dataset(path).to_table(), lance_dataset.dataset(path, storage_options=options).to_table())
    assert lance_dataset.dataset(path, version=2, storage_options=options).count_rows() == 20
    asof = opened.versions()[-1]["timestamp"]
    assert lance_dataset.dataset(path, asof=asof, storage_options=options).version == 6
    lance_dataset.LanceDataset.drop(path, options)
    assert entries(options) == []
    with pytest.raises(DatasetNotFoundError):
        lance_dataset.dataset(path, storage_options=options)
    lance_dataset.write_dataset(TABLE, path, storage_options=options)
    assert lance_dataset.dataset(path, storage_options=options).version == 1


def test_what_another_program_dropped_can_be_dropped(tmp_path: Path, options: dict[str, str]) -> None:
    path = str(tmp_path / "t")
    lance_dataset.write_dataset(TABLE, path, storage_options=options)
    lance_dataset.LanceDataset.drop(path)
    with pytest.raises(FileNotFoundError, match="drop removes what it left"):
        lance_dataset.write_dataset(TABLE, path, storage_options=options)
    lance_dataset.LanceDataset.drop(path, options)
    assert lance_dataset.write_dataset(TABLE, path, storage_options=options).version == 1


def test_memory(options: dict[str, str]) -> None:
    session = lance_dataset.Session()
    lance_dataset.write_dataset(TABLE, "memory://t", storage_options=options, session=session)
    opened = lance_dataset.dataset("memory://t", storage_options=options, session=session)
    opened.delete("id > 4")
    assert lance_dataset.dataset("memory://t", session=session).count_rows() == 5
    assert [version for _, version, _ in entries(options)] == [1, 2]


def test_no_version_of_many_processes_is_lost(tmp_path: Path, options: dict[str, str]) -> None:
    path, url = str(tmp_path / "t"), options["manifest_store_url"]
    script = tmp_path / "writer.py"
    script.write_text(WRITER)
    command = [sys.executable, str(script), path, url]
    processes = [
        subprocess.Popen([*command, str(number), str(ROUNDS)], stderr=subprocess.PIPE) for number in range(WRITERS)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=250)
        assert process.returncode == 0, errors.decode()[-3000:]
    opened = lance_dataset.dataset(path, storage_options={"manifest_store_url": url})
    assert opened.version == WRITERS * ROUNDS
    expected = [1000 * number + value for number in range(WRITERS) for value in range(10 * ROUNDS)]
    assert sorted(opened.to_table()["id"].to_pylist()) == expected
    assert [entry["version"] for entry in opened.version_refs()] == list(range(1, WRITERS * ROUNDS + 1))
    options = {**options, "manifest_store_table": "lance_manifests"}
    assert [version for _, version, _ in entries(options)] == list(range(1, WRITERS * ROUNDS + 1))
    assert not list((tmp_path / "t" / "_versions").glob("*.manifest-*"))
