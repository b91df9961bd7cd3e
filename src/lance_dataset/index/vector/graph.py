"""Graphs of the partitions of an index (HNSW): levels of nodes, each with its neighbors on the same level."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.index.metadata_json import parse_json

__all__ = ["Graph", "GraphLevel", "GraphParameters", "GraphRows", "decode_graph", "encode_graph", "graph_rows"]

#: More levels would not help, because each has only a fraction of the nodes of the level below.
_MAX_LEVELS = 64


@dataclass(frozen=True)
class GraphParameters:
    """Parameters of the building of graphs.

    Attributes
    ----------
    neighbors
        Maximum number of neighbors of a node; the lowest level allows twice as many.
    candidates
        Number of near nodes that are candidates for neighbors.
    levels
        Maximum number of levels.
    """

    neighbors: int = 20
    candidates: int = 150
    levels: int = 7


@dataclass(frozen=True)
class GraphLevel:
    """Level of a graph.

    Attributes
    ----------
    nodes : int64[nodes]
        Numbers of the nodes, ascending; a number is a row of the partition.
    offsets : int64[nodes + 1]
        Start of the neighbors of each node.
    neighbors : int64[edges]
        Neighbors, as indices into `nodes`.
    distances : float32[edges]
        Distances to the neighbors.
    """

    nodes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    neighbors: NDArray[np.int64]
    distances: NDArray[np.float32]

    @property
    def sources(self) -> NDArray[np.int64]:
        """Source of each edge, int64[edges]: indices into `nodes`."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.offsets))


@dataclass(frozen=True)
class Graph:
    """Graph of a partition.

    Attributes
    ----------
    levels
        Levels, starting with the one that has all nodes; empty for an empty partition. The upper ones may be empty.
    entry_point
        Node at which a search begins. It is on every level that has nodes.
    parameters
        Recorded build parameters of the graph, among them `m`, the maximum number of neighbors of a node. The lowest
        level allows twice as many.
    """

    levels: tuple[GraphLevel, ...]
    entry_point: int
    parameters: dict[str, Any]

    def max_degree(self, level: int) -> int:
        """Return the maximum number of neighbors that a node of a level should have."""
        connections = self.parameters.get("m")
        connections = connections if type(connections) is int and 0 < connections <= 1 << 16 else 20
        return connections if level else 2 * connections


@dataclass(frozen=True, eq=False)
class GraphRows:
    """Graph of a partition as it is stored, for walks. Numbers are not checked.

    Attributes
    ----------
    entry_point
        Row at which a search begins.
    bounds : int64[levels + 1]
        First node of each level.
    nodes : uint32[nodes]
        Rows of the nodes of all levels.
    ends : int32[nodes + 1]
        First neighbor of each node.
    neighbors : uint32[neighbors]
        Rows of the neighbors.
    """

    entry_point: int
    bounds: NDArray[np.int64]
    nodes: NDArray[np.uint32]
    ends: NDArray[np.int32]
    neighbors: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        """Bytes of memory, those of mapped files included."""
        return self.nodes.nbytes + self.ends.nbytes + self.neighbors.nbytes


def graph_rows(note: str, batch: pa.RecordBatch, where: str) -> GraphRows | None:
    """Return the graph of a partition for walks, None if it has none.

    Parameters
    ----------
    note
        Description of the graph in the metadata of the file; empty for an empty partition.
    batch
        Rows of the graph, with the columns ``__vector_id`` and ``__neighbors``.
    where
        Name of the file and the partition, for error messages.

    Raises
    ------
    CorruptFileError
        There are nulls, or the description is wrong.
    """
    if not note:
        return None
    entry_point, bounds, _ = _parse_note(note, batch.num_rows, where)
    lists = batch.column("__neighbors")
    values = lists.values
    if batch.column("__vector_id").null_count or lists.null_count or lists.flatten().null_count:
        raise CorruptFileError(f"{where}: there are nulls in its graph")
    nodes = np.ascontiguousarray(np.asarray(batch.column("__vector_id")))
    ends = np.ascontiguousarray(np.asarray(lists.offsets))
    neighbors = (
        np.asarray(values.slice(int(ends[0]), int(ends[-1]) - int(ends[0]))) if len(ends) else np.asarray(values)
    )
    return GraphRows(entry_point, np.array(bounds, np.int64), nodes, ends - ends[:1], neighbors)


