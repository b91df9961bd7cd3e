"""Tests of tables of many columns, whose plain columns are read together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError
from lance_dataset.read import fragment_reader
from lance_dataset.scan import plain_values

ROWS, FRAGMENTS = 1500, 3
#: Column of integers that are bit-packed.
PACKED = "packed3"


def table() -> pa.Table:
    rng, rows = np.random.default_rng(7), ROWS * FRAGMENTS
    columns: dict[str, pa.Array] = {"id": pa.array(np.arange(rows))}
    for number in range(12):
        columns[f"packed{number}"] = pa.array(rng.integers(0, 1 << (3 + number), rows, np.int32))
        columns[f"real{number}"] = pa.array(rng.standard_normal(rows, np.float32 if number % 2 else np.float64))
        columns[f"byte{number}"] = pa.array(rng.integers(-128, 128, rows).astype(np.int8))
        columns[f"time{number}"] = pa.array(rng.integers(0, 1 << 60, rows), pa.timestamp("us"))
        columns[f"runs{number}"] = pa.array(np.repeat(rng.integers(0, 99, rows // 60, np.int64), 60))
        columns[f"nulls{number}"] = pa.array(rng.integers(0, 99, rows), mask=rng.random(rows) < 0.1)
        columns[f"flags{number}"] = pa.array(rng.random(rows) < 0.3, mask=rng.random(rows) < number / 20)
        columns[f"gaps{number}"] = pa.array(rng.random(rows, np.float32), mask=rng.random(rows) < number / 11)
        columns[f"few{number}"] = pa.array(rng.integers(0, 1 << 50, 90)[rng.integers(0, 90, rows)], pa.int64())
        columns[f"text{number}"] = pa.array([f"{value:x}" for value in rng.integers(0, 1 << 40, rows).tolist()])
    columns["nan"] = pa.array(np.where(rng.random(rows) < 0.5, np.nan, rng.random(rows)))
    columns["flag"] = pa.array(rng.random(rows) < 0.5)
    columns["constant"] = pa.array([3] * rows)
    columns["nothing"] = pa.nulls(rows, pa.int16())
    columns["price"] = pa.array([Decimal(value).scaleb(-2) for value in rng.integers(0, 9999, rows).tolist()])
    columns["fixed"] = pa.array([rng.bytes(4) for _ in range(rows)], pa.binary(4))
    columns["pair"] = pa.array([{"a": value} for value in range(rows)])
    columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(2 * rows, np.float32)), 2)
    return pa.table(columns)


@pytest.fixture(scope="module", params=["legacy", "2.0", "2.1", "2.2", "2.2 by the reference"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    where = str(tmp_path_factory.mktemp("wide") / "t.lance")
    version, _, by = request.param.partition(" ")
    write = lance.write_dataset if by else lance_dataset.write_dataset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # legacy files lose nulls
        write(table(), where, data_storage_version=version, max_rows_per_file=ROWS)
    return where


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what is read together with columns that are read by themselves."""
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")


def same(found: pa.Table, expected: pa.Table) -> bool:
    """Return True if tables are equal, where NaN equals itself."""
    bits = [
        each.set_column(each.schema.get_field_index("nan"), "nan", each["nan"].combine_chunks().view(pa.int64()))
        for each in (found, expected)
    ]
    return bits[0].equals(bits[1])


@pytest.mark.parametrize("where", [None, "id < 3", "packed11 < 40", "id >= 1400 AND id < 1700", "real0 > -9", "id < 0"])
def test_scans_equal_those_of_the_reference(path: str, where: str | None) -> None:
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    assert same(ours.to_table(filter=where), theirs.to_table(filter=where))
    batches = list(ours.to_batches(filter=where, batch_size=1024))
    assert same(pa.Table.from_batches(batches, ours.schema), theirs.to_table(filter=where))


def test_deleted_rows_and_parts_of_a_table(tmp_path: Path) -> None:
    path, written = str(tmp_path / "t.lance"), table()
    ours = lance_dataset.write_dataset(written, path, max_rows_per_file=ROWS)
    ours.delete("id % 7 = 3 OR id >= 3000")
    kept = written.filter(pa.array([at % 7 != 3 and at < 3000 for at in range(written.num_rows)]))
    assert same(ours.to_table(), kept)
    assert same(ours.to_table(filter="packed5 >= 0"), kept)
    assert same(ours.to_table(offset=100, limit=1900), kept.slice(100, 1900))
    assert same(pa.Table.from_batches(list(ours.to_batches(batch_size=100))), kept)
    assert same(ours.get_fragments()[1].to_table(), kept.filter(pa.compute.greater_equal(kept["id"], ROWS)))
    names = ["real3", *(name for name in reversed(written.column_names) if name != "pair"), "_rowid"]
    found = ours.to_table(columns=list(dict.fromkeys(names)), with_row_id=True, filter="id > 5")
    assert same(found.drop_columns(["_rowid"]), kept.slice(5).select(found.column_names[:-1]))


