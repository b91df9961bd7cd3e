"""Graphs of the partitions of a new index (HNSW), built in threads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import InvalidInputError, MemoryLimitError
from lance_dataset.index.files import WRITTEN_VERSION, NewIndexFolder
from lance_dataset.index.vector.distances import StoredVectors
from lance_dataset.index.vector.graph import GraphParameters
from lance_dataset.index.vector.index_file import GRAPH_COLUMNS, GRAPH_KEY, INDEX_FILE, INDEX_KEY
from lance_dataset.index.vector.ivf import IVF_KEY
from lance_dataset.index.vector.quantizers import (
    FlatVectors,
    ProductQuantizer,
    Quantizer,
    ScalarQuantizer,
    parse_quantizer,
)
from lance_dataset.index.vector.tensors import encode_tensor
from lance_dataset.index.vector.training.encoding import Encoder
from lance_dataset.index.vector.training.shuffling import PartitionedRows
from lance_dataset.threads.pools import cpu_count
from lance_dataset.threads.streams import map_parallel, stream
from lance_dataset.types.schema import Schema
from lancecodec.errors import CodecError
from lancecodec.search.distances import ELEMENTS, METRICS
from lancecodec.search.graphs import MAX_NODES, GraphBuilder

__all__ = ["PartitionGraph", "graph_note", "partition_graphs", "write_graphs"]

_SEED = 0x2B
#: Vectors of a partition whose graph all threads build together; smaller ones are built side by side.
_SHARED_ROWS = 1 << 15
#: Vectors that one thread adds before others help: batches are small at first.
_FIRST_ROWS = 1 << 12
#: Bytes of a neighbor while a graph is built, and of a value of a vector.
_LINK_BYTES, _VALUE_BYTES = 8, 4
#: Parts of a batch for each thread, so that none waits long for the others.
_PARTS = 4
_COLUMNS = {
    "FLAT": FlatVectors.code_column,
    "PQ": ProductQuantizer.code_column,
    "SQ": ScalarQuantizer.code_column,
}
_ELEMENT_NAMES = {"float32": "f", "float64": "d", "float16": "e", "uint8": "u1"}


@dataclass(frozen=True, eq=False)
class PartitionGraph:
    """Graph of a partition as it is stored.

    Attributes
    ----------
    note
        Description for the metadata of the file; empty for an empty partition.
    batch
        Rows of the graph, with the columns of `GRAPH_COLUMNS`.
    """

    note: str
    batch: pa.RecordBatch


def partition_graphs(
    gathered: PartitionedRows,
    encoder: Encoder,
    dimension: int,
    metric: str,
    parameters: GraphParameters,
    memory_limit: int,
) -> Iterator[PartitionGraph]:
    """Yield the graphs of partitions, in order. They do not depend on the number of threads.

    Parameters
    ----------
    gathered
        Rows by partition, with codes row by row, or plain vectors (of unit length for the metric cosine).
    encoder
        Meaning of the codes.
    dimension
        Number of elements of a vector.
    metric
        Metric of the index.
    parameters
        Parameters of the graphs.
    memory_limit
        Maximum number of bytes to work with, approximately.

    Raises
    ------
    MemoryLimitError
        The largest partition takes more.
    InvalidInputError
        A partition has too many rows.
    MemoryError
        There is not enough memory.
    """
    quantizer = _quantizer(encoder, dimension)
    row_bytes = _LINK_BYTES * 3 * parameters.neighbors + _VALUE_BYTES * dimension
    largest = int(gathered.lengths.max(initial=0))
    if largest * row_bytes > memory_limit:
        raise MemoryLimitError(
            f"the graph of a partition of {largest} vectors takes {largest * row_bytes} bytes of memory, more than the "
            f"limit of {memory_limit}; ask for more partitions, or raise memory_limit"
        )

    def begun() -> Iterator[NDArray[Any] | PartitionGraph]:
        for parts in gathered.partitions():
            codes = parts.get(encoder.column, np.empty((0, dimension), np.uint8))
            yield codes if len(codes) < _SHARED_ROWS else _built(codes, quantizer, metric, parameters, shared=True)

    def finished(item: NDArray[Any] | PartitionGraph) -> PartitionGraph:
        if isinstance(item, PartitionGraph):
            return item
        return _built(item, quantizer, metric, parameters, shared=False)

    def weight(item: NDArray[Any] | PartitionGraph) -> float:
        return row_bytes * (item.batch.num_rows if isinstance(item, PartitionGraph) else len(item))

    workers = cpu_count() if cpu_count() > 1 else 0
    return stream(finished, begun(), ahead=workers, weight=weight, budget=memory_limit)


def write_graphs(
    kind: str,
    metric: str,
    centroids: NDArray[Any],
    loss: float,
    graphs: Iterable[PartitionGraph],
    target: NewIndexFolder,
) -> None:
    """Write the main file of an index with graphs.

    Parameters
    ----------
    kind, metric
        Kind and metric of the index.
    centroids : float or uint8 [partitions, dimension]
        Centroids of the partitions.
    loss
        Sum of the distances of all vectors to their centroids.
    graphs
        Graphs of all partitions.
    target
        Folder of the files.
    """
    notes: list[str] = []
    lengths: list[int] = []
    metadata = {INDEX_KEY: json.dumps({"type": kind, "distance_type": metric})}
    buffers: dict[str, bytes] = {}

    def batches() -> Iterator[pa.RecordBatch]:
        for graph in graphs:
            notes.append(graph.note)
            lengths.append(graph.batch.num_rows)
            yield graph.batch
        offsets = np.cumsum([0, *lengths])[:-1].tolist()
        tensor = encode_tensor(centroids)
        message = vector_index_pb2.IVF(lengths=lengths, offsets=offsets, centroids_tensor=tensor, loss=loss)
        buffers[IVF_KEY] = message.SerializeToString()
        metadata[GRAPH_KEY] = json.dumps(notes, separators=(",", ":"))

    target.write(INDEX_FILE, Schema.from_arrow(pa.schema(GRAPH_COLUMNS)), WRITTEN_VERSION, batches(), metadata, buffers)


def _quantizer(encoder: Encoder, dimension: int) -> Quantizer:
    family = next(name for name, column in _COLUMNS.items() if column == encoder.column)
    codebook = encoder.codebook
    data = b"" if codebook is None else encode_tensor(codebook).SerializeToString()
    return parse_quantizer(family, json.dumps([encoder.metadata(dimension)]), lambda number: data, "a new index")


def _built(
    codes: NDArray[Any], quantizer: Quantizer, metric: str, parameters: GraphParameters, *, shared: bool
) -> PartitionGraph:
    n = len(codes)
    if n > MAX_NODES // 2:
        raise InvalidInputError(f"a partition of {n} vectors is too large for a graph; ask for more partitions")
    vectors, element, distance, scale = _comparable(codes, quantizer, metric)
    heights, order = _heights(n, parameters)
    m, ef = min(parameters.neighbors, max(n, 1)), min(parameters.candidates, max(n, 1))
    builder = GraphBuilder(
        *(vectors.data, n, vectors.shape[1], ELEMENTS.index(element), METRICS.index(distance)),
        *(heights.data, order.data, m, ef, scale),
    )
    if shared and cpu_count() > 1:
        _build_together(builder)
    builder.run(n)
    return _stored(builder, n, parameters)


def _build_together(builder: GraphBuilder) -> None:
    builder.run(_FIRST_ROWS)
    parts = _PARTS * cpu_count()

    def find(places: tuple[int, int]) -> None:
        builder.find(*places)

    def link(part: int) -> None:
        builder.link(part, parts)

    first, stop = builder.batch()
    while first < stop:
        cuts = np.linspace(first, stop, parts + 1).astype(int).tolist()
        map_parallel(find, list(itertools.pairwise(cuts)), parallel=True)
        map_parallel(link, range(parts), parallel=True)
        builder.advance()
        first, stop = builder.batch()


def _comparable(codes: NDArray[Any], quantizer: Quantizer, metric: str) -> tuple[NDArray[Any], str, str, float]:
    """Return vectors to compare, names of their elements and of the metric, and the factor of distances of bytes."""
    if isinstance(quantizer, FlatVectors):
        between = "dot" if metric == "cosine" else metric  # vectors have unit length
        return np.ascontiguousarray(codes), _ELEMENT_NAMES[codes.dtype.name], between, 0.0
    if isinstance(quantizer, ScalarQuantizer) and metric != "dot":
        step = np.float32(quantizer.end - quantizer.start) / np.float32(255)
        return np.ascontiguousarray(codes), "u1", "l2", float(step * step)
    vectors = StoredVectors(codes, quantizer, metric).take(np.arange(len(codes)))
    between = "dot" if metric == "dot" else "l2"
    return np.ascontiguousarray(vectors, np.float32), "f", between, 0.0


def _heights(n: int, parameters: GraphParameters) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Return the highest level of each node, and the order in which nodes are added, those of high levels first.

    Old releases begin every walk at node 0, so it is on the highest level.
    """
    rng = np.random.default_rng(_SEED)
    drawn = -np.log(1 - rng.random(n)) / np.log(parameters.neighbors)
    heights = np.minimum(drawn, parameters.levels - 1).astype(np.uint8)
    order = rng.permutation(n).astype(np.uint32)
    if n:
        heights[0] = heights.max()
        order = np.concatenate([[0], order[order != 0]]).astype(np.uint32)
    return heights, np.ascontiguousarray(order[np.argsort(-heights[order].astype(np.int64), kind="stable")])


