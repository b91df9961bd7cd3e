"""Near duplicates among vectors: clusters of bit vectors, and pairs of vectors within the partitions of an index."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.api.vectors.partitions import check_bits, checked_id, checked_partition, chosen_segments
from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.vector.contents import StoredSegment, is_of_vectors, stored_segments
from lance_dataset.read.projection import project
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_addresses
from lance_dataset.table.indices.reuse import find_reuse_index, relocation
from lance_dataset.table.row_addresses import fragments_of

if TYPE_CHECKING:
    from lance_dataset.api.dataset.dataset import LanceDataset

__all__ = [
    "find_duplicate_pairs",
    "find_duplicate_pairs_in_partition",
    "hamming_clustering_for_ivf_partition",
    "hamming_clustering_for_range",
    "hamming_clustering_for_sample",
]

_CLUSTERS: Final = pa.schema(
    [
        pa.field("representative", pa.uint64(), nullable=False),
        pa.field("duplicates", pa.list_(pa.uint64()), nullable=False),
    ]
)
_PAIRS: Final = pa.schema(
    [
        pa.field("row_id_a", pa.uint64(), nullable=False),
        pa.field("row_id_b", pa.uint64(), nullable=False),
        pa.field("distance", pa.float32(), nullable=False),
    ]
)
#: Bytes of distances that are computed together, unless `memory_limit` says otherwise.
_BLOCK_BYTES = 64 << 20
_DEFAULT_THRESHOLD = 10
_MAX_THRESHOLD_BITS = 32


# -- clusters of bit vectors -------------------------------------------------------------------------------------------


def hamming_clustering_for_ivf_partition(
    dataset: LanceDataset,
    index_name: str,
    partition_id: int,
    hamming_threshold: int,
    *,
    index_segments: Iterable[str | uuid.UUID] | None = None,
) -> pa.RecordBatchReader:
    """Find clusters of near-identical bit vectors in a partition of an index.

    Two vectors are in one cluster if a chain of vectors leads from one to the other, each at most the threshold away
    from the next one. Rows that were deleted are left out.

    Parameters
    ----------
    dataset
        The dataset.
    index_name
        Name of an index of the kind IVF_FLAT of a column of fixed-size lists of uint8, whose size is a multiple of 8.
    partition_id
        Number of the partition.
    hamming_threshold
        Largest number of different bits.
    index_segments
        Ids of the segments to search; None for all.

    Returns
    -------
    pyarrow.RecordBatchReader
        The smallest row id of each cluster of two or more, as ``representative``, and the others, as ``duplicates``.

    Raises
    ------
    ValueError
        There is no such index, segment or partition, or the index is of another type.
    OverflowError
        A number is negative.
    """
    chosen = chosen_segments(dataset, index_name, index_segments)
    limit = _threshold(hamming_threshold)
    segments = stored_segments(chosen)
    number = checked_partition(segments, partition_id)
    parts = [
        _vectors(dataset, segment, each, number)
        for segment, each in zip(segments, (each for each in chosen if each.recorded), strict=True)
        if number < len(segment.lengths)
    ]
    return _clusters(
        np.concatenate([vectors for vectors, _ in parts]), np.concatenate([ids for _, ids in parts]), limit
    )


def hamming_clustering_for_range(
    dataset: LanceDataset,
    column: str,
    fragment_id: int,
    start_row: int,
    num_rows: int,
    hamming_threshold: int = _DEFAULT_THRESHOLD,
) -> pa.RecordBatchReader:
    """Find clusters of near-identical bit vectors in a range of rows.

    Parameters
    ----------
    dataset
        The dataset.
    column
        Name of a column of fixed-size lists of uint8, whose size is a multiple of 8.
    fragment_id
        Fragment of the rows.
    start_row, num_rows
        First row in the fragment, deleted ones counted, and number of rows; fewer if the fragment ends before.
    hamming_threshold
        Largest number of different bits.

    Returns
    -------
    pyarrow.RecordBatchReader
        See `hamming_clustering_for_ivf_partition`. Rows without a vector are left out.

    Raises
    ------
    ValueError
        There is no such column, fragment or row, or the column is of another type.
    OverflowError
        A number is negative.
    """
    check_bits(dataset, column)
    number, start = checked_integer("fragment_id", fragment_id), checked_integer("start_row", start_row)
    count, limit = checked_integer("num_rows", num_rows), _threshold(hamming_threshold)
    fragment = next((each for each in dataset.get_fragments() if each.fragment_id == number), None)
    if fragment is None:
        raise InvalidInputError(f"Fragment with ID {number} not found")
    physical = fragment.physical_rows
    if start >= physical and count:
        raise InvalidInputError(f"start_row {start} is out of range for fragment with {physical} physical rows")
    first = (number << 32) + start
    wanted = f"_rowaddr >= {first} AND _rowaddr < {first + min(count, physical)}"
    table = dataset.scanner(columns=[column], filter=wanted, fragments=[fragment], with_row_id=True).to_table()
    return _clusters(*_usable(table, column), limit)


def hamming_clustering_for_sample(
    dataset: LanceDataset, column: str, sample_size: int | None = None, hamming_threshold: int = _DEFAULT_THRESHOLD
) -> pa.RecordBatchReader:
    """Find clusters of near-identical bit vectors among rows drawn at random.

    Parameters
    ----------
    dataset
        The dataset.
    column
        Name of a column of fixed-size lists of uint8, whose size is a multiple of 8.
    sample_size
        Number of rows; None for all.
    hamming_threshold
        Largest number of different bits.

    Returns
    -------
    pyarrow.RecordBatchReader
        See `hamming_clustering_for_ivf_partition`. Rows without a vector are left out.

    Raises
    ------
    ValueError
        There is no such column, or it is of another type.
    OverflowError
        A number is negative.
    """
    check_bits(dataset, column)
    limit, rows = _threshold(hamming_threshold), dataset.count_rows()
    wanted = rows if sample_size is None else checked_integer("sample_size", sample_size)
    if wanted >= rows:
        table = dataset.to_table(columns=[column], with_row_id=True)
    else:
        numbers = np.sort(np.random.default_rng().choice(rows, wanted, replace=False))
        table = dataset.take(numbers.tolist(), columns=[column, "_rowid"])
    return _clusters(*_usable(table, column), limit)


def _threshold(value: object) -> int:
    return checked_integer("hamming_threshold", value, bits=_MAX_THRESHOLD_BITS)


def _usable(table: pa.Table, column: str) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return the vectors of a table without nulls, and the ids of their rows."""
    values, ids = table.column(column).combine_chunks(), np.asarray(table.column("_rowid"))
    if values.null_count:
        ids, values = ids[np.asarray(values.is_valid())], values.drop_null()
    size = values.type.list_size
    inner = values.flatten()
    if inner.null_count:
        whole = np.asarray(inner.is_valid()).reshape(-1, size).all(axis=1)
        ids, inner = ids[whole], values.filter(pa.array(whole)).flatten()
    return np.asarray(inner).reshape(-1, size), ids


