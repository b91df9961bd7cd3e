"""Tests of explicit commits, compared with the reference: `commit`, `commit_batch`, transactions, base paths."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import DatasetBasePath, FragmentMetadata, LanceDataset, LanceOperation, Transaction, write_fragments
from lance_dataset.errors import (
    CommitConflictError,
    DatasetNotFoundError,
    InvalidInputError,
    UnsupportedError,
)

DATA = pa.table({"a": [1, 2, 3], "s": ["x", "y", "z"]})
MORE = pa.table({"a": [4, 5], "s": ["v", "w"]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    lance_dataset.write_dataset(DATA, tmp_path / "d")
    return str(tmp_path / "d")


def written(path: str) -> list[FragmentMetadata]:
    return write_fragments(MORE, path, mode="append")


def append(path: str, read_version: int = 1, **properties: str) -> Transaction:
    return Transaction(read_version, LanceOperation.Append(written(path)), transaction_properties=properties)


# -- commit ------------------------------------------------------------------------------------------------------------


def test_handles(path: str) -> None:
    first = lance_dataset.dataset(path)
    by_handle = LanceDataset.commit(first, append(path))
    assert (first.version, by_handle.version) == (1, 2)
    by_path = LanceDataset.commit(Path(path), LanceOperation.Append(written(path)), read_version=1, commit_message="m")
    assert by_path.version == 3
    assert by_path.read_transaction(3).transaction_properties == {"__lance_commit_message": "m"}
    assert lance.dataset(path).read_transaction(3).transaction_properties == {"__lance_commit_message": "m"}
    assert by_path.count_rows() == lance.dataset(path).count_rows() == 7


def test_detached(path: str) -> None:
    detached = LanceDataset.commit(path, append(path), detached=True)
    assert detached.version >= 1 << 63
    assert lance_dataset.dataset(path).version == lance.dataset(path).version == 1
    for opened in (lance_dataset.dataset(path, detached.version), lance.dataset(path, version=detached.version)):
        assert opened.to_table() == pa.concat_tables([DATA, MORE])
    other = lance.LanceDataset.commit(
        path, lance.LanceOperation.Append([]), read_version=1, detached=True, commit_message="theirs"
    )
    assert lance_dataset.dataset(path, other.version).to_table() == DATA
    with pytest.raises(UnsupportedError, match="detached"):
        LanceDataset.commit(f"{path} new", LanceOperation.Overwrite(DATA.schema, []), detached=True)


def test_what_follows_a_detached_version(path: str) -> None:
    detached = LanceDataset.commit(path, append(path), detached=True).version
    for change in (
        lambda: lance_dataset.dataset(path, detached).delete("a = 1"),
        lambda: lance_dataset.dataset(path, detached).update_config({"k": "v"}),
        lambda: LanceDataset.commit(path, LanceOperation.Append([]), detached),
        lambda: LanceDataset.commit(lance_dataset.dataset(path, detached), LanceOperation.Append([]), detached),
    ):
        with pytest.raises(InvalidInputError, match=f"detached version {detached}.*restore it first"):
            change()
    further = LanceDataset.commit(path, append(path, detached), detached=True)
    assert further.to_table() == pa.concat_tables([DATA, MORE, MORE])
    assert lance_dataset.dataset(path).version == 1
    handle = lance_dataset.dataset(path, detached)
    handle.restore()
    assert handle.version == lance.dataset(path).version == 2
    assert handle.to_table() == lance.dataset(path).to_table() == pa.concat_tables([DATA, MORE])
    assert handle.delete("a = 5") == {"num_deleted_rows": 1}
    lance.dataset(path, version=further.version).restore()
    assert lance_dataset.dataset(path).to_table() == pa.concat_tables([DATA, MORE, MORE])


def test_commit_lock(path: str) -> None:
    seen = []

    @contextlib.contextmanager
    def lock(version: int) -> Iterator[None]:
        seen.append(version)
        yield

    LanceDataset.commit(path, append(path), commit_lock=lock)
    LanceDataset.commit_batch(path, [append(path)], commit_lock=lock)
    assert seen == [2, 3]


def test_refusals(path: str) -> None:
    change = LanceOperation.UpdateConfig(LanceOperation.UpdateMap({"a": "b"}))
    for operation in (
        change,
        LanceOperation.Append([]),
        LanceOperation.Project(lance_dataset.dataset(path).lance_schema),
    ):
        with pytest.raises(InvalidInputError, match="read_version"):
            LanceDataset.commit(path, operation)
    with pytest.raises(InvalidInputError, match="transaction_properties"):
        LanceDataset.commit(path, append(path), commit_message="m")
    for timeout in (dt.timedelta(0), dt.timedelta(seconds=-1)):
        with pytest.raises(InvalidInputError, match="commit_timeout"):
            LanceDataset.commit(path, change, read_version=1, commit_timeout=timeout)
        with pytest.raises(InvalidInputError, match="commit_timeout"):
            LanceDataset.commit_batch(path, [append(path)], commit_timeout=timeout)
    with pytest.raises(InvalidInputError, match="must be provided together"):
        LanceDataset.commit(path, change, read_version=1, namespace_client=object())
    with pytest.raises(UnsupportedError, match="Clone"):
        LanceDataset.commit(path, LanceOperation.Clone(True, None, 1, "x", None), read_version=1)
    with pytest.raises(TypeError, match="LanceOperation"):
        LanceDataset.commit(path, "x", read_version=1)  # type: ignore[arg-type]
    with pytest.raises(DatasetNotFoundError):
        LanceDataset.commit(f"{path} new", change, read_version=0)
    assert LanceDataset.commit(path, change, read_version=1, commit_timeout=None).config() == {"a": "b"}
    assert lance_dataset.dataset(path).version == 2


@pytest.mark.parametrize("uri", [5, b"x", object(), []])
def test_locations_of_other_types(uri: object) -> None:
    for call in (
        lambda: LanceDataset.commit(uri, LanceOperation.Append([]), 1),  # type: ignore[arg-type]
        lambda: LanceDataset.commit_batch(uri, [Transaction(1, LanceOperation.Append([]))]),  # type: ignore[arg-type]
        lambda: lance_dataset.write_dataset(DATA, uri),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="path, a URI or a LanceDataset"):
            call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"read_version": "1"}, "read_version must be an integer, not str"),
        ({"read_version": 1.0}, "read_version must be an integer, not float"),
        ({"read_version": True}, "read_version must be an integer, not bool"),
        ({"read_version": 1, "max_retries": "2"}, "max_retries must be an integer, not str"),
        ({"read_version": 1, "max_retries": 1.5}, "max_retries must be an integer, not float"),
        ({"read_version": 1, "commit_message": b"x"}, "commit_message must be text, not bytes"),
        ({"read_version": 1, "commit_timeout": 5}, "commit_timeout must be a datetime.timedelta, not int"),
    ],
)
def test_arguments_of_other_types(path: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        LanceDataset.commit(path, LanceOperation.Append([]), **arguments)
    assert lance_dataset.dataset(path).version == 1


@pytest.mark.parametrize("properties", [5, "x", {"a": 5}, {5: "a"}, ["a"]])
def test_properties_are_texts(path: str, properties: Any) -> None:
    change = Transaction(1, LanceOperation.Append([]), transaction_properties=properties)
    for call in (lambda: LanceDataset.commit(path, change), lambda: LanceDataset.commit_batch(path, [change])):
        with pytest.raises(TypeError, match="transaction_properties must be a dictionary"):
            call()


def test_numbers_out_of_range(path: str) -> None:
    change = LanceOperation.Append([])
    for arguments in ({"read_version": -1}, {"read_version": 1, "max_retries": -1}):
        with pytest.raises(InvalidInputError, match="must be non-negative"):
            LanceDataset.commit(path, change, **arguments)
    for read_version in ("1", 1.0, None):
        with pytest.raises(TypeError, match="read_version must be an integer"):
            LanceDataset.commit_batch(path, [Transaction(read_version, change)])  # type: ignore[arg-type]
    assert LanceDataset.commit(path, change, np.int64(1)).version == 2


@pytest.mark.parametrize(
    "operation",
    [
        LanceOperation.Rewrite([None], []),  # type: ignore[list-item]
        LanceOperation.Rewrite([], [5]),  # type: ignore[list-item]
        LanceOperation.CreateIndex(["x"], []),  # type: ignore[list-item]
        LanceOperation.CreateIndex([], [{}]),  # type: ignore[list-item]
        LanceOperation.DataReplacement([None]),  # type: ignore[list-item]
        LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(0, "x")]),  # type: ignore[arg-type]
        LanceOperation.UpdateConfig("x"),  # type: ignore[arg-type]
        LanceOperation.UpdateConfig({"a": "b"}),  # type: ignore[arg-type]
        LanceOperation.Restore("1"),  # type: ignore[arg-type]
        LanceOperation.Delete([], None, "x"),  # type: ignore[arg-type]
        LanceOperation.Overwrite(DATA.schema, [], initial_bases=["x"]),  # type: ignore[list-item]
    ],
)
def test_operations_with_parts_of_other_types(path: str, operation: LanceOperation.BaseOperation) -> None:
    with pytest.raises(TypeError, match=type(operation).__name__):
        LanceDataset.commit(path, operation, 1)
    assert lance_dataset.dataset(path).version == 1


def test_conflicts(path: str) -> None:
    LanceDataset.commit(path, LanceOperation.Overwrite(DATA.schema, []))
    with pytest.raises(CommitConflictError, match="version 2"):
        LanceDataset.commit(path, append(path))


@pytest.mark.parametrize("appends", [0, 1])
def test_handles_on_a_dataset_that_was_replaced(path: str, appends: int) -> None:
    """Committing a change to a dataset that was replaced raises `CommitConflictError`, as its files are gone."""
    handle = lance_dataset.dataset(path)
    change = append(path)
    lance_dataset.LanceDataset.drop(path)
    for mode in ("create", *["append"] * appends):
        lance_dataset.write_dataset(DATA, path, mode=mode)
    for commit in (
        lambda: LanceDataset.commit(handle, change),
        lambda: LanceDataset.commit_batch(handle, [change]),
    ):
        with pytest.raises(CommitConflictError, match="the dataset was replaced"):
            commit()
    assert lance_dataset.dataset(path).version == 1 + appends


# -- commit_batch ------------------------------------------------------------------------------------------------------


def test_batch(path: str) -> None:
    changes = [append(path, 1, a="1", b="1"), append(path, 1, b="2")]
    result = LanceDataset.commit_batch(path, changes)
    assert set(result) == {"dataset", "merged"}
    merged, dataset = result["merged"], result["dataset"]
    assert dataset.version == 2
    assert dataset.to_table() == lance.dataset(path).to_table() == pa.concat_tables([DATA, MORE, MORE])
    assert merged.transaction_properties == {"a": "1", "b": "2"}
    assert merged.uuid not in [change.uuid for change in changes]
    assert dataset.read_transaction(2) == merged
    LanceDataset.commit_batch(dataset, [append(path, 2), append(path, 1)])
    assert lance_dataset.dataset(path).read_transaction(3).read_version == 2  # as it was rebased
    assert LanceDataset.commit_batch(dataset, [append(path, 2), append(path, 1)])["merged"].read_version == 1


def test_a_batch_is_committed_once(path: str) -> None:
    """Committing a batch again raises `CommitConflictError`, so a retry after an unclear outcome is safe."""
    changes = [append(path), append(path)]
    merged = LanceDataset.commit_batch(path, changes)["merged"]
    for again in (changes, changes[::-1]):
        with pytest.raises(CommitConflictError, match=f"{merged.uuid} was committed already, as version 2"):
            LanceDataset.commit_batch(path, again)
    with pytest.raises(InvalidInputError, match=f"{changes[0].uuid} is in the batch more than once"):
        LanceDataset.commit_batch(path, [changes[0], changes[1], changes[0]])
    assert lance_dataset.dataset(path).count_rows() == lance.dataset(path).count_rows() == 7


def test_batch_refusals(path: str) -> None:
    with pytest.raises(InvalidInputError, match="No transactions"):
        LanceDataset.commit_batch(path, [])
    with pytest.raises(UnsupportedError, match="Only append transactions"):
        LanceDataset.commit_batch(path, [append(path), Transaction(1, LanceOperation.Delete([], [0], ""))])
    with pytest.raises(TypeError, match="transactions"):
        LanceDataset.commit_batch(path, [LanceOperation.Append([])])  # type: ignore[list-item]
    with pytest.raises(DatasetNotFoundError):
        LanceDataset.commit_batch(f"{path} new", [append(path)])
    assert lance_dataset.dataset(path).version == 1
    detached = LanceDataset.commit_batch(path, [append(path)], detached=True)["dataset"]
    assert detached.version >= 1 << 63


# -- transactions ------------------------------------------------------------------------------------------------------


def test_transactions(path: str) -> None:
    for _ in range(3):
        lance.write_dataset(MORE, path, mode="append")
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for count in (1, 2, 4, 10):
        expected = [each.uuid for each in theirs.get_transactions(count)]
        assert [each.uuid for each in ours.get_transactions(count)] == expected
    assert len(ours.get_transactions()) == 4
    assert ours.get_transactions(0) == []
    older = lance_dataset.dataset(path, 2)
    assert [each.read_version for each in older.get_transactions()] == [1, 0]
    with pytest.raises(InvalidInputError):
        ours.get_transactions(-1)
    (Path(path) / "_transactions" / f"0-{ours.read_transaction(1).uuid}.txn").unlink()
    assert ours.read_transaction(1) is not None  # the transaction is in the manifest, too


# -- versions of files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ours", [True, False])
def test_files_of_several_versions(path: str, ours: bool) -> None:
    """Either library can append files of another file version, and both read the result and append to it."""
    write = lance_dataset.write_dataset if ours else lance.write_dataset
    expected = [DATA]
    for version in ("2.0", "2.1", "2.3"):
        write(MORE, path, mode="append", data_storage_version=version)
        expected.append(MORE)
    for other in (lance.write_dataset, lance_dataset.write_dataset):
        other(MORE, path, mode="append")
        expected.append(MORE)
        for opened in (lance.dataset(path), lance_dataset.dataset(path)):
            assert opened.to_table() == pa.concat_tables(expected)
            assert opened.data_storage_version == "2.2"
    files = [file for fragment in lance.dataset(path).get_fragments() for file in fragment.metadata.files]
    minors = [(file.file_major_version, file.file_minor_version) for file in files]
    assert minors == [(2, 2), (2, 0), (2, 1), (2, 3), (2, 2), (2, 2)]


def test_legacy_files_never_mix(path: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be mixed"):
        lance_dataset.write_dataset(MORE, path, mode="append", data_storage_version="0.1")
    lance_dataset.write_dataset(DATA, f"{path} old", data_storage_version="0.1")
    with pytest.raises(InvalidInputError, match="cannot be mixed"):
        lance_dataset.write_dataset(MORE, f"{path} old", mode="append", data_storage_version="2.0")


# -- base paths --------------------------------------------------------------------------------------------------------


def places(path: str) -> list[int | None]:
    fragments = lance_dataset.dataset(path).get_fragments()
    return [file.base_id for fragment in fragments for file in fragment.metadata.files]


def test_files_in_base_paths(tmp_path: Path) -> None:
    path = str(tmp_path / "d")
    bases = [DatasetBasePath(str(tmp_path / "one"), "one"), DatasetBasePath(str(tmp_path / "two"), None, True)]
    made = lance_dataset.write_dataset(
        DATA, path, initial_bases=bases, target_bases=["one", bases[1].path], max_rows_per_file=1
    )
    assert places(path) == [1, 2, 1]
    assert len(list((tmp_path / "one").glob("*.lance"))) == 2
    assert len(list((tmp_path / "two" / "data").glob("*.lance"))) == 1
    found = {base_id: (base.path, base.name, base.is_dataset_root) for base_id, base in made.base_paths().items()}
    theirs = lance.dataset(path).base_paths()
    assert found == {base_id: (base.path, base.name, base.is_dataset_root) for base_id, base in theirs.items()}
    assert lance.dataset(path).to_table() == lance_dataset.dataset(path).to_table() == DATA
    lance_dataset.write_dataset(MORE, path, mode="append")
    lance_dataset.write_dataset(DATA, path, mode="append", target_all_bases=True, max_rows_per_file=1)
    lance.write_dataset(MORE, path, mode="append", target_bases=["one"])
    assert places(path) == [1, 2, 1, None, None, 1, 2, 1]
    lance_dataset.dataset(path).delete("a = 1")
    expected = lance.dataset(path).to_table()
    assert lance_dataset.dataset(path).to_table() == expected
    assert expected.num_rows == 8
    lance_dataset.write_dataset(MORE, path, mode="overwrite", target_bases=["one"])
    assert places(path) == [1]
    assert lance.dataset(path).to_table() == MORE


def test_base_paths_of_a_commit(tmp_path: Path) -> None:
    path, base = str(tmp_path / "d"), DatasetBasePath(str(tmp_path / "b"), "b", id=5)
    LanceDataset.commit(path, LanceOperation.Overwrite(DATA.schema, [], [base]))
    assert list(lance.dataset(path).base_paths()) == [5]
    with pytest.raises(InvalidInputError, match="base paths"):
        LanceDataset.commit(path, LanceOperation.Overwrite(DATA.schema, [], [base]))


def test_base_path_refusals(tmp_path: Path, path: str) -> None:
    one, two = DatasetBasePath("/x/one", "n"), DatasetBasePath("/x/two", "n")
    for mode in ("append", "overwrite"):
        with pytest.raises(InvalidInputError, match="Cannot register"):
            lance_dataset.write_dataset(MORE, path, mode=mode, initial_bases=[one])
    with pytest.raises(InvalidInputError, match="same name"):
        lance_dataset.write_dataset(MORE, tmp_path / "new", initial_bases=[one, two])
    with pytest.raises(InvalidInputError, match="'zz' not found"):
        lance_dataset.write_dataset(MORE, tmp_path / "new", initial_bases=[one], target_bases=["zz"])
    with pytest.raises(InvalidInputError, match="together"):
        lance_dataset.write_dataset(MORE, path, mode="append", target_bases=["n"], target_all_bases=True)
    with pytest.raises(TypeError, match="list"):
        lance_dataset.write_dataset(MORE, path, mode="append", target_bases="n")
    assert not (tmp_path / "new").exists()


def test_failed_writes_leave_nothing_in_base_paths(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from DATA.to_batches()
        raise RuntimeError("stop")

    bases = [DatasetBasePath(str(tmp_path / "one"), "one")]
    with pytest.raises(RuntimeError, match="stop"):
        lance_dataset.write_dataset(
            batches(), tmp_path / "d", DATA.schema, initial_bases=bases, target_bases=["one"], max_rows_per_file=1
        )
    assert list(tmp_path.rglob("*.lance")) == []
