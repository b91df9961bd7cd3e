"""Tests of scans of many small fragments, which create no object for each page."""

from __future__ import annotations

import gc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.file.structural.read import leaf
from lance_dataset.scan import selected_values as values

ROWS, FRAGMENTS = 90, 12


def table(seed: int, rows: int = ROWS * FRAGMENTS) -> pa.Table:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 1 << 40, rows)
    null = rng.random(rows) < 0.2
    words = [f"https://example.org/{number % 977}/{number}" for number in numbers.tolist()]
    fewer = pa.array([word[:21] for word in words])
    return pa.table(
        {
            "id": np.arange(rows),
            "number": pa.array(numbers, mask=null),
            "small": pa.array((numbers % 50).astype(np.int8)),
            "flag": pa.array(numbers % 3 == 0, mask=null),
            "real": pa.array(rng.random(rows), mask=null),
            "price": pa.array([Decimal(number % 100_000).scaleb(-2) for number in numbers.tolist()]),
            "word": pa.array(words, mask=null),
            "wide": pa.array(words, pa.large_string()),
            "bytes": pa.array([word.encode()[::-1] for word in words], pa.binary()),
            "fixed": pa.array([word.encode()[-4:].rjust(4) for word in words], pa.binary(4)),
            "kind": fewer,
            "coded": fewer.dictionary_encode(),
            "constant": pa.array([7] * rows),
            "nothing": pa.nulls(rows, pa.int32()),
            "time": pa.array(numbers, pa.timestamp("us")),
            "list": pa.array([[number] * (number % 3) for number in range(rows)], pa.list_(pa.int64())),
            "pair": pa.array([{"a": number, "b": word} for number, word in enumerate(words)]),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(3 * rows)), 3),
        }
    )


def decoded(found: pa.Table) -> pa.Table:
    """Return values instead of dictionaries, which may list them in any order."""
    number = found.schema.get_field_index("coded")
    return found.set_column(number, "coded", found["coded"].cast(pa.string()))


@pytest.fixture(scope="module", params=["2.1", "2.2"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found: Path = tmp_path_factory.mktemp("small") / "table"
    lance.write_dataset(table(3), str(found), max_rows_per_file=ROWS, data_storage_version=request.param)
    lance.dataset(str(found)).delete("id % 17 = 5 or id between 180 and 269")
    return found


@pytest.mark.parametrize(
    "condition",
    ["id % 30 = 7", "id % 4 <> 1", "small < 9 and number is not null", "word like '%/97%'", "id = 500", None],
)
def test_the_reference_finds_the_same(path: Path, condition: str | None) -> None:
    ours, theirs = lance_dataset.dataset(str(path)), lance.dataset(str(path))
    expected = decoded(theirs.to_table(filter=condition))
    for _ in range(2):  # the second time from open files
        assert decoded(ours.to_table(filter=condition)).equals(expected)


def test_whole_pages_are_those_read_in_halves(path: Path) -> None:
    expected = table(3)
    dataset = lance_dataset.dataset(str(path))
    for fragment in dataset.snapshot.reader.fragments:
        first = fragment.fragment.id * ROWS
        for field in dataset.snapshot.reader.manifest.schema.fields:
            column = fragment.column(field)
            whole = column.read(0, ROWS)
            whole.validate(full=True)
            halves = [column.read(0, ROWS // 2), column.read(ROWS // 2, ROWS)]
            assert whole.to_pylist() == pa.chunked_array(halves).to_pylist(), field.name
            assert whole.to_pylist() == expected[field.name].slice(first, ROWS).to_pylist(), field.name


def test_pages_of_many_fragments_are_read_without_an_object_for_each(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unexpected(*_: object) -> None:
        raise AssertionError("a page was opened")

    monkeypatch.setattr(leaf, "_opened", unexpected)
    columns = ["id", "number", "flag", "real"]
    dataset = lance_dataset.dataset(str(path), session=lance_dataset.Session())
    assert dataset.to_table(columns).num_rows == dataset.count_rows()
    monkeypatch.setattr(values, "_taken", unexpected)
    found = dataset.to_table(columns, filter="id % 30 = 7")
    assert found.num_rows == dataset.count_rows("id % 30 = 7")


def test_texts_with_small_dictionaries_are_read_without_an_object_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 3000
    names = pa.array([None if row % 5 == 2 else f"name {row % 7}" for row in range(rows)])
    equal = pa.array([f"{row % 9}" for row in range(rows)], pa.large_string())
    content = pa.table({"names": names, "equal": equal, "bytes": names.cast(pa.binary())})
    lance.write_dataset(content, str(tmp_path), max_rows_per_file=500, data_storage_version="2.1")
    dataset = lance_dataset.dataset(str(tmp_path), session=lance_dataset.Session())
    expected = dataset.to_table(filter="names is null or names is not null")

    opened: list[object] = []
    open_page = leaf._opened

    def counted(*arguments: Any) -> Any:
        opened.append(arguments)
        return open_page(*arguments)

    fresh = lance_dataset.dataset(str(tmp_path), session=lance_dataset.Session())
    monkeypatch.setattr(leaf, "_opened", counted)
    found = fresh.to_table()
    assert len(opened) <= 2 * content.num_columns  # pages of one fragment, from which sizes are estimated
    assert found.equals(expected)
    assert found.combine_chunks().equals(content.combine_chunks())


def test_an_open_column_is_few_objects_for_the_collector(tmp_path: Path) -> None:
    columns, rows = 12, 5000
    content = pa.table({f"c{number}": np.arange(rows) * number for number in range(1, columns + 1)})
    lance.write_dataset(content, str(tmp_path), max_rows_per_file=50, data_storage_version="2.1")
    actions: list[Callable[[lance_dataset.LanceDataset], object]] = [
        lambda dataset: dataset.to_table(),
        lambda dataset: dataset.take(list(range(0, rows, 50))),
    ]
    for action in actions:
        dataset = lance_dataset.dataset(str(tmp_path), session=lance_dataset.Session())
        gc.collect()
        before = len(gc.get_objects())
        action(dataset)
        gc.collect()
        assert len(gc.get_objects()) - before < rows // 50 * (25 + 5 * columns)
