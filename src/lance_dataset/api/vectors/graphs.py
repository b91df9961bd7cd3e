"""Graphs of near vectors (HNSW) in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError, SchemaError
from lance_dataset.file.standalone import LanceFileWriter
from lance_dataset.index.vector.graph import GraphParameters
from lance_dataset.index.vector.index_file import GRAPH_COLUMNS, GRAPH_KEY
from lance_dataset.index.vector.training.encoding import FlatEncoder
from lance_dataset.index.vector.training.graphs import PartitionGraph, graph_note, partition_graphs
from lance_dataset.index.vector.training.shuffling import PartitionedRows
from lancecodec.search.graphs import MAX_CANDIDATES, MAX_LEVELS, MAX_NEIGHBORS, MAX_NODES

__all__ = ["HNSW"]

_ELEMENTS: Final = (pa.float16(), pa.float32(), pa.float64())
_LEAST_NEIGHBORS = 4
#: All memory: the vectors are in memory already.
_NO_LIMIT = 1 << 62


class HNSW:
    """Graph of near vectors, by their squared distances.

    The algorithm is that of Malkov and Yashunin (Hierarchical navigable small world graphs, 2018). `build` makes it.
    Indices of the kinds ``IVF_HNSW_...`` build the graphs of their partitions themselves.
    """

    def __init__(self, vectors: pa.FixedSizeListArray, graph: PartitionGraph) -> None:
        self._vectors, self._graph = vectors, graph

    def __repr__(self) -> str:
        return f"lance.HNSW({len(self._vectors)} vectors of {self._vectors.type.list_size} values)"

    @staticmethod
    def build(
        vectors_array: Iterator[pa.Array] | Iterable[pa.Array],
        max_level: int = 7,
        m: int = 20,
        ef_construction: int = 100,
    ) -> HNSW:
        """Build the graph of vectors.

        Parameters
        ----------
        vectors_array
            Arrays of fixed-size lists of float16, float32 or float64, all of one type; a chunked array is one, too.
        max_level
            Maximum number of levels.
        m
            Maximum number of neighbors of a vector on a level; the lowest level allows twice as many.
        ef_construction
            Number of near vectors that are candidates for neighbors.

        Raises
        ------
        TypeError
            There are no arrays, but something else.
        ValueError
            The arrays have other types, there is none, a vector is null or not finite, or a number is out of range.
        MemoryError
            There is not enough memory.
        """
        parameters = _parameters(max_level, m, ef_construction)
        vectors = _joined(vectors_array)
        numbers = _matrix(vectors)
        with PartitionedRows(1, _NO_LIMIT) as gathered:
            gathered.add(np.zeros(len(numbers), np.int32), {FlatEncoder.column: numbers})
            dimension = numbers.shape[1]
            (graph,) = partition_graphs(gathered, FlatEncoder(), dimension, "l2", parameters, _NO_LIMIT)
        note = graph.note or graph_note(parameters, [0] * (parameters.levels + 1))
        return HNSW(vectors, PartitionGraph(note, graph.batch))

    def to_lance_file(
        self, file_path: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        """Write the graph to a Lance file: numbers of vectors, their neighbors and the distances to these, by level.

        The metadata of its schema describe the levels, see `lance:hnsw` in the notes on the format.

        Parameters
        ----------
        file_path
            Path or URI of the file, which is replaced.
        storage_options
            Options of the store.
        """
        graph = self._graph
        with LanceFileWriter(file_path, pa.schema(GRAPH_COLUMNS), storage_options=storage_options) as writer:
            writer.write_batch(graph.batch)
            writer.add_schema_metadata(GRAPH_KEY, graph.note)

    def vectors(self) -> pa.FixedSizeListArray:
        """Return the vectors, in the order of their numbers."""
        return self._vectors


def _parameters(max_level: object, m: object, ef_construction: object) -> GraphParameters:
    levels, neighbors = checked_integer("max_level", max_level, bits=31), checked_integer("m", m, bits=31)
    candidates = checked_integer("ef_construction", ef_construction, bits=31)
    if not 1 <= levels <= MAX_LEVELS:
        raise InvalidInputError(f"max_level must be from 1 to {MAX_LEVELS}, not {levels}")
    if not _LEAST_NEIGHBORS <= neighbors <= MAX_NEIGHBORS:
        raise InvalidInputError(f"m must be from {_LEAST_NEIGHBORS} to {MAX_NEIGHBORS}, not {neighbors}")
    if not neighbors <= candidates <= MAX_CANDIDATES:
        raise InvalidInputError(f"ef_construction must be from m ({neighbors}) to {MAX_CANDIDATES}, not {candidates}")
    return GraphParameters(neighbors, candidates, levels)


def _joined(arrays: object) -> pa.FixedSizeListArray:
    if isinstance(arrays, pa.ChunkedArray):
        arrays = arrays.chunks
    if isinstance(arrays, (pa.Array, np.ndarray, str)) or not isinstance(arrays, Iterable):
        raise TypeError(f"vectors_array must iterate over Arrow arrays, not be {type(arrays).__name__}")
    parts = list(arrays)
    if not parts:
        raise InvalidInputError("vectors_array has no arrays, so the dimension of the vectors is unknown")
    for each in parts:
        if not isinstance(each, pa.Array):
            raise TypeError(f"vectors_array must iterate over Arrow arrays, not over {type(each).__name__}")
        if not pa.types.is_fixed_size_list(each.type) or each.type.value_type not in _ELEMENTS:
            raise SchemaError(f"vectors must be fixed-size lists of float16, float32 or float64, not {each.type}")
        if each.type != parts[0].type:
            raise SchemaError(f"all vectors must have the same type, not {parts[0].type} and {each.type}")
    if not parts[0].type.list_size:
        raise InvalidInputError("vectors must have values")
    if sum(map(len, parts)) > MAX_NODES // 2:
        raise InvalidInputError(f"a graph can have {MAX_NODES // 2} vectors at most")
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _matrix(vectors: pa.FixedSizeListArray) -> NDArray[np.floating]:
    if vectors.null_count or vectors.flatten().null_count:
        raise InvalidInputError("vectors of a graph must not be null, nor have nulls; leave them out")
    numbers = np.asarray(vectors.flatten()).reshape(len(vectors), vectors.type.list_size)
    unusable = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(unusable):
        raise InvalidInputError(f"vector {unusable[0]} has a number that is not finite; leave it out")
    return numbers
