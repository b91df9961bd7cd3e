"""Windows of scans in batches: rows of several columns, decoded in one call into memory that is used again.

Windows of other scans hold as much as a thread should decode at a time. A consumer of batches drops them soon, and what
it drops serves the next windows, so that the system need not clear memory for them. So windows are smaller here. What
is the same for all windows of a fragment is prepared once, because other threads wait for the interpreter meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.take_shape import take_shape
from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.prefetch import Announcements
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.check_mode import is_checking
from lance_dataset.scan.plain_values import check_column
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.selection import Selection
from lance_dataset.scan.strategy import ScanStrategy
from lance_dataset.scan.window_values import may_read_together
from lance_dataset.scan.windows import Window, fragments_of
from lance_dataset.threads.pools import cpu_count
from lance_dataset.types.schema import Field
from lancecodec import window as codec

if TYPE_CHECKING:
    from lancecodec.take import ColumnTaker

__all__ = ["BatchWindows", "DecodedRows"]

#: Bytes of a window, unless a batch is larger, and at most.
_WINDOW_BYTES = 12 << 20
_MOST_BYTES = 24 << 20
#: Columns from which on, and up to which, windows are read here. A few columns gain nothing by smaller windows, and
#: many columns take long to open.
_FEW_COLUMNS = 8
_MANY_COLUMNS = 64
#: Smaller fragments are read in other ways.
_LEAST_ROWS = 1 << 12
#: Share of the columns that must be readable here.
_LEAST_SHARE = 0.75
#: Fragments that stay prepared.
_REMEMBERED = 4
#: Memory that windows take turns in. It stays for later scans: the system clears memory that it gives out.
_memory = codec.SpareMemory(48 << 20)
#: Announcements of the windows that are read, as long as reads have to wait for the device.
_announcements = Announcements()


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Columns of a fragment.

    Attributes
    ----------
    fragment
        The fragment.
    readers, types
        Reader of each column, and the type of its arrays.
    takers
        Taker of each column, None if there is none.
    kinds
        For each column whether its offsets have 64 bits, and whether its texts must be UTF-8.
    views
        Chunks of all rows of columns that are used in place, without a copy, by number; none of other columns.
    """

    fragment: FragmentReader
    readers: Sequence[ColumnReader]
    types: Sequence[pa.DataType]
    takers: Sequence[ColumnTaker | None]
    kinds: Sequence[tuple[bool, bool]]
    views: dict[int, list[pa.Array]]

    @classmethod
    def of(cls, fragment: FragmentReader, fields: Sequence[Field]) -> _Prepared:
        """Open the columns of a fragment."""
        readers = [fragment.column(field) for field in fields]
        shapes = [take_shape(reader.arrow_type) for reader in readers]
        takers = [
            None if shape is None or shape.listed or shape.dimensions else reader.taker()
            for reader, shape in zip(readers, shapes, strict=True)
        ]
        kinds = [(shape.wide, shape.text) if shape else (False, False) for shape in shapes]
        return cls(fragment, readers, [reader.arrow_type for reader in readers], takers, kinds, {})

    def view(self, number: int, start: int, stop: int) -> list[pa.Array]:
        """Return the values ``[start, stop)`` of a column that is used in place; none of another column."""
        chunks = self.views.get(number)
        if chunks is None:
            chunks = self.views[number] = _in_place(self.readers[number])
        found, base = [], 0
        for chunk in chunks:
            low, high = max(start - base, 0), min(stop - base, len(chunk))
            if low < high:
                found.append(chunk.slice(low, high - low))
            base += len(chunk)
        return found


def _in_place(reader: ColumnReader) -> list[pa.Array]:
    """Return the chunks of a column if its values are used in place; none if it is damaged, which reads report."""
    if any(part.cost for part in reader.parts(0, reader.num_rows)):
        return []
    with suppress(CorruptFileError, UnsupportedError):
        if not any(buffer is not None and buffer.is_mutable for buffer in reader.read(0, 1).buffers()):
            return reader.read_chunks(0, reader.num_rows)
    return []


@dataclass(frozen=True, eq=False)
class DecodedRows:
    """Decoded rows of a window that are not imported yet, which the thread of the consumer does.

    Attributes
    ----------
    num_rows
        Number of rows, at least one.
    found
        Columns that were decoded together.
    others
        Chunks of the other columns, by number.
    kinds
        Type of each column.
    """

    num_rows: int
    found: codec.WindowArrays
    others: dict[int, list[pa.Array]]
    kinds: Sequence[pa.DataType]

    def missing(self) -> list[int]:
        """Return the columns that were not decoded together and are not among the others."""
        rest = (number for number in range(len(self.kinds)) if number not in self.others)
        return [number for number in rest if self.found.column(number) is None]

    def imported(self, number: int) -> pa.Array:
        """Return a column that was decoded together with others, once."""
        return pa.Array._import_from_c(self.found.column(number), self.kinds[number])

    def columns(self) -> list[list[pa.Array]]:
        """Return the non-empty chunks of all columns, once."""
        others = self.others
        return [others[number] if number in others else [self.imported(number)] for number in range(len(self.kinds))]


