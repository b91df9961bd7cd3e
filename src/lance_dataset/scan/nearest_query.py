"""`NearestQuery`: parameters of a vector search, checked as far as the dataset does not matter."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, OutOfRangeError, WrongTypeError, nearest_name_hint
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "DEFAULT_K",
    "METRICS",
    "ApproxMode",
    "IndexTuning",
    "Metric",
    "NearestQuery",
    "VectorSearchQuery",
    "query_of",
]

ApproxMode: TypeAlias = Literal["fast", "normal", "accurate"]
Metric: TypeAlias = Literal["l2", "euclidean", "cosine", "dot", "hamming"]

#: Number of rows to find unless the user says otherwise.
DEFAULT_K = 10
#: Names of metrics that users may give, with the usual ones.
METRICS = {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot", "hamming": "hamming"}

_LARGEST = (1 << 63) - 1
_BFLOAT16 = "lance.bfloat16"
_PARAMETERS = (
    *("column", "q", "k", "metric", "nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "use_index"),
    *("ef", "query_parallelism", "approx_mode", "distance_range", "search_effort", "recall"),
)
#: Parameters that `recall` chooses.
_CHOSEN = ("nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "search_effort")


@dataclass(frozen=True)
class IndexTuning:
    """Parameters that only matter for the search of an index; None for what the query does not say.

    Attributes
    ----------
    least, most
        Numbers of partitions to search at first, and if these have too few rows.
    is_fixed
        True if the query gives the number of partitions.
    refine
        Candidates to compare exactly for each row to find.
    ef
        Candidates of a walk through a graph.
    approx_mode
        How exactly distances of RaBitQ are estimated.
    effort
        Effort from 0 to 1 instead of a number of partitions.
    recall
        Share of the nearest rows to find, instead of numbers of partitions and candidates.
    """

    least: int | None = None
    most: int | None = None
    is_fixed: bool = False
    refine: int | None = None
    ef: int | None = None
    approx_mode: ApproxMode = "normal"
    effort: float | None = None
    recall: float | None = None


@dataclass(frozen=True, eq=False)
class NearestQuery:
    """Search for the rows whose vectors are nearest to others.

    Attributes
    ----------
    column
        Name of the column.
    vectors : float64[n, d]
        The other vectors, without NaN.
    is_batch
        True if they were given as an array of two dimensions.
    k
        Number of rows to find.
    metric
        Metric, None for that of the index or of the type.
    use_index
        True to search indices of the column.
    lowest, below
        Limits of the distances: from `lowest` to below `below`; None for no limit.
    tuning
        Parameters for the search of an index.
    """

    column: str
    vectors: NDArray[np.float64]
    is_batch: bool
    k: int = DEFAULT_K
    metric: str | None = None
    use_index: bool = True
    lowest: float | None = None
    below: float | None = None
    tuning: IndexTuning = IndexTuning()

    @classmethod
    def of(cls, parameters: object) -> NearestQuery:
        """Check the parameters of `ScannerBuilder.nearest`.

        Raises
        ------
        TypeError
            A parameter is missing, unknown, or of the wrong type.
        InvalidInputError
            A value is never valid.
        """
        if not isinstance(parameters, Mapping):
            raise TypeError(f"nearest must be a dictionary of parameters, not {type(parameters).__name__}")
        for name in parameters:
            if name not in _PARAMETERS:
                raise TypeError(f"nearest has no parameter {name!r}{nearest_name_hint(str(name), _PARAMETERS)}")
        for name in ("column", "q"):
            if name not in parameters:
                raise TypeError(f"nearest needs the parameter {name!r}")
        column = parameters["column"]
        if not isinstance(column, str):
            raise TypeError(f"the column of nearest must be a name, not {type(column).__name__}")
        tuning = _tuning(parameters)
        vectors = _vectors(parameters["q"], column)
        lowest, below = _range(parameters.get("distance_range"))
        return cls(
            column,
            vectors.reshape(-1, vectors.shape[-1]),
            vectors.ndim == 2,
            _whole(parameters, "k", 1, shown="Nearest-K") or DEFAULT_K,
            _metric(parameters.get("metric")),
            _switch(parameters.get("use_index", True)),
            lowest,
            below,
            tuning,
        )

    def with_vectors(self, q: object) -> NearestQuery:
        """Return the same query for other vectors. Errors are those of `of`."""
        vectors = _vectors(q, self.column)
        return NearestQuery(
            *(self.column, vectors.reshape(-1, vectors.shape[-1]), vectors.ndim == 2, self.k, self.metric),
            *(self.use_index, self.lowest, self.below, self.tuning),
        )

    def __repr__(self) -> str:
        count, dimension = self.vectors.shape
        vectors = f"{count} vectors" if self.is_batch else "a vector"
        return f"NearestQuery({self.k} rows of {self.column} nearest to {vectors} of {dimension} elements)"


class VectorSearchQuery:
    """Search for the vectors that are nearest to another one, as a part of a filter.

    Parameters
    ----------
    column, q, k, metric, nprobes, minimum_nprobes, maximum_nprobes, refine_factor, use_index, ef, query_parallelism
        As for `ScannerBuilder.nearest`.
    approx_mode, search_effort
        As for `ScannerBuilder.nearest`.

    Raises
    ------
    InvalidInputError, TypeError
        A value is never valid.
    """

    def __init__(
        self,
        column: str,
        q: object,
        k: int | None = None,
        metric: Metric | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        query_parallelism: int | None = None,
        approx_mode: ApproxMode = "normal",
        search_effort: float | None = None,
    ) -> None:
        parameters = {
            "column": column,
            "q": q,
            "k": k,
            "metric": metric,
            "nprobes": nprobes,
            "minimum_nprobes": minimum_nprobes,
            "maximum_nprobes": maximum_nprobes,
            "refine_factor": refine_factor,
            "use_index": use_index,
            "ef": ef,
            "query_parallelism": query_parallelism,
            "approx_mode": approx_mode,
            "search_effort": search_effort,
        }
        self._query = NearestQuery.of(parameters)

    def __repr__(self) -> str:
        return repr(self._query).replace("NearestQuery", type(self).__name__)


def query_of(filter: VectorSearchQuery) -> NearestQuery:
    """Return the checked parameters of a search."""
    return filter._query


# -- vectors -----------------------------------------------------------------------------------------------------


def _vectors(q: object, column: str) -> NDArray[np.float64]:
    """Convert query vectors to an array of one or two dimensions without NaN."""
    vectors = _numbers(q)
    if vectors.ndim not in (1, 2) or vectors.size == 0:
        raise InvalidInputError(
            f"Query vectors must be an array of one or two dimensions, not empty, got shape {vectors.shape}"
        )
    if not math.isfinite(np.vdot(vectors, vectors)) and np.isnan(vectors).any():  # the first is faster
        number, place = divmod(int(np.argmax(np.isnan(vectors))), vectors.shape[-1])
        raise InvalidInputError(
            f"the query vector {number} for column {column!r} has NaN or null at position {place}, so no distance "
            "to it is a number; replace the element, or leave out the query"
        )
    return vectors


def _numbers(q: object) -> NDArray[np.float64]:
    """Convert query vectors to an array; nulls become NaN."""
    if type(q) is np.ndarray and q.dtype.kind == "f":
        return q.astype(np.float64)
    if isinstance(q, pa.Scalar):
        q = getattr(q, "values", None)
    if isinstance(q, pa.ChunkedArray):
        q = q.combine_chunks()
    if isinstance(q, pa.Array):
        return _of_arrow(q)
    if isinstance(q, bytes | bytearray):
        return np.frombuffer(q, np.uint8).astype(np.float64)
    if q is None or isinstance(q, str | Mapping) or np.isscalar(q):
        raise TypeError(f"Query vectors should be an array of numbers, got {type(q).__name__}")
    try:
        array = np.asarray(q)
        if array.dtype.kind in "SU":
            raise InvalidInputError(f"Query vectors should be an array of numbers, got texts ({array.dtype})")
        if array.dtype.kind in "cMm":
            raise TypeError(f"Query vectors should be an array of numbers, got {array.dtype}")
        return array.astype(np.float64)
    except ValueError as error:
        raise InvalidInputError(f"Query vectors should be an array of numbers of one length: {error}") from error


def _of_arrow(array: pa.Array) -> NDArray[np.float64]:
    if isinstance(array, pa.ExtensionArray) and array.type.extension_name == _BFLOAT16:
        halves = np.array([b"\xc0\x7f" if each is None else each for each in array.storage.to_pylist()], "S2")
        bits = np.frombuffer(b"".join(each.ljust(2, b"\0") for each in halves.tolist()), "<u2")
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    kind = array.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise TypeError(f"Query vectors should be an array of numbers, got {kind}")
    return np.array([math.nan if value is None else value for value in array.to_pylist()], np.float64)


# -- other parameters --------------------------------------------------------------------------------------------


def _whole(parameters: Mapping[str, Any], name: str, least: int, *, shown: str = "") -> int | None:
    """Return a whole number that a parameter gives, None if it is not given."""
    value = parameters.get(name)
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        raise WrongTypeError(f"{shown or name} must be a whole number, not {type(value).__name__}") from None
    if number < least:
        raise InvalidInputError(f"{shown or name} must be >= {least} but got {number}")
    if number > _LARGEST:
        raise OutOfRangeError(f"{shown or name} must be less than 2**63, got {number}")
    return number


def _tuning(parameters: Mapping[str, Any]) -> IndexTuning:
    """Return the parameters that only matter for the search of an index, checked."""
    for name in ("nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "ef"):
        _whole(parameters, name, 1)
    _whole(parameters, "query_parallelism", -1)
    probes = _whole(parameters, "nprobes", 1)
    least = _whole(parameters, "minimum_nprobes", 1) or probes
    most = _whole(parameters, "maximum_nprobes", 1) or probes
    if least is not None and most is not None and least > most:
        raise InvalidInputError("minimum_nprobes must be <= maximum_nprobes")
    if parameters.get("approx_mode", "normal") not in ("fast", "normal", "accurate"):
        raise InvalidInputError(
            f"approx_mode must be one of 'fast', 'normal', or 'accurate', got {parameters['approx_mode']!r}"
        )
    effort = parameters.get("search_effort")
    if effort is not None and not 0 <= _real("search_effort", effort) <= 1:
        raise InvalidInputError(f"search_effort must be in [0, 1], got {effort}")
    return IndexTuning(
        *(least, most, probes is not None and effort is None),
        *(_whole(parameters, "refine_factor", 1), _whole(parameters, "ef", 1)),
        parameters.get("approx_mode", "normal"),
        None if effort is None else float(effort),
        _recall(parameters),
    )


def _recall(parameters: Mapping[str, Any]) -> float | None:
    """Return the recall that a query asks for, None without any."""
    value = parameters.get("recall")
    if value is None:
        return None
    recall = _real("recall", value)
    if isinstance(value, bool) or not 0 < recall <= 1:
        raise InvalidInputError(f"recall must be above 0 and at most 1, got {value}")
    for name in _CHOSEN:
        if parameters.get(name) is not None:
            raise InvalidInputError(f"recall chooses {name}; give one of them")
    return recall


def _real(name: str, value: object) -> float:
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    return float(value)


def _range(value: object) -> tuple[float | None, float | None]:
    if value is None:
        return None, None
    if isinstance(value, int | float):
        raise TypeError(f"distance_range must be a pair of numbers, not {type(value).__name__}")
    if not isinstance(value, tuple) or len(value) != 2:
        raise InvalidInputError("distance_range must be a tuple of (lower_bound, upper_bound)")
    lowest, below = (None if each is None else _real("distance_range", each) for each in value)
    return lowest, below


def _metric(value: object) -> str | None:
    if value is None:
        return None
    found = METRICS.get(str(value).lower())
    if found is None:
        raise InvalidInputError(
            f"Metric type {str(value)!r} is not supported{nearest_name_hint(str(value), list(METRICS))}"
        )
    return found


def _switch(value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"use_index must be True or False, not {value!r}")
    return bool(value)
