"""Byte ranges of blob values in data files, for rows selected by id, address or number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, RowIndexError, UnsupportedError
from lance_dataset.file.blob_fields import is_described
from lance_dataset.io.base import InputFile
from lance_dataset.limits import ResultLimit
from lance_dataset.read.blob_places import BlobRange
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import project
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import row_ids, row_numbers, take_fragment_rows
from lance_dataset.table.row_addresses import by_fragment, offsets_of, split_address
from lance_dataset.types.schema import Schema

__all__ = ["BlobRange", "blob_range", "read_blob_values", "select_blobs"]

_READ_BYTES = 64 << 20


# -- selecting rows ----------------------------------------------------------------------------------------------


def select_blobs(
    reader: TableReader,
    column: str,
    *,
    ids: Sequence[int] | pa.Array | None = None,
    addresses: Sequence[int] | pa.Array | None = None,
    indices: Sequence[int] | pa.Array | None = None,
) -> tuple[list[int], list[BlobRange | None]]:
    """Return row addresses and byte ranges of rows, in the order given by `ids`, `addresses` or `indices`.

    Parameters
    ----------
    column
        Name of a blob column, dotted inside structs.
    ids
        Row ids.
    addresses
        Row addresses: fragment id and physical row offset.
    indices
        Row numbers among the live rows.

    Returns
    -------
    list of int, list of BlobRange or None
        Row addresses, and the byte range of each value, None for nulls.

    Raises
    ------
    FieldNotFoundError
        The column does not exist.
    InvalidInputError
        The column is not a blob column, not exactly one of `ids`, `addresses` and `indices` is given, or a row does not
        exist.
    UnsupportedError
        A row is deleted.
    """
    given = [rows for rows in (ids, addresses, indices) if rows is not None]
    if len(given) != 1:
        raise InvalidInputError("Exactly one of ids, indices, or addresses must be specified")
    rows = row_ids(given[0])
    schema = reader.manifest.described_schema
    leaf = schema.resolve(column)[-1]
    if not is_described(leaf):
        raise InvalidInputError(f"the column {column!r} is not a blob column")
    if indices is not None:
        rows = _addresses_of_numbers(reader, row_numbers(indices))
    elif ids is not None:
        rows = _addresses_of_ids(reader, rows)
    return rows.tolist(), _find(reader, schema, column, leaf.id, rows)


def _addresses_of_numbers(reader: TableReader, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    try:
        return reader.addresses_of_numbers(rows)
    except RowIndexError as error:
        raise InvalidInputError(str(error)) from error


def _addresses_of_ids(reader: TableReader, ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    if not reader.manifest.uses_stable_row_ids:
        return ids
    addresses, found = reader.addresses_of_ids(ids)
    if not found.all():
        raise InvalidInputError(f"the row with the id {int(ids[np.argmin(found)])} does not exist")
    return addresses


# -- locating values ---------------------------------------------------------------------------------------------


def _find(
    reader: TableReader, schema: Schema, column: str, field_id: int, addresses: NDArray[np.uint64]
) -> list[BlobRange | None]:
    try:
        reader.check_addresses(addresses)
    except RowIndexError as error:
        raise InvalidInputError(str(error)) from error
    live = reader.is_live(addresses)
    if not live.all():
        fragment_id, row = split_address(int(addresses[np.argmin(live)]))
        raise UnsupportedError(f"row {row} of fragment {fragment_id} is deleted")
    projection = project(schema, [column])
    found: list[BlobRange | None] = [None] * len(addresses)
    for fragment_id, places in by_fragment(addresses):
        fragment = reader.fragment(fragment_id)
        assert fragment is not None  # checked above
        descriptions = take_fragment_rows(fragment, offsets_of(addresses[places]), projection, schema).column(0)
        for place, description in zip(places.tolist(), descriptions.to_pylist(), strict=True):
            found[place] = blob_range(fragment, field_id, description)
    return found


def blob_range(
    fragment: FragmentReader, field_id: int, description: Mapping[str, int | str | None] | None
) -> BlobRange | None:
    """Return the byte range that a description of a blob field refers to, or None for a null."""
    source = fragment.source_of(field_id)
    if source is None or description is None:
        return None
    if "kind" in description:
        places, kind = fragment.blob_places(field_id), description["kind"]
        if places is None or kind is None:
            return None
        start, length, blob_id = (int(description[name] or 0) for name in ("position", "size", "blob_id"))
        return places.range_of(int(kind), start, length, blob_id, str(description["blob_uri"] or ""))
    position, size = description["position"], description["size"]
    # 2.0 files encode a null as an empty value at a position other than 0
    if position is None or size is None or (size == 0 and position):
        return None
    return BlobRange(lambda: source, int(position), int(size))


def read_blob_values(blobs: Sequence[BlobRange | None], limit: ResultLimit) -> list[bytes | None]:
    """Read the bytes of each range. Ranges of one file are read together.

    Raises
    ------
    MemoryLimitError
        All values together are larger than `limit`.
    """
    limit.check(sum(blob.size for blob in blobs if blob is not None), f"the result of {len(blobs):,} blobs")
    values: list[bytes | None] = [None if blob is None else b"" for blob in blobs]
    files: dict[int, list[int]] = {}
    sources: dict[int, InputFile] = {}
    for place, blob in enumerate(blobs):
        if blob is not None and blob.size:
            source = blob.source
            sources[id(source)] = source
            files.setdefault(id(source), []).append(place)
    for key, places in files.items():
        for group in _groups(places, [blob.size if blob else 0 for blob in (blobs[place] for place in places)]):
            wanted = [blob for blob in (blobs[place] for place in group) if blob is not None]
            data = sources[key].read_ranges([(blob.position, blob.size) for blob in wanted])
            for place, content in zip(group, data, strict=True):
                values[place] = content.to_pybytes()
    return values


def _groups(places: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Group places so that the sizes of each group add up to about one large read."""
    cuts = np.cumsum(sizes, dtype=np.int64) // _READ_BYTES
    return [list(part) for part in np.split(np.array(places), np.flatnonzero(np.diff(cuts)) + 1)]
