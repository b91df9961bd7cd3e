"""Selection of the rows of a window that a filter keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.expr.array_predicates import places_of
from lance_dataset.expr.compiled import Filter
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.read.empty_batches import rows_only
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.scan.costs import is_worth_searching
from lance_dataset.scan.encoded_column import EncodedValues
from lance_dataset.scan.encoded_filter import mask_encoded
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.selected_values import selected_column, system_array
from lance_dataset.scan.selection import Known, MaskedSelection, Selection, drop_deleted, live_rows
from lance_dataset.scan.strategy import ScanStrategy
from lance_dataset.scan.windows import Window
from lance_dataset.types.schema import Field

__all__ = ["select", "select_plainly"]

#: Values that are searched in the time in which one value is taken.
_SEARCHED_PER_KEPT = 32
#: If earlier conditions kept more than this share of the rows, the next one is computed for all rows.
_MOST = 0.5


def select(window: Window, request: ScanRequest, plan: ScanStrategy) -> Selection:
    """Find the rows that a request selects in a window.

    Parameters
    ----------
    window
        The rows to search. In its fragments, the filter keeps no row outside of the window.
    request
        The scan.
    plan
        The strategy of the scan.
    """
    if not plan.steps or window.width == 0:
        return live_rows(window, request)
    search = _Search(window, request, plan)
    for step, test in zip(plan.steps, plan.tests, strict=True):
        if test is None or not search.narrow_stored(step.columns[0], test):
            search.narrow(step)
    return search.found()


def select_plainly(window: Window, request: ScanRequest, plan: ScanStrategy) -> Selection:
    """Find the same rows as `select`, by computing the filter over the decoded values of all rows that are not deleted.

    Raises
    ------
    Exception
        As raised by `Filter.mask`, also for rows that one of the conditions of the filter excludes.
    """
    live = live_rows(window, request)
    if request.filter is None or live.num_rows == 0:
        return live
    places = places_of(request.filter.mask(_Search(window, request, plan).inputs(request.filter, live.places)))
    return Selection(window, places if live.places is None else live.places[places])


class _Search:
    """Rows of a window that all conditions so far keep."""

    def __init__(self, window: Window, request: ScanRequest, plan: ScanStrategy) -> None:
        self._window = window
        self._request = request
        self._plan = plan
        self._dropped_deleted = request.include_deleted
        # The rows kept, either as one boolean per row of the window or as their places; neither means all rows.
        self._kept: pa.BooleanArray | None = None
        self._places: NDArray[np.int64] | None = None
        self.known: dict[int, Known] = {}
        if request.late is False or isinstance(request.late, tuple):
            self._read_early()

    def _read_early(self) -> None:
        early = set(self._plan.early)
        for output in self._request.projection.columns:
            if output.field is not None and output.field.name in early:
                self._known(output.field)

    def narrow_stored(self, name: str, test: StoredTest) -> bool:
        """Keep only the rows whose values of a column pass a test, without reading the values, if that pays.

        Returns
        -------
        bool
            False if nothing was done.
        """
        count, width, slices = self._count(), self._window.width, self._window.slices
        stored = self._request.schema.top_level(name)
        if self._places is not None or count * _SEARCHED_PER_KEPT < width or not is_worth_searching(width, len(slices)):
            return False
        if id(stored) in self.known or any(part.is_scattered for part in slices):
            return False
        found: list[pa.BooleanArray] = []
        for part in slices:
            reader = part.fragment.column(stored)
            for start, stop in part.ranges:
                kept = None if self._kept is None else self._kept.slice(sum(map(len, found)), stop - start)
                pieces = reader.search(test, start, stop, kept)
                if pieces is None:
                    return False
                found.extend(pieces)
        self._kept = found[0] if len(found) == 1 else pa.concat_arrays(found)
        if not self._dropped_deleted:
            self._kept, self._dropped_deleted = self._live(self._kept), True
        if self._request.metrics is not None:
            self._request.metrics.node("scan").add(encoded=width)
        return True

    def narrow(self, step: Filter) -> None:
        """Keep only the rows for which a condition is true."""
        count = self._count()
        if count == 0:
            return
        everything = count > _MOST * self._window.width or self._is_cheap(step, count)
        places = None if everything else self._find_places()
        try:
            keep = self._mask(step, places)
        except (pa.ArrowException, ArithmeticError, ValueError):
            live = None if self._dropped_deleted else live_rows(self._window, self._request).places
            if live is None:
                raise
            # the failing row may be a deleted one, and deleted rows must not be visible
            self._kept, self._places = None, live[places_of(step.mask(self.inputs(step, live)))]
            self._dropped_deleted = True
            return
        if places is not None:
            self._kept, self._places = None, places[places_of(keep)]
            return
        if not self._dropped_deleted:
            keep = self._live(keep)
            self._dropped_deleted = True
        if self._places is not None:
            self._kept, self._places = None, self._places[np.asarray(keep.take(pa.array(self._places)), bool)]
        else:
            self._kept = keep if self._kept is None else pc.and_(self._kept, keep)

    def found(self) -> Selection:
        """Return the rows that are kept."""
        if self._kept is not None and self._kept.true_count < self._window.width:
            return MaskedSelection(self._window, self._kept, self.known)
        return Selection(self._window, self._places, self.known)

    def _count(self) -> int:
        if self._kept is not None:
            return int(self._kept.true_count)
        return self._window.width if self._places is None else len(self._places)

    def _find_places(self) -> NDArray[np.int64] | None:
        if self._kept is not None:
            self._kept, self._places = None, places_of(self._kept)
        return self._places

    def _live(self, keep: pa.BooleanArray) -> pa.BooleanArray:
        """Return the kept rows without the deleted ones."""
        if all(part.fragment.fragment.deletion_file is None for part in self._window.slices):
            return keep
        flags = np.array(keep, bool)
        drop_deleted(self._window, flags)
        return pa.array(flags)

    def _is_cheap(self, step: Filter, count: int) -> bool:
        """Return True if a condition costs less for all rows than picking the values of `count` of them.

        This is so if it reads only dictionary indices that are not taken row by row.
        """
        for name in step.columns:
            if name not in self._request.schema.names:
                return False
            stored = self._request.schema.top_level(name)
            if id(stored) not in self.known and self._plan.costs.prefers_take(stored, count, self._window.width):
                return False
            known = self.known.get(id(stored)) or self._known(stored)
            if known.places is not None or not known.values.is_encoded:
                return False
        return True

    def _mask(self, step: Filter, places: NDArray[np.int64] | None) -> pa.BooleanArray:
        """Compute where a condition is true among some places of the window, None for all; never null."""
        columns: dict[str, EncodedValues] = {}
        for name in step.columns:
            if name in self._request.schema.names:
                stored = self._request.schema.top_level(name)
                known = self._known(stored, places)
                columns[name] = known.values.chunks if places is known.places else [known.at(places)]
            else:
                columns[name] = [system_array(Selection(self._window, places), name, self._request)]
        return mask_encoded(step, columns, self._window.width if places is None else len(places))

    def inputs(self, step: Filter, places: NDArray[np.int64] | None) -> pa.RecordBatch:
        """Return the columns that a condition reads at some places of the window, None for all."""
        request, fields, arrays = self._request, [], []
        for name in step.columns:
            if name in request.schema.names:
                stored = request.schema.top_level(name)
                fields.append(stored.to_arrow())
                arrays.append(self._known(stored, places).at(places))
            else:
                fields.append(SYSTEM_COLUMNS[name])
                arrays.append(system_array(Selection(self._window, places), name, request))
        if not fields:
            return rows_only(self._window.width if places is None else len(places), pa.schema([]))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _known(self, stored: Field, places: NDArray[np.int64] | None = None) -> Known:
        """Return the values of a column at some places of the window (or more), None for all."""
        known = self.known.get(id(stored))
        if known is None or (known.places is not None and places is None):
            values = selected_column(Selection(self._window, places), stored, self._plan)
            known = self.known[id(stored)] = Known(values, places)
            if self._request.metrics is not None:
                self._request.metrics.node("scan").add(bytes=values.nbytes)
        return known
