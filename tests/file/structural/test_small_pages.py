"""Tests of small pages that one kernel chooses: the same bytes as those of all candidates, and pylance reads them."""

from __future__ import annotations

from pathlib import Path

import lance as reference
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_dataset as ours
from lance_dataset.file.container import stored_encoding
from lance_dataset.file.structural.write import encoder
from lance_dataset.file.structural.write.words import SmallPage
from lance_dataset.file.v2_1.messages import to_page_layout
from lance_dataset.types.schema import Schema

VERSIONS = ["2.1", "2.2"]
TYPES: list[pa.DataType] = [
    *(pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.date32(), pa.timestamp("us", "UTC"), pa.binary(4), pa.duration("s")),
]


def words(kind: str, count: int, width: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "noise":
        return np.frombuffer(rng.bytes(count * width), f"<u{width}")
    if kind == "small":
        return rng.integers(0, int(2 ** rng.uniform(1, 8 * width - 1)), count).astype(f"<u{width}")
    if kind == "few":
        return rng.choice(rng.integers(0, 2**31, max(1, int(count * rng.uniform(0, 1)))), count).astype(f"<u{width}")
    if kind == "runs":
        return np.resize(np.repeat(rng.integers(0, 99, count // 3 + 1), rng.integers(1, 9)), count).astype(f"<u{width}")
    return np.arange(count).astype(f"<u{width}") if kind == "rising" else np.full(count, 7, f"<u{width}")


def array_of(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values.tobytes())])


def pages(array: pa.Array, version: str) -> list[tuple[int, int, bytes, list[bytes], int]]:
    field = Schema.from_arrow(pa.schema([("a", array.type)])).fields[0]
    written = encoder.StructuralEncoder(field, 3, version, lambda _: (0, 0), to_page_layout)
    return [
        (
            page.column,
            page.length,
            page.encoding if isinstance(page.encoding, bytes) else stored_encoding(page.encoding),
            [b"".join(bytes(memoryview(part)) for part in parts) for parts in page.buffers],
            page.priority,
        )
        for half in (array, array.slice(len(array) // 2))
        for page in written.encode([half])
    ]


@given(
    st.sampled_from(["noise", "small", "few", "runs", "rising", "equal"]),
    st.sampled_from([1, 2, 99, 100, 101, 1000, 1024, 1025, 2048, 5000, 40_000]),
    st.sampled_from(TYPES),
    st.sampled_from(VERSIONS),
    st.integers(0, 2**32 - 1),
)
def test_the_choice_is_that_of_all_candidates(
    kind: str, count: int, arrow_type: pa.DataType, version: str, seed: int
) -> None:
    array = array_of(words(kind, count + seed % 3, arrow_type.byte_width, seed), arrow_type).slice(seed % 3)
    chosen = pages(array, version)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "small_page", lambda *_: None)
        assert pages(array, version) == chosen


def test_most_columns_are_chosen_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[SmallPage | None] = []
    small_page = encoder.small_page
    monkeypatch.setattr(encoder, "small_page", lambda *given: found.append(small_page(*given)) or found[-1])
    for kind in ("noise", "small"):
        pages(array_of(words(kind, 5000, 4, 1), pa.int32()), "2.2")
    assert len(found) == 4
    assert all(found)


@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_wide_tables(tmp_path: Path, version: str) -> None:
    kinds = ["noise", "small", "few", "runs", "rising", "equal"]
    arrays = [
        array_of(words(kinds[number % len(kinds)], 3000, kind.byte_width, number), kind)
        for number, kind in enumerate([pa.int8(), pa.uint16(), pa.int32(), pa.float32(), pa.int64(), pa.date32()] * 7)
    ]
    arrays.extend(pa.array(np.arange(3000), mask=np.arange(3000) % (number + 2) == 0) for number in range(6))
    table = pa.table(arrays, names=[f"c{number}" for number in range(len(arrays))])
    for rows in (1700, 0):
        mode = "overwrite" if rows else "append"
        ours.write_dataset(table.slice(rows), tmp_path / "t", mode=mode, data_storage_version=version)
    whole = pa.concat_tables([table.slice(1700), table])
    assert reference.dataset(tmp_path / "t").to_table().equals(whole)
    assert ours.dataset(tmp_path / "t").to_table().equals(whole)