def test_columns_of_several_files(tmp_path: Path) -> None:
    """Columns that were added later lie in other files, and all are read one by one."""
    path, written = str(tmp_path / "t.lance"), table()
    ours = lance_dataset.write_dataset(written, path)
    ours.add_columns({"twice": "id * 2"})
    ours.drop_columns(["packed0", "real1"])
    expected = written.append_column("twice", pa.array(np.arange(written.num_rows) * 2))
    assert same(ours.to_table(), expected.drop_columns(["packed0", "real1"]))


def test_plain_columns_are_not_opened(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only other columns have readers of their own."""
    monkeypatch.delenv("LANCE_CHECK_SCANS")
    opened: list[str] = []
    original = fragment_reader.FragmentReader._open_column

    def counted(self: fragment_reader.FragmentReader, field: lance_dataset.types.Field) -> object:
        opened.append(field.name)
        return original(self, field)

    monkeypatch.setattr(fragment_reader.FragmentReader, "_open_column", counted)
    runs: list[Callable[[lance_dataset.LanceDataset], object]] = [
        lambda ds: ds.to_table(),
        lambda ds: ds.get_fragments()[0].to_table(filter="id < 1000"),
        lambda ds: list(ds.get_fragments()[1].to_batches()),
    ]
    for run in runs:
        opened.clear()
        run(lance_dataset.dataset(path))
        assert opened, "texts are not plain"
        plain: tuple[str, ...] = ("real", "time")
        plain += ("gaps2", "gaps7", "flags", "nulls")
        if lance_dataset.dataset(path).data_storage_version != "2.0":
            plain += ("few",)
        assert not {name for name in opened if name.startswith(plain)}


def test_few_columns_are_read_by_themselves(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_reader.FragmentReader, "plain_columns", None)
    names = [f"packed{number}" for number in range(12)]
    assert lance_dataset.dataset(path).to_table(columns=names).equals(table().select(names))


def test_a_column_that_is_kept_keeps_few_others(tmp_path: Path) -> None:
    """Columns that are decoded share buffers of up to 1 MiB, and larger ones share none."""
    rows, rng = 30_000, np.random.default_rng(3)
    large = {f"large{number}": rng.standard_normal(rows) for number in range(4)}
    small = {f"small{number}": rng.integers(0, 100, rows, np.int8) for number in range(60)}
    wide = {"wide": pa.array([rng.bytes(40) for _ in range(rows)], pa.binary(40))}
    written = pa.table({**large, **wide, **small})
    lance_dataset.write_dataset(written, tmp_path / "t.lance")
    found = lance_dataset.dataset(tmp_path / "t.lance").to_table(filter="large0 > -1")
    for name in found.column_names:
        values = kept = found[name].chunk(0).buffers()[1]
        while kept.parent is not None:
            kept = kept.parent
        assert kept.size <= max(1 << 20, values.size), name


def test_sets_of_columns_that_another_thread_forgets(tmp_path: Path) -> None:
    class Forgetful(dict[object, object]):
        def __setitem__(self, key: object, value: object) -> None:
            pass

    written = table().select([f"real{number}" for number in range(12)])
    snapshot = lance_dataset.write_dataset(written, tmp_path / "t.lance").snapshot
    fragment = snapshot.reader.fragments[0]
    fragment._plain = Forgetful()
    assert fragment.plain_columns(snapshot.manifest.schema.fields) is not None


def test_checked_scans_find_columns_that_differ(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = plain_values._check

    def shifted(*arguments: object) -> None:
        *most, found = arguments
        assert isinstance(found, pa.Array)
        original(*most, pa.concat_arrays([found.slice(1), found.slice(0, 1)]))  # type: ignore[arg-type]

    monkeypatch.setattr(plain_values, "_check", shifted)
    with pytest.raises(lance_dataset.errors.LanceError, match="read together"):
        lance_dataset.dataset(path).to_table()


def test_damage_is_reported_with_its_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged column is read by itself, which tells where the damage is."""
    monkeypatch.delenv("LANCE_CHECK_SCANS")
    path = tmp_path / "t.lance"
    written = table().select([name for name in table().column_names if name.startswith("packed")] + ["id", "real0"])
    written = written.append_column("more", written["id"]).append_column("again", written["real0"])
    lance_dataset.write_dataset(written, str(path))
    file = next((path / "data").iterdir())
    explained = lance_dataset.dataset(str(path)).to_table(columns=[PACKED])
    chunk = np.array(explained[PACKED].combine_chunks()).astype(np.uint32)
    assert len(chunk) == ROWS * FRAGMENTS
    data = bytearray(file.read_bytes())
    from lance_dataset.file.reader import open_metadata
    from lance_dataset.io.local import LocalStore

    metadata = open_metadata(LocalStore().open_input(str(file)))
    index = written.column_names.index(PACKED)
    position, _ = metadata.column(index).pages[0].buffers[1]
    data[position : position + 8] = b"\xff" * 8
    file.write_bytes(bytes(data))
    for run in (lambda ds: ds.to_table(), lambda ds: ds.to_table(filter="id < 1000"), lambda ds: list(ds.to_batches())):
        with pytest.raises(CorruptFileError, match=f"column {index} .'{PACKED}'.*page 0"):
            run(lance_dataset.dataset(str(path)))