class BatchWindows:
    """Windows of the scan of some columns without a filter.

    Parameters
    ----------
    plan
        The strategy of the scan, with windows as they are best read here.
    fields
        Stored columns that the scan returns.
    """

    def __init__(self, plan: ScanStrategy, fields: Sequence[Field]) -> None:
        self.plan = plan
        self._fields = fields
        self._prepared: dict[int, _Prepared] = {}

    @classmethod
    def of(cls, reader: TableReader | FragmentReader, request: ScanRequest, plan: ScanStrategy) -> BatchWindows | None:
        """Return the windows of a scan, None if its rows are better read in another way."""
        outputs = request.projection.columns
        fields = [output.field for output in outputs if output.field is not None and not output.path]
        if not _FEW_COLUMNS <= len(outputs) == len(fields) < _MANY_COLUMNS or not all(map(may_read_together, fields)):
            return None
        if plan.waits or reader.limit.max_bytes is not None or not _is_plain(request):
            return None
        smaller = _smaller(plan, request, sum(map(plan.costs.output_bytes, outputs)))
        first = list(islice(fragments_of(reader, request), _REMEMBERED))
        least = max(smaller.window_rows, _LEAST_ROWS)
        if not first or smaller.task_bytes > _MOST_BYTES or any(stop - start < least for _, start, stop in first):
            return None
        found = cls(smaller, fields)
        return found if found._can_read(first[0][0], first[0][1]) else None

    def _can_read(self, fragment: FragmentReader, row: int) -> bool:
        """Return True if most columns of a fragment can be read here, as far as the pages of a row tell."""
        if not fragment.is_mapped:
            return False
        return _is_enough(codec.Window(self._of(fragment).takers, row, row + 1))

    def _of(self, fragment: FragmentReader) -> _Prepared:
        known = self._prepared.get(id(fragment))
        if known is None or known.fragment is not fragment:
            if len(self._prepared) >= _REMEMBERED:
                self._prepared = {}
            known = self._prepared[id(fragment)] = _Prepared.of(fragment, self._fields)
        return known

    def decode(self, window: Window, column: Callable[[int, Selection], list[pa.Array]]) -> DecodedRows | None:
        """Return the rows of a window, None if they are to be read in another way.

        Parameters
        ----------
        window
            The window.
        column
            Reads a column of selected rows by itself.
        """
        part = window.slices[0]
        fragment = part.fragment
        if len(window.slices) > 1 or len(part.ranges) > 1 or not fragment.is_mapped:
            return None
        prepared, (start, stop) = self._of(fragment), part.ranges[0]
        live = fragment.live_mask(start, stop)
        found = codec.Window(prepared.takers, start, stop, *(() if live is None else (live.buffers()[1], live.offset)))
        if not found.num_rows or not _is_enough(found):
            return None

        def announce() -> None:
            for reader in prepared.readers:
                reader.begin(start, stop)

        with _announcements.taking(announce):
            arrays = found.arrays(prepared.kinds, _memory)
        decoded = DecodedRows(found.num_rows, arrays, {}, prepared.types)
        if is_checking():
            _check(decoded, prepared, np.arange(start, stop) if live is None else np.flatnonzero(live) + start)
        for number in decoded.missing():
            view = prepared.view(number, start, stop) if live is None else []
            decoded.others[number] = view or column(number, Selection(window, part.live()))
        return decoded


def _is_plain(request: ScanRequest) -> bool:
    """Return True if a scan returns all rows of its fragments that are not deleted, and counts nothing."""
    if request.filter is not None or request.rows is not None or request.include_deleted or request.order_by:
        return False
    return request.limit is None and request.offset == 0 and request.metrics is None and request.late is None


def _smaller(plan: ScanStrategy, request: ScanRequest, width: float) -> ScanStrategy:
    """Return the plan with smaller windows, of whole batches; `width` is the size of a row in bytes."""
    batches = int(_WINDOW_BYTES / max(width, 1.0)) // request.batch_size
    rows = min(max(batches, 1) * request.batch_size, plan.window_rows)
    ahead = plan.ahead if request.batch_readahead is not None else min(plan.ahead, cpu_count())
    size = int(rows * width)
    first = min(plan.first_rows, rows)
    return replace(
        plan, window_rows=rows, first_rows=first, piece_rows=rows, piece_bytes=size, task_bytes=size, ahead=ahead
    )


def _is_enough(window: codec.Window) -> bool:
    """Return True if so many columns can be read together that the others do not matter."""
    readable = window.readable()
    return sum(readable) >= _LEAST_SHARE * len(readable)


def _check(decoded: DecodedRows, prepared: _Prepared, rows: NDArray[np.int64]) -> None:
    """Import all columns, and compare each with the same column by itself."""
    missing = set(decoded.missing())
    for number, reader in enumerate(prepared.readers):
        if number not in missing:
            decoded.others[number] = [decoded.imported(number)]
            check_column(
                reader, rows, decoded.others[number][0], f"{number} of fragment {prepared.fragment.fragment.id}"
            )
