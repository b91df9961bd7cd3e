"""Tests of columns of legacy files that are read together."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.reader import open_metadata
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.io.local import LocalStore
from lance_dataset.read import fragment_reader

ROWS = 2500


def table() -> pa.Table:
    """Return columns of every type that is read together, and dictionaries."""
    rng = np.random.default_rng(5)
    columns: dict[str, pa.Array] = {"id": pa.array(np.arange(ROWS))}
    for number in range(5):
        columns[f"byte{number}"] = pa.array(rng.integers(-128, 128, ROWS).astype(np.int8))
        columns[f"flag{number}"] = pa.array(rng.random(ROWS) < 0.4)
        columns[f"real{number}"] = pa.array(rng.random(ROWS))
        columns[f"fixed{number}"] = pa.array([rng.bytes(3) for _ in range(ROWS)], pa.binary(3))
        kinds = pa.array(rng.integers(0, 3, ROWS).astype(np.int8))
        columns[f"kind{number}"] = pa.DictionaryArray.from_arrays(kinds, [*["a", "b", "c"][: number + 2][-3:], "d"])
    return pa.table(columns)


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what is read together with columns that are read by themselves."""
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")


@pytest.fixture(scope="module", params=[1024, 700, 4096], ids=lambda rows: f"batches of {rows}")
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    where = str(tmp_path_factory.mktemp("wide") / "t.lance")
    lance.write_dataset(table(), where, data_storage_version="legacy", max_rows_per_group=request.param)
    return where


@pytest.mark.parametrize("where", [None, "id < 3", "id % 7 = 0", "flag0", "id > 1000 AND id < 1040"])
def test_scans_equal_those_of_the_reference(path: str, where: str | None) -> None:
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    assert ours.to_table(filter=where).equals(theirs.to_table(filter=where))
    batches = list(ours.to_batches(filter=where, batch_size=600))
    assert pa.Table.from_batches(batches, ours.schema).equals(theirs.to_table(filter=where))


def test_columns_that_are_read_together_are_not_opened(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANCE_CHECK_SCANS")
    monkeypatch.setattr(fragment_reader.FragmentReader, "column", None)
    found = lance_dataset.dataset(path).to_table()
    assert found.equals(lance.dataset(path).to_table())


def test_rows_without_the_deleted_ones(path: str, tmp_path: Path) -> None:
    ours = lance_dataset.write_dataset(table(), tmp_path / "t.lance", data_storage_version="legacy")
    ours.delete("id % 3 = 1")
    expected = table().filter(pc.not_equal(pa.array(np.arange(ROWS) % 3), 1))
    assert ours.to_table().to_pylist() == expected.to_pylist()
    assert (
        ours.to_table(filter="real1 > 0.5").to_pylist()
        == expected.filter(pc.greater(expected["real1"], 0.5)).to_pylist()
    )


def opened(path: str) -> tuple[Path, LegacyFile]:
    file = next((Path(path) / "data").iterdir())
    metadata = open_metadata(LocalStore().open_input(str(file)))
    assert isinstance(metadata, LegacyFile)
    return file, metadata


def test_an_index_without_a_value_is_reported_with_its_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANCE_CHECK_SCANS")
    path = str(tmp_path / "t.lance")
    ours = lance_dataset.write_dataset(table(), path, data_storage_version="legacy")
    field = ours.lance_schema.field("kind2")
    assert field is not None
    file, metadata = opened(path)
    data = bytearray(file.read_bytes())
    data[int(metadata.pages.cells(field.id())[0][1]) + 5] = 200
    file.write_bytes(bytes(data))
    changed = lance_dataset.dataset(path)
    for run in (
        lambda: changed.to_table(),
        lambda: changed.to_table(filter="id % 2 = 1"),
        lambda: list(changed.to_batches()),
    ):
        with pytest.raises(CorruptFileError, match=r"'kind2'.*index"):
            run()


@pytest.mark.parametrize("cell", [(1 << 40, 452), (-8, 452), (0, 451), (0, 1 << 60)])
def test_pages_that_do_not_fit_are_reported_with_their_column(
    cell: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LANCE_CHECK_SCANS")
    path = str(tmp_path / "t.lance")
    ours = lance_dataset.write_dataset(table(), path, data_storage_version="legacy")
    field = ours.lance_schema.field("real3")
    assert field is not None
    file, metadata = opened(path)
    data = bytearray(file.read_bytes())
    place = metadata.pages.position + (field.id() - metadata.pages.base) * 3 * 16 + 32
    data[place : place + 16] = b"".join(number.to_bytes(8, "little", signed=True) for number in cell)
    file.write_bytes(bytes(data))
    with pytest.raises(CorruptFileError, match=r"real3|field"):
        lance_dataset.dataset(path).to_table()
