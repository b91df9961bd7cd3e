"""Step-wise builds of IVF_PQ indices: models, codes of vectors, and a segment of codes grouped by partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.changes.indexing.create_index import NewIndex
from lance_dataset.changes.indexing.publish_segments import build_segment, publish_segments
from lance_dataset.changes.indexing.segments import (
    ColumnEntries,
    IndexDefinition,
    default_memory_limit,
    indexed_field,
)
from lance_dataset.errors import InvalidInputError
from lance_dataset.index.trainer import Training
from lance_dataset.index.vector.storage import ROW_ID
from lance_dataset.index.vector.training.parameters import VectorParameters
from lance_dataset.index.vector.training.shuffling import PartitionedRows
from lance_dataset.index.vector.training.trainer import (
    encoded_blocks,
    trained_models,
    vector_trainer,
    write_encoded,
)
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["Codes", "encoded_vectors", "published_codes", "trained"]

#: Columns of rows: their ids and their codes.
Codes = Mapping[str, NDArray[Any]]


def _entries(
    snapshot: Snapshot, column: str, parameters: VectorParameters, fragment_ids: Sequence[int]
) -> ColumnEntries:
    path = indexed_field(snapshot.scanned_schema, column)
    return ColumnEntries(snapshot, IndexDefinition("", path, vector_trainer(parameters), {}), fragment_ids)


def trained(
    snapshot: Snapshot, column: str, parameters: VectorParameters, fragment_ids: Sequence[int]
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Train the models of an index.

    Returns
    -------
    centroids : float or uint8 [partitions, dimension]
    codewords : float[2 ** bits, dimension]
        In the order of files; None without product quantization.
    """
    kind = indexed_field(snapshot.scanned_schema, column)[-1].storage_type
    batches = _entries(snapshot, column, parameters, fragment_ids)
    centroids, encoder = trained_models(parameters, batches, kind, default_memory_limit())
    return centroids, encoder.codebook


def encoded_vectors(
    snapshot: Snapshot, column: str, parameters: VectorParameters, fragment_ids: Sequence[int]
) -> Iterator[tuple[NDArray[np.int32], Codes, float]]:
    """Yield partitions, codes with row ids, and the sum of the distances to the centroids, of blocks of vectors.

    Parameters
    ----------
    snapshot
        The version.
    column
        The column.
    parameters
        Those of an index of the kind IVF_PQ, with centroids and codewords.
    fragment_ids
        Fragments to read.
    """
    kind = indexed_field(snapshot.scanned_schema, column)[-1].storage_type
    yield from encoded_blocks(parameters, _entries(snapshot, column, parameters, fragment_ids), kind)


def published_codes(
    snapshot: Snapshot,
    column: str,
    name: str | None,
    parameters: VectorParameters,
    blocks: Iterable[tuple[NDArray[np.int32], Codes]],
    loss: float,
) -> Snapshot:
    """Commit an index of codes. It covers the fragments that have rows among them.

    Parameters
    ----------
    snapshot
        Version that the codes are of.
    column, name
        The column, and the name of the index; None for one derived from the column.
    parameters
        Those of an index of the kind IVF_PQ, with centroids and codewords.
    blocks
        Partitions and codes with row ids.
    loss
        Sum of the distances to the centroids.

    Raises
    ------
    InvalidInputError
        There are no rows, or rows that are not in the version.
    InvalidIndexError
        An index has the name.
    CommitConflictError
        Other writers changed the rows or the indices, and the retries ran out.
    """
    with PartitionedRows(len(np.asarray(parameters.centroids)), default_memory_limit() // 4) as gathered:
        fragment_ids: set[int] = set()
        for places, columns in blocks:
            addresses = _live_addresses(snapshot, np.asarray(columns[ROW_ID]))
            fragment_ids.update(np.unique(fragments_of(addresses)).tolist())
            gathered.add(places, columns)
        if not fragment_ids:
            raise InvalidInputError("there are no codes of rows of this version to make an index of")

        def write(work: Training) -> bytes:
            return write_encoded(parameters, gathered, loss, work.target)

        trainer = replace(vector_trainer(parameters), write=write)
        wanted = NewIndex(column, trainer, name, replace=False)
        made = build_segment(snapshot, wanted, sorted(fragment_ids))
    return publish_segments(snapshot, made.name, column, [made])


def _live_addresses(snapshot: Snapshot, ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the addresses of rows that are in the version."""
    if not snapshot.manifest.uses_stable_row_ids:
        return ids[snapshot.reader.is_live(ids)]
    addresses, live = snapshot.reader.addresses_of_ids(ids)
    return addresses[live]