def _clusters(vectors: NDArray[Any], ids: NDArray[np.uint64], limit: int) -> pa.RecordBatchReader:
    order = np.argsort(ids, kind="stable")
    found = [ids[order[members]] for members in _components(_signs(vectors[order]), limit)]
    duplicates = pa.array([members[1:] for members in found], pa.list_(pa.uint64()))
    representatives = pa.array([members[0] for members in found], pa.uint64())
    batch = pa.RecordBatch.from_arrays([representatives, duplicates], schema=_CLUSTERS)
    return pa.RecordBatchReader.from_batches(_CLUSTERS, [batch])


def _signs(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return bits as -1 and 1, so that products count different bits."""
    return np.unpackbits(vectors, axis=1).astype(np.float32) * 2 - 1


def _components(signs: NDArray[np.float32], limit: int) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of the vectors of each connected component of two or more, ascending."""
    n, least = len(signs), signs.shape[1] - 2 * limit
    left = np.zeros(n, bool)
    for start, stop in _blocks(n, _BLOCK_BYTES):
        left[start:stop] = (signs[start:stop] @ signs.T >= least).sum(axis=1) > 1
    for first in np.flatnonzero(left).tolist():
        if not left[first]:
            continue
        left[first] = False
        members, edge = [np.array([first])], np.array([first])
        while len(edge):
            others = np.flatnonzero(left)
            near = np.zeros(len(others), bool)
            for start, stop in _blocks(len(edge), _BLOCK_BYTES, len(others)):
                near |= (signs[edge[start:stop]] @ signs[others].T >= least).any(axis=0)
            edge = others[near]
            left[edge] = False
            members.append(edge)
        yield np.sort(np.concatenate(members))


def _blocks(rows: int, most_bytes: int, columns: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows whose distances to all columns fit in some bytes."""
    step = max(most_bytes // (4 * max(rows if columns is None else columns, 1)), 1)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


# -- pairs of vectors --------------------------------------------------------------------------------------------------


def find_duplicate_pairs(
    dataset: LanceDataset,
    column: str,
    distance_threshold: float,
    *,
    memory_limit: int | None = None,
    max_concurrency: int | None = None,
) -> pa.RecordBatchReader:
    """Find pairs of vectors that are near each other, within the partitions of the index of a column.

    Pairs in different partitions, or in different segments of the index, are not found. Rows that were deleted are left
    out. Distances are those of the metric of the index; those of codes are of the vectors of the table.

    Parameters
    ----------
    dataset
        The dataset.
    column
        Name of a column with exactly one vector index, which must cover all fragments.
    distance_threshold
        Largest distance.
    memory_limit
        Maximum number of bytes of distances to work with; None for 64 MiB.
    max_concurrency
        Ignored.

    Returns
    -------
    pyarrow.RecordBatchReader
        ``row_id_a`` below ``row_id_b``, and their ``distance``.

    Raises
    ------
    ValueError
        The column does not exist or has no such index, or a number is out of range.
    """
    limit, size = _checked(distance_threshold, memory_limit, max_concurrency)
    segments = _only_index(dataset, column)
    covered = frozenset().union(*(segment.fragment_ids for segment in segments))
    if covered != frozenset(dataset.snapshot.manifest.fragment_list.columns.ids.tolist()):
        raise InvalidInputError(
            f"vector index on column {column!r} does not cover all fragments; optimize the index first"
        )
    places = [
        (segment, stored, partition)
        for segment in segments
        if segment.recorded
        for stored in stored_segments([segment])
        for partition in range(len(stored.lengths))
    ]
    batches = (
        batch
        for segment, stored, partition in places
        for batch in _pairs(stored, _vectors(dataset, stored, segment, partition), limit, size)
    )
    return pa.RecordBatchReader.from_batches(_PAIRS, batches)


def find_duplicate_pairs_in_partition(
    dataset: LanceDataset,
    column: str,
    segment_id: str | uuid.UUID,
    partition_id: int,
    distance_threshold: float,
    *,
    memory_limit: int | None = None,
    max_concurrency: int | None = None,
) -> pa.RecordBatchReader:
    """Find pairs of vectors that are near each other, in one partition of a segment.

    Parameters
    ----------
    dataset
        The dataset.
    column
        Name of a column with exactly one vector index.
    segment_id
        Id of the segment.
    partition_id
        Number of the partition.
    distance_threshold, memory_limit, max_concurrency
        See `find_duplicate_pairs`.

    Returns
    -------
    pyarrow.RecordBatchReader
        See `find_duplicate_pairs`.

    Raises
    ------
    ValueError
        The column, the segment or the partition does not exist, or a number is out of range.
    """
    limit, size = _checked(distance_threshold, memory_limit, max_concurrency)
    wanted = checked_id(segment_id)
    mine = [segment for segment in _only_index(dataset, column) if segment.metadata.uuid == wanted]
    if not mine:
        raise InvalidInputError(f"segment_id={wanted} is not an active segment of column {column!r}")
    (stored,) = stored_segments(mine)
    number = checked_integer("partition_id", partition_id)
    if number >= len(stored.lengths):
        raise InvalidInputError(f"partition_id={number} out of range 0..{len(stored.lengths)} for segment {wanted}")
    found = _pairs(stored, _vectors(dataset, stored, mine[0], number), limit, size)
    return pa.RecordBatchReader.from_batches(_PAIRS, found)


def _checked(threshold: object, memory_limit: object, max_concurrency: object) -> tuple[float, int]:
    """Return the threshold and the bytes of a block."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number):
        raise TypeError(f"distance_threshold must be a number, not {type(threshold).__name__}")
    if not math.isfinite(threshold):
        raise InvalidInputError(f"distance_threshold must be finite, got {threshold}")
    if max_concurrency is not None and not checked_integer("max_concurrency", max_concurrency):
        raise InvalidInputError("max_concurrency must be positive, got 0")
    size = _BLOCK_BYTES if memory_limit is None else checked_integer("memory_limit", memory_limit, bits=63)
    return float(threshold), size


def _only_index(dataset: LanceDataset, column: str) -> list[Segment]:
    """Return the segments of the only vector index of a column."""
    segments = [
        segment
        for segment in index_segments(dataset.snapshot.reader)
        if segment.column_names == (column,) and is_of_vectors(segment)
    ]
    names = {segment.name for segment in segments}
    if len(names) != 1:
        raise InvalidInputError(f"column {column!r} requires exactly one vector index, found {len(names)}")
    return segments


def _vectors(
    dataset: LanceDataset, stored: StoredSegment, segment: Segment, partition: int
) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return the vectors of the live rows of a partition, with their row ids, ascending.

    They are those of the index or, if it has codes, of the table.
    """
    ids = np.asarray(stored.read(partition, with_vectors=False).column(0))
    ids, addresses, live = _places(dataset.snapshot.reader, ids)
    live &= np.isin(fragments_of(addresses), np.array(sorted(segment.fragment_ids), np.uint64))
    found = stored.vectors(partition)
    if found is None:
        vectors = _taken(dataset, segment.column_names[0], addresses[live])
    else:
        vectors = found[0][live]
    order = np.argsort(ids[live], kind="stable")
    return vectors[order], ids[live][order]


def _places(
    reader: TableReader, ids: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the ids of rows in the version, their addresses, and which of them are live."""
    if reader.manifest.uses_stable_row_ids:
        return ids, *reader.addresses_of_ids(ids)
    reuse = find_reuse_index(reader.manifest)
    if reuse is None:
        return ids, ids, reader.is_live(ids)
    addresses, gone = relocation(reuse, reader.locator).locate(ids)
    live = ~gone
    live[live] = reader.is_live(addresses[live])
    return addresses, addresses, live


def _taken(dataset: LanceDataset, column: str, addresses: NDArray[np.uint64]) -> NDArray[Any]:
    schema = dataset.snapshot.scanned_schema
    batch = take_addresses(dataset.snapshot.reader, addresses, project(schema, [column]), schema)
    values = batch.column(0)
    if not pa.types.is_fixed_size_list(values.type):
        raise InvalidInputError(f"pairs of vectors of {values.type} are only found with an index of the kind IVF_FLAT")
    return np.asarray(values.flatten()).reshape(-1, values.type.list_size)


def _pairs(
    stored: StoredSegment, rows: tuple[NDArray[Any], NDArray[np.uint64]], limit: float, size: int
) -> Iterator[pa.RecordBatch]:
    vectors, ids = rows
    if stored.metric == "hamming":
        vectors = _signs(vectors)
    wide = vectors.astype(np.float64 if vectors.dtype == np.float64 else np.float32, copy=False)
    if stored.metric == "cosine":
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = wide / np.sqrt(np.einsum("nd,nd->n", wide, wide))[:, None]
    for start, stop in _blocks(len(wide), size):
        distances = _distances(wide[start:stop], wide[start:], stored.metric)
        first, second = np.nonzero(distances <= limit)
        keep = second > first
        first, second = first[keep], second[keep]
        if len(first):
            arrays = [ids[start + first], ids[start + second], distances[first, second].astype(np.float32)]
            yield pa.RecordBatch.from_arrays([pa.array(each) for each in arrays], schema=_PAIRS)


def _distances(rows: NDArray[Any], others: NDArray[Any], metric: str) -> NDArray[Any]:
    products = rows @ others.T
    if metric == "hamming":
        return (rows.shape[1] - products) / 2
    if metric in ("dot", "cosine"):
        return 1 - products
    squares = np.einsum("nd,nd->n", rows, rows)[:, None] + np.einsum("nd,nd->n", others, others) - 2 * products
    return np.maximum(squares, 0)
