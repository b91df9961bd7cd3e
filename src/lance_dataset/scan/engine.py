"""Execution of a scan: filter windows, then read the columns of the selected rows ahead of the consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lance_dataset.errors import MemoryLimitError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import ResultMeter
from lance_dataset.properties import cached_property
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.holding import SMALL_FILE, Holding, can_hold, is_worth_all
from lance_dataset.read.open_together import open_together
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.batch_windows import BatchWindows, DecodedRows
from lance_dataset.scan.check_mode import is_checking
from lance_dataset.scan.checking import check_selection
from lance_dataset.scan.page_release import Release
from lance_dataset.scan.plain_values import plain_rows
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.selected_values import output_chunks, taken_together
from lance_dataset.scan.selection import Selection, live_rows
from lance_dataset.scan.strategy import ScanStrategy
from lance_dataset.scan.window_values import window_values
from lance_dataset.scan.windows import Pruning, Ranges, Window, fragments_of, windows
from lance_dataset.threads.pools import cpu_count
from lance_dataset.threads.streams import stream
from lance_dataset.threads.waiting import fetch_pool, fetching, together, without_waits
from lance_dataset.types.schema import Field

__all__ = ["Rows", "Scan"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: Rows examined before a scan that may end early starts to read ahead.
_CAUTIOUS_ROWS = 1 << 17
#: Bytes of a fragment per column up to which columns are fetched as a whole for a few rows, with one request.
_LATE_BYTES = 192 << 10
#: Factor by which the first window of a stream of batches is smaller than later ones.
_FIRST_PART = 16


@dataclass(frozen=True, eq=False)
class Rows:
    """Selected rows, at least one.

    Attributes
    ----------
    num_rows
        Number of rows.
    columns
        Non-empty chunks of every output column.
    shared
        The window whose bytes the columns may share, or None if they are copies.
    """

    num_rows: int
    columns: list[list[pa.Array]]
    shared: Window | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(chunk.nbytes for chunks in self.columns for chunk in chunks)


class Scan:
    """A scan of one version of a table; it may run several times.

    Parameters
    ----------
    reader
        The version of the table, or one fragment of it.
    request
        The scan, narrowed to the rows that its filter names. Its `order_by` is handled elsewhere.
    plan
        The strategy of the scan.
    batches
        Windows that are read in their own way, with the same strategy; None if there are none.
    """

    def __init__(
        self,
        reader: TableReader | FragmentReader,
        request: ScanRequest,
        plan: ScanStrategy,
        batches: BatchWindows | None = None,
    ) -> None:
        self._reader = reader
        self._request = request
        self._plan = plan
        self._batches = batches
        self._limit = reader.limit
        self._pruning = Pruning(request, plan)
        self._is_checked = request.filter is not None and is_checking()
        self._early = [request.schema.top_level(name) for name in plan.early]
        self._release = Release(request.stored_fields) if plan.releases else None

    # -- rows ----------------------------------------------------------------------------------------------------

    def each(self, work: Callable[[Selection], _Result]) -> Iterator[_Result]:
        """Apply `work` to the selected rows of each window, before offset and limit, and yield the results."""
        return self._each(fragments_of(self._reader, self._request), work)

    def count(self) -> int:
        """Return the number of selected rows, before offset and limit."""
        if _counts_known(self._request):
            return sum(fragment.num_rows for fragment, _, _ in fragments_of(self._reader, self._request))

        return sum(self.each(lambda selection: selection.num_rows))

    def find(self, window: Window) -> Selection:
        """Return the selected rows of a window."""
        found = self._find(window)
        if self._is_checked:
            check_selection(window, self._request, self._plan, found)
        return found

    def _select(self, window: Window) -> Selection:
        if not self._plan.steps:
            return live_rows(window, self._request)
        from lance_dataset.scan.filtering import select  # filters need expressions, which are many modules

        return select(window, self._request, self._plan)

    def _fetch(self, window: Window, held: Holding, *, late: bool) -> bool:
        """Fetch what is read of all rows of a window, as far as that is known and few bytes.

        Parameters
        ----------
        window
            The window.
        held
            Holds what is fetched.
        late
            True if columns that are read late are wanted, too.

        Returns
        -------
        bool
            True if the scan reads nothing else of the window.
        """
        fields, share = self._early, self._early_share
        parts = [part for part in window.slices if can_hold(part.fragment, fields, part.ranges, share)]
        if len(parts) < len(window.slices):
            open_together([part.fragment for part in window.slices], fields)
        whole = is_worth_all(share)
        if late and self._late:
            whole = is_worth_all(self._stored_share, SMALL_FILE)
        held.fetch([part.fragment for part in parts], fields, whole)
        return len(parts) == len(window.slices) and not (late and self._late)

    @contextmanager
    def _held(self, window: Window, *, late: bool) -> Iterator[None]:
        """Return a context that holds what `_fetch` fetches."""
        if not self._plan.waits:
            yield
            return
        with Holding() as held, without_waits() if self._fetch(window, held, late=late) else nullcontext():
            yield

    def _fetch_late(self, selection: Selection, held: Holding) -> bool:
        """Fetch the columns that are read late; return False if that would be many bytes for few rows."""
        fields, share = self._late, max(self._stored_share - self._early_share, 0.0)
        most = _LATE_BYTES * len(fields)
        for part, _ in selection.parts:
            fragment = part.fragment
            ranges = [(0, fragment.physical_rows)]
            if not can_hold(fragment, fields, ranges, share) or fragment.num_bytes * share > most:
                return False
        held.fetch([part.fragment for part, _ in selection.parts], fields, is_worth_all(share))
        return True

    @cached_property
    def _late(self) -> list[Field]:
        return [self._request.schema.top_level(name) for name in self._plan.late]

    @cached_property
    def _early_share(self) -> float:
        return self._plan.costs.share(self._early)

    @cached_property
    def _stored_share(self) -> float:
        return self._plan.costs.share(self._request.stored_fields)

    def _find(self, window: Window) -> Selection:
        metrics = self._request.metrics
        if metrics is None:
            return self._select(self._pruning.prune(window))
        with metrics.timed("scan"):
            window = self._pruning.prune(window)
            found = self._select(window)
        metrics.node("scan").add(window.width, batches=1)
        metrics.looked_at(part.fragment.fragment.id for part in window.slices)
        if self._request.filter is not None:
            metrics.node("filter").add(found.num_rows, batches=1)
        return found

    def _stream(
        self,
        work: Callable[[_Item], _Result],
        items: Iterable[_Item],
        *,
        in_order: bool,
        weight: Callable[[_Item], float],
    ) -> Iterator[_Result]:
        """Yield the results of `work`, computed ahead of the consumer if that pays; `weight` is an item's bytes."""
        plan = self._plan
        work = self._limit.around(work)
        return stream(
            fetching(work) if plan.waits else work,
            items,
            ahead=plan.ahead if plan.threads > 1 or plan.waits else 0,
            in_order=in_order,
            weight=weight,
            budget=plan.buffer_bytes,
            pool=fetch_pool if plan.waits else None,
        )

    def _let_go(self, window: Window) -> None:
        if self._release is not None:
            self._release.window(window)

    def _each(self, ranges: Ranges, work: Callable[[Selection], _Result]) -> Iterator[_Result]:
        found = windows(ranges, self._request, self._plan)

        def worked(window: Window) -> _Result:
            with self._held(window, late=False):
                found = self.find(window)
                result = work(found)
            self._let_go(found.window)
            return result

        if self._plan.grows:
            looked = 0
            limited = self._limit.around(worked)
            for window in found:
                yield limited(window)
                looked += window.width
                if looked >= _CAUTIOUS_ROWS:
                    break
        yield from self._stream(
            worked, found, in_order=self._plan.in_order, weight=lambda window: self._plan.look_bytes
        )

    def limited(self) -> Iterator[Selection]:
        """Yield the selected rows after offset and limit; the search ends with the last row needed."""
        request = self._request
        skip, left = request.offset, request.limit
        if left == 0:
            return
        ranges = fragments_of(self._reader, request)
        if skip and _counts_known(request):
            ranges, skip = self._skipped(ranges, skip)
        for selection in self._each(ranges, lambda found: found):
            dropped = min(skip, selection.num_rows)
            skip -= dropped
            stop = selection.num_rows if left is None else min(selection.num_rows, dropped + left)
            if dropped < stop:
                if request.metrics is not None:
                    request.metrics.node("limit").add(stop - dropped, batches=1)
                yield selection.cut(dropped, stop)
            if left is not None:
                left -= stop - dropped
                if left == 0:
                    return

    def _skipped(self, ranges: Ranges, skip: int) -> tuple[Ranges, int]:
        """Drop ranges that an offset skips entirely, without opening them; return the other ranges and the rest."""
        request = self._request
        if request.fragments is None and isinstance(self._reader, TableReader):
            starts = self._reader.live_starts
            position = int(np.searchsorted(starts, skip, side="right")) - 1
            later = range(position, len(self._reader.fragments))
            found = ((self._reader.fragments[at], 0, self._reader.fragments[at].physical_rows) for at in later)
            return found, skip - int(starts[min(position, len(starts) - 1)])
        for each in ranges:
            if skip < each[0].num_rows:
                return chain((each,), ranges), skip
            skip -= each[0].num_rows
        return iter(()), skip

    # -- columns -------------------------------------------------------------------------------------------------

    def rows(self, *, apart: bool = True) -> Iterator[Rows]:
        """Yield the rows that the scan returns, after offset and limit, in pieces.

        Without a filter, rows of two fragments come in separate pieces if `apart` is true.
        """
        request, plan = self._request, self._plan
        apart = apart and request.filter is None
        if request.limit is None and request.offset == 0:
            found = windows(fragments_of(self._reader, request), request, self._soon if apart else plan)
            done: Iterator[list[Rows] | Selection | DecodedRows] = (
                self._in_stages(found, apart)
                if plan.waits and request.filter is None
                else self._stream(
                    partial(self._work, apart=apart),
                    found,
                    in_order=plan.in_order,
                    weight=lambda window: plan.task_bytes,
                )
            )
        else:
            done = self.limited()
        for result in done:
            if isinstance(result, DecodedRows):
                yield Rows(result.num_rows, result.columns())
                continue
            for rows in self._pieces(result, apart) if isinstance(result, Selection) else result:
                yield rows
                if rows.shared is not None:
                    self._let_go(rows.shared)

    def _in_stages(self, found: Iterable[Window], apart: bool) -> Iterator[list[Rows] | Selection]:
        """Yield the rows of windows that many threads fetch and few decode: memory is taken in megabytes for each."""
        plan, holdings = self._plan, set[Holding]()

        def fetch(window: Window) -> tuple[Window, Holding | None, list[Rows] | Selection]:
            held = Holding()
            holdings.add(held)
            if self._fetch(window, held, late=True):
                return window, held, []
            with held:
                return window, None, self._read_window(window, apart=apart)

        def decode(fetched: tuple[Window, Holding | None, list[Rows] | Selection]) -> list[Rows] | Selection:
            window, held, done = fetched
            if held is None:
                return done
            with held, without_waits():
                return self._read_window(window, apart=apart)

        try:
            fetched = self._stream(fetch, found, in_order=plan.in_order, weight=lambda window: plan.task_bytes)
            yield from stream(
                self._limit.around(decode),
                fetched,
                ahead=cpu_count() + 2 if plan.ahead else 0,
                in_order=plan.in_order,
                weight=lambda each: plan.task_bytes,
                budget=plan.buffer_bytes,
            )
        finally:
            for held in holdings:
                held.release()

    @property
    def _soon(self) -> ScanStrategy:
        """Strategy with a small first window, so that the first batch does not wait for many rows."""
        batch = self._request.batch_size
        rows = max(self._plan.window_rows // _FIRST_PART // batch, 1) * batch
        return replace(self._plan, first_rows=min(self._plan.first_rows, rows))

    def _work(self, window: Window, *, apart: bool) -> list[Rows] | Selection | DecodedRows:
        """Return the rows of a window, or only the selection if they are too many to read together."""
        decoded = None if self._batches is None else self._batches.decode(window, self._column)
        if decoded is not None:
            return decoded
        with self._held(window, late=True):
            return self._read_window(window, apart=apart)

    def _read_window(self, window: Window, *, apart: bool) -> list[Rows] | Selection:
        found = self.find(window)
        if found.num_rows > self._plan.piece_rows:
            return found
        parts = self._parts(found, apart)
        if not parts:
            self._let_go(found.window)
        try:
            return together([partial(self._piece, part) for part in parts], waiting=self._plan.waits)
        except MemoryLimitError:
            if self._limit.max_bytes is None:
                raise
            return found  # to be read in smaller pieces

    def _parts(self, selection: Selection, apart: bool) -> list[Selection]:
        """Split a selection into the parts that are returned together, by fragment if `apart` is true."""
        if not apart or len(selection.window.slices) == 1:
            return [selection] if selection.num_rows else []
        starts = selection.window.starts.tolist()
        parts = []
        for low, high in pairwise(starts):
            if selection.places is None:
                part = selection.cut(low, high)
            else:
                first, stop = np.searchsorted(selection.places, (low, high)).tolist()
                part = selection.cut(first, stop)
            if part.num_rows:
                parts.append(part)
        return parts

    def _pieces(self, selection: Selection, apart: bool) -> Iterator[Rows]:
        pieces = [piece for part in self._parts(selection, apart) for piece in part.pieces(self._plan.piece_rows)]
        if self._limit.max_bytes is not None:
            yield from chain.from_iterable(map(self._halved, pieces))
            return
        if len(pieces) < 2:
            yield from map(self._piece, pieces)
            return
        plan = self._plan
        yield from self._stream(self._piece, pieces, in_order=plan.in_order, weight=lambda piece: plan.piece_bytes)

    def _halved(self, selection: Selection) -> Iterator[Rows]:
        """Yield the rows of a selection, which is halved as long as they take more memory than a result may."""
        try:
            rows = self._limit.around(self._piece)(selection)
        except MemoryLimitError:
            if selection.num_rows < 2:
                raise
        else:
            yield rows
            return
        middle = selection.num_rows // 2
        yield from self._halved(selection.cut(0, middle))
        yield from self._halved(selection.cut(middle, selection.num_rows))

    def _piece(self, selection: Selection) -> Rows:
        rows, window = self.read(selection), selection.window
        if selection.is_whole:
            return replace(rows, shared=window)
        self._let_go(window)
        return rows

    def read(self, selection: Selection) -> Rows:
        """Read the output columns of selected rows."""
        if not self._plan.waits or not self._late:
            return self._read(selection)
        with Holding() as held, without_waits() if self._fetch_late(selection, held) else nullcontext():
            return self._read(selection)

    def _read(self, selection: Selection) -> Rows:
        outputs, unlimited = self._request.projection.columns, self._limit.max_bytes is None
        plain: dict[int, list[pa.Array]] = {}
        if unlimited and self._request.metrics is None:
            if not self._plan.waits and self._request.late is None:
                plain = {number: [array] for number, array in plain_rows(outputs, selection).items()}
                plain = plain or window_values(outputs, selection)
            rest = outputs if not plain else [output for at, output in enumerate(outputs) if at not in plain]
            selection = taken_together(rest, selection, self._request, self._plan)
        columns = [partial(self._column, number, selection) for number in range(len(outputs)) if number not in plain]
        if not unlimited:
            meter = self._limit.meter(f"the result of {selection.num_rows:,} rows")
            columns = [partial(_metered, column, meter) for column in columns]
        found = together(columns, waiting=self._plan.waits)
        if plain:
            others = iter(found)
            found = [plain[number] if number in plain else next(others) for number in range(len(outputs))]
        return Rows(selection.num_rows, found)

    def columns(self, number: int, selections: Sequence[Selection]) -> Iterator[list[pa.Array]]:
        """Yield the chunks of one output column for each selection."""
        size = self._plan.costs.output_bytes(self._request.projection.columns[number])
        return self._stream(
            lambda selection: self._column(number, selection),
            selections,
            in_order=True,
            weight=lambda selection: selection.num_rows * size,
        )

    def _column(self, number: int, selection: Selection) -> list[pa.Array]:
        output, request = self._request.projection.columns[number], self._request
        if request.metrics is None:
            return output_chunks(output, selection, request, self._plan)
        computed = output.field is None
        with request.metrics.timed("project" if computed else "materialize") as node:
            chunks = output_chunks(output, selection, request, self._plan)
        first = all((other.field is None) != computed for other in request.projection.columns[:number])
        size = sum(chunk.nbytes for chunk in chunks)
        node.add(selection.num_rows if first else 0, batches=int(first), bytes=size)
        return chunks


def _metered(column: Callable[[], list[pa.Array]], meter: ResultMeter) -> list[pa.Array]:
    chunks = column()
    meter.add(sum(chunk.nbytes for chunk in chunks))
    return chunks


def _counts_known(request: ScanRequest) -> bool:
    """Return True if every fragment yields exactly its live rows."""
    if request.filter is not None or request.rows is not None:
        return False
    return request.row_range is None and not request.include_deleted
