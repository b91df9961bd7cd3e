"""Files and details of new vector indices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset._proto import vector_index_pb2
from lance_dataset.index.files import WRITTEN_VERSION, NewIndexFolder
from lance_dataset.index.vector.index_file import FLAT_KEY, INDEX_FILE, INDEX_KEY
from lance_dataset.index.vector.ivf import IVF_KEY
from lance_dataset.index.vector.storage import DISTANCE_KEY, ROW_ID, STORAGE_FILE, STORAGE_KEY
from lance_dataset.index.vector.training.encoding import Encoder
from lance_dataset.index.vector.training.parameters import REASON, VectorParameters
from lance_dataset.index.vector.training.shuffling import PartitionedRows
from lance_dataset.types.schema import Schema

__all__ = ["index_details", "write_main", "write_storage"]


def write_storage(
    parameters: VectorParameters,
    gathered: PartitionedRows,
    centroids: NDArray[Any],
    encoder: Encoder,
    target: NewIndexFolder,
) -> None:
    """Write the file of stored vectors, partition by partition."""
    dimension, lengths = centroids.shape[1], gathered.lengths
    none = np.empty((0, dimension), centroids.dtype)
    empty = {ROW_ID: np.empty(0, np.uint64), **encoder.encode(none, np.empty(0, np.int32))}
    schema = pa.schema([pa.field(name, _type(values)) for name, values in empty.items()])

    def partitions() -> Iterator[pa.RecordBatch]:
        for parts in gathered.partitions():
            if len(parts.get(ROW_ID, ())):
                parts[encoder.column] = encoder.stored(parts[encoder.column])
                yield pa.RecordBatch.from_arrays([_array(parts[name]) for name in schema.names], schema=schema)

    message = vector_index_pb2.IVF(lengths=lengths.tolist(), offsets=(np.cumsum(lengths) - lengths).tolist())
    buffers = [message.SerializeToString()]
    if encoder.codebook is not None:
        buffers.append(_tensor(encoder.codebook).SerializeToString())
    metadata = {
        DISTANCE_KEY: parameters.metric,
        STORAGE_KEY: json.dumps([encoder.metadata(dimension)]),
        IVF_KEY: "1",
    }
    arrow = Schema.from_arrow(schema)
    target.write(STORAGE_FILE, arrow, WRITTEN_VERSION, partitions(), metadata, numbered_buffers=buffers)


def write_main(parameters: VectorParameters, centroids: NDArray[Any], loss: float, target: NewIndexFolder) -> None:
    """Write the file of the centroids.

    Parameters
    ----------
    parameters
        Parameters of the index.
    centroids : float or uint8 [partitions, dimension]
    loss
        Sum of the distances of all vectors to their centroids.
    target
        Folder of the files.
    """
    count = len(centroids)
    message = vector_index_pb2.IVF(
        lengths=[0] * count, offsets=[0] * count, centroids_tensor=_tensor(centroids), loss=loss
    )
    metadata = {
        INDEX_KEY: json.dumps({"type": parameters.kind, "distance_type": parameters.metric}),
        FLAT_KEY: json.dumps([""] * count),
    }
    schema = Schema.from_arrow(pa.schema([pa.field("__flat_marker", pa.uint64(), nullable=False)]))
    target.write(INDEX_FILE, schema, WRITTEN_VERSION, [], metadata, {IVF_KEY: message.SerializeToString()})


def _type(values: NDArray[Any]) -> pa.DataType:
    """Return the type of a column of numbers, or of lists of equal length."""
    item = pa.from_numpy_dtype(values.dtype)
    return item if values.ndim == 1 else pa.list_(item, values.shape[1])


def _array(values: NDArray[Any]) -> pa.Array:
    items = pa.array(values.reshape(-1))
    return items if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(items, type=_type(values))


def _tensor(array: NDArray[Any]) -> vector_index_pb2.Tensor:
    names = {"float16": "FLOAT16", "float32": "FLOAT32", "float64": "FLOAT64", "uint8": "UINT8"}
    return vector_index_pb2.Tensor(
        data_type=names[array.dtype.name], shape=array.shape, data=np.ascontiguousarray(array).tobytes()
    )


def index_details(parameters: VectorParameters) -> bytes:
    """Return the details of an index for the manifest."""
    details = vector_index_pb2.VectorIndexDetails(
        metric_type=parameters.metric.upper(), target_partition_size=parameters.partition_rows or 0
    )
    partitions = parameters.partitions if parameters.centroids is None else len(parameters.centroids)
    if partitions is not None and parameters.partition_rows is None:
        details.target_num_partitions = partitions
    hints = {
        "lance.ivf.max_iters": str(parameters.iterations),
        "lance.ivf.sample_rate": str(parameters.sample_rate),
        "lance.skip_transpose": str(not parameters.is_grouped).lower(),
    }
    if parameters.reason:
        hints[REASON] = parameters.reason
    if parameters.family in ("PQ", "SQ"):
        hints[f"lance.{parameters.family.lower()}.sample_rate"] = str(parameters.sample_rate)
    if parameters.family == "PQ":
        hints["lance.pq.max_iters"] = str(parameters.iterations)
        details.pq.num_bits, details.pq.num_sub_vectors = parameters.bits, parameters.sub_vectors or 0
    elif parameters.family == "RQ":
        details.rq.num_bits = parameters.bits
    elif parameters.family == "SQ":
        details.sq.num_bits = 8
    else:
        details.flat.SetInParent()
    if parameters.graph is not None:
        details.hnsw.max_connections = parameters.graph.neighbors
        details.hnsw.construction_ef = parameters.graph.candidates
        details.hnsw.max_level = parameters.graph.levels
    for key, value in hints.items():
        details.runtime_hints[key] = value
    return details.SerializeToString()
