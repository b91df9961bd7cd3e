"""Conditions on stored values: those computed for the entries of dictionaries, and those that ask for nulls alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.file.structural.read import miniblock
from lance_dataset.scan import costs

ROWS = 12_000


def nullable(values: Any, kind: pa.DataType | None = None, share: float = 0.2) -> pa.Array:
    """Return the values with some nulls."""
    return pa.array(values, kind, mask=np.random.default_rng(9).random(ROWS) < share)


def table() -> pa.Table:
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 40, ROWS)
    words = np.array([f"word {code}" for code in range(3_000)])
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=2 * ROWS).astype(np.float32)), 2)
    missing = pa.array(rng.random(ROWS) < 0.3)
    required = pa.field("required", pa.string(), nullable=False)
    columns = {
        "id": pa.array(range(ROWS)),
        "mode": pa.array(words[codes % 7]),
        "mode_n": nullable(words[codes % 7]),
        "many": nullable(words[rng.integers(0, 3_000, ROWS)]),
        "price": pa.array([Decimal(int(code)) / 4 for code in codes], pa.decimal128(12, 2)),
        "day": pa.array(codes.astype(np.int32)).cast(pa.date32()),
        "number": nullable(codes * 10**12),
        "word": pa.array(words[codes % 5]).dictionary_encode(),
        "word_n": nullable(words[codes % 5]).dictionary_encode(),
        "small": nullable(words[codes % 5]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
        "note": nullable([f"note {number} of many" for number in rng.integers(0, 10**9, ROWS)]),
        "float": nullable(rng.normal(size=ROWS)),
        "flag": nullable(codes % 3 == 0),
        "vector": pc.if_else(missing, pa.scalar(None, vectors.type), vectors),
        "list": nullable([[int(code)] * (code % 3) if code % 4 else None for code in codes], pa.list_(pa.int32())),
        "struct": pa.StructArray.from_arrays([nullable(codes), pa.array(codes)], ["x", "y"], mask=missing),
        "nothing": pa.nulls(ROWS, pa.string()),
        "same": pa.array(["one"] * ROWS),
        "same_n": nullable(["one"] * ROWS),
        "number_as_text": pa.array(["no number" if row == 17 else str(row % 9) for row in range(ROWS)]),
    }
    return pa.table(columns).append_column(required, pa.array(words[codes % 3]))


FILTERS = [
    "mode = 'word 3'",
    "mode IN ('word 1', 'word 6', 'nowhere')",
    "mode = 'nowhere'",
    "mode != 'nowhere'",
    "mode LIKE '%3' OR mode IS NULL",
    "upper(mode) = 'WORD 2'",
    "mode_n = 'word 3'",
    "mode_n != 'word 3'",
    "NOT (mode_n = 'word 3')",
    "mode_n IS DISTINCT FROM 'word 3'",
    "coalesce(mode_n, 'word 3') = 'word 3'",
    "many LIKE '%7%'",
    "many > 'word 15'",
    "price > 3.0 AND price <= 8.25",
    "price = 100",
    "day < date '1970-01-12' OR day = date '1970-01-20'",
    "number < 12000000000000 OR number IS NULL",
    "number % 3 = 1",
    "word = 'word 2'",
    "word_n = 'word 2' OR word_n IS NULL",
    "small IN ('word 1', 'word 4')",
    "required = 'word 1'",
    "same = 'one'",
    "same = 'two'",
    "same_n = 'one'",
    "same_n IS DISTINCT FROM 'one'",
    "nothing = 'x'",
    "nothing IS NULL",
    *(
        f"{name} IS NULL"
        for name in ("id", "mode", "mode_n", "many", "note", "float", "flag", "vector", "list", "struct")
    ),
    *(f"{name} IS NOT NULL" for name in ("required", "word_n", "note", "same_n", "vector", "nothing")),
    "NOT (note IS NULL) OR false",
    "(note IS NULL) IS TRUE AND note IS NOT NULL",
    "struct.x IS NULL",
    "mode = 'word 3' AND price > 2 AND note IS NOT NULL AND id % 2 = 0",
    "mode_n = 'word 3' AND many LIKE '%1%' AND float > 0",
    "id < 100 AND mode = 'word 1'",
    "CAST(number_as_text AS INT) > 5",
    "random() < 2 AND mode = 'word 3'",
]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Search small fragments too, and compare what is found with the decoded values; return the kernels used."""
    monkeypatch.setattr(costs, "_LEAST_SEARCHED", 1)
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")
    used: Counter[str] = Counter()

    def counted(name: str) -> Callable[..., None]:
        kernel = getattr(miniblock.intervals, name)

        def run(*arguments: Any, **options: Any) -> None:
            used[name] += 1
            kernel(*arguments, **options)

        return run

    for name in ("search", "search_indices", "search_nulls"):
        monkeypatch.setattr(miniblock.intervals, name, counted(name))
    return used


