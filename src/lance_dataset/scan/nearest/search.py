"""`VectorSearch`: a query fitted to a column, with the form of its vectors that kernels read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.properties import cached_property
from lance_dataset.read.projection import OutputColumn, Projection, project, scalar_path
from lance_dataset.scan.nearest_query import NearestQuery
from lance_dataset.types.logical import BFLOAT16_EXTENSION
from lance_dataset.types.schema import Schema
from lancecodec.search.distances import ELEMENTS, MAX_DIMENSION, MAX_QUERIES, METRICS, Nearest, query_size

__all__ = ["VectorColumn", "VectorSearch"]

#: Types of elements by the names of kernels.
_NAMES = {pa.float32(): "f", pa.float64(): "d", pa.float16(): "e", pa.int8(): "i1", pa.uint8(): "u1"}
_BFLOAT16 = "b"
_BYTES = "u1"
_QUERY_UNIT = 16


@dataclass(frozen=True)
class VectorColumn:
    """Column of vectors, or of lists of vectors.

    Attributes
    ----------
    name
        Full name.
    field_id
        Id of the field of the vectors, or of the lists.
    output
        The column as scans read it.
    element
        Type of the elements, one of `ELEMENTS`.
    dimension
        Number of elements of a vector.
    is_lists
        True for lists of vectors.
    """

    name: str
    field_id: int
    output: OutputColumn
    element: str
    dimension: int
    is_lists: bool

    @classmethod
    def of(cls, schema: Schema, name: str) -> VectorColumn:
        """Find a column.

        Raises
        ------
        FieldNotFoundError
            The column does not exist.
        TypeError
            It does not hold vectors.
        InvalidInputError
            The elements of the vectors have no distances.
        """
        path = scalar_path(schema, name, "to search")
        field = path[-1].to_arrow()
        kind, full = field.type, ".".join(node.name for node in path)
        is_lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        vectors = kind.value_type if is_lists else kind
        if not pa.types.is_fixed_size_list(vectors):
            raise TypeError(f"Query column {full} must be a vector. Got {kind}.")
        element = _NAMES.get(vectors.value_type)
        extension = (vectors.value_field.metadata or {}).get(b"ARROW:extension:name", b"")
        if extension == BFLOAT16_EXTENSION.encode():
            element = _BFLOAT16
        if element is None:
            raise InvalidInputError(
                f"column {full!r}: elements of vectors must be float16, bfloat16, float32, float64, int8 or uint8, "
                f"not {vectors.value_type}"
            )
        if not 1 <= vectors.list_size <= MAX_DIMENSION:
            raise InvalidInputError(f"column {full!r}: vectors of {vectors.list_size} elements cannot be searched")
        output = project(schema, [full]).columns[0]
        return cls(full, path[-1].id, output, element, vectors.list_size, is_lists)

    @cached_property
    def projection(self) -> Projection:
        """Projection to the column alone; reusing it saves takes the work of planning."""
        return Projection((self.output,), pa.schema([self.output.arrow]))

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return np.dtype({_BFLOAT16: "u2"}.get(self.element, self.element)).itemsize

    @property
    def usual_metric(self) -> str:
        """Metric of a search that names none, and uses no index."""
        return "hamming" if self.element == _BYTES else "l2"


@dataclass(frozen=True)
class VectorSearch:
    """A query fitted to a column.

    Attributes
    ----------
    query
        The query.
    column
        The column.
    metric
        One of `METRICS`.
    """

    query: NearestQuery
    column: VectorColumn
    metric: str

    @classmethod
    def of(cls, query: NearestQuery, column: VectorColumn, metric: str) -> VectorSearch:
        """Fit a query to a column.

        Raises
        ------
        InvalidInputError
            The vectors have another dimension, or the metric is not defined for the column.
        """
        count, dimension = query.vectors.shape
        if dimension != column.dimension:
            raise InvalidInputError(
                f"Query vector size {dimension} does not match the size {column.dimension} of the vectors in column "
                f"{column.name!r}"
            )
        if (metric == "hamming") and column.element != _BYTES:
            raise InvalidInputError(
                f"metric hamming counts the bits of uint8 vectors, and column {column.name!r} has other elements"
            )
        if count > MAX_QUERIES:
            raise InvalidInputError(f"{count} queries are too many; search for at most {MAX_QUERIES} at a time")
        if metric == "hamming" and not np.all((query.vectors > -1) & (query.vectors < 256)):
            raise InvalidInputError(
                f"queries of the uint8 vectors in column {column.name!r} need numbers from 0 to 255"
            )
        return cls(query, column, metric)

    @cached_property
    def encoded(self) -> bytes:
        """The vectors of the query, as kernels read them."""
        return _encoded(self.query, self.column, self.metric)

    @property
    def is_batch(self) -> bool:
        """True if each vector of the query is searched for separately."""
        return self.query.is_batch and not self.column.is_lists

    @property
    def num_queries(self) -> int:
        """Number of separate searches."""
        return len(self.query.vectors) if self.is_batch else 1

    def start(self) -> Nearest:
        """Return an empty set of nearest vectors."""
        return Nearest(
            self.encoded,
            self.column.dimension,
            ELEMENTS.index(self.column.element),
            METRICS.index(self.metric),
            self.query.k,
            self.column.is_lists,
            self.query.lowest,
            self.query.below,
        )


def _encoded(query: NearestQuery, column: VectorColumn, metric: str) -> bytes:
    vectors = query.vectors
    if metric == "hamming":
        return vectors.astype(np.uint8).tobytes()
    with np.errstate(over="ignore"):
        if column.element == "e":  # rounded as in the reference, so that equal vectors have no distance
            vectors = vectors.astype(np.float16)
        numbers = vectors.astype(np.float64 if column.element == "d" else np.float32)
    size = query_size(column.dimension, ELEMENTS.index(column.element), METRICS.index(metric))
    padded = np.zeros((len(numbers), size // numbers.itemsize), numbers.dtype)
    padded[:, : column.dimension] = numbers
    return padded.tobytes()
