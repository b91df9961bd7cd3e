"""Resolving the options of a scan against the schema and the fragments of a version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.memory import memory_limit
from lance_dataset.read.projection import scalar_path, with_blob_values
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.address_sets import RowAddressSet
from lance_dataset.scan.options import ColumnOrdering
from lance_dataset.scan.projections import scan_projection
from lance_dataset.scan.request import DEFAULT_BATCH_SIZE, Ordering, ScanRequest
from lance_dataset.types.schema import Schema

if TYPE_CHECKING:
    from lance_dataset.expr.compiled import Filter
    from lance_dataset.index.open_segments import TableIndices

__all__ = ["address_sets", "indices_for_scans", "resolve_request", "serialize_row_addrs"]


def serialize_row_addrs(addrs: Iterable[int]) -> bytes:
    """Serialize a set of row addresses, for `row_addr_allowlist` and `row_addr_blocklist` of a scan.

    Parameters
    ----------
    addrs
        Row addresses (``fragment id << 32 | offset``), as in the column ``_rowaddr``; repeats do not count.

    Raises
    ------
    TypeError
        An address is not an integer.
    InvalidInputError
        An address is negative or does not fit 64 bits.
    """
    addresses = list(addrs)
    for address in addresses:
        if isinstance(address, bool) or not isinstance(address, int | np.integer):
            raise TypeError(f"a row address must be an integer, not {address!r}")
        if not 0 <= address < 1 << 64:
            raise InvalidInputError(f"a row address must be between 0 and 2**64 - 1, not {address}")
    return RowAddressSet.of(int(address) for address in addresses).encode()


def resolve_request(snapshot: Snapshot, options: Mapping[str, Any]) -> ScanRequest:
    """Check the options of a scan against the schema and the fragments of a version.

    Parameters
    ----------
    snapshot
        The version.
    options
        Options that `checked_option` has accepted.

    Raises
    ------
    FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError
        An option does not fit the version.
    """
    reader, schema = snapshot.reader, snapshot.scanned_schema
    include_deleted = bool(options.get("include_deleted_rows"))
    with_row_id, with_row_address = bool(options.get("with_row_id")), bool(options.get("with_row_address"))
    if "columns" not in options and not with_row_id and not with_row_address:
        projection = snapshot.projection(None)
    else:
        projection = scan_projection(reader, options.get("columns"), with_row_id, with_row_address)
    if options.get("blob_handling") == "all_binary":
        projection = with_blob_values(projection)
    if include_deleted and "_rowid" not in projection.schema.names:
        raise InvalidInputError("include_deleted_rows needs the row id: pass with_row_id=True")
    return ScanRequest(
        schema=schema,
        projection=projection,
        filter=_compiled_filter(options.get("filter"), reader),
        limit=options.get("limit"),
        offset=options.get("offset", 0),
        batch_size=_batch_rows(reader, options),
        strict_batch_size=bool(options.get("strict_batch_size")),
        fragments=_fragment_positions(reader, options.get("fragments")),
        row_range=options.get("row_range"),
        order_by=tuple(_ordering(schema, key) for key in options.get("order_by", ())),
        include_deleted=include_deleted,
        use_statistics=bool(options.get("use_stats", True)),
        in_order=bool(options.get("scan_in_order", True)),
        late=_late_columns(schema, options.get("late_materialization")),
        io_buffer_size=options.get("io_buffer_size"),
        memory_limit=options.get("memory_limit") or memory_limit(),
        batch_readahead=options.get("batch_readahead"),
        fragment_readahead=options.get("fragment_readahead"),
        only_indexed=bool(options.get("fast_search")),
        scans_on_index_error=options.get("on_index_error") == "scan",
        indices=None if options.get("use_scalar_index") is False else indices_for_scans(snapshot),
    )


def indices_for_scans(snapshot: Snapshot) -> TableIndices | None:
    """Return the indices of a version that may answer filters, None without any."""
    if not snapshot.manifest.index_section:
        return None
    from lance_dataset.index.open_segments import table_indices

    return table_indices(snapshot)


def _compiled_filter(filter: str | pc.Expression | None, reader: TableReader) -> Filter | None:
    if filter is None:
        return None
    from lance_dataset.expr.compiled import compile_filter

    return compile_filter(filter, reader.expression_schema)


def address_sets(options: Mapping[str, Any]) -> tuple[RowAddressSet | None, RowAddressSet | None]:
    """Return the rows that a scan may return and those that it must not, each None if the options do not say.

    Raises
    ------
    InvalidInputError
        The bytes are not a set of row addresses.
    """
    allowed, blocked = (
        None if options.get(name) is None else RowAddressSet.decode(options[name], name)
        for name in ("row_addr_allowlist", "row_addr_blocklist")
    )
    return allowed, blocked


def _batch_rows(reader: TableReader, options: Mapping[str, Any]) -> int:
    rows: int = options.get("batch_size", DEFAULT_BATCH_SIZE)
    target = options.get("batch_size_bytes")
    if target is not None and len(reader.fragments):
        rows = max(1, min(rows, int(target / reader.fragments[0].bytes_per_row)))
    return rows


def _fragment_positions(reader: TableReader, fragment_ids: Sequence[int] | None) -> tuple[int, ...] | None:
    if fragment_ids is None:
        return None
    positions = []
    for fragment_id in fragment_ids:
        position = reader.manifest.fragment_list.position(fragment_id)
        if position is None:
            raise InvalidInputError(f"fragment {fragment_id} is not part of version {reader.manifest.version}")
        positions.append(position)
    return tuple(positions)


def _ordering(schema: Schema, key: ColumnOrdering | str) -> Ordering:
    name = key if isinstance(key, str) else key.column_name
    column, _, direction = name.rpartition(" ")
    if direction.lower() in ("asc", "desc") and name not in schema.arrow.names:
        raise FieldNotFoundError(
            f"No field named {name} to sort by; the direction is given by "
            f"ColumnOrdering({column.strip()!r}, ascending={direction.lower() == 'asc'})"
        )
    path = scalar_path(schema, name, "to sort by")
    kind = path[-1].to_arrow().type
    if pa.types.is_nested(kind):
        raise UnsupportedError(f"column {name!r} of type {kind} has no order to sort by")
    column = ".".join(node.name for node in path)
    return Ordering(column) if isinstance(key, str) else Ordering(column, bool(key.ascending), bool(key.nulls_first))


def _late_columns(schema: Schema, late: bool | tuple[str, ...] | None) -> bool | tuple[str, ...] | None:
    if isinstance(late, tuple):
        # columns are read early or late as a whole
        return tuple(dict.fromkeys(scalar_path(schema, name, "to read late")[0].name for name in late))
    return late
