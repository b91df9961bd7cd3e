"""Checks of the arguments of calls that build vector indices."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.arguments import checked_integer
from lance_dataset.callers import callers_level
from lance_dataset.changes.indexing.segments import default_memory_limit, indexed_field
from lance_dataset.errors import InvalidIndexError, InvalidInputError, UnsupportedError
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.vector.graph import GraphParameters
from lance_dataset.index.vector.training.choice import default_kind
from lance_dataset.index.vector.training.devices import device_of
from lance_dataset.index.vector.training.entries import vector_type
from lance_dataset.index.vector.training.parameters import VectorParameters
from lance_dataset.index.vector.training.trainer import BUILT_KINDS
from lance_dataset.io.resolve import resolve
from lance_dataset.read.snapshot import Snapshot
from lancecodec.search.graphs import MAX_LEVELS

if TYPE_CHECKING:
    import torch

__all__ = ["VECTOR_KINDS", "check_vector_columns", "default_choice", "part_parameters", "vector_parameters"]

_MOST_NEIGHBORS, _MOST_CANDIDATES = 1 << 12, 1 << 20
_METRICS = {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot", "hamming": "hamming"}
#: Names of all kinds of vector indices.
VECTOR_KINDS = BUILT_KINDS


#: Parameters of calls that build vector indices and do not change them.
_IGNORED = frozenset(
    {
        *("index_cache_size", "shuffle_partition_batches", "shuffle_partition_concurrency", "filter_nan"),
        *("storage_options", "streaming_sample_rate", "streaming_coreset_rate", "streaming_refine_passes"),
    }
)
_USED = frozenset(
    {
        *("num_partitions", "target_partition_size", "num_sub_vectors", "num_bits", "sample_rate", "max_iters"),
        *("ivf_centroids", "ivf_centroids_file", "pq_codebook", "skip_transpose", "rabitq_model"),
        *("accelerator", "index_file_version", "m", "ef_construction", "max_level"),
    }
)
#: Parameters that are refused, and what to do instead.
_REFUSED: Mapping[str, str] = {
    "precomputed_partition_dataset": "leave it out: vectors are assigned to partitions as they are read",
}


def part_parameters(
    parameters: VectorParameters, snapshot: Snapshot, fragment_ids: Collection[int]
) -> VectorParameters:
    """Return the parameters of a segment of some fragments.

    A segment with given centroids that does not cover all fragments is a part to be merged, as in the reference.
    """
    others = set(snapshot.manifest.fragment_list.columns.ids.tolist()).difference(fragment_ids)
    return replace(parameters, is_part=bool(others) and parameters.centroids is not None)


def check_vector_columns(snapshot: Snapshot, column: object, index_type: object) -> None:
    """Check that all of the columns have vectors, before anything else as in the reference.

    Raises
    ------
    KeyError, TypeError
        A column does not exist or has no vectors.
    """
    names = [column] if isinstance(column, str) else column
    if not isinstance(names, list | tuple) or not isinstance(index_type, str):
        return  # refused later
    for name in names:
        kind = indexed_field(snapshot.scanned_schema, name)[-1].storage_type if isinstance(name, str) else None
        if kind is not None and vector_type(kind) is None:
            raise TypeError(
                f"{index_type} index column {name} must be a fixed-size list of floats or uint8, or a list of them, "
                f"not {kind}; create_scalar_index builds indices of other columns"
            )


def default_choice(snapshot: Snapshot, column: str, index_type: str | None, metric: str | None) -> tuple[str, str, str]:
    """Return kind, metric and the reason for the kind, where they are not given.

    Raises
    ------
    KeyError, TypeError
        The column does not exist or has no vectors.
    """
    kind = indexed_field(snapshot.scanned_schema, column)[-1].storage_type
    if metric is None or metric == "L2":
        vectors = vector_type(kind)
        is_bits = vectors is not None and vectors.value_type == pa.uint8()
        metric = "hamming" if is_bits else "l2" if pa.types.is_fixed_size_list(kind) else "cosine"
    if index_type is not None:
        return index_type, metric, ""
    chosen, reason = default_kind(kind, snapshot.reader.num_rows, 4 * default_memory_limit())
    return chosen, metric, reason


def vector_parameters(
    index_type: object, metric: object, given: Mapping[str, Any], reason: str = ""
) -> VectorParameters:
    """Return the parameters of a vector index.

    Parameters
    ----------
    index_type, metric
        Names of the kind and of the metric, in any case.
    given
        Other parameters by the names that `create_index` has; None or False for defaults.
    reason
        Why the kind was chosen, if the user did not.

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
    _check_names(given)
    kind, name = index_type.upper(), _METRICS.get(metric.lower())
    if kind not in VECTOR_KINDS:
        raise UnsupportedError(
            f"Only {', '.join(VECTOR_KINDS)} are supported for vector columns. Received {index_type}"
        )
    if name is None:
        raise InvalidInputError(f"Metric {metric} not supported; known are {', '.join(_METRICS)}")
    parts, partitions = _positive(given, "num_sub_vectors"), _positive(given, "num_partitions")
    bits = _bits(kind, given, parts)
    if kind.endswith("PQ") and parts is None:
        raise InvalidInputError(f"num_sub_vectors is required for {kind}")
    device = _device(kind, given)
    _check_version(kind, given)
    centroids = _centroids(given)
    codewords = _numbers(given, "pq_codebook") if kind.endswith("PQ") else None
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
        signs=_signs(given, bits) if kind == "IVF_RQ" else None,
        is_grouped=not given.get("skip_transpose"),
        reason=reason,
        graph=_graph(kind, given),
        device=device,
    )


