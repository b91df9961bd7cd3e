"""Datasets that releases of the reference wrote, against what those releases themselves read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from table_equality import assert_same

import lance_dataset as lance
from lance_dataset.io.resolve import resolve

DATASETS = Path(__file__).parent.parent / "fixtures" / "datasets"
RELEASES = sorted(path.name for path in DATASETS.iterdir())


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> Path:
    return DATASETS / request.param


@pytest.fixture
def expected(release: Path) -> pa.Table:
    return pa.ipc.open_file(release / "expected.arrow").read_all()


def test_there_are_fixtures() -> None:
    later = [f"pylance-{release}-{version}" for release in ("1.0.0", "14.0.2") for version in ("2.0", "2.1", "2.2")]
    assert ["pylance-0.15.0-v2", "pylance-0.20.0-2.0", *later, "pylance-14.0.2-2.3"] == RELEASES


def test_full_scan(release: Path, expected: pa.Table) -> None:
    dataset = lance.dataset(release / "ds.lance")
    names = [name for name in dataset.schema.names if name in expected.column_names]
    assert_same(dataset.to_table(columns=names), expected.select(names))
    assert dataset.count_rows() == expected.num_rows


def test_plain_reads_without_mapping(release: Path, expected: pa.Table) -> None:
    dataset = lance.dataset(release / "ds.lance", storage_options={"mmap": "false"})
    names = [name for name in dataset.schema.names if name in expected.column_names]
    assert_same(dataset.to_table(columns=names), expected.select(names))
    rows = np.random.default_rng(5).integers(0, expected.num_rows, 40)
    assert_same(dataset.take(rows, columns=names), expected.select(names).take(rows))


def test_environment_switches_mapping_off(release: Path, expected: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_MMAP", "0")
    dataset = lance.dataset(release / "ds.lance")
    names = [name for name in dataset.schema.names if name in expected.column_names]
    batches = list(dataset.to_batches(columns=names, batch_size=64))
    assert_same(pa.Table.from_batches(batches), expected.select(names))


def test_object_store(release: Path, expected: pa.Table) -> None:
    """A store without a file system."""
    session = lance.Session()
    store, root = resolve("memory://fixture", session=session)
    for file in (release / "ds.lance").rglob("*"):
        if file.is_file():
            store.put(f"{root}/{file.relative_to(release / 'ds.lance')}", file.read_bytes())
    dataset = lance.dataset("memory://fixture", session=session)
    names = [name for name in dataset.schema.names if name in expected.column_names]
    assert_same(dataset.to_table(columns=names), expected.select(names))
    rows = np.random.default_rng(5).integers(0, expected.num_rows, 40)
    assert_same(dataset.take(rows, columns=names), expected.select(names).take(rows))


@pytest.mark.parametrize("batch_size", [1, 2, 7, 64, 100, 1000, 8192])
def test_batches(release: Path, expected: pa.Table, batch_size: int) -> None:
    dataset = lance.dataset(release / "ds.lance")
    names = [name for name in dataset.schema.names if name in expected.column_names]
    batches = list(dataset.to_batches(columns=names, batch_size=batch_size))
    assert max(batch.num_rows for batch in batches) <= batch_size
    assert_same(pa.Table.from_batches(batches), expected.select(names))


def test_take(release: Path, expected: pa.Table) -> None:
    dataset = lance.dataset(release / "ds.lance")
    names = [name for name in dataset.schema.names if name in expected.column_names]
    rows = np.random.default_rng(3).integers(0, expected.num_rows, 200)
    for wanted in (rows, np.sort(rows), rows[:1], rows[:0]):
        assert_same(dataset.take(wanted, columns=names), expected.select(names).take(wanted))


def test_every_version_opens(release: Path) -> None:
    dataset = lance.dataset(release / "ds.lance")
    for entry in dataset.versions():
        version = dataset.checkout_version(entry["version"])
        assert version.to_table().num_rows == version.count_rows() == int(entry["metadata"]["total_rows"])
