"""Training of vector indices with partitions: IVF_FLAT, IVF_PQ, IVF_SQ, IVF_RQ, and the first three with graphs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.callers import callers_level
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.files import NewIndexFolder
from lance_dataset.index.trainer import Trainer, Training
from lance_dataset.index.vector.storage import ROW_ID
from lance_dataset.index.vector.training.clustering import assigned
from lance_dataset.index.vector.training.devices import clustering_on
from lance_dataset.index.vector.training.encoding import Encoder, FlatEncoder, ProductEncoder, ScalarEncoder
from lance_dataset.index.vector.training.entries import Survey, VectorEntries, vector_type
from lance_dataset.index.vector.training.graphs import partition_graphs, write_graphs
from lance_dataset.index.vector.training.parameters import VectorParameters
from lance_dataset.index.vector.training.rabit import RabitEncoder
from lance_dataset.index.vector.training.rebalancing import rebalanced
from lance_dataset.index.vector.training.shuffling import PartitionedRows
from lance_dataset.index.vector.training.writing import index_details, write_main, write_storage

__all__ = [
    "BUILT_KINDS",
    "EncodedBlock",
    "Models",
    "encoded_blocks",
    "trained_models",
    "vector_trainer",
    "wanted_rows",
    "write_encoded",
]

#: Vectors of a partition, unless a number of partitions is given, by kind.
_ROWS_OF_PARTITION: Final = {
    "IVF_FLAT": 4096,
    "IVF_PQ": 8192,
    "IVF_SQ": 8192,
    "IVF_RQ": 4096,
    "IVF_HNSW_FLAT": 1 << 20,
    "IVF_HNSW_PQ": 1 << 20,
    "IVF_HNSW_SQ": 1 << 20,
}
BUILT_KINDS: Final = tuple(_ROWS_OF_PARTITION)
_MAX_PARTITIONS = 4096
#: Partitions of vectors, columns of their rows and codes, and the sum of their distances to the centroids.
EncodedBlock: TypeAlias = tuple[NDArray[np.int32], dict[str, NDArray[Any]], float]
_TYPE_URL = "/lance.index.pb.VectorIndexDetails"
_SEED = 0x1F
#: Parts of the memory limit that vectors in memory (or rows before they are written), and a sample of them, may take.
_HELD_PART, _SAMPLE_PART = 4, 8
_LEAST_SAMPLE_BYTES = 4 << 20
#: Vectors of the sample for a partition, below which there is a warning.
_LEAST_VECTORS = 32
#: Rows of a batch of vectors.
_BATCH_ROWS = 1 << 13


@dataclass(frozen=True)
class Models:
    """Centroids and encoding of an index.

    Attributes
    ----------
    centroids : float or uint8 [partitions, dimension]
        Centroids of the partitions.
    encoder_of
        Returns the encoding for values between two bounds.
    wanted_rows
        Vectors of a partition, of which much larger partitions are split and much smaller ones joined; None to keep
        the partitions. The encoding is then trained anew, since vectors differ from other centroids.
    """

    centroids: NDArray[Any]
    encoder_of: Callable[[tuple[float, float]], Encoder]
    wanted_rows: int | None = None


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
        batch_rows=_BATCH_ROWS,
    )


def _write(parameters: VectorParameters, models: Models | None, work: Training) -> bytes:
    _check(parameters, work.kind)
    rng = np.random.default_rng(_SEED)
    entries = VectorEntries(work.entries, work.kind, parameters.metric, work.memory_limit // _HELD_PART)
    if models is not None:
        _check_models(models, work.kind)
    survey = entries.survey(max(work.memory_limit // _SAMPLE_PART, _LEAST_SAMPLE_BYTES), rng)
    if models is None:
        if survey.count < _needed(parameters):
            return index_details(parameters)
        models = _trained(parameters, survey, rng)
    elif models.wanted_rows is not None and survey.count >= _needed(parameters):
        models = _rebalanced(parameters, models.centroids, models.wanted_rows, survey, rng)
    encoder = models.encoder_of(survey.bounds)
    del survey
    _write_files(parameters, entries, models.centroids, encoder, work)
    return index_details(parameters)


def _needed(parameters: VectorParameters) -> int:
    """Return the number of vectors without which an index stays untrained."""
    return 1 << parameters.bits if parameters.family == "PQ" and parameters.codewords is None else 1


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
    if bits and parameters.family != "FLAT":
        raise UnsupportedError(f"{parameters.kind} indices of uint8 are not built; use IVF_FLAT or IVF_HNSW_FLAT")
    centroids = parameters.centroids
    if centroids is not None and centroids.shape[1] != vectors.list_size:
        raise InvalidInputError(
            f"ivf_centroids have {centroids.shape[1]} values, but the vectors of the column {vectors.list_size}"
        )
    if centroids is not None:
        _check_numbers("ivf_centroids have", centroids, vectors.value_type)
    if parameters.kind == "IVF_RQ":
        if vectors.list_size % 8:
            raise InvalidInputError(f"dimension ({vectors.list_size}) must be divisible by 8 for IVF_RQ")
        if parameters.signs is not None and len(parameters.signs) != vectors.list_size // 2:
            raise InvalidInputError(
                f"rabitq_model dimension={2 * len(parameters.signs)} does not match vector dimension="
                f"{vectors.list_size}"
            )
    if parameters.family != "PQ":
        return
    parts = parameters.sub_vectors
    if parts is None:
        raise InvalidInputError(f"num_sub_vectors is required for {parameters.kind}")
    if vectors.list_size % parts:
        raise InvalidInputError(f"dimension ({vectors.list_size}) must be divisible by num_sub_vectors ({parts})")
    words = parameters.codewords
    if words is not None and words.size != vectors.list_size << parameters.bits:
        raise InvalidInputError(
            f"pq_codebook has {words.size} values, not {1 << parameters.bits} codewords for vectors of "
            f"{vectors.list_size}"
        )
    if words is not None:
        _check_numbers("pq_codebook has", words, vectors.value_type)


def _check_numbers(what: str, numbers: NDArray[Any], item: pa.DataType) -> None:
    """Raise an error if numbers do not stay what they are, apart from rounding, as elements of vectors."""
    with np.errstate(over="ignore", invalid="ignore"):
        stored = numbers.astype(item.to_pandas_dtype())
    fits = np.isfinite(stored) if pa.types.is_floating(item) else stored == numbers
    if not fits.all():
        raise InvalidInputError(f"{what} numbers that vectors of {item} cannot have")


def _trained(parameters: VectorParameters, survey: Survey, rng: np.random.Generator) -> Models:
    sample = survey.sample
    if parameters.centroids is None:
        count = _checked_count(parameters, survey)
        some = _sampled(sample, count * parameters.sample_rate, rng)
        clustering = clustering_on(parameters.device)
        centroids = clustering(some, count, parameters.metric, rng, parameters.iterations, balanced=True)
        centroids = centroids.astype(sample.dtype)
    else:
        centroids = parameters.centroids.astype(sample.dtype)
    encoder = _encoder(parameters, survey, centroids, rng)
    return Models(centroids, lambda bounds: encoder)


def _rebalanced(
    parameters: VectorParameters, centroids: NDArray[Any], wanted: int, survey: Survey, rng: np.random.Generator
) -> Models:
    """Return models whose partitions are about as large as wanted."""
    balanced = rebalanced(centroids, survey.sample, survey.count, wanted, parameters.metric, rng, parameters.iterations)
    return _trained(replace(parameters, partitions=None, centroids=balanced), survey, rng)


def _write_files(
    parameters: VectorParameters,
    entries: VectorEntries,
    centroids: NDArray[Any],
    encoder: Encoder,
    work: Training,
) -> None:
    loss = 0.0
    with PartitionedRows(len(centroids), work.memory_limit // _HELD_PART) as gathered:
        for places, columns, part in _encoded(parameters, entries, centroids, encoder):
            gathered.add(places, columns)
            loss += part
        write_storage(parameters, gathered, centroids, encoder, work.target)
        if parameters.graph is not None:
            dimension, metric = centroids.shape[1], parameters.metric
            graphs = partition_graphs(gathered, encoder, dimension, metric, parameters.graph, work.memory_limit)
            write_graphs(parameters.kind, metric, centroids, loss, graphs, work.target)
            return
    write_main(parameters, centroids, loss, work.target)


def _encoded(
    parameters: VectorParameters, entries: VectorEntries, centroids: NDArray[Any], encoder: Encoder
) -> Iterator[EncodedBlock]:
    for vectors, rows in entries.blocks():
        places, distances = assigned(vectors, centroids, parameters.metric)
        differences = _differences(vectors, centroids[places]) if encoder.residual else vectors
        columns = {ROW_ID: rows, **encoder.encode(differences, places)}
        yield places, columns, float(distances.sum(dtype=np.float64))


def _differences(vectors: NDArray[Any], centroids: NDArray[Any]) -> NDArray[Any]:
    """Return vectors minus their centroids; differences that the type cannot hold are the largest that it can."""
    with np.errstate(over="ignore"):
        found: NDArray[Any] = vectors - centroids
    limits = np.finfo(found.dtype)
    return found if np.isfinite(found).all() else found.clip(limits.min, limits.max)


def trained_models(
    parameters: VectorParameters, batches: Iterable[pa.RecordBatch], kind: pa.DataType, memory_limit: int
) -> tuple[NDArray[Any], Encoder]:
    """Return the centroids and the encoding of an index, trained with vectors as `Training.entries` has them.

    Raises
    ------
    InvalidInputError
        The parameters do not fit the column, or there are too few vectors.
    """
    _check(parameters, kind)
    rng = np.random.default_rng(_SEED)
    entries = VectorEntries(batches, kind, parameters.metric, memory_limit // _HELD_PART)
    survey = entries.survey(max(memory_limit // _SAMPLE_PART, _LEAST_SAMPLE_BYTES), rng)
    if survey.count < _needed(parameters):
        raise InvalidInputError(f"there are {survey.count} vectors, but the training needs {_needed(parameters)}")
    models = _trained(parameters, survey, rng)
    return models.centroids, models.encoder_of(survey.bounds)


def encoded_blocks(
    parameters: VectorParameters, batches: Iterable[pa.RecordBatch], kind: pa.DataType
) -> Iterator[EncodedBlock]:
    """Yield vectors as codes of product quantization, with given models.

    Raises
    ------
    InvalidInputError
        The models do not fit the column.
    """
    _check(parameters, kind)
    entries = VectorEntries(batches, kind, parameters.metric, 0)
    centroids = np.asarray(parameters.centroids).astype(entries.dtype)
    yield from _encoded(parameters, entries, centroids, _product_encoder(parameters, centroids))


def write_encoded(
    parameters: VectorParameters, gathered: PartitionedRows, loss: float, target: NewIndexFolder
) -> bytes:
    """Write the files of an index of codes of product quantization; return the value of the details."""
    centroids = np.asarray(parameters.centroids)
    write_storage(parameters, gathered, centroids, _product_encoder(parameters, centroids), target)
    write_main(parameters, centroids, loss, target)
    return index_details(parameters)


def wanted_rows(parameters: VectorParameters) -> int:
    """Return the wanted number of vectors of a partition, where no number of partitions is asked for."""
    return parameters.partition_rows or _ROWS_OF_PARTITION[parameters.kind]


def _partitions(parameters: VectorParameters, n: int) -> int:
    if parameters.partitions is not None:
        return parameters.partitions
    return min(max(n // wanted_rows(parameters), 1), _MAX_PARTITIONS)


def _checked_count(parameters: VectorParameters, survey: Survey) -> int:
    """Return the number of partitions; warn if it is less than what was asked for, or the sample is small for it."""
    most = len(survey.sample)
    reason = "one for each vector"
    if most < survey.count:
        reason += " that the memory limit lets it keep for the training"
    if parameters.partitions is not None and parameters.family == "PQ":  # as in the reference
        enough = max(survey.count // parameters.sample_rate, 1)
        if enough < most:
            most, reason = enough, f"one for each {parameters.sample_rate} (sample_rate) of {survey.count} vectors"
    count = min(_partitions(parameters, survey.count), most)
    if parameters.partitions is not None and count < parameters.partitions:
        warnings.warn(
            f"the index gets {count} of the {parameters.partitions} requested partitions, {reason}",
            UserWarning,
            stacklevel=callers_level(),
        )
    elif len(survey.sample) < min(_LEAST_VECTORS * count, survey.count):
        warnings.warn(
            f"the memory limit leaves {len(survey.sample)} of {survey.count} vectors for the training of {count} "
            "partitions; raise memory_limit for better partitions",
            UserWarning,
            stacklevel=callers_level(),
        )
    return count


def _sampled(vectors: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[Any]:
    if len(vectors) <= count:
        return vectors
    return vectors[np.sort(rng.choice(len(vectors), count, replace=False))]


def _encoder(
    parameters: VectorParameters, survey: Survey, centroids: NDArray[Any], rng: np.random.Generator
) -> Encoder:
    if parameters.family == "FLAT":
        return FlatEncoder()
    if parameters.family == "SQ":
        return ScalarEncoder(*survey.bounds)
    if parameters.kind == "IVF_RQ":
        size = 4 * -(-centroids.shape[1] // 8)
        signs = rng.integers(0, 256, size, np.uint8) if parameters.signs is None else parameters.signs
        return RabitEncoder(centroids, parameters.bits, parameters.metric, signs, parameters.stores_groups)
    parts, residual = parameters.sub_vectors or 1, parameters.metric != "dot"
    if parameters.codewords is not None:
        return _product_encoder(parameters, centroids)
    some = _sampled(survey.sample, parameters.sample_rate << parameters.bits, rng)
    if residual:
        some = _differences(some, centroids[assigned(some, centroids, parameters.metric)[0]])
    clustering = clustering_on(parameters.device)
    trained = ProductEncoder.trained(some, parts, parameters.bits, residual, rng, parameters.iterations, clustering)
    words = trained.codebook
    return _product_encoder(replace(parameters, codewords=words), centroids)


def _product_encoder(parameters: VectorParameters, centroids: NDArray[Any]) -> ProductEncoder:
    """Return the encoding with given codewords."""
    words = np.asarray(parameters.codewords).astype(centroids.dtype)
    words = words.reshape(parameters.sub_vectors or 1, 1 << parameters.bits, -1)
    return ProductEncoder(words, parameters.metric != "dot", parameters.stores_groups)
