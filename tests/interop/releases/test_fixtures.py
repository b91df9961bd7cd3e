"""Tests of datasets that releases of the reference wrote, compared with what those releases read themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.tables.equality import assert_same

import lance_dataset as lance
from lance_dataset.io.resolve import resolve

DATASETS = Path(__file__).parents[2] / "fixtures" / "datasets"
RELEASES = sorted(path.name for path in DATASETS.iterdir())


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> Path:
    return DATASETS / request.param


@pytest.fixture
def expected(release: Path) -> pa.Table:
    return pa.ipc.open_file(release / "expected.arrow").read_all()


#: The release and format pairs with which the format notes were checked.
PAIRS = [
    *(f"pylance-{release}-default" for release in ("0.4.21", "0.5.10", "0.7.5", "0.8.21", "0.10.18", "0.15.0")),
    *("pylance-0.15.0-v2", "pylance-0.20.0-legacy", "pylance-0.20.0-2.0", "pylance-0.20.0-2.1"),
    *(f"pylance-1.0.0-{version}" for version in ("legacy", "2.0", "2.1", "2.2")),
    *(f"pylance-14.0.2-{version}" for version in ("legacy", "2.0", "2.1", "2.2", "2.3")),
]
#: Files of versions that were not stable when they were written.
UNSTABLE = [
    *(f"pylance-{release}-2.1" for release in ("0.16.0", "0.18.2", "0.22.0", "0.25.2", "0.30.0", "0.32.1")),
    *("pylance-0.20.0-2.1-small", "pylance-4.0.0-2.3", "pylance-6.0.0-2.3", "pylance-10.0.0-2.3"),
]


def test_there_are_fixtures() -> None:
    assert len(PAIRS) == 19
    assert sorted([*PAIRS, *UNSTABLE]) == RELEASES


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
    """The datasets can be read from a store without a file system."""
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
        assert version.to_table().num_rows == version.count_rows()
        if all(fragment.metadata.physical_rows for fragment in version.get_fragments()):
            assert version.count_rows() == int(entry["metadata"]["total_rows"])


@pytest.mark.parametrize("name", [name for name in RELEASES if (DATASETS / name / "dict.lance").exists()])
def test_dictionaries(name: str) -> None:
    """Dictionary values in the manifest are read, where empty values may stand for nulls."""
    dataset = lance.dataset(DATASETS / name / "dict.lance")
    expected = pa.ipc.open_file(DATASETS / name / "dict_expected.arrow").read_all()
    assert_same(dataset.to_table(), expected)
    rows = np.random.default_rng(1).integers(0, expected.num_rows, 50)
    assert_same(dataset.take(rows), expected.take(rows))
    assert_same(pa.Table.from_batches(dataset.to_batches(batch_size=7)), expected)
