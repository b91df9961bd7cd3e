"""Statistics of legacy files, a small legacy table with one row per batch, as zones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.read.open import open_node
from lance_dataset.file.v0_1.spans import Spans, fetch
from lance_dataset.file.zones import Zones
from lance_dataset.types.schema import Field, Schema
from lancecodec import CodecError
from lancecodec import spans as kernels

__all__ = ["read_zones", "zones_from_statistics"]

_NAMES = ("null_count", "min_value", "max_value")


def read_zones(file: LegacyFile, field: Field) -> Zones | None:
    """Read the statistics of a field outside of lists, with one zone per batch.

    Returns
    -------
    Zones or None
        None if the field has no statistics, or they do not match its type.

    Raises
    ------
    CorruptFileError
        The statistics lie outside the file, or their pages are broken.
    """
    found = _statistics_field(file, field.id)
    if found is None or file.statistics_pages is None:
        return None
    members = {child.name: child for child in found.children}
    wanted = dict(zip(_NAMES, (pa.int64(), field.storage_type, field.storage_type), strict=True))
    if any(name not in members or not members[name].storage_type.equals(wanted[name]) for name in _NAMES):
        return None
    count, where = file.num_batches, f"{file.source.path}, statistics of field {field.id}"
    everything = Spans.of_range(np.array([0, count], np.int64), 0, count)
    arrays = []
    for name in _NAMES:
        _, lengths = file.statistics_pages.cells(members[name].id)
        if lengths[0] < count:
            return None
        arrays.append(open_node(members[name], file.statistics_pages, where).read(everything))
    _, page_lengths = file.pages.cells(field.id)
    have_bytes = _have_bytes(file, field, arrays[0]) if is_binary_like(field.storage_type) else None
    overlong = page_lengths > file.batch_rows
    return zones_from_statistics(field, file.batch_offsets, *arrays, overlong=overlong, have_bytes=have_bytes)


def _statistics_field(file: LegacyFile, field_id: int) -> Field | None:
    """Return the struct named after a data field; None if there is not exactly one."""
    found = file.statistics_fields(field_id)
    described = Schema.from_proto(found, {}, where=file.source.path).fields if found else ()
    return described[0] if len(described) == 1 else None


def _have_bytes(file: LegacyFile, field: Field, null_count: pa.Array) -> NDArray[np.bool_]:
    """Return whether strings or binaries of each batch may have bytes; False if all are null and the page is empty."""
    found = np.ones(file.num_batches, bool)
    batches = np.flatnonzero((np.asarray(null_count.fill_null(-1)) == file.batch_rows) & (file.batch_rows > 0))
    firsts = file.pages.cells(field.id)[0][batches]
    places = np.concatenate([firsts, firsts + file.batch_rows[batches] * 8])
    ends = np.empty(len(places), np.int64)
    try:
        source, positions, _ = fetch(file.source, places, np.full(len(places), 8))
        kernels.fixed(source, positions, np.ones(len(places), np.int64), 8, ends.data)
    except CodecError as error:
        raise CorruptFileError(f"{file.source.path}, column {field.name!r}: {error}") from error
    found[batches] = ends[: len(batches)] != ends[len(batches) :]
    return found


def zones_from_statistics(
    field: Field,
    batch_offsets: NDArray[np.int64],
    null_count: pa.Array,
    minimum: pa.Array,
    maximum: pa.Array,
    *,
    overlong: NDArray[np.bool_] | None = None,
    have_bytes: NDArray[np.bool_] | None = None,
) -> Zones | None:
    """Convert statistics of the batches of a field to zones of the values that a scan returns.

    Nulls of fixed-width types are lost in legacy files. Their slots hold bytes that the statistics ignore. So the
    bounds of a batch that had nulls are unknown, and no batch has nulls.

    String and binary values without bytes are null in nullable fields. So a batch has no nulls only if none were
    written and its minimum has bytes. A null is read as a value if the writer left bytes under it, as some releases
    did. So these bounds are unknown too. NaN is ignored in bounds.

    Parameters
    ----------
    field
        The data field.
    batch_offsets
        int64[n + 1], first row of each batch and the number of rows.
    null_count, minimum, maximum
        One int64 array and two of the type of the field, n values each.
    overlong
        bool[n], True if the page of the batch has more values than the batch has rows. Releases before 0.16 wrote the
        children of sliced structs this way, and their rows are not those of the statistics.
    have_bytes
        bool[n], for strings and binaries: True if any value of the batch may have bytes. None if unknown.

    Returns
    -------
    Zones or None
        None if the arrays do not match the field.
    """
    count, arrow_type = len(batch_offsets) - 1, field.storage_type
    if not (null_count.type.equals(pa.int64()) and minimum.type.equals(arrow_type) and maximum.type.equals(arrow_type)):
        return None
    if not len(null_count) == len(minimum) == len(maximum) == count or pa.types.is_nested(arrow_type):
        return None
    rows = np.diff(batch_offsets)
    nulls = np.asarray(null_count.fill_null(-1))
    unknown = (nulls < 0) | (nulls > rows)
    if overlong is not None:
        unknown |= overlong
    if is_binary_like(arrow_type):
        may_be_null = field.nullable & (unknown | (nulls > 0) | ~_has_bytes(minimum))
        may_be_valid = np.ones(count, bool) if have_bytes is None or not field.nullable else have_bytes
    else:
        may_be_null, may_be_valid = np.zeros(count, bool), np.ones(count, bool)
    unknown |= nulls > 0
    low, high = (_where_known(bound, unknown) for bound in (minimum, maximum))
    may_be_nan = np.full(count, bool(pa.types.is_floating(arrow_type)))
    return Zones(batch_offsets, low, high, may_be_null, may_be_valid, may_be_nan)


def _has_bytes(bounds: pa.Array) -> NDArray[np.bool_]:
    """Return True for string or binary bounds that are neither null nor empty."""
    return np.asarray(pc.greater(pc.binary_length(bounds), 0).fill_null(False))


def _where_known(bounds: pa.Array, unknown: NDArray[np.bool_]) -> pa.Array:
    """Return the bounds, null where they are unknown."""
    if not unknown.any():
        return bounds
    return pc.if_else(pa.array(unknown), pa.scalar(None, bounds.type), bounds)
