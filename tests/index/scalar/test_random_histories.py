"""Random filters on tables with indices of all kinds, after random changes by both implementations.

``LANCE_STRESS=1`` asks for 20,000 filters.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.indices import IndexConfig

_FILTERS = 240 if os.environ.get("LANCE_STRESS", "") in ("", "0") else 20_000
_HISTORIES = 8
_CHANGES = 6
_KINDS: tuple[tuple[str, Any], ...] = (
    ("i", "BTREE"),
    ("f", "BTREE"),
    ("d", "BITMAP"),
    ("s", "BTREE"),
    ("z", "ZONEMAP"),
    ("o", "BLOOMFILTER"),
    ("l", "LABEL_LIST"),
    ("t", "NGRAM"),
    ("u", IndexConfig("fm", {})),
)
_LISTS = pa.list_(pa.int64())
_CHANGES_KNOWN = ("append", "delete", "update", "merge", "compact", "deferred", "optimize", "segments", "create")
_WORDS = ("alpha", "beta", "gamma delta", "Straße", "x", "", "hello world", "über uns", "foo_bar", "100%")


def _table(random: np.random.Generator, rows: int) -> pa.Table:
    def nullable(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if random.random() < 0.1 else value for value in values], kind)

    def words() -> list[str]:
        return [" ".join(random.choice(_WORDS, 2)) for _ in range(rows)]

    floats = [float(random.choice([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 7.0])) for _ in range(rows)]
    return pa.table(
        {
            "i": nullable(random.integers(-50, 50, rows).tolist(), pa.int64()),
            "f": nullable(floats, pa.float64()),
            "d": nullable(random.integers(0, 4, rows).tolist(), pa.int32()),
            "s": nullable([f"k{number}" for number in random.integers(0, 60, rows)], pa.string()),
            "z": nullable(np.sort(random.integers(0, 200, rows)).tolist(), pa.int16()),
            "o": nullable([f"o{number}" for number in random.integers(0, 90, rows)], pa.large_string()),
            "l": nullable(
                [random.integers(0, 9, random.integers(0, 4)).tolist() for _ in range(rows)], pa.list_(pa.int64())
            ),
            "t": nullable(words(), pa.string()),
            "u": nullable(words(), pa.string()),
            "n": random.integers(0, 10**6, rows),
        }
    )


def _leaf(random: np.random.Generator) -> str:
    number, word = int(random.integers(-55, 55)), str(random.choice(_WORDS)).replace("'", "''")
    operator = random.choice(["=", "!=", "<", "<=", ">", ">="])
    return str(
        random.choice(
            [
                f"i {operator} {number}",
                f"i BETWEEN {number} AND {number + 10}",
                f"i NOT IN ({number}, 3, 4)",
                f"f {operator} {random.choice(['0.0', '1.5', '-2.5', '7.0'])}",
                f"d {operator} {number % 5}",
                f"s {operator} 'k{abs(number)}'",
                f"s LIKE 'k{abs(number) % 10}%'",
                f"z {operator} {number * 2}",
                f"z BETWEEN {number} AND {number + 20}",
                f"o = 'o{abs(number)}'",
                f"o IN ('o1', 'o{abs(number)}', 'none')",
                f"array_has(l, {number % 10})",
                f"array_has_any(l, [{number % 10}, 2])",
                f"array_has_all(l, [{number % 10}, 2])",
                f"contains(t, '{word}')",
                f"t LIKE '%{word}%'",
                f"starts_with(t, '{word}')",
                f"contains(u, '{word}')",
                f"u LIKE '%{word}'",
                f"{random.choice(list('ifdsztulo'))} IS {random.choice(['', 'NOT '])}NULL",
                f"n % 7 = {number % 7}",
            ]
        )
    )


def _filter(random: np.random.Generator, depth: int = 2) -> str:
    if depth and random.random() < 0.6:
        joined = f" {random.choice(['AND', 'OR'])} ".join(_filter(random, depth - 1) for _ in range(2))
        return f"{random.choice(['', '', 'NOT '])}({joined})"
    return _leaf(random)


def _change(module: ModuleType, path: Path, random: np.random.Generator, stable: bool) -> None:
    dataset = module.dataset(str(path))
    kind = random.choice(
        ["append", "delete", "update", "merge", "compact", "deferred", "optimize", "segments", "create"]
    )
    if kind == "append":
        module.write_dataset(_table(random, int(random.integers(1, 300))), str(path), mode="append")
    elif kind == "delete":
        dataset.delete(f"n % 11 = {random.integers(0, 11)}")
    elif kind == "update":
        dataset.update({"i": "i + 1", "s": "'k7'"}, where=f"n % 9 = {random.integers(0, 9)}")
    elif kind == "merge":
        rows = dataset.to_table(limit=50)
        changed = rows.set_column(0, "i", pa.array(random.integers(-50, 50, rows.num_rows)))
        keys = changed.group_by("n").aggregate([]).column("n")
        if len(keys) == rows.num_rows:
            dataset.merge_insert("n").when_matched_update_all().execute(changed)
    elif kind == "compact" or (kind == "deferred" and stable):
        dataset.optimize.compact_files(target_rows_per_fragment=int(random.integers(100, 2000)))
    elif kind == "deferred":
        dataset.optimize.compact_files(target_rows_per_fragment=500, defer_index_remap=True)
    elif kind == "create":
        column, index = _KINDS[random.integers(0, len(_KINDS))]
        dataset = lance_dataset.dataset(path)
        dataset.create_scalar_index(column, index)
    else:
        lance_dataset.dataset(path).optimize.optimize_indices(num_indices_to_merge=0 if kind == "segments" else 1)


@pytest.mark.parametrize("history", range(_HISTORIES))
def test_indices_answer_as_the_scan_does(history: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In shadow mode, which compares every answer with the scan."""
    random = np.random.default_rng(history)
    stable = history % 2 == 1
    path = tmp_path / "t"
    lance_dataset.write_dataset(_table(random, 800), path, max_rows_per_file=300, enable_stable_row_ids=stable)
    for column, kind in _KINDS:
        lance_dataset.dataset(path).create_scalar_index(column, kind)
    used = 0
    for _ in range(_CHANGES):
        _change(lance_dataset if stable or random.random() < 0.6 else lance, path, random, stable)
        monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
        dataset = lance_dataset.dataset(path)
        for _ in range(_FILTERS // (_HISTORIES * _CHANGES)):
            text = _filter(random)
            scanner = dataset.scanner(filter=text, columns=["n"])
            expected = dataset.scanner(filter=text, columns=["n"], use_scalar_index=False)
            assert scanner.to_table() == expected.to_table(), text
            used += "ScalarIndexQuery" in scanner.explain_plan()
        monkeypatch.delenv("LANCE_CHECK_INDICES")
    assert used
    lance_dataset.dataset(path).validate(indices=True)
