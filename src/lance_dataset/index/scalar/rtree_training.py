"""Training of R-tree indices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidIndexError
from lance_dataset.expr.geometry.boxes import boxes_of
from lance_dataset.index.files import WRITTEN_VERSION, IndexFolder, NewIndexFolder
from lance_dataset.index.scalar.row_set_rows import rows_of_sets
from lance_dataset.index.scalar.rtree import (
    BOUNDS,
    DEFAULT_PAGE_ROWS,
    ITEMS,
    NULL_ROWS,
    NULLS,
    PAGE_DATA,
    PAGE_ROWS,
    PAGES,
    SCHEMA,
    Boxes,
    TreeShape,
    null_set,
    open_tree,
    read_rows,
)
from lance_dataset.index.scalar.rtree_boxes import BoxSpool, LevelBoxes
from lance_dataset.index.trainer import OldSegment, Parameter, Trainer, Training
from lance_dataset.table.row_sets import ROW_SETS, encode_sets
from lance_dataset.types.geoarrow import geometry_layout
from lance_dataset.types.schema import Schema

__all__ = ["TRAINER"]

_Rows = NDArray[np.uint64]
#: Boxes that are written, and read, together.
_BATCH_ROWS: Final = 1 << 16


def _write(work: Training) -> bytes:
    return _extend((), work)


def _extend(old: Sequence[OldSegment], work: Training) -> bytes:
    """Write a tree of the geometries of old segments and of new rows."""
    with BoxSpool(work.memory_limit) as spool:
        nulls = [_take_over(segment, spool) for segment in old]
        nulls += [_take_in(batch, spool) for batch in work.entries]
        _write_tree(spool, work.target, work.parameters["page_size"])
    _write_nulls(np.concatenate([np.empty(0, np.uint64), *nulls]), work.target)
    return b""


def _take_in(batch: pa.RecordBatch, spool: BoxSpool) -> _Rows:
    """Add the boxes of geometries; return the rows with null."""
    values, ids = batch.columns
    rows = np.asarray(ids)
    try:
        boxes = boxes_of(values)
    except pa.ArrowInvalid as error:
        raise InvalidIndexError(f"the column cannot have an RTREE index: {error}") from error
    found = ~np.isnan(boxes[0])
    if not found.all():
        boxes, kept = boxes[:, found], rows[found]
    else:
        kept = rows
    spool.add(boxes, kept)
    return rows[np.asarray(values.is_null())]


def _take_over(segment: OldSegment, spool: BoxSpool) -> _Rows:
    """Add the boxes of a segment; return its rows with null."""
    table, shape = open_tree(segment.folder)
    for start in range(0, shape.items, _BATCH_ROWS):
        boxes, rows = read_rows(table, start, min(start + _BATCH_ROWS, shape.items))
        kept = segment.is_covered(rows) & ~np.isnan(boxes).any(axis=0)
        spool.add(boxes[:, kept], rows[kept])
    sets, _ = null_set(segment.folder)
    (nulls,) = rows_of_sets(sets, ROW_SETS, lambda _: 0, segment.folder.uri(NULLS))
    found: _Rows = nulls[segment.is_covered(nulls)]
    return found


def _write_tree(spool: BoxSpool, target: NewIndexFolder, page_rows: int) -> None:
    shape = TreeShape(spool.num_rows, page_rows)
    metadata = {PAGE_ROWS: str(page_rows), ITEMS: str(shape.items), PAGES: str(shape.num_pages)}
    names = ("minx", "miny", "maxx", "maxy")
    bounds = spool.bounds.tolist() if shape.items else [None] * len(names)
    metadata[BOUNDS] = json.dumps(dict(zip(names, bounds, strict=True)), separators=(",", ":"))
    target.write(PAGE_DATA, Schema.from_arrow(SCHEMA), WRITTEN_VERSION, _batches(spool, shape), metadata)


def _batches(spool: BoxSpool, shape: TreeShape) -> Iterator[pa.RecordBatch]:
    """Yield the boxes of geometries, then level by level those around pages."""
    above = LevelBoxes(shape.page_rows)
    for boxes, rows in spool.ordered():
        for start in range(0, len(rows), _BATCH_ROWS):
            part = boxes[:, start : start + _BATCH_ROWS]
            above.add(part)
            yield _batch(part, rows[start : start + _BATCH_ROWS])
    for below, _ in zip(shape.levels, shape.levels[1:], strict=False):
        boxes = above.boxes()
        above = LevelBoxes(shape.page_rows)
        above.add(boxes)
        yield _batch(boxes, np.arange(below.first_page, below.first_page + below.num_pages, dtype=np.uint64))


def _batch(boxes: Boxes, ids: _Rows) -> pa.RecordBatch:
    columns = [pa.array(column) for column in boxes]
    boxed = pa.StructArray.from_arrays(columns, fields=list(SCHEMA.field(0).type))
    return pa.RecordBatch.from_arrays([boxed, pa.array(ids, pa.uint64())], schema=SCHEMA)


def _write_nulls(rows: _Rows, target: NewIndexFolder) -> None:
    rows = np.unique(rows)
    (content,) = encode_sets(np.zeros(len(rows), np.int64), rows, 1, ROW_SETS)
    schema = pa.schema([pa.field(NULL_ROWS, pa.binary(), nullable=False)])
    batch = pa.RecordBatch.from_arrays([pa.array([content.as_py()], pa.binary())], schema=schema)
    target.write(NULLS, Schema.from_arrow(schema), WRITTEN_VERSION, [batch])


def _can_extend(folder: IndexFolder) -> bool:
    return not null_set(folder)[1]


def _parameters(folder: IndexFolder) -> Mapping[str, Any]:
    return {"page_size": open_tree(folder)[1].page_rows}


def _page_size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value < 1 << 32:
        raise InvalidIndexError("must be a number of at least 2")
    return value


def _fits(field: pa.Field) -> bool:
    layout = geometry_layout(field)
    return layout is not None and layout.kind != "null"


TRAINER: Final = Trainer(
    "RTREE",
    "/lance.index.pb.RTreeIndexDetails",
    lambda kind: _fits(pa.field("", kind)),
    "a GeoArrow type (its field has the metadata ARROW:extension:name), well-known binary or text",
    _write,
    {"page_size": Parameter(DEFAULT_PAGE_ROWS, _page_size)},
    read_parameters=_parameters,
    extend=_extend,
    can_extend=_can_extend,
    misfit=InvalidIndexError,
    fits_field=_fits,
)
