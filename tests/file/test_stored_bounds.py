"""Bounds of values in files: what they say, that other software ignores them, and that damage is found."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any
from zlib import crc32

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError
from lance_dataset.file import stored_bounds
from lance_dataset.file.stored_bounds import parse_bounds

ROWS = 60_000


def table() -> pa.Table:
    rng = np.random.default_rng(2)
    places = np.arange(ROWS)
    floats = places / 7 - 3000
    floats[ROWS // 2 : ROWS // 2 + 50] = np.nan
    floats[-3:] = -0.0
    some = pa.array(rng.random(ROWS) < 0.001)
    columns = {
        "id": pa.array(places),
        "at": pa.array(places * 10**9).cast(pa.timestamp("us", "UTC")),
        "n": pc.if_else(some, None, pa.array(places // 9, pa.uint16())),
        "float": pa.array(floats),
        "price": pa.array([Decimal(int(place) * 10**12) for place in places - 30_000], pa.decimal128(30, 2)),
        "text": pa.array([f"{place // 64:08} and the rest of the text" for place in places]),
        "name": pa.array(["émile"[: place // 9_000] + "\U0010ffff" * (place // 50_000) for place in places]),
        "late": pa.array([None] * 40_000 + [b"\xff" * (place % 30) for place in range(20_000)], pa.large_binary()),
        "none": pa.nulls(ROWS, pa.int32()),
        "random": pa.array(rng.normal(size=ROWS)),
        "list": pa.array([[place] for place in places]),
    }
    return pa.table(columns)


def columns_of(dataset: Any) -> dict[str, Any]:
    schema = dataset._snapshot.scanned_schema
    return {name: dataset._snapshot.reader.fragments[0].column(schema.top_level(name)) for name in schema.names}


@pytest.fixture(scope="module")
def data() -> pa.Table:
    return table()


@pytest.fixture(scope="module", params=["2.1", "2.2", "2.3"])
def dataset(request: pytest.FixtureRequest, data: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("bounds")
    return lance_dataset.write_dataset(data, path, data_storage_version=request.param)


def test_bounds_hold_for_all_values(dataset: Any, data: pa.Table) -> None:
    bounded = {}
    for name, column in columns_of(dataset).items():
        zones = column.zones()
        if zones is None:
            continue
        bounded[name] = len(zones)
        for number, (start, stop) in enumerate(zip(zones.starts[:-1], zones.starts[1:], strict=True)):
            values = data[name].slice(start, stop - start).combine_chunks()
            assert zones.may_be_null[number] == bool(values.null_count)
            valid = values.drop_null()
            assert zones.may_be_valid[number] == bool(len(valid))
            if pa.types.is_floating(valid.type):
                assert zones.may_be_nan[number] == bool(pc.any(pc.is_nan(valid)).as_py())
                valid = valid.filter(pc.invert(pc.is_nan(valid)))
            low, high = zones.minimum[number], zones.maximum[number]
            if low.is_valid:
                assert pc.all(pc.greater_equal(valid, low)).as_py()
            if high.is_valid:
                assert pc.all(pc.less_equal(valid, high)).as_py()
    assert set(bounded) == set(data.column_names) - {"list", "random"}
    assert bounded["none"] == bounded["late"] == -(-ROWS // 8192)
    assert bounded["id"] == bounded["text"] == bounded["price"] == -(-ROWS // 8192)


def test_files_grow_little_and_pylance_reads_them(dataset: Any, data: pa.Table) -> None:
    (path,) = (Path(dataset.uri) / "data").iterdir()
    metadata = columns_of(dataset)["id"]._file
    assert len(metadata.global_buffers) == 2
    assert metadata.global_buffers[1][1] <= path.stat().st_size / 1024
    found = lance.dataset(dataset.uri)
    assert found.to_table(columns=["id", "text", "late"]).equals(data.select(["id", "text", "late"]))
    assert found.count_rows("id < 7000 AND n IS NOT NULL") == dataset.count_rows("id < 7000 AND n IS NOT NULL")


def test_pylance_changes_files_with_bounds(dataset: Any, data: pa.Table, tmp_path: Path) -> None:
    """Rows that it moves to other files leave the bounds behind."""
    for start in (0, 30_000):
        lance_dataset.write_dataset(data.slice(start, 30_000), tmp_path, mode="append" if start else "create")
    peer = lance.dataset(tmp_path)
    peer.optimize.compact_files(target_rows_per_fragment=100_000)
    assert len(peer.get_fragments()) == 1
    for text in ("id < 10000", "text >= '00000800'", "price = 0", "float > 5500", "none IS NULL"):
        ours = lance_dataset.dataset(tmp_path).to_table(filter=text, columns=["id"])
        assert ours.equals(dataset.to_table(filter=text, columns=["id"])), text


def test_small_files_have_none(tmp_path: Path) -> None:
    for rows in (10, 5_000):
        found = lance_dataset.write_dataset(
            pa.table({"a": pa.array(np.zeros(rows))}), tmp_path, mode="overwrite", data_storage_version="2.2"
        )
        assert columns_of(found)["a"].zones() is None
    assert found.count_rows("a = 0") == 5_000


# -- text --------------------------------------------------------------------------------------------------------


def test_bounds_of_texts() -> None:
    rng = random.Random(1)
    characters = ["a", "é", "\ud7ff", "\U0010ffff", "\0", "\x7f", "€"]
    for _ in range(3000):
        text = "".join(rng.choice(characters) for _ in range(rng.randint(0, 12))).encode()
        key = text[:16].ljust(16, b"\0")
        for is_text in (False, True):
            low, high = stored_bounds._text_below(key, is_text), stored_bounds._text_above(key, is_text)
            assert low is not None
            assert low <= text
            if high is not None:
                assert high >= text
                assert high >= text[:16] + b"\xff" * 9 or len(text) < 16
                _ = high.decode() if is_text else high
            assert high is not None or text.startswith("\U0010ffff".encode() * 3)
    assert stored_bounds._text_above(b"a\xffb".ljust(16, b"\0"), True) is None
    for key in (b"\xff" * 16, b"\xc3" * 16):
        assert stored_bounds._text_below(key, True) is None
        assert stored_bounds._text_above(key, True) is None
    assert stored_bounds._text_above(b"\xff" * 16, False) is None


# -- damage ------------------------------------------------------------------------------------------------------


def damaged(tmp_path: Path, change: Any) -> Any:
    """Write a file, change its buffer with bounds, and return the dataset."""
    dataset = lance_dataset.write_dataset(pa.table({"a": np.arange(ROWS)}), tmp_path, data_storage_version="2.2")
    position, size = columns_of(dataset)["a"]._file.global_buffers[1]
    (path,) = (tmp_path / "data").iterdir()
    content = bytearray(path.read_bytes())
    changed = change(content[position : position + size])
    assert len(changed) == size
    content[position : position + size] = changed
    path.write_bytes(content)
    return lance_dataset.dataset(tmp_path)


def with_checksum(buffer: bytes) -> bytes:
    return buffer[:8] + struct.pack("<I", crc32(buffer[12:])) + buffer[12:]


def replaced(at: int, code: str, value: int) -> Any:
    def change(buffer: bytearray) -> bytes:
        struct.pack_into(f"<{code}", buffer, at, value)
        return with_checksum(bytes(buffer))

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda buffer: buffer[:-1] + b"\xee", "checksum"),
        (replaced(12, "I", 2000), "too small for 2000 columns"),
        (replaced(16, "Q", 2**63), "2 zones of 32768 rows"),
        (replaced(16, "Q", ROWS + 9000), "2 zones of 32768 rows"),
        (replaced(24, "I", 7), "other pages of column 7"),
        (replaced(28, "I", 5), "other pages of column 0"),
        (replaced(32, "Q", 0), "zones of 0 rows"),
        (replaced(32, "Q", 8193), "zones of 8193 rows"),
        (replaced(40, "I", 2**32 - 1), "not possible"),
        (replaced(44, "B", 9), "not possible"),
        (replaced(45, "B", 3), "not possible"),
        (replaced(-1, "B", 16), "unknown flags"),
    ],
)
def test_damage_is_ignored_by_scans_and_found_by_validate(tmp_path: Path, change: Any, reason: str) -> None:
    def changed(buffer: bytearray) -> bytes:
        if reason == "unknown flags":
            return with_checksum(bytes(buffer[:-1]) + b"\x10")
        return bytes(change(buffer))

    dataset = damaged(tmp_path, changed)
    assert dataset.count_rows("a < 1000") == 1000
    with pytest.raises(CorruptFileError, match=f"bounds of values .*{reason}"):
        dataset.validate()


@pytest.mark.parametrize(("at", "code", "value"), [(52 + 8, "Q", 2**63 + 40_000), (52 + 16, "Q", 2**63 + 3)])
def test_wrong_bounds_are_found_by_a_look_at_the_values(tmp_path: Path, at: int, code: str, value: int) -> None:
    dataset = damaged(tmp_path, replaced(at, code, value))
    dataset.validate()
    with pytest.raises(CorruptFileError, match=r"'a'.* contradict their bounds"):
        dataset.explain_encodings(deep=True)


def test_right_bounds(dataset: Any) -> None:
    dataset.explain_encodings(deep=True)


def test_fewer_bytes_are_fetched(dataset: Any) -> None:
    read = []
    for use_stats in (True, False):
        fetched = lance_dataset.dataset(dataset.uri, storage_options={"mmap": "false"})
        before = fetched.snapshot.store.statistics.read_bytes
        scanner = fetched.scanner(filter="float < -2900", columns=["float"], use_stats=use_stats)
        assert scanner.to_table().num_rows == 700
        read.append(fetched.snapshot.store.statistics.read_bytes - before)
    assert read[0] < 0.5 * read[1]


def test_bounds_of_another_type_are_ignored(tmp_path: Path) -> None:
    for kind, width in ((0, 8), (2, 8), (3, 16)):

        def change(buffer: bytearray, kind: int = kind) -> bytes:
            buffer[44] = kind
            return with_checksum(bytes(buffer))

        if width == 8:
            dataset = damaged(tmp_path / str(kind), change)
            assert dataset.count_rows("a < 1000") == 1000
            assert dataset.count_rows("a + 0 < 1000") == 1000


def test_random_buffers() -> None:
    rng = random.Random(4)
    for _ in range(2000):
        body = bytearray(rng.randbytes(rng.randint(0, 120)))
        for at in range(4, min(len(body), 40)):
            body[at] = 0 if rng.random() < 0.8 else body[at]
        problem, found = parse_bounds(with_checksum(stored_bounds.MAGIC + bytes(4) + bytes(body)))
        assert problem is None or not found
