"""Tests of graphs in memory (`lance.util.HNSW`), compared with pylance."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance.util
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import lance_dataset.util
from lance_dataset.errors import InvalidInputError, SchemaError
from lance_dataset.file.standalone import LanceFileReader

ROWS, DIMENSION = 600, 12
VALUES = np.random.default_rng(0).standard_normal((ROWS, DIMENSION)).astype(np.float32)
#: The reference takes iterators only.
PACKAGES: tuple[Any, ...] = (lance_dataset, lance)


def lists(values: NDArray[Any]) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def saved(graph: Any, path: Path) -> tuple[pa.Table, dict[str, Any]]:
    graph.to_lance_file(str(path))
    table = LanceFileReader(path).read_all().to_table()
    return table, json.loads((table.schema.metadata or {})[b"lance:hnsw"])


def lowest(table: pa.Table) -> list[list[int]]:
    neighbors: list[list[int]] = table["__neighbors"].to_pylist()[:ROWS]
    return neighbors


def recall(neighbors: list[list[int]], start: int, distances: NDArray[Any], k: int = 10, ef: int = 12) -> float:
    """Return the share of the nearest vectors that walks on the lowest level find."""
    hits = 0
    for near in distances[:100]:
        seen, waiting, found = {start}, [start], [start]
        while waiting:
            place = min(waiting, key=near.__getitem__)
            waiting.remove(place)
            if len(found) == ef and near[place] > near[found[-1]]:
                break
            fresh = set(neighbors[place]) - seen
            seen |= fresh
            waiting += fresh
            found = sorted({*found, *fresh}, key=near.__getitem__)[:ef]
        hits += len(set(found[:k]) & set(np.argsort(near)[:k].tolist()))
    return hits / (100 * k)


@pytest.mark.parametrize("element", [np.float16, np.float32, np.float64])
def test_graphs_of_both_packages(tmp_path: Path, element: Any) -> None:
    """Both files have the same columns and levels, and walks find as many of the nearest vectors."""
    values = VALUES.astype(element)
    distances = ((values[:, None, :].astype(np.float32) - values[None]) ** 2).sum(axis=2)
    found, tables = [], []
    for package in PACKAGES:
        graph = package.util.HNSW.build(iter([lists(values[:100]), lists(values[100:])]), m=10, ef_construction=60)
        assert graph.vectors().equals(lists(values))
        table, note = saved(graph, tmp_path / f"{package.__name__}.lance")
        tables.append(table)
        offsets = note["level_offsets"]
        assert offsets[:2] == [0, ROWS]
        assert offsets[-1] == table.num_rows
        assert len(offsets) == 8
        assert note["params"] == {"max_level": 7, "m": 10, "ef_construction": 60, "prefetch_distance": 2}
        assert table["__vector_id"].to_pylist()[:ROWS] == list(range(ROWS))
        for row in (0, 7, ROWS - 1):
            mine = table["__neighbors"][row].as_py()
            np.testing.assert_allclose(table["_distance"][row].as_py(), distances[row, mine], rtol=1e-2, atol=1e-2)
        found.append(recall(lowest(table), note["entry_point"], distances))
    assert tables[0].schema.remove_metadata() == tables[1].schema.remove_metadata()
    assert found[0] > max(found[1] - 0.02, 0.8)


def test_every_vector_is_reached(tmp_path: Path) -> None:
    table, note = saved(lance_dataset.util.HNSW.build([lists(VALUES)], m=4, ef_construction=4), tmp_path / "g.lance")
    neighbors, seen, waiting = lowest(table), {note["entry_point"]}, [note["entry_point"]]
    while waiting:
        fresh = set(neighbors[waiting.pop()]) - seen
        seen |= fresh
        waiting += fresh
    assert len(seen) > 0.99 * ROWS


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_vectors(tmp_path: Path, count: int) -> None:
    notes = []
    for package in PACKAGES:
        graph = package.util.HNSW.build(iter([lists(VALUES[:count])]), max_level=3)
        table, note = saved(graph, tmp_path / f"{package.__name__}.lance")
        assert table.num_rows == note["level_offsets"][-1]
        notes.append(note)
    assert notes[0]["level_offsets"][:2] == notes[1]["level_offsets"][:2] == [0, count]
    assert notes[0]["params"] == notes[1]["params"]


def test_other_iterables(tmp_path: Path) -> None:
    table = pa.table({"v": pa.chunked_array([lists(VALUES[:10]), lists(VALUES[10:30])])})
    graph = lance_dataset.util.HNSW.build(table["v"])
    assert len(graph.vectors()) == 30
    assert repr(graph) == "lance.HNSW(30 vectors of 12 values)"
    graph.to_lance_file(tmp_path / "g.lance")
    graph.to_lance_file(tmp_path / "g.lance")  # replaces the file
    assert os.listdir(tmp_path) == ["g.lance"]


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lists(VALUES), TypeError, "must iterate over Arrow arrays, not be FixedSizeListArray"),
    (lambda: 5, TypeError, "must iterate over Arrow arrays, not be int"),
    (lambda: [VALUES], TypeError, "not over ndarray"),
    (list, InvalidInputError, "has no arrays"),
    (lambda: [pa.array([1, 2])], SchemaError, "must be fixed-size lists of float16, float32 or float64, not int64"),
    (lambda: [lists(np.zeros((3, 4), np.uint8))], SchemaError, "not fixed_size_list<item: uint8>"),
    (lambda: [lists(VALUES), lists(VALUES[:, :4].copy())], SchemaError, "all vectors must have the same type"),
    (lambda: [pa.array([[1.0], None], pa.list_(pa.float32(), 1))], InvalidInputError, "must not be null"),
    (lambda: [pa.array([[None]], pa.list_(pa.float32(), 1))], InvalidInputError, "must not be null"),
    (lambda: [lists(np.array([[1.0], [np.nan]]))], InvalidInputError, "vector 1 has a number that is not finite"),
    (lambda: [lists(np.array([[np.inf], [0.0]]))], InvalidInputError, "vector 0 has a number"),
    (lambda: [pa.array([[]], pa.list_(pa.float32(), 0))], InvalidInputError, "vectors must have values"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_vectors(number: int) -> None:
    given, error, text = WRONG[number]
    with pytest.raises(error, match=text):
        lance_dataset.util.HNSW.build(given())


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"m": 3}, "m must be from 4 to"),
        ({"max_level": 0}, "max_level must be from 1 to"),
        ({"max_level": 1000}, "max_level must be from 1 to"),
        ({"ef_construction": 19}, r"ef_construction must be from m \(20\) to"),
        ({"m": 500}, "ef_construction must be from m"),
    ],
)
def test_wrong_parameters(parameters: dict[str, int], text: str) -> None:
    """The reference refuses them, too."""
    with pytest.raises(InvalidInputError, match=text):
        lance_dataset.util.HNSW.build([lists(VALUES)], **parameters)
    theirs = {"max_level": 1 << 17} if parameters == {"max_level": 1000} else parameters
    with pytest.raises((OSError, OverflowError)):
        lance.util.HNSW.build(iter([lists(VALUES)]), **theirs)


def test_parameters_of_wrong_types() -> None:
    with pytest.raises(TypeError):
        lance_dataset.util.HNSW.build([lists(VALUES)], m="many")
    with pytest.raises((OverflowError, InvalidInputError)):
        lance_dataset.util.HNSW.build([lists(VALUES)], m=-1)
