"""Training of vector indices with partitions: IVF_FLAT, IVF_PQ, IVF_SQ and IVF_RQ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.files import WRITTEN_VERSION, NewIndexFolder
from lance_dataset.index.trainer import Trainer, Training
from lance_dataset.index.vector.index_file import FLAT_KEY, INDEX_FILE, INDEX_KEY
from lance_dataset.index.vector.ivf import IVF_KEY
from lance_dataset.index.vector.storage import DISTANCE_KEY, ROW_ID, STORAGE_FILE, STORAGE_KEY
from lance_dataset.index.vector.training.clustering import assigned, cluster
from lance_dataset.index.vector.training.encoding import Encoder, FlatEncoder, ProductEncoder, ScalarEncoder
from lance_dataset.index.vector.training.entries import Entries, collected, vector_type
from lance_dataset.index.vector.training.rabit import RabitEncoder
from lance_dataset.types.schema import Schema

__all__ = ["BUILT_KINDS", "Models", "VectorParameters", "vector_trainer"]

#: Vectors of a partition, unless a number of partitions is given, by kind.
_ROWS_OF_PARTITION: Final = {"IVF_FLAT": 4096, "IVF_PQ": 8192, "IVF_SQ": 8192, "IVF_RQ": 4096}
BUILT_KINDS: Final = tuple(_ROWS_OF_PARTITION)
_MAX_PARTITIONS = 4096
_TYPE_URL = "/lance.index.pb.VectorIndexDetails"
_SEED = 0x1F


@dataclass(frozen=True)
class VectorParameters:
    """Parameters of a vector index.

    Attributes
    ----------
    kind
        One of `BUILT_KINDS`.
    metric
        ``l2``, ``cosine``, ``dot`` or ``hamming``.
    partitions
        Number of partitions; None for one that follows from the number of vectors.
    partition_rows
        Wanted vectors of a partition; None for the default of the kind.
    sub_vectors
        Parts of a vector of product quantizers.
    bits
        Bits of a part of product quantizers, or of a value of RaBitQ codes.
    sample_rate, iterations
        Vectors for a cluster, and maximum number of iterations, of the training.
    centroids : float or uint8 [partitions, dimension]
        Centroids to use; None to train them.
    codewords : float[sub_vectors * 2 ** bits * dimension / sub_vectors]
        Codewords to use, part by part; None to train them.
    """

    kind: str
    metric: str = "l2"
    partitions: int | None = None
    partition_rows: int | None = None
    sub_vectors: int | None = None
    bits: int = 8
    sample_rate: int = 256
    iterations: int = 50
    centroids: NDArray[Any] | None = None
    codewords: NDArray[Any] | None = None


@dataclass(frozen=True)
class Models:
    """Centroids and encoding of an index.

    Attributes
    ----------
    centroids : float or uint8 [partitions, dimension]
        Centroids of the partitions.
    encoder_of
        Returns the encoding for given vectors.
    """

    centroids: NDArray[Any]
    encoder_of: Callable[[NDArray[Any]], Encoder]


def vector_trainer(parameters: VectorParameters, models: Models | None = None) -> Trainer:
    """Return the training of an index.

    Parameters
    ----------
    parameters
        Its parameters.
    models
        Models to use; None to train them.
    """
    return Trainer(
        name=parameters.kind,
        type_url=_TYPE_URL,
        fits=lambda kind: vector_type(kind) is not None,
        wanted="a fixed-size list of floats or uint8, or a list of them",
        write=lambda work: _write(parameters, models, work),
        version=2 if parameters.kind == "IVF_RQ" else 1,
        stable_version=2 if parameters.kind == "IVF_RQ" else 1,
    )


def _write(parameters: VectorParameters, models: Models | None, work: Training) -> bytes:
    _check(parameters, work.kind)
    entries = collected(work.entries, work.kind, parameters.metric, work.memory_limit)
    if models is not None:
        _check_models(models, work.kind)
        places, distances = assigned(entries.vectors, models.centroids, parameters.metric)
        encoder = models.encoder_of(entries.vectors)
        _write_files(parameters, entries, models.centroids, places, distances, encoder, work.target)
    elif len(entries.rows) >= _needed(parameters):
        _build(parameters, entries, work.target)
    return _details(parameters)


def _needed(parameters: VectorParameters) -> int:
    """Return the number of vectors without which an index stays untrained."""
    return 1 << parameters.bits if parameters.kind == "IVF_PQ" and parameters.codewords is None else 1


def _check_models(models: Models, kind: pa.DataType) -> None:
    vectors = vector_type(kind)
    centroids = models.centroids
    if vectors is None or (vectors.list_size, vectors.value_type) != (
        centroids.shape[1],
        pa.from_numpy_dtype(centroids.dtype),
    ):
        raise InvalidInputError(
            f"the centroids of the index have {centroids.shape[1]} values of {centroids.dtype}, "
            f"which do not fit a column of {kind}; build the index anew"
        )


def _check(parameters: VectorParameters, kind: pa.DataType) -> None:
    """Raise an error if the parameters do not fit the type of a column."""
    vectors = vector_type(kind)
    if vectors is None:
        raise TypeError(f"a vector index needs a column of vectors, not {kind}")
    bits, lists = vectors.value_type == pa.uint8(), not pa.types.is_fixed_size_list(kind)
    metric = parameters.metric
    if bits != (metric == "hamming"):
        raise InvalidInputError(
            f"vectors of {vectors.value_type} cannot have the metric {metric}; "
            "uint8 has hamming, floats have the others"
        )
    if lists and metric != "cosine":
        raise InvalidInputError(f"lists of vectors can only have the metric cosine, not {metric}")
    if bits and parameters.kind != "IVF_FLAT":
        raise UnsupportedError(f"{parameters.kind} indices of uint8 are not built; use IVF_FLAT")
    centroids = parameters.centroids
    if centroids is not None and centroids.shape[1] != vectors.list_size:
        raise InvalidInputError(
            f"ivf_centroids have {centroids.shape[1]} values, but the vectors of the column {vectors.list_size}"
        )
    if parameters.kind == "IVF_RQ" and vectors.list_size % 8:
        raise InvalidInputError(f"dimension ({vectors.list_size}) must be divisible by 8 for IVF_RQ")
    if parameters.kind != "IVF_PQ":
        return
    parts = parameters.sub_vectors
    if parts is None:
        raise InvalidInputError("num_sub_vectors is required for IVF_PQ")
    if vectors.list_size % parts:
        raise InvalidInputError(f"dimension ({vectors.list_size}) must be divisible by num_sub_vectors ({parts})")
    words = parameters.codewords
    if words is not None and words.size != vectors.list_size << parameters.bits:
        raise InvalidInputError(
            f"pq_codebook has {words.size} values, not {1 << parameters.bits} codewords for vectors of "
            f"{vectors.list_size}"
        )


def _build(parameters: VectorParameters, entries: Entries, target: NewIndexFolder) -> None:
    rng, vectors = np.random.default_rng(_SEED), entries.vectors
    if parameters.centroids is None:
        count = _partitions(parameters, len(vectors))
        sample = _sampled(vectors, count * parameters.sample_rate, rng)
        centroids = cluster(sample, count, parameters.metric, rng, parameters.iterations).astype(vectors.dtype)
    else:
        centroids = parameters.centroids.astype(vectors.dtype)
    places, distances = assigned(vectors, centroids, parameters.metric)
    encoder = _encoder(parameters, vectors, centroids, places, rng)
    _write_files(parameters, entries, centroids, places, distances, encoder, target)


def _write_files(
    parameters: VectorParameters,
    entries: Entries,
    centroids: NDArray[Any],
    places: NDArray[np.int32],
    distances: NDArray[np.float32],
    encoder: Encoder,
    target: NewIndexFolder,
) -> None:
    lengths = np.bincount(places, minlength=len(centroids))
    _write_storage(parameters, entries, centroids, places, lengths, encoder, target)
    _write_main(parameters, centroids, float(distances.sum(dtype=np.float64)), target)


def _partitions(parameters: VectorParameters, n: int) -> int:
    if parameters.partitions is not None:
        return min(parameters.partitions, n)
    wanted = parameters.partition_rows or _ROWS_OF_PARTITION[parameters.kind]
    return min(max(n // wanted, 1), _MAX_PARTITIONS)


def _sampled(vectors: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[Any]:
    if len(vectors) <= count:
        return vectors
    return vectors[np.sort(rng.choice(len(vectors), count, replace=False))]


def _encoder(
    parameters: VectorParameters,
    vectors: NDArray[Any],
    centroids: NDArray[Any],
    places: NDArray[np.int32],
    rng: np.random.Generator,
) -> Encoder:
    if parameters.kind == "IVF_FLAT":
        return FlatEncoder()
    if parameters.kind == "IVF_SQ":
        return ScalarEncoder(float(vectors.min()), float(vectors.max()))
    if parameters.kind == "IVF_RQ":
        return RabitEncoder.drawn(centroids, parameters.bits, parameters.metric, rng)
    parts, residual = parameters.sub_vectors or 1, parameters.metric != "dot"
    if parameters.codewords is not None:
        words = parameters.codewords.astype(vectors.dtype).reshape(parts, 1 << parameters.bits, -1)
        return ProductEncoder(words, residual)
    numbers = _sampled(np.arange(len(vectors)), parameters.sample_rate << parameters.bits, rng)
    sample = vectors[numbers] - centroids[places[numbers]] if residual else vectors[numbers]
    return ProductEncoder.trained(sample, parts, parameters.bits, residual, rng, parameters.iterations)


def _write_storage(
    parameters: VectorParameters,
    entries: Entries,
    centroids: NDArray[Any],
    places: NDArray[np.int32],
    lengths: NDArray[np.int64],
    encoder: Encoder,
    target: NewIndexFolder,
) -> None:
    dimension = centroids.shape[1]
    differences = entries.vectors - centroids[places] if encoder.residual else entries.vectors
    columns = encoder.encode(differences, places)
    del differences
    order = np.argsort(places, kind="stable")
    schema = pa.schema([pa.field(ROW_ID, pa.uint64()), *(pa.field(name, _type(columns[name])) for name in columns)])

    def partitions() -> Iterator[pa.RecordBatch]:
        start = 0
        for length in lengths.tolist():
            mine = order[start : start + length]
            start += length
            if length:
                parts = {name: values[mine] for name, values in columns.items()}
                parts[encoder.column] = encoder.stored(parts[encoder.column])
                arrays = [pa.array(entries.rows[mine]), *map(_array, parts.values())]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

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


def _write_main(parameters: VectorParameters, centroids: NDArray[Any], loss: float, target: NewIndexFolder) -> None:
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


def _details(parameters: VectorParameters) -> bytes:
    details = vector_index_pb2.VectorIndexDetails(
        metric_type=parameters.metric.upper(), target_partition_size=parameters.partition_rows or 0
    )
    hints = {"lance.ivf.max_iters": parameters.iterations, "lance.ivf.sample_rate": parameters.sample_rate}
    if parameters.kind == "IVF_PQ":
        details.pq.num_bits, details.pq.num_sub_vectors = parameters.bits, parameters.sub_vectors or 0
    elif parameters.kind == "IVF_RQ":
        details.rq.num_bits = parameters.bits
    elif parameters.kind == "IVF_SQ":
        details.sq.num_bits = 8
    else:
        details.flat.SetInParent()
    for key, value in hints.items():
        details.runtime_hints[key] = str(value)
    return details.SerializeToString()
