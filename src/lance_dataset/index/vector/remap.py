"""Rewriting vector indices with the new addresses of their rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable, NewIndexFolder
from lance_dataset.index.vector.distances import StoredVectors
from lance_dataset.index.vector.graph import decode_graph, encode_graph
from lance_dataset.index.vector.index_file import GRAPH_COLUMNS, GRAPH_KEY, INDEX_FILE, VectorIndexFile
from lance_dataset.index.vector.ivf import IVF_KEY, IvfModel, Partitions
from lance_dataset.index.vector.legacy import is_legacy, remap_legacy
from lance_dataset.index.vector.mending import without_nodes
from lance_dataset.index.vector.storage import (
    ROW_ID,
    STORAGE_FILE,
    VectorStorage,
    column_numbers,
    plain_codes,
    stored_codes,
)
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata
from lance_dataset.table.indices.coverage import coverage
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.types.schema import Schema

__all__ = ["remap"]

#: Rows read together, unless partitions must be whole.
_BATCH_ROWS = 64 << 10
_COPY_BYTES = 8 << 20


def remap(source: IndexFolder, target: NewIndexFolder, moved: Relocation, index: IndexMetadata) -> IndexDetails | None:
    """Write a vector index, or a segment of one, with the new addresses of its rows.

    Centroids, quantizers and the order of rows stay. Rows that are gone are removed from their partitions, and then
    graphs are repaired.

    Parameters
    ----------
    source
        Files of the index; empty if the index was never trained and so covers nothing.
    target
        Gets the new files.
    moved
        New addresses of the rows.
    index
        The index.

    Returns
    -------
    None
        The details of the index stay.

    Raises
    ------
    MissingFileError
        A file does not exist.
    CorruptFileError
        The files contradict the format.
    UnsupportedError
        The files are of a kind that this release does not know.
    """
    if coverage(index) == frozenset() and not source.names():
        return None
    if is_legacy(source.open_input(INDEX_FILE)):
        remap_legacy(source, target, moved)
        return None
    main = VectorIndexFile(source.open(INDEX_FILE))
    storage = VectorStorage(source.open(STORAGE_FILE), main.family)
    main.check_storage(storage)
    rows = _write_storage(storage, target, moved)
    if main.has_graphs and rows.gone.any():
        _write_graphs(main, storage, target, rows)
    else:
        target.stream(INDEX_FILE, _parts(source))
    return None


@dataclass(frozen=True)
class _Rows:
    """Outcome of a rewrite of the stored vectors.

    Attributes
    ----------
    gone : bool[rows]
        True for each row that was removed.
    lengths : int64[partitions]
        Number of rows that each partition still has.
    """

    gone: NDArray[np.bool_]
    lengths: NDArray[np.int64]


def _write_storage(storage: VectorStorage, target: NewIndexFolder, moved: Relocation) -> _Rows:
    table = storage.table
    rows = _Rows(np.zeros(table.num_rows, bool), storage.ivf.partitions.lengths.copy())
    batches = _moved_batches(storage, moved, rows)
    buffers = _buffers(table, storage.ivf, rows.lengths)
    target.write(STORAGE_FILE, table.schema, table.written_version, batches, table.metadata, numbered_buffers=buffers)
    return rows


def _moved_batches(storage: VectorStorage, moved: Relocation, rows: _Rows) -> Iterator[pa.RecordBatch]:
    """Yield the rows that remain, partition by partition; `rows` is filled meanwhile."""
    partitions = storage.ivf.partitions
    ends = partitions.offsets + partitions.lengths
    whole = storage.quantizer.whole_partitions and moved.loses_rows
    for first, stop in partitions.runs(_BATCH_ROWS):
        begin, end = int(partitions.offsets[first]), int(ends[stop - 1])
        step = max(end - begin, 1) if whole else _BATCH_ROWS
        for start in range(begin, end, step):
            batch = storage.read(start, min(start + step, end))
            addresses, gone = moved.locate(np.asarray(batch.column(ROW_ID)))
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns[ROW_ID] = pa.array(addresses)
            lost = np.flatnonzero(gone)
            if len(lost):
                rows.gone[start + lost] = True
                places = np.searchsorted(ends[first:stop], start + lost, side="right")
                rows.lengths[first:stop] -= np.bincount(places, minlength=stop - first)
                columns = _without_rows(storage, columns, gone, partitions.lengths[first:stop])
            yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _without_rows(
    storage: VectorStorage, columns: dict[str, pa.Array], gone: NDArray[np.bool_], lengths: NDArray[np.int64]
) -> dict[str, pa.Array]:
    """Return columns of some rows, without the rows that are gone.

    Parameters
    ----------
    storage
        File of the rows.
    columns
        The columns by name.
    gone : bool[rows]
        Mask of the rows that are gone.
    lengths : int64[partitions]
        Number of rows of each partition; needed only if the codes of a partition are stored together.
    """
    quantizer = storage.quantizer
    stays = pa.array(~gone)
    kept = {name: array.filter(stays) for name, array in columns.items()}
    if quantizer.whole_partitions:
        name = quantizer.code_column
        stored = column_numbers(columns[name])
        parts, start = [np.empty((0, stored.shape[1]), np.uint8)], 0
        for length in lengths.tolist():
            part = slice(start, start + length)
            parts.append(stored_codes(quantizer, plain_codes(quantizer, stored[part])[~gone[part]]))
            start += length
        values = pa.array(np.concatenate(parts).ravel())
        kept[name] = pa.FixedSizeListArray.from_arrays(values, type=columns[name].type)
    return kept


def _write_graphs(main: VectorIndexFile, storage: VectorStorage, target: NewIndexFolder, rows: _Rows) -> None:
    """Write the main file after rows were removed."""
    table = main.table
    schema = Schema(tuple(node for node in table.schema.fields if node.name in GRAPH_COLUMNS), {})
    metadata = dict(table.metadata)
    lengths = main.ivf.partitions.lengths.copy()
    batches = _mended_graphs(main, storage, rows, lengths, metadata)
    buffers = _buffers(table, main.ivf, lengths)
    target.write(INDEX_FILE, schema, table.written_version, batches, metadata, numbered_buffers=buffers)


def _mended_graphs(
    main: VectorIndexFile, storage: VectorStorage, rows: _Rows, lengths: NDArray[np.int64], metadata: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    """Yield the graphs of all partitions; store their new sizes in `lengths` and their descriptions in `metadata`."""
    notes = list(main.notes)
    columns = [node.name for node in main.table.schema.fields if node.name in GRAPH_COLUMNS]
    graphs, partitions = main.ivf.partitions, storage.ivf.partitions
    for place, length in enumerate(partitions.lengths.tolist()):
        start = int(graphs.offsets[place])
        batch = main.table.read(start, start + int(graphs.lengths[place]), columns)
        if rows.lengths[place] < length:
            where = f"{main.table.where}: partition {place}"
            graph = decode_graph(notes[place], batch, length, where)
            vectors = StoredVectors(storage.codes(place), storage.quantizer, storage.distance)
            first = int(partitions.offsets[place])
            graph = without_nodes(graph, rows.gone[first : first + length], vectors)
            notes[place], batch = encode_graph(graph, batch.schema)
        lengths[place] = batch.num_rows
        yield batch
    metadata[GRAPH_KEY] = json.dumps(notes, separators=(",", ":"))


def _buffers(table: IndexTable, ivf: IvfModel, lengths: NDArray[np.int64]) -> Iterator[bytes]:
    """Yield the global buffers of a file in order; `lengths` of its partitions are read on request."""
    for number in range(1, table.num_buffers + 1):
        if number == int(table.metadata[IVF_KEY]):
            yield ivf.encode(Partitions.one_after_another(lengths))
        else:
            yield table.numbered_buffer(number)


def _parts(source: IndexFolder) -> Iterator[pa.Buffer]:
    """Yield the bytes of the main file."""
    file = source.open_input(INDEX_FILE)
    try:
        for start in range(0, file.size, _COPY_BYTES):
            yield file.read(start, min(_COPY_BYTES, file.size - start))
    finally:
        file.close()
