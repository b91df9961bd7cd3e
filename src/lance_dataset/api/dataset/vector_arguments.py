"""Checks of the arguments of calls that build vector indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidIndexError, InvalidInputError, UnsupportedError
from lance_dataset.index.vector.training.trainer import BUILT_KINDS, VectorParameters

__all__ = ["VECTOR_KINDS", "vector_parameters"]

_METRICS = {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot", "hamming": "hamming"}
#: Names of all kinds of vector indices.
VECTOR_KINDS = (*BUILT_KINDS, "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ")


#: Parameters of calls that build vector indices, besides those that are used: none of them changes the index.
_IGNORED = frozenset({"index_cache_size", "shuffle_partition_batches", "shuffle_partition_concurrency", "filter_nan"})
_USED = frozenset(
    {
        *("num_partitions", "target_partition_size", "num_sub_vectors", "num_bits", "sample_rate", "max_iters"),
        *("ivf_centroids", "pq_codebook"),
    }
)


def vector_parameters(index_type: object, metric: object, given: Mapping[str, Any]) -> VectorParameters:
    """Return the parameters of a vector index.

    Parameters
    ----------
    index_type, metric
        Names of the kind and of the metric, in any case.
    given
        Other parameters by the names that `create_index` has; None or False for defaults.

    Raises
    ------
    TypeError
        A name is not text.
    ValueError
        The metric is unknown, or a number is out of range.
    UnsupportedError
        The kind is unknown, or this release does not build it, or not with a parameter.
    """
    if not isinstance(index_type, str) or not isinstance(metric, str):
        raise TypeError(f"index_type and metric must be text, not {index_type!r} and {metric!r}")
    for parameter, value in given.items():
        if parameter not in _USED | _IGNORED and value is not None and value is not False:
            raise UnsupportedError(f"vector indices are not built with the parameter {parameter!r}; leave it out")
    kind, name = index_type.upper(), _METRICS.get(metric.lower())
    if kind not in VECTOR_KINDS:
        raise UnsupportedError(
            f"Only {', '.join(VECTOR_KINDS)} are supported for vector columns. Received {index_type}"
        )
    if kind not in BUILT_KINDS:
        raise UnsupportedError(f"this release builds {', '.join(BUILT_KINDS)}, not {kind}")
    if name is None:
        raise InvalidInputError(f"Metric {metric} not supported; known are {', '.join(_METRICS)}")
    parts = _positive(given, "num_sub_vectors")
    bits = _bits(kind, given, parts)
    if kind == "IVF_PQ" and parts is None:
        raise InvalidInputError("num_sub_vectors is required for IVF_PQ")
    partitions = _positive(given, "num_partitions")
    centroids = _numbers(given, "ivf_centroids")
    codewords = _numbers(given, "pq_codebook") if kind == "IVF_PQ" else None
    if centroids is not None:
        if centroids.ndim != 2 or not centroids.size:
            raise InvalidInputError(f"ivf_centroids must be vectors [partitions, dimension], not {centroids.shape}")
        if partitions not in (None, len(centroids)):
            raise InvalidInputError(f"num_partitions is {partitions}, but there are {len(centroids)} ivf_centroids")
    if codewords is not None and centroids is None:
        raise InvalidInputError("ivf_centroids must be given with pq_codebook")
    return VectorParameters(
        kind,
        name,
        partitions,
        _positive(given, "target_partition_size"),
        parts,
        bits,
        _positive(given, "sample_rate") or 256,
        _positive(given, "max_iters") or 50,
        centroids,
        codewords,
    )


def _numbers(given: Mapping[str, Any], name: str) -> NDArray[Any] | None:
    """Return an array of finite numbers, given as such, as nested lists, or as an Arrow array of lists."""
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, pa.FixedShapeTensorArray):
        value = value.to_numpy_ndarray()
    elif isinstance(value, pa.FixedSizeListArray):
        value = np.asarray(value.flatten()).reshape(len(value), -1)
    try:
        found = np.asarray(value)
    except ValueError:
        raise InvalidInputError(f"the lists of {name} must have equal lengths") from None
    if found.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be an array of numbers, not of {found.dtype}")
    if not np.isfinite(found).all():
        raise InvalidInputError(f"{name} must be finite")
    return found


def _bits(kind: str, given: Mapping[str, Any], parts: int | None) -> int:
    """Return the bits of a part of product quantizers, or of a value of RaBitQ codes; other kinds ignore them."""
    if kind == "IVF_PQ":
        bits = _positive(given, "num_bits") or 8
        if bits not in (4, 8) or (bits == 4 and parts is not None and parts % 2):
            raise InvalidIndexError(f"num_bits of IVF_PQ must be 8, or 4 with an even num_sub_vectors, not {bits}")
        return bits
    if kind != "IVF_RQ":
        return 8
    given_bits = given.get("num_bits")
    bits = 5 if given_bits is None else checked_integer("num_bits", given_bits, bits=31)
    if not 1 <= bits <= 9:
        raise InvalidInputError(f"num_bits of IVF_RQ must be from 1 to 9, not {bits}")
    return bits


def _positive(given: Mapping[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    number = checked_integer(name, value, bits=31)
    if not number:
        raise InvalidInputError(f"{name} must be positive, not 0")
    return number