@pytest.fixture(scope="module", params=["2.1", "2.2", "2.2 in small pages"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    is_small = "small" in request.param
    options = {"max_page_bytes": 9_000} if is_small else {}
    dataset = lance_dataset.write_dataset(
        table().slice(0, 3_000 if is_small else ROWS),
        tmp_path_factory.mktemp("entries"),
        data_storage_version=request.param[:3],
        max_rows_per_file=2_000 if is_small else 7_000,
        storage_options={"local_fsync": "false"},
        **options,
    )
    dataset.delete("id % 11 = 3 OR id = 17")  # and with it the only text that does not parse as a number
    return dataset


def test_filters(stored: Any, checked: Counter[str]) -> None:
    rows = stored.to_table()
    for text in FILTERS:
        compiled = compile_filter(text, rows.schema)
        assert compiled is not None
        expected = rows.filter(compiled.mask(rows))
        assert stored.count_rows(filter=text) == expected.num_rows, text
        assert stored.to_table(filter=text).equals(expected), text
        found = stored.to_table(filter=text, columns=["id", "mode_n"], offset=10, limit=500)
        assert found.equals(expected.select(["id", "mode_n"]).slice(10, 500)), text
    assert checked["search_indices"]
    assert checked["search_nulls"]


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("mode = 'word 3'", "search_indices"),
        ("mode LIKE '%3'", "search_indices"),
        ("mode_n = 'nowhere'", "search_indices"),
        ("price > 3.0", "search_indices"),
        ("word_n != 'word 1'", "search_indices"),
        ("small = 'word 1'", "search_indices"),
        ("note IS NULL", "search_nulls"),
        ("mode_n IS NOT NULL", "search_nulls"),
        ("vector IS NULL", "search_nulls"),
        ("id < 100", "search"),
    ],
)
def test_what_is_searched(text: str, kernel: str, tmp_path: Path, checked: Counter[str]) -> None:
    dataset = lance_dataset.write_dataset(table(), tmp_path, data_storage_version="2.2")
    dataset.count_rows(filter=text)
    assert dict(checked) == {kernel: 1}


def test_columns_without_nulls_are_not_looked_at(tmp_path: Path, checked: Counter[str]) -> None:
    dataset = lance_dataset.write_dataset(table(), tmp_path, data_storage_version="2.2")
    assert [dataset.count_rows(filter=f"mode IS {word}NULL") for word in ("", "NOT ")] == [0, ROWS]
    assert not checked


def test_pages_of_several_kinds(tmp_path: Path, checked: Counter[str]) -> None:
    """Pages with a dictionary, plain ones, constants and nulls in the same column."""
    kinds = [["a", "b", "c"] * 20_000, [f"text {n * 2654435761 % 10**9}" for n in range(20_000)], ["b"] * 40_000]
    values = [*kinds[0], *kinds[1], *kinds[2], *[None] * 40_000, *kinds[0]]
    data = pa.table({"id": range(len(values)), "text": pa.array(values)})
    dataset = lance_dataset.write_dataset(data, tmp_path, data_storage_version="2.2", max_page_bytes=100_000)
    column = dataset._snapshot.reader.fragments[0].column(dataset._snapshot.scanned_schema.top_level("text"))
    assert len({(type(page.layout), bool(getattr(page.layout, "dictionary", None))) for page in column._pages}) == 3
    for text in ("text = 'b'", "text IN ('a', 'text 7')", "text IS NULL", "text IS NOT NULL", "text LIKE '%9'"):
        compiled = compile_filter(text, data.schema)
        assert compiled is not None
        assert dataset.to_table(filter=text).equals(data.filter(compiled.mask(data))), text
        assert not checked["search_indices"]  # plain texts are read to be tested, and then all are
        few = f"id < 55000 AND {text}"
        expected = data.slice(0, 55_000).filter(compiled.mask(data.slice(0, 55_000)))
        assert dataset.to_table(filter=few).equals(expected), few
        checked.pop("search_indices", None)  # bounds of id leave pages with a dictionary only


def test_a_condition_may_fail_for_an_entry_of_deleted_rows(stored: Any, checked: Counter[str]) -> None:
    assert stored.count_rows(filter="CAST(number_as_text AS INT) > 5") > 0
    with pytest.raises(pa.ArrowInvalid):
        stored.checkout_version(1).count_rows(filter="CAST(number_as_text AS INT) > 5")


@pytest.mark.parametrize(
    "text", ["mode = 'word 3'", "mode = 'nowhere'", "mode LIKE 'word%'", "mode IS DISTINCT FROM 'x'"]
)
def test_indices_without_an_entry_are_damage(text: str, tmp_path: Path) -> None:
    """They are found as they are if the values are decoded, whatever the condition says of the entries."""
    rows = 50_000
    modes = pa.array(np.random.default_rng(2).integers(0, 7, rows)).cast(pa.string())
    data = pa.table({"mode": pc.binary_join_element_wise("word", modes, " ")})
    dataset = lance_dataset.write_dataset(data, tmp_path, data_storage_version="2.2")
    column = dataset._snapshot.reader.fragments[0].column(dataset._snapshot.scanned_schema.top_level("mode"))
    page = column._open(0)._page
    position, _ = column._pages[0].buffers[1]
    (path,) = (tmp_path / "data").iterdir()
    content = bytearray(path.read_bytes())
    start = position + page._table.starts[3]
    content[start + 40 : start + 60] = b"\xff" * 20  # indices of 3 bits that are 7
    path.write_bytes(bytes(content))
    with pytest.raises(CorruptFileError, match="index 7 is outside 7 values") as plain:
        lance_dataset.dataset(tmp_path).to_table()
    damaged = lance_dataset.dataset(tmp_path)
    for _ in range(2):
        with pytest.raises(CorruptFileError, match=r"'mode'\).*chunk 3.*dictionary") as found:
            damaged.count_rows(filter=text)
    assert str(found.value).partition(":")[0] == str(plain.value).partition(":")[0]


def test_windows_smaller_than_a_dictionary_are_read(tmp_path: Path, checked: Counter[str]) -> None:
    words = pa.array([f"word {n % 9_000}" for n in range(60_000)])
    dataset = lance_dataset.write_dataset(pa.table({"w": words}), tmp_path, data_storage_version="2.2")
    assert dataset.scanner(filter="w LIKE '%7'", limit=5, batch_size=10).to_table().num_rows == 5
    assert not checked["search_indices"]
    assert dataset.count_rows(filter="w LIKE '%7'") == 6_000