def decode_graph(note: str, batch: pa.RecordBatch, rows: int, where: str) -> Graph:
    """Decode the graph of a partition.

    Parameters
    ----------
    note
        Description of the graph in the metadata of the file; empty for an empty partition.
    batch
        Rows of the graph in the file, with the columns of `GRAPH_COLUMNS`.
    rows
        Number of rows of the partition.
    where
        Name of the file and the partition, for error messages.

    Raises
    ------
    CorruptFileError
        Levels, nodes or neighbors contradict each other.
    """
    if not note:
        if batch.num_rows:
            raise CorruptFileError(f"{where}: {batch.num_rows} nodes, but no description of a graph")
        return Graph((), 0, {})
    entry_point, bounds, parameters = _parse_note(note, batch.num_rows, where)
    nodes, offsets, neighbors, distances = _columns(batch, where)
    if len(nodes) and int(nodes[: bounds[1]].max(initial=0)) >= rows:
        raise CorruptFileError(f"{where}: a node is not one of the {rows} rows of the partition")
    levels, below = [], np.arange(rows)
    for first, stop in itertools.pairwise(bounds):
        edges = slice(offsets[first], offsets[stop])
        level = _level(
            nodes[first:stop], offsets[first : stop + 1] - offsets[first], neighbors[edges], distances[edges], where
        )
        if not np.isin(level.nodes, below, assume_unique=True).all():
            raise CorruptFileError(f"{where}: a node of a level is not on the one below")
        below = level.nodes
        levels.append(level)
    filled = [level for level in levels if len(level.nodes)]
    if filled and entry_point not in filled[-1].nodes:
        raise CorruptFileError(f"{where}: the entry point {entry_point} is not on the highest level")
    return Graph(tuple(levels), entry_point, parameters)


def encode_graph(graph: Graph, schema: pa.Schema) -> tuple[str, pa.RecordBatch]:
    """Return the description of a graph for the metadata, and its rows.

    Parameters
    ----------
    graph
        The graph.
    schema
        Columns of the file, in any order.
    """
    filled = [level for level in graph.levels if len(level.nodes)]
    counts = [len(level.nodes) for level in graph.levels]
    bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).tolist()
    note = {"entry_point": graph.entry_point, "params": graph.parameters, "level_offsets": bounds}
    degrees = _joined([np.diff(level.offsets) for level in filled], np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32))
    columns = {
        "__vector_id": pa.array(_joined([level.nodes for level in filled], np.uint32)),
        "__neighbors": (offsets, _joined([level.nodes[level.neighbors] for level in filled], np.uint32)),
        "_distance": (offsets, _joined([level.distances for level in filled], np.float32)),
    }
    arrays = [_column(columns[field.name], field.type) for field in schema]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return json.dumps(note, separators=(",", ":")) if filled else "", batch


def _parse_note(note: str, graph_rows: int, where: str) -> tuple[int, list[int], dict[str, Any]]:
    """Return the entry point, the first row of each level, and the parameters.

    Releases up to 1.0 have node 0 on all levels, but count it only on the lowest.
    """
    try:
        value = parse_json(note)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"{where}: the description of its graph is not JSON: {error}") from error
    value = value if isinstance(value, dict) else {}
    entry_point, bounds, parameters = (value.get(key) for key in ("entry_point", "level_offsets", "params"))
    if type(entry_point) is not int or entry_point < 0 or not isinstance(parameters, dict):
        raise CorruptFileError(f"{where}: the description of its graph has no entry point or parameters")
    if not isinstance(bounds, list) or not all(type(bound) is int for bound in bounds):
        raise CorruptFileError(f"{where}: the description of its graph has no level_offsets")
    if len(bounds) > 2 and entry_point == 0 and bounds[-1] + len(bounds) - 2 == graph_rows:
        bounds = [bounds[0], *(bound + level for level, bound in enumerate(bounds[1:]))]
    if not 2 <= len(bounds) <= _MAX_LEVELS + 1 or bounds != sorted(bounds) or bounds[0] or bounds[-1] != graph_rows:
        raise CorruptFileError(f"{where}: the levels {bounds[:9]} of its graph do not divide {graph_rows} rows")
    most = parameters.get("max_level", len(bounds) - 1)
    if most != len(bounds) - 1:
        raise CorruptFileError(f"{where}: its graph has {len(bounds) - 1} levels, but max_level is {most!r}")
    return entry_point, bounds, parameters


def _columns(
    batch: pa.RecordBatch, where: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    lists = batch.column("__neighbors"), batch.column("_distance")
    neighbors, distances = (column.flatten() for column in lists)
    if any(array.null_count for array in (batch.column("__vector_id"), *lists, neighbors, distances)):
        raise CorruptFileError(f"{where}: there are nulls in its graph")
    degrees, others = (np.diff(np.asarray(column.offsets)) for column in lists)
    if not np.array_equal(degrees, others):
        raise CorruptFileError(f"{where}: a node has more or fewer distances than neighbors")
    offsets = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    nodes = np.asarray(batch.column("__vector_id")).astype(np.int64)
    return nodes, offsets, np.asarray(neighbors).astype(np.int64), np.asarray(distances)


def _level(
    nodes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    neighbors: NDArray[np.int64],
    distances: NDArray[np.float32],
    where: str,
) -> GraphLevel:
    """Build a level whose neighbors are given as node numbers."""
    if (np.diff(nodes) <= 0).any():
        raise CorruptFileError(f"{where}: nodes of a level of its graph are not in ascending order")
    places = np.searchsorted(nodes, neighbors)
    inside = places < len(nodes)
    if not inside.all() or not np.array_equal(nodes[places], neighbors):
        raise CorruptFileError(f"{where}: a neighbor is not on the level of its node")
    return GraphLevel(nodes, offsets, places, distances)


def _joined(parts: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, kind), *parts]).astype(kind)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_list(kind):
        return values
    offsets, items = values
    return pa.ListArray.from_arrays(offsets, pa.array(items), type=kind)
