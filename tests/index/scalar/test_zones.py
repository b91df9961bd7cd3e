"""Zone maps and Bloom-filter indices: files are those of the reference, and answers those of the scan."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa
import pytest
from support.tables.zone_table import check_answers, content_of, create_zones, is_used, rows_of, segments_of

import lance_dataset
from lance_dataset import LanceDataset
from lance_dataset.index.scalar.bloom_filter_training import filter_size
from lance_dataset.indices import IndexConfig

_FIXTURES = Path(__file__).parents[2] / "fixtures" / "indices"
_FILES = {"zonemap": "zonemap.lance", "bloomfilter": "bloomfilter.lance"}
_ROWS = 700
_NAN = float("nan")
_NUMBERS = np.random.default_rng(3).permutation(_ROWS) % 90


def _array(make: Any, kind: pa.DataType) -> pa.Array:
    return pa.array([None if number % 11 == 3 else make(int(number)) for number in _NUMBERS], kind)


def _integers(kind: pa.DataType, integers: pa.DataType | None = None) -> pa.Array:
    return _array(lambda n: n % 50, integers or pa.int64()).view(kind)


_FLOATS = [_NAN, float("-inf"), float("inf"), -0.0, 0.0, 1e30]
#: A column of each type, with filters.
_TYPES: dict[str, tuple[pa.Array, tuple[str, ...]]] = {
    "bool": (_array(lambda n: n % 30 == 0, pa.bool_()), ("c", "NOT c", "c IS TRUE")),
    "int8": (_array(lambda n: n - 40, pa.int8()), ("c = 5", "c < -20", "c IN (1, 2, 3, 4, 5)", "c BETWEEN 4 AND 6")),
    "uint32": (_array(lambda n: n << 25, pa.uint32()), ("c = 33554432", "c >= 2000000000")),
    "int64": (_array(lambda n: (n - 40) << 56, pa.int64()), ("c = 0", "c != 0", "c > 0", "c IN (0, 1, 2, 3, 4, 5)")),
    "uint64": (_array(lambda n: (1 << 63) + n, pa.uint64()), ("c > 9223372036854775820", "c = 9223372036854775808")),
    "half": (pa.array(np.array(_NUMBERS / 4, np.float16)), ("c > 20", "c <= 0.5")),
    "float": (
        _array(lambda n: _FLOATS[n % 9] if n % 9 < 6 else n / 4, pa.float32()),
        ("c = 0.0", "c = -0.0", "c < 0", "c >= 0.0", "c IN (2.0, 0.0)"),
    ),
    "double": (
        _array(lambda n: _FLOATS[n % 9] if n % 9 < 6 else n / 4, pa.float64()),
        ("c = 0.0", "c <= 0.0", "c > 3", "c = 2.0"),
    ),
    "string": (
        _array(lambda n: f"é{n}", pa.string()),
        ("c = 'é3'", "c > 'é7'", "c LIKE 'é1%'", "starts_with(c, 'é2')"),
    ),
    "large_string": (_array(lambda n: "x" * (n % 50), pa.large_string()), ("c = 'xxx'", "c = ''", "c IN ('x', 'xx')")),
    "binary": (_array(lambda n: bytes([n, 255 - n]), pa.binary()), ("c = X'05FA'", "c > X'40'")),
    "large_binary": (_array(lambda n: bytes([n, n]), pa.large_binary()), ("c = X'0505'",)),
    "decimal128": (_array(lambda n: n - 40, pa.decimal128(8, 2)), ("c = 2", "c < -1")),
    "decimal256": (_array(lambda n: n - 40, pa.decimal256(50, 2)), ("c IS NOT NULL",)),
    "date32": (_integers(pa.date32(), pa.int32()), ("c > date '1970-01-20'", "c = date '1970-01-03'")),
    "date64": (_array(lambda n: n * 86_400_000, pa.int64()).view(pa.date64()), ("c IS NULL",)),
    "time32": (_integers(pa.time32("s"), pa.int32()), ("c IS NULL",)),
    "time64": (_integers(pa.time64("us")), ("c IS NULL",)),
    "timestamp": (_integers(pa.timestamp("s")), ("c >= timestamp '1970-01-01 00:00:30'",)),
    "zoned": (_integers(pa.timestamp("ns", "Asia/Tokyo")), ("c IS NULL",)),
    "duration": (_integers(pa.duration("ms")), ("c IS NULL",)),
}
_NOT_HASHABLE = {"bool", "half", "decimal128", "decimal256", "duration"}
_PARAMETERS = {"zonemap": {"rows_per_zone": 50}, "bloomfilter": {"number_of_items": 50, "probability": 0.02}}
_CASES = [(name, kind) for name in _TYPES for kind in _FILES if kind == "zonemap" or name not in _NOT_HASHABLE]


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


def _written(path: Path, column: pa.Array, *, stable: bool = False) -> LanceDataset:
    table = pa.table({"c": column, "n": np.arange(len(column))})
    dataset = lance_dataset.write_dataset(table, path, max_rows_per_file=300, enable_stable_row_ids=stable)
    dataset.delete("n % 13 = 4")
    return dataset


@pytest.mark.parametrize(("name", "kind"), _CASES)
def test_each_type_both_ways(tmp_path: Path, name: str, kind: str) -> None:
    column, filters = _TYPES[name]
    for folder, module in (("ours", lance_dataset), ("theirs", lance)):
        _written(tmp_path / folder, column, stable=len(name) % 2 == 0)
        create_zones(module, tmp_path / folder, kind, _PARAMETERS[kind])
        check_answers(tmp_path / folder, (*filters, "c IS NULL", "c IS NOT NULL"))
        assert is_used(lance.dataset(tmp_path / folder), "c IS NULL")
        if name != "half":  # conditions on it are computed in another type
            assert is_used(lance_dataset.dataset(tmp_path / folder), filters[0] if kind == "zonemap" else "c IS NULL")
    assert content_of(tmp_path / "ours") == content_of(tmp_path / "theirs")
    sizes = [
        segment.metadata.files[0].size_bytes for each in ("ours", "theirs") for segment in segments_of(tmp_path / each)
    ]
    assert sizes[0] <= sizes[1] * 1.02


@pytest.mark.parametrize("kind", _FILES)
@pytest.mark.parametrize("rows", [1, 7, 40_000, 1 << 40])
def test_zones_of_any_size(tmp_path: Path, kind: str, rows: int) -> None:
    """Zones may have parts in several batches, and fragments end them."""
    count = 200 if rows < 10 else 150_000
    numbers = np.random.default_rng(rows).integers(0, 10**6, count)
    column = pa.array(numbers, mask=numbers % 9 == 0)
    table = pa.table(
        {"c": column, "f": column.cast(pa.float64()), "s": column.cast(pa.string()), "n": np.arange(count)}
    )
    parameters = {"rows_per_zone": rows} if kind == "zonemap" else {"number_of_items": rows, "probability": 0.9}
    if kind == "bloomfilter" and rows > count:
        parameters["number_of_items"] = 1 << 17  # larger ones take 128 MiB
    for folder, module in (("ours", lance_dataset), ("theirs", lance)):
        dataset = lance_dataset.write_dataset(table, tmp_path / folder, max_rows_per_file=count * 3 // 5)
        dataset.delete("n % 17 = 3")
        for each in ("c", "f", "s"):
            create_zones(module, tmp_path / folder, kind, parameters, each)
        check_answers(
            tmp_path / folder, ("c = 500", f"c IN ({numbers[1]}, {numbers[9]})", "c IS NULL", "c IS NOT NULL")
        )
    assert content_of(tmp_path / "ours") == content_of(tmp_path / "theirs")


def test_nans_in_zones(tmp_path: Path) -> None:
    """The reference loses rows of zones with nothing but NaNs; this package does not."""
    values = [1.0, _NAN, -_NAN, None, _NAN, _NAN, -_NAN, 1.0, None, None, -_NAN, -_NAN, float("inf"), 0.0, -0.0, 2.0]
    for folder, module in (("ours", lance_dataset), ("theirs", lance)):
        table = pa.table({"c": pa.array(values), "n": np.arange(len(values))})
        lance_dataset.write_dataset(table, tmp_path / folder)
        create_zones(module, tmp_path / folder, "zonemap", {"rows_per_zone": 2})
        dataset = lance_dataset.dataset(tmp_path / folder)
        for each in ("c > 0.0", "c < 0.0", "c >= 1", "c = 0.0", "c != 1", "c IS NULL", "c IS NOT NULL", "NOT (c > 1)"):
            assert is_used(dataset, each)
            assert rows_of(dataset, each) == rows_of(dataset, each, use_scalar_index=False)
    assert content_of(tmp_path / "ours") == content_of(tmp_path / "theirs")


def test_which_zones_are_read(tmp_path: Path) -> None:
    """Of ascending values, ranges need a few zones; answers about nulls are exact."""
    numbers = np.arange(10_000)
    table = pa.table({"c": pa.array(numbers, mask=numbers % 100 == 0), "n": numbers})
    dataset = lance_dataset.write_dataset(table, tmp_path, max_rows_per_file=5000)
    create_zones(lance_dataset, tmp_path, "zonemap", {"rows_per_zone": 100})
    expected = {
        "c = 777": 100,
        "c BETWEEN 198 AND 202": 200,
        "c > 9949": 100,
        "c >= 9899": 200,
        "c > 9899": 100,
        "c < 201": 200,
        "c IN (1, 5001, 5002, 9999, 20000)": 300,
        "c = 20000": 0,
        "c IS NULL": 100,
        "c < 3 OR c IS NULL": 199,
        "c IS NOT NULL": 9900,
        "c IS NULL OR c IS NOT NULL": 10_000,
        "c > 5 AND c < 3": 0,
    }
    dataset = lance_dataset.dataset(tmp_path)
    for each, rows in expected.items():
        plan = dataset.scanner(filter=each).explain_plan()
        assert f", {rows:,} rows" in plan, (each, plan)
        assert rows_of(dataset, each) == rows_of(dataset, each, use_scalar_index=False)


def test_which_filters_have_a_value(tmp_path: Path) -> None:
    table = pa.table({"c": np.arange(10_000) * 7919 % 10_000, "n": np.arange(10_000)})
    dataset = lance_dataset.write_dataset(table, tmp_path, max_rows_per_file=5000)
    create_zones(lance_dataset, tmp_path, "bloomfilter", {"number_of_items": 100, "probability": 1e-6})
    dataset = lance_dataset.dataset(tmp_path)
    for each, rows in {"c = 7919": 100, "c IN (0, 7919)": 100, "c IN (0, 1)": 200, "c = -1": 0, "c IS NULL": 0}.items():
        assert f", {rows:,} rows" in dataset.scanner(filter=each).explain_plan()
        assert rows_of(dataset, each) == rows_of(dataset, each, use_scalar_index=False)
    for each in ("c > 7", "c != 7", "c BETWEEN 5 AND 500"):
        assert not is_used(dataset, each)


@pytest.mark.parametrize("release", ["1.0.0", "4.0.0"])
def test_indices_of_old_releases(tmp_path: Path, release: str) -> None:
    """Files that do not tell which rows are null find zones with nulls; an optimization adds the null rows."""
    path = tmp_path / "t"
    shutil.copytree(_FIXTURES / f"zones-{release}", path)
    filters = [
        *("v = 12", "v < 5", "v IN (3, 6, 49)", "v IS NULL", "v IS NOT NULL", "v > 20 OR v IS NULL"),
        *("f = 0.0", "f < 0.0", "f > 38", "f = 1.25", "f IS NULL", "f IS NOT NULL", "f != 1"),
        *("s = 'é3'", "s > 'é8'", "s IS NULL", "s LIKE 'é2%'", "s IN ('é1', 'x')"),
    ]
    names = [each.name for each in lance_dataset.dataset(path).describe_indices()]
    assert len(names) == 6
    for kept in ("zone", "bloom"):
        shutil.rmtree(path)
        shutil.copytree(_FIXTURES / f"zones-{release}", path)
        dataset = lance_dataset.dataset(path)
        for name in names:
            if not name.endswith(kept):
                dataset.drop_index(name)
        for _ in range(2):
            for each in filters:
                assert is_used(dataset, each) or kept == "bloom"
                expected = dataset.scanner(filter=each, use_scalar_index=False).count_rows()
                assert dataset.scanner(filter=each).count_rows() == expected
            dataset.insert(pa.table({"v": [12, None], "f": [_NAN, None], "s": ["é3", None]}))
            dataset.optimize.optimize_indices()
            dataset = lance_dataset.dataset(path)
        assert all(each[4] is not None for each in content_of(path))


_BAD: list[tuple[str, str, dict[str, Any], type[Exception]]] = [
    ("zonemap", "i", {"rows_per_zone": 0}, ValueError),
    ("zonemap", "i", {"rows_per_zone": -1}, RuntimeError),
    ("zonemap", "i", {"rows_per_zone": "x"}, RuntimeError),
    ("zonemap", "i", {"rows_per_zone": 1.5}, RuntimeError),
    ("zonemap", "i", {"rows_per_zone": True}, RuntimeError),
    ("zonemap", "i", {"rows_per_zone": 1 << 64}, RuntimeError),
    ("zonemap", "i", {"use_seeds": 1}, RuntimeError),
    ("bloomfilter", "i", {"number_of_items": 0}, ValueError),
    ("bloomfilter", "i", {"number_of_items": "x"}, RuntimeError),
    ("bloomfilter", "i", {"probability": 1}, ValueError),
    ("bloomfilter", "i", {"probability": -0.5}, ValueError),
    ("bloomfilter", "i", {"probability": "x"}, RuntimeError),
    ("bloomfilter", "i", {"probability": _NAN}, RuntimeError),
    ("bloomfilter", "b", {}, ValueError),
    ("bloomfilter", "l", {}, ValueError),
    ("bloomfilter", "d", {}, ValueError),
    ("bloomfilter", "nothing", {}, ValueError),
    ("bloomfilter", "zz", {}, KeyError),
]


@pytest.mark.parametrize("case", _BAD, ids=str)
def test_bad_input_gets_the_errors_of_the_reference(tmp_path: Path, case: tuple[str, str, dict[str, Any], Any]) -> None:
    kind, column, parameters, error = case
    table = pa.table(
        {"i": [1], "b": [True], "l": [[1]], "d": pa.array(["a"]).dictionary_encode(), "nothing": pa.nulls(1)}
    )
    lance_dataset.write_dataset(table, tmp_path)
    for module in (lance, lance_dataset):
        with pytest.raises(error):
            create_zones(module, tmp_path, kind, parameters, column)
    assert not list(tmp_path.glob("_indices/*"))
    assert lance_dataset.dataset(tmp_path).version == 1


def test_zone_maps_of_useless_types_are_refused(tmp_path: Path) -> None:
    table = pa.table({"l": [[1]], "st": [{"x": 1}], "nothing": pa.nulls(1), "d": pa.array(["a"]).dictionary_encode()})
    dataset = lance_dataset.write_dataset(table, tmp_path)
    for column in table.column_names:
        with pytest.raises(TypeError, match=column):
            dataset.create_scalar_index(column, "ZONEMAP")
    lance.dataset(tmp_path).create_scalar_index("l", "ZONEMAP")
    assert lance_dataset.dataset(tmp_path).count_rows("l IS NULL") == 0


@pytest.mark.parametrize("kind", _FILES)
def test_parameters_are_shown(tmp_path: Path, kind: str) -> None:
    parameters = {"rows_per_zone": 7, "use_seeds": True, "number_of_items": 7, "probability": 1e-5, "other": 1}
    for folder, module in (("ours", lance_dataset), ("theirs", lance)):
        _written(tmp_path / folder, _TYPES["int8"][0])
        create_zones(module, tmp_path / folder, kind, parameters)
    assert content_of(tmp_path / "ours") == content_of(tmp_path / "theirs")
    found, expected = (
        module.dataset(tmp_path / "ours").stats.index_stats("c_idx") for module in (lance_dataset, lance)
    )
    assert found["indices"] == expected["indices"]


@pytest.mark.parametrize(
    ("items", "probability", "size"),
    [
        (8192, 0.00057, 1 << 15),
        (300, 0.1, 256),
        (300, 1e-10, 1 << 15),
        (3, 0.01, 32),
        (1 << 63, 0.5, 1 << 27),
        (1, 0, 1 << 27),
    ],
)
def test_sizes_of_filters(items: int, probability: float, size: int) -> None:
    assert filter_size(items, probability) == size


@pytest.mark.parametrize("kind", _FILES)
def test_empty_and_untrained_indices(tmp_path: Path, kind: str) -> None:
    column, filters = _TYPES["int64"]
    for folder, module in (("ours", lance_dataset), ("theirs", lance)):
        table = pa.table({"c": column, "n": np.arange(len(column))})
        lance_dataset.write_dataset(table.slice(0, 0), tmp_path / folder)
        create_zones(module, tmp_path / folder, kind, _PARAMETERS[kind])
        check_answers(tmp_path / folder, filters)
        lance_dataset.dataset(tmp_path / folder).insert(table)
    assert content_of(tmp_path / "ours") == content_of(tmp_path / "theirs")
    lance.dataset(tmp_path / "ours").optimize.optimize_indices()
    lance_dataset.dataset(tmp_path / "theirs").optimize.optimize_indices()
    assert content_of(tmp_path / "ours") == content_of(tmp_path / "theirs")
    check_answers(tmp_path / "ours", (*filters, "c IS NULL"))


def test_random_conditions(tmp_path: Path) -> None:
    random = np.random.default_rng(17)
    count = 3000
    floats = np.round(np.cumsum(random.normal(size=count)), 1)
    floats[random.random(count) < 0.05] = _NAN
    words = [f"w{n:03}" for n in random.integers(0, 400, count)]
    table = pa.table(
        {
            "f": pa.array(floats, mask=random.random(count) < 0.1),
            "s": pa.array(words, mask=np.arange(count) % 500 < 60),
            "i": pa.array(np.arange(count) // 7 * 3, mask=random.random(count) < 0.02),
            "n": np.arange(count),
        }
    )
    dataset = lance_dataset.write_dataset(table, tmp_path, max_rows_per_file=1100)
    dataset.delete("n % 97 < 9")
    for column, kind in (
        ("f", "zonemap"),
        ("s", "zonemap"),
        ("i", "zonemap"),
        ("i", "bloomfilter"),
        ("s", "bloomfilter"),
    ):
        config = IndexConfig(kind, {"rows_per_zone": 60, "number_of_items": 70, "probability": 0.05})
        dataset.create_scalar_index(column, config, name=f"{column}_{kind}")

    def condition(depth: int) -> str:
        if depth and random.random() < 0.6:
            joined = f" {random.choice(['AND', 'OR'])} ".join(condition(depth - 1) for _ in range(2))
            return f"{random.choice(['', 'NOT '])}({joined})"
        operator, number, word = (
            random.choice(["=", "<", ">=", "!=", ">"]),
            random.integers(0, 1300),
            random.choice(words),
        )
        return str(
            random.choice(
                [
                    f"i {operator} {number}",
                    f"i BETWEEN {number} AND {number + 20}",
                    f"i IN ({number}, {number + 1}, {number + 9}, 4)",
                    f"f {operator} {random.choice(floats[:40])}".replace("nan", "0.0"),
                    f"s {operator} '{word}'",
                    f"s LIKE '{word[:3]}%'",
                    f"{random.choice(['f', 's', 'i'])} IS {random.choice(['', 'NOT '])}NULL",
                    f"n % 7 = {number % 7}",
                ]
            )
        )

    for _ in range(60):
        each = condition(3)
        assert _counted(dataset, each) == _counted(dataset, each, use_scalar_index=False), each


def _counted(dataset: LanceDataset, filter: str, **options: Any) -> int:
    return dataset.scanner(filter=filter, **options).count_rows()