def _graph(kind: str, given: Mapping[str, Any]) -> GraphParameters | None:
    """Return the parameters of graphs, which are checked for all kinds."""
    usual = GraphParameters()
    m = _positive(given, "m") or usual.neighbors
    candidates, levels = _positive(given, "ef_construction"), _positive(given, "max_level") or usual.levels
    if "_HNSW_" not in kind:
        return None
    if not 4 <= m <= _MOST_NEIGHBORS:
        raise InvalidInputError(f"m must be from 4 to {_MOST_NEIGHBORS}, not {m}")
    if candidates is not None and not m <= candidates <= _MOST_CANDIDATES:
        raise InvalidInputError(f"ef_construction must be from m ({m}) to {_MOST_CANDIDATES}, not {candidates}")
    if levels > MAX_LEVELS:
        raise InvalidInputError(f"max_level must be at most {MAX_LEVELS}, not {levels}")
    return GraphParameters(m, candidates or max(usual.candidates, m), levels)


def _check_names(given: Mapping[str, Any]) -> None:
    """Refuse some parameters; warn of unknown ones, which are ignored as in the reference."""
    for name, value in given.items():
        if value is None or value is False or name in _USED | _IGNORED:
            continue
        if name in _REFUSED:
            raise UnsupportedError(f"vector indices are not built with the parameter {name!r}; {_REFUSED[name]}")
        warnings.warn(
            f"vector indices have no parameter {name!r}: it is ignored", UserWarning, stacklevel=callers_level()
        )
    for name in ("streaming_sample_rate", "streaming_coreset_rate"):
        _positive(given, name)


def _device(kind: str, given: Mapping[str, Any]) -> torch.device | None:
    """Return the device that trains the models; None for processors, which kinds other than IVF_PQ always take."""
    accelerator = given.get("accelerator")
    if accelerator is None or kind == "IVF_PQ":
        return device_of(accelerator)
    warnings.warn(
        f"Index type {kind} does not support GPU acceleration; falling back to CPU",
        UserWarning,
        stacklevel=callers_level(),
    )
    return None


def _check_version(kind: str, given: Mapping[str, Any]) -> None:
    """Check the parameter that names an old format."""
    version = given.get("index_file_version")
    if version is None:
        return
    if not isinstance(version, str):
        raise TypeError(f"index_file_version must be text, not {type(version).__name__}")
    if version.lower() not in ("legacy", "v3"):
        raise InvalidInputError(f"Invalid index_file_version: {version}; known are V3 and legacy")
    if version.lower() == "legacy" and kind == "IVF_PQ":
        raise UnsupportedError("indices in the single-file format of old releases are only read; leave out the version")


def _centroids(given: Mapping[str, Any]) -> NDArray[Any] | None:
    """Return centroids that are given, or those of a file of NumPy."""
    file = given.get("ivf_centroids_file")
    if file is None:
        return _numbers(given, "ivf_centroids")
    if given.get("ivf_centroids") is not None:
        raise InvalidInputError("ivf_centroids and ivf_centroids_file cannot be provided at the same time")
    store, path = resolve(file)
    source = store.open_input(path)
    try:
        found = np.load(BytesIO(bytes(source.read(0, source.size))), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InvalidInputError(f"{file}: is not a file of one NumPy array: {error}") from error
    return _numbers({"ivf_centroids": found}, "ivf_centroids")


def _signs(given: Mapping[str, Any], bits: int) -> NDArray[np.uint8] | None:
    """Return the signs of the rotation of a RaBitQ model in JSON."""
    text = given.get("rabitq_model")
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"rabitq_model must be JSON text, not {type(text).__name__}")
    try:
        model = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"Invalid rabitq_model JSON: {error}") from None
    model = model if isinstance(model, dict) else {}
    if model.get("num_bits") != bits:
        raise InvalidInputError(
            f"rabitq_model num_bits={model.get('num_bits')} does not match requested num_bits={bits}"
        )
    if model.get("rotation_type", "matrix") != "fast":
        raise UnsupportedError("rabitq_model: this release only builds indices with rotations of the type fast")
    signs, dimension = model.get("fast_rotation_signs"), model.get("code_dim")
    dimension = dimension if type(dimension) is int and 0 < dimension < 1 << 24 else 0
    if not isinstance(signs, list) or not all(type(byte) is int and 0 <= byte < 256 for byte in signs):
        raise InvalidInputError("rabitq_model: fast_rotation_signs must be an array of bytes")
    if not dimension or len(signs) != 4 * -(-dimension // 8):
        raise InvalidInputError(f"rabitq_model: {len(signs)} bytes of signs do not fit code_dim {dimension}")
    return np.array(signs, np.uint8)


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
    if kind.endswith("PQ"):
        bits = _positive(given, "num_bits") or 8
        if bits not in (4, 8) or (bits == 4 and parts is not None and parts % 2):
            raise InvalidIndexError(f"num_bits of {kind} must be 8, or 4 with an even num_sub_vectors, not {bits}")
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