def _stored(builder: GraphBuilder, n: int, parameters: GraphParameters) -> PartitionGraph:
    levels, nodes, edges = builder.finish()
    bounds, rows, ends = np.zeros(levels + 1, np.int64), np.empty(nodes, np.uint32), np.zeros(nodes + 1, np.int32)
    neighbors, distances = np.empty(edges, np.uint32), np.empty(edges, np.float32)
    try:
        builder.write(bounds.data, rows.data, ends.data, neighbors.data, distances.data)
    except CodecError as error:
        raise InvalidInputError(f"a partition of {n} vectors: {error}; ask for more partitions") from error
    lists = (pa.ListArray.from_arrays(pa.array(ends), pa.array(values)) for values in (neighbors, distances))
    schema = pa.schema(GRAPH_COLUMNS)
    arrays = [array.cast(field.type) for array, field in zip((pa.array(rows), *lists), schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    offsets = bounds.tolist() + [nodes] * (parameters.levels - levels)
    return PartitionGraph(graph_note(parameters, offsets) if n else "", batch)


def graph_note(parameters: GraphParameters, level_offsets: Sequence[int]) -> str:
    """Return the description of a graph for the metadata of its file. A walk begins at its first vector.

    Parameters
    ----------
    parameters
        Parameters that it was built with.
    level_offsets
        First row of each level, and the number of rows.
    """
    described = {
        "max_level": parameters.levels,
        "m": parameters.neighbors,
        "ef_construction": parameters.candidates,
        "prefetch_distance": 2,
    }
    note = {"entry_point": 0, "params": described, "level_offsets": list(level_offsets)}
    return json.dumps(note, separators=(",", ":"))
