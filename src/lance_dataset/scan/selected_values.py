"""Values of selected rows: stored columns (read in ranges or row by row), system columns and computed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.expr.array_predicates import places_of
from lance_dataset.read.concatenate import (
    UnjoinableError,
    bisected,
    join_arrays,
    keep_rows,
    read_chunks,
    read_encoded,
    refusing,
    take_values,
)
from lance_dataset.read.empty_batches import rows_only
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.read.kept_values import KeptRows
from lance_dataset.read.prefetch import Announcements, announce
from lance_dataset.read.projection import OutputColumn
from lance_dataset.read.row_taker import take_fields
from lance_dataset.scan.encoded_column import EncodedColumn
from lance_dataset.scan.plain_values import can_join, plain_parts
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.selection import Known, Selection
from lance_dataset.scan.strategy import ScanStrategy
from lance_dataset.scan.windows import Slice
from lance_dataset.threads.waiting import together
from lance_dataset.types.schema import Field

__all__ = ["descend", "output_chunks", "selected_array", "selected_column", "system_array", "taken_together"]

#: Rows that an expression is evaluated for together, so that intermediate results stay in the processor caches.
_EVALUATED_ROWS = 1 << 16
#: From this number of fragments on, their rows are taken in one call.
_MANY_PARTS = 4
#: From this number of columns on, columns that are taken row by row are taken in one call.
_MANY_COLUMNS = 2
#: Chunks with at least this number of rows on average are returned as they are.
_APART_ROWS = 1024
#: Announcements of the rows that scans take one by one.
_announcements = Announcements()


def output_chunks(
    output: OutputColumn, selection: Selection, request: ScanRequest, plan: ScanStrategy
) -> list[pa.Array]:
    """Return the values of an output column at selected rows, in non-empty chunks."""
    if output.field is None:
        return list(_in_parts(selection, lambda rows: _computed(output, rows, request, plan)))
    known = selection.known.get(id(output.field))
    if known is not None and (known.places is not None or selection.is_whole):
        chunks = [known.at(selection.places)]
    elif known is not None:
        chunks = _kept(known.values.chunks, selection, output.field, encoded=False)
    else:
        work = partial(_stored, field=output.field, plan=plan, forced=_forced(request, plan, output.field))
        chunks = list(_in_parts(selection, work))
    return [descend(chunk, output.path) for chunk in chunks if len(chunk)]


def _in_parts(selection: Selection, work: Callable[[Selection], list[pa.Array]]) -> Iterator[pa.Array]:
    """Yield the chunks of a selection, halving it wherever its values do not fit one array."""
    try:
        chunks = work(selection)
    except UnjoinableError:
        if selection.num_rows < 2:
            raise
    else:
        yield from chunks
        return
    middle = selection.num_rows // 2
    yield from _in_parts(selection.cut(0, middle), work)
    yield from _in_parts(selection.cut(middle, selection.num_rows), work)


def descend(array: pa.Array, path: Sequence[str]) -> pa.Array:
    """Return the field at a path below the structs of an array; null where one of the structs is null."""
    for name in path:
        # flatten() pushes the validity and the offset of the struct down into its child
        array = array.flatten()[array.type.get_field_index(name)]
    return array


# -- stored columns ----------------------------------------------------------------------------------------------


def selected_array(selection: Selection, field: Field, plan: ScanStrategy) -> pa.Array:
    """Return the selected values of a stored column as one array.

    Raises
    ------
    UnjoinableError
        The values do not fit one array.
    """
    known = selection.known.get(id(field))
    if known is not None:
        return known.at(selection.places)
    chunks = _stored(selection, field, plan, None)
    return chunks[0] if len(chunks) == 1 else join_arrays(chunks, field.storage_type, field.name)


def selected_column(selection: Selection, field: Field, plan: ScanStrategy) -> EncodedColumn:
    """Return the selected values of a stored column that no condition has read yet, in stored form."""
    chunks = _stored(selection, field, plan, None, encoded=len(selection.window.slices) == 1)
    return EncodedColumn(chunks, field.storage_type, field.name)


def taken_together(
    outputs: Sequence[OutputColumn], selection: Selection, request: ScanRequest, plan: ScanStrategy
) -> Selection:
    """Take the stored columns that are best taken row by row in one compiled call.

    Parameters
    ----------
    outputs
        Output columns.

    Returns
    -------
    Selection
        The same rows, knowing the values of these columns. Other columns are still to be read one by one.
    """
    if not outputs or selection.is_whole or plan.waits or selection.num_rows == 0:
        return selection
    width = sum(part.width for part, _ in selection.parts)
    fields: dict[int, Field] = {}
    for output in outputs:
        field = output.field
        if field is None or output.path or id(field) in selection.known or id(field) in fields:
            continue
        takes = _forced(request, plan, field)
        if _prefers_take(selection, field, plan, width) if takes is None else takes:
            fields[id(field)] = field
    if len(fields) < _MANY_COLUMNS:
        return selection
    rows = list(selection.rows())
    with _announcements.taking(lambda: _announce(rows, *fields.values())):
        arrays = take_fields([(part.fragment, wanted) for part, wanted in rows], list(fields.values()))
    found = {
        key: Known(EncodedColumn([array], field.storage_type, field.name), selection.places)
        for (key, field), array in zip(fields.items(), arrays, strict=True)
        if array is not None
    }
    return selection.knowing(found)


def _prefers_take(selection: Selection, field: Field, plan: ScanStrategy, width: int) -> bool:
    """Return True to take the selected rows of a column one by one, False to read all `width` rows of their slices."""
    count = len(selection.parts)
    if count >= _MANY_PARTS and width < _APART_ROWS * count and plan.costs.is_mapped and can_join(field):
        return False  # a take opens the column of each fragment, which takes longer than to decode it
    return plan.costs.prefers_take(field, selection.num_rows, width)


def _forced(request: ScanRequest, plan: ScanStrategy, field: Field) -> bool | None:
    """Return True to take the rows of a column one by one, False not to; None for whichever is cheaper."""
    if request.late is None or request.filter is None:
        return None
    return field.name in plan.late


def _stored(
    selection: Selection, field: Field, plan: ScanStrategy, forced: bool | None, *, encoded: bool = False
) -> list[pa.Array]:
    """Return the selected values of a stored column in chunks."""
    parts, takes = selection.parts, forced
    if selection.is_whole and len(parts) == 1:
        return _range_chunks(parts[0][0], field, encoded=encoded)
    if selection.places is not None and takes is None:
        takes = _prefers_take(selection, field, plan, sum(part.width for part, _ in parts))
    if takes and selection.places is not None:
        rows = list(selection.rows())
        with _announcements.taking(lambda: _announce(rows, field)):
            if len(rows) >= _MANY_PARTS and not plan.waits:
                (taken,) = take_fields([(part.fragment, wanted) for part, wanted in rows], (field,))
                if taken is not None:
                    return [taken]
            chunks = together([partial(_taken, part, wanted, field) for part, wanted in rows], waiting=plan.waits)
        return _joined(chunks, field.name) if len(chunks) > 1 else chunks
    picks = selection.places is not None and len(parts) == len(selection.window.slices)
    chunks = _chunks([part for part, _ in parts], field, plan, encoded=encoded or picks)
    if picks:
        return _kept(chunks, selection, field, encoded=encoded)
    if len(parts) > 1 and (selection.places is not None or not _stay_apart(chunks)):
        chunks = _joined(chunks, field.name)
    if selection.places is None:
        return chunks
    return keep_rows(chunks, _places_in_parts(selection))


def _chunks(slices: Sequence[Slice], field: Field, plan: ScanStrategy, *, encoded: bool) -> list[pa.Array]:
    """Return the values of a column in all ranges of some slices."""
    joined = plain_parts(slices, field) if len(slices) >= _MANY_PARTS else []
    known = {place for first, last, _ in joined for place in range(first, last)}
    rest = [place for place in range(len(slices)) if place not in known]
    reads = [partial(_range_chunks, slices[place], field, encoded=encoded) for place in rest]
    found = dict(zip(rest, together(reads, waiting=plan.waits), strict=True))
    found.update((first, [array]) for first, _, array in joined)
    return [chunk for place in sorted(found) for chunk in found[place]]


def _kept(chunks: Sequence[pa.Array], selection: Selection, field: Field, *, encoded: bool) -> list[pa.Array]:
    """Return the selected values of the chunks of a window; dictionaries are decoded unless `encoded` is true."""
    found, base = [], 0
    for chunk in chunks:
        rows = selection.kept(base, len(chunk))
        decode = not encoded and not chunk.type.equals(field.storage_type)
        base += len(chunk)
        if rows.count:
            found.extend(_kept_chunk(chunk, rows, field, decode=decode))
    return _joined(found, field.name) if len(selection.window.slices) > 1 else found


def _kept_chunk(chunk: pa.Array, rows: KeptRows, field: Field, *, decode: bool) -> list[pa.Array]:
    if not decode and rows.are_all:
        return [chunk]
    with refusing(field.name, field.storage_type):
        picked = rows.of(chunk, decode=decode)
    return keep_rows([chunk], places_of(rows.mask)) if picked is None else [picked]


def _announce(rows: Sequence[tuple[Slice, NDArray[np.int64]]], *fields: Field) -> None:
    for part, taken in rows:
        announce(part.fragment, fields, taken)


def _stay_apart(chunks: list[pa.Array]) -> bool:
    """Return True if chunks are large enough as they are: joining them would copy them all."""
    kind = chunks[0].type if chunks else None
    if kind is None or pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        return False
    return sum(map(len, chunks)) >= _APART_ROWS * len(chunks)


def _joined(chunks: list[pa.Array], name: str) -> list[pa.Array]:
    """Join small chunks of several fragments into one, if they fit."""
    with suppress(UnjoinableError):
        return [join_arrays(chunks, chunks[0].type, name)] if chunks else []
    return chunks


def _places_in_parts(selection: Selection) -> NDArray[np.int64]:
    """Return the places of the selected rows, counted over the slices that have any."""
    if selection.places is not None and len(selection.parts) == len(selection.window.slices):
        return selection.places
    found, base = [np.empty(0, np.int64)], 0
    for part, places in selection.parts:
        found.append((np.arange(part.width) if places is None else places) + base)
        base += part.width
    return np.concatenate(found)


def _taken(part: Slice, rows: NDArray[np.int64], field: Field) -> pa.Array:
    """Return the values of a column at physical rows of a slice."""
    return take_values(part.fragment.column(field), rows, field.name)


def _range_chunks(part: Slice, field: Field, *, encoded: bool = False) -> list[pa.Array]:
    """Return the values of a column in all ranges of a slice."""
    reader, name = part.fragment.column(field), field.name
    if part.is_scattered:
        return [take_values(reader, part.rows, name)]
    chunks: list[pa.Array] = []
    for start, stop in part.ranges:
        for piece in bisected(partial(read_encoded if encoded else read_chunks, reader, name), start, stop):
            chunks.extend(piece)
    return chunks


# -- other columns -----------------------------------------------------------------------------------------------


def system_array(selection: Selection, name: str, request: ScanRequest) -> pa.Array:
    """Return the values of a system column."""
    arrays = [_system(part, rows, name, request) for part, rows in selection.rows()]
    return arrays[0] if len(arrays) == 1 else join_arrays(arrays, SYSTEM_COLUMNS[name].type, name)


def _system(part: Slice, rows: NDArray[np.int64], name: str, request: ScanRequest) -> pa.Array:
    values = part.fragment.system_column(name, rows)
    if request.include_deleted and name in ("_rowid", "_rowaddr"):
        return pc.if_else(pa.array(part.fragment.is_live(rows)), values, None)
    return values


def _computed(output: OutputColumn, selection: Selection, request: ScanRequest, plan: ScanStrategy) -> list[pa.Array]:
    """Return the values of a system or computed column, in chunks."""
    if output.system is not None:
        return [system_array(selection, output.system, request)]
    if output.expression is None:
        raise TypeError(f"column {output.arrow.name!r} is not computed")
    fields, arrays = [], []
    for name in output.expression.columns:
        if name in request.schema.names:
            field = request.schema.top_level(name)
            fields.append(field.to_arrow())
            arrays.append(selected_array(selection, field, plan))
        else:
            fields.append(SYSTEM_COLUMNS[name])
            arrays.append(system_array(selection, name, request))
    if not fields:
        return [output.expression.evaluate(rows_only(selection.num_rows, pa.schema([])))]
    rows = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    starts = range(0, rows.num_rows, _EVALUATED_ROWS)
    return [output.expression.evaluate(rows.slice(start, _EVALUATED_ROWS)) for start in starts]
