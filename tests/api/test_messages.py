"""Errors that newcomers meet say what is wrong and what to do."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lance as reference
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import lance_dataset as lance
from lance_dataset.errors import AlreadyExistsError, DatasetNotFoundError, OutOfRangeError, UnsupportedError

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", None], "v": [1.5, 2.5, None]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with files of other formats and a dataset with a branch and a tag."""
    monkeypatch.chdir(tmp_path)
    for name in ("parquets", "csvs", "several", "nothing", "notes"):
        (tmp_path / name).mkdir()
    for path in ("x.parquet", "parquets/a.parquet"):
        pq.write_table(ROWS, path)
    for path in ("x.csv", "csvs/a.csv"):
        pyarrow.csv.write_csv(ROWS, path)
    (tmp_path / "notes" / "a.txt").write_text("x")
    lance.write_dataset(ROWS, "several/one.lance")
    dataset = lance.write_dataset(ROWS, "t.lance")
    dataset.create_branch("exp")
    dataset.tags.create("first", 1)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("x.parquet", "it is a Parquet file; .*lance-dataset import x.parquet"),
        ("x.csv", "it is a CSV file"),
        ("parquets", "it is a folder of Parquet files"),
        ("csvs", "it is a folder of CSV files"),
        ("several", "folder with one.lance; add the name"),
        ("nothing", "was not found$"),
        ("notes", "it is a folder without a dataset"),
        ("t.lance/data", "it is a folder of the dataset .*t.lance"),
        ("tt.lance", "did you mean 't.lance'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_places_without_a_dataset(path: str, text: str) -> None:
    with pytest.raises(DatasetNotFoundError, match=text):
        lance.dataset(path)


def test_a_single_lance_file(folder: Path) -> None:
    file = next((folder / "t.lance" / "data").iterdir())
    with pytest.raises(DatasetNotFoundError, match=r"single Lance file.*LanceFileReader"):
        lance.dataset(file)


@pytest.mark.parametrize("path", ["x.csv", "x.csv/deeper/a.lance"])
@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_writing_over_a_file(folder: Path, path: str, mode: str) -> None:
    before = (folder / "x.csv").read_bytes()
    with pytest.raises((AlreadyExistsError, DatasetNotFoundError), match=r"x.csv.* is a (CSV )?file"):
        lance.write_dataset(ROWS, path, mode=mode)
    assert (folder / "x.csv").read_bytes() == before


CALLS: list[tuple[str, Callable[[lance.LanceDataset], object]]] = [
    (r"exp is a branch.*version=\('exp', None\)", lambda _: lance.dataset("t.lance", version="exp")),
    (r"exp is a branch.*version=\('exp', None\)", lambda ds: ds.checkout_version("exp")),
    ("tag frist does not exist.*did you mean 'first'", lambda ds: ds.checkout_version("frist")),
    (r"quote it: \{'name': \"'hello'\"\}", lambda ds: ds.update({"name": "hello"})),
    (r"quote it: \{'name': \"'hello you'\"\}", lambda ds: ds.update({"name": "hello you"})),
    ("Operator && is not supported in filters; write AND", lambda ds: ds.count_rows("id = 1 && v > 1")),
    ("joins texts, .*write OR", lambda ds: ds.count_rows("id = 1 || v > 1")),
    ("write NOT", lambda ds: ds.count_rows("!(id = 1)")),
    (r"ColumnOrdering\('id', ascending=False\)", lambda ds: ds.to_table(order_by=["id desc"])),
    ("'true' deletes all rows", lambda ds: ds.delete(None)),  # type: ignore[arg-type]
    ("column 'id' has an integer", lambda ds: ds.insert([{"id": 1 << 70, "name": "", "v": 0.0}])),
    ("column 'id' has an integer", lambda _: lance.write_dataset([{"id": 1 << 70}], "n.lance")),
    ("column 'id' has an integer", lambda _: lance.write_dataset({"id": [1 << 70]}, "n.lance")),
    ("column v must be a vector. Got double", lambda ds: ds.to_table(nearest={"column": "v", "q": [1.0], "k": 1})),
]


@pytest.mark.parametrize(("text", "call"), CALLS, ids=[text for text, _ in CALLS])
@pytest.mark.usefixtures("folder")
def test_messages(text: str, call: Callable[[lance.LanceDataset], object]) -> None:
    with pytest.raises((ValueError, OSError, TypeError), match=text):
        call(lance.dataset("t.lance"))


@pytest.mark.usefixtures("folder")
def test_huge_integers_are_out_of_range() -> None:
    with pytest.raises(OutOfRangeError):
        lance.write_dataset([{"id": 1 << 70}], "n.lance")
    assert not os.path.exists("n.lance")


def test_blobs_of_both_versions(tmp_path: Path) -> None:
    """A column that is marked as in the first version is written in the version of its file."""
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = pa.table([pa.array([b"x"], pa.large_binary())], schema=pa.schema([field]))
    for version in ("2.1", "2.2"):
        assert lance.write_dataset(data, tmp_path / version, data_storage_version=version).count_rows() == 1
        blob = reference.dataset(tmp_path / version).take_blobs("b", indices=[0])[0]
        assert blob is not None
        assert blob.readall() == b"x"


def test_datasets_without_indices_list_none(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(40, dtype=np.float32)), 4)
    dataset = lance.write_dataset(pa.table({"id": range(10), "v": vectors}), tmp_path / "t")
    assert (dataset.list_indices(), dataset.has_index) == ([], False)
    reference.dataset(tmp_path / "t").create_scalar_index("id", "BTREE")
    dataset = lance.dataset(tmp_path / "t")
    assert dataset.has_index
    assert [each["name"] for each in dataset.list_indices()] == ["id_idx"]


def test_pickles_of_relative_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand for the same dataset in another directory and in another process."""
    dataset = lance.dataset("t.lance")
    pickled = [
        pickle.dumps(each) for each in (dataset, dataset.get_fragments()[0], dataset.checkout_version(("exp", None)))
    ]
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    lance.write_dataset(ROWS.slice(1), "t.lance")
    assert [pickle.loads(each).count_rows() for each in pickled] == [3, 3, 3]
    (folder / "elsewhere" / "p").write_bytes(pickled[0])
    code = "import pickle; print(pickle.load(open('p', 'rb')).count_rows())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"


@pytest.mark.parametrize("prefix", ["file:", "file://", "file://localhost"])
def test_file_uris(folder: Path, prefix: str) -> None:
    assert lance.dataset(f"{prefix}{folder}/t.lance").count_rows() == 3
    lance.write_dataset(ROWS, f"{prefix}{folder}/new.lance")
    assert reference.dataset(folder / "new.lance").count_rows() == 3
    assert not [path for path in folder.rglob("*") if ":" in path.name]


@pytest.mark.parametrize("uri", ["dbfs:/x.lance", "foo:x", "s3:/bucket/x"])
@pytest.mark.usefixtures("folder")
def test_unknown_schemes(uri: str) -> None:
    before = set(os.listdir())
    with pytest.raises(UnsupportedError, match=r"begins with './'"):
        lance.write_dataset(ROWS, uri)
    assert set(os.listdir()) == before


def test_missing_arguments_name_the_class_that_users_know(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "a.lance")
    for call, missing in ((dataset.delete, "predicate"), (dataset.update, "updates"), (dataset.take, "indices")):
        with pytest.raises(TypeError, match=rf"^LanceDataset\.\w+\(\) missing .*'{missing}'"):
            call()  # type: ignore[call-arg]
