"""Strategy of a scan: which columns it reads when, how many rows together, and on how many threads."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import ResultLimit
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.costs import ColumnCosts
from lance_dataset.scan.request import ScanRequest
from lance_dataset.threads.pools import cpu_count

if TYPE_CHECKING:
    from lance_dataset.expr.compiled import Filter
    from lance_dataset.file.stored_test import StoredTest

__all__ = ["MAX_BATCH_BYTES", "PIECE_BYTES", "ScanStrategy", "strategy"]

#: Rows are decoded and returned in pieces of about this size, which are sliced into batches.
PIECE_BYTES = 16 << 20
#: Pieces are at least of this size, whatever the limit of memory.
_LEAST_PIECE = 256 << 10
#: Pieces of many columns are larger, so that each column has about this many bytes, if few threads decode them: it
#: takes some ten microseconds to start decoding a column, even of a few rows.
_COLUMN_BYTES = 2 << 20
#: Piece size for computed columns: every step of an expression allocates as much again, preferably in the caches.
_COMPUTED_BYTES = 4 << 20
#: Rows larger than this together are split into several batches, whatever the batch size.
MAX_BATCH_BYTES = 256 << 20
#: Rows that a filter examines together: the maximum, and the minimum if there are several threads to keep busy.
_MAX_WINDOW_ROWS = 1 << 19
_MAX_SEARCHED_ROWS = 1 << 20
_MIN_WINDOW_ROWS = 1 << 16
#: Maximum bytes of all columns spanned by a window if files are not mapped, or if mapped bytes are to be released.
_SPAN_BYTES = 32 << 20
#: Maximum bytes of decoded rows that wait for the consumer, unless the scan sets a lower limit.
_BUFFER_BYTES = 128 << 20
#: Scans of more stored bytes than this release mapped bytes whose values they have copied.
_KEPT_BYTES = 512 << 20
#: Windows fetched ahead of the next one if every request takes a while: together as many as there are threads.
_WAITING_AHEAD = 15
#: Nanoseconds of work, in total and per column of a fragment, above which threads gain more than they cost. While a
#: page is opened, other threads wait.
_PARALLEL_COST = 2e6
_PARALLEL_COLUMN_COST = 5e4
#: Nanoseconds that a condition takes per row, if it reads the values and if it searches them in their stored form.
_CONDITION_COST = 2.0
_SEARCH_COST = 0.5
#: Share of the rows that a filter is expected to keep.
_KEPT_SHARE = 0.1
#: Columns from which on they are not opened to find out what reading them costs.
_MANY_COLUMNS = 64


@dataclass(frozen=True)
class ScanStrategy:
    """Decisions made before a scan starts.

    Attributes
    ----------
    early
        Stored columns that are read for all rows, in the order in which they are needed.
    late
        Stored columns that are read only for the rows that the filter keeps.
    steps
        The filter as conditions of an AND, computed one after another, each for the rows that the previous ones
        kept; empty without a filter.
    tests
        For each of the steps, the same condition as a test of the stored values of its column; None if it is not one.
    top
        Rows that a sort keeps; None for all, or without a sort.
    in_order
        True if rows are returned in storage order.
    window_rows, first_rows
        Maximum number of rows examined together, and number of rows in the first window, after which windows grow.
    piece_rows, piece_bytes
        Maximum number of rows returned together, and about how many bytes they take.
    threads
        Threads that decode windows; 1 for the thread of the caller.
    ahead
        Windows after the next one that may be decoded before the consumer asks for them.
    waits
        True if files are on other machines, so that the time goes into requests.
    releases
        True if the scan is so large that the bytes it has read should not stay in memory.
    look_bytes, task_bytes, buffer_bytes
        Estimated bytes needed to find the rows of one window, to read the returned columns of these rows as well, and
        the limit for all windows together.
    costs
        Cost estimates by column.
    """

    early: tuple[str, ...]
    late: tuple[str, ...]
    steps: tuple[Filter, ...]
    tests: tuple[StoredTest | None, ...]
    top: int | None
    in_order: bool
    window_rows: int
    first_rows: int
    piece_rows: int
    piece_bytes: int
    threads: int
    ahead: int
    waits: bool
    releases: bool
    look_bytes: int
    task_bytes: int
    buffer_bytes: int
    costs: ColumnCosts

    @property
    def grows(self) -> bool:
        """True if windows start small, because the scan may end early."""
        return self.first_rows < self.window_rows


def strategy(reader: TableReader | FragmentReader, request: ScanRequest) -> ScanStrategy:
    """Decide how to run a scan.

    Parameters
    ----------
    reader
        The version of the table, or one fragment of it.
    request
        The scan.
    """
    costs = ColumnCosts.of(reader, request)
    rows, fragments = _num_rows(reader, request), _num_fragments(reader, request)
    steps, tests = _conditions(request, costs)
    early, late = _times(request, steps)
    releases = costs.is_mapped and _is_much(rows, request, costs, (*early, *late))
    out_bytes = sum(map(costs.output_bytes, request.projection.columns))
    most = MAX_BATCH_BYTES if reader.limit.max_bytes is None else min(reader.limit.max_bytes, MAX_BATCH_BYTES)
    batch = request.batch_size
    if batch * out_bytes > most:
        batch = max(int(most / out_bytes), 1)
    buffer = share_of_memory(_BUFFER_BYTES, MemoryUse.WINDOWS, request.memory_limit)
    most_piece = _BUFFER_BYTES if buffer == _BUFFER_BYTES else max(buffer // (cpu_count() + 2), _LEAST_PIECE)
    computes = request.filter is None and any(output.expression is not None for output in request.projection.columns)
    wanted_bytes = min(_COMPUTED_BYTES if computes else _piece_bytes(request), most, most_piece)
    piece = _whole_batches(max(int(wanted_bytes / max(out_bytes, 1.0)), batch, 1), request.batch_size)
    if request.filter is None:
        window, cost, looked_bytes = min(piece, 1 << 20), _read_cost(request, costs), 0.0
    else:
        searched = _searched(request, steps, tests)
        looked = [costs.cost(request.schema.top_level(name)) for name in early if name not in searched]
        looked_bytes = sum(cost.decoded for cost in looked)
        window = int(min(PIECE_BYTES, most_piece) / max(looked_bytes, 1.0))
        if releases or not costs.is_mapped:
            # rows between those taken may be fetched, or mapped, with them
            window = min(window, max(int(_SPAN_BYTES / max(out_bytes, 1.0)), request.batch_size))
            looked_bytes += 0.0 if costs.is_mapped else out_bytes / 2
        window = min(max(window, 1), _MAX_WINDOW_ROWS if looked else _MAX_SEARCHED_ROWS)
        cost = _CONDITION_COST * len(looked) + sum(cost.read for cost in looked) + _SEARCH_COST * len(searched)
        cost += _KEPT_SHARE * sum(costs.late_read(request.schema.top_level(name)) for name in late)
    piece_bytes = max(int(piece * out_bytes), min(PIECE_BYTES, most_piece))
    columns = len(request.projection.columns if request.filter is None else early)
    threads = _threads(rows, fragments, costs, cost, columns)
    if threads > 1 and request.filter is not None:
        window = min(window, max(rows // (2 * threads), _MIN_WINDOW_ROWS))
    first = window
    if request.limit is not None and not request.order_by:
        wanted = request.limit + request.offset
        first = min(window, max(request.batch_size if request.filter else 1, wanted))
    return ScanStrategy(
        early=early,
        late=late,
        steps=steps,
        tests=tests,
        top=request.limit + request.offset if request.order_by and request.limit is not None else None,
        in_order=request.in_order,
        window_rows=window,
        first_rows=first,
        piece_rows=piece,
        piece_bytes=piece_bytes,
        threads=threads,
        ahead=_ahead(request, _WAITING_AHEAD if costs.is_remote else threads + 2, rows // fragments // max(window, 1)),
        waits=costs.is_remote,
        releases=releases,
        look_bytes=_look_bytes(request, int(2 * window * looked_bytes), threads),
        task_bytes=piece_bytes + int(2 * window * looked_bytes),
        buffer_bytes=_buffer_bytes(request, reader.limit),
        costs=costs,
    )


def _conditions(request: ScanRequest, costs: ColumnCosts) -> tuple[tuple[Filter, ...], tuple[StoredTest | None, ...]]:
    """Return the conditions of a filter in the order in which they are computed, and tests that are the same."""
    if request.filter is None:
        return (), ()
    # imported here, because expressions are many modules, which a scan without a filter need not load
    from lance_dataset.scan.filter_steps import filter_steps, step_test

    steps = filter_steps(request, request.filter, costs)
    # values that have to be fetched are read once, as the output may need them too
    return steps, tuple(step_test(step, request, costs) if costs.is_mapped else None for step in steps)


def _piece_bytes(request: ScanRequest) -> int:
    """Return the bytes of the rows that are returned together, unless their columns are computed."""
    if request.filter is not None:
        return PIECE_BYTES
    wanted = len(request.projection.columns) * _COLUMN_BYTES
    return max(min(wanted, _BUFFER_BYTES // (2 * cpu_count())), PIECE_BYTES)


def _buffer_bytes(request: ScanRequest, limit: ResultLimit) -> int:
    """Return the limit of the bytes of all windows: that of the scan, even if large, as far as memory allows it."""
    size = share_of_memory(request.io_buffer_size or _BUFFER_BYTES, MemoryUse.WINDOWS, request.memory_limit)
    return size if limit.max_bytes is None else min(size, limit.max_bytes)


def _look_bytes(request: ScanRequest, size: int, threads: int) -> int:
    """Return the bytes charged for searching a window: enough to let all threads work, unless the scan sets a limit."""
    return size if request.io_buffer_size is not None else min(size, _BUFFER_BYTES // threads)


def _whole_batches(rows: int, batch_size: int) -> int:
    """Round a number of rows down to whole batches, so that batches are cut only where fragments end."""
    return rows - rows % batch_size if rows > batch_size else rows


# -- columns -----------------------------------------------------------------------------------------------------


def _times(request: ScanRequest, steps: tuple[Filter, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the stored columns that are read early, and of those read late."""
    stored = set(request.schema.names)
    filtered = [name for step in steps for name in step.columns if name in stored]
    others: list[str] = []
    for output in request.projection.columns:
        if output.field is not None:
            others.append(output.field.name)
        elif output.expression is not None:
            others.extend(name for name in output.expression.columns if name in stored)
    if request.filter is None:
        return tuple(dict.fromkeys(others)), ()
    if request.late is False:
        return tuple(dict.fromkeys([*filtered, *others])), ()
    if request.late is None or request.late is True:
        late = [name for name in others if name not in filtered]
        return tuple(dict.fromkeys(filtered)), tuple(dict.fromkeys(late))
    late = [name for name in others if name in request.late and name not in filtered]
    early = [*filtered, *(name for name in others if name not in late)]
    return tuple(dict.fromkeys(early)), tuple(dict.fromkeys(late))


def _searched(request: ScanRequest, steps: tuple[Filter, ...], tests: tuple[StoredTest | None, ...]) -> frozenset[str]:
    """Return the columns that conditions search in their stored form, and that nothing reads for all rows."""
    if request.late is False or isinstance(request.late, tuple):
        return frozenset()
    found = {step.columns[0] for step, test in zip(steps, tests, strict=True) if test is not None}
    return frozenset(found.difference(*(step.columns for step, test in zip(steps, tests, strict=True) if test is None)))


def _is_much(rows: int, request: ScanRequest, costs: ColumnCosts, names: tuple[str, ...]) -> bool:
    """Return True if some columns are too large to keep what a filtered scan reads of them in memory."""
    row_bytes = None if request.filter is None else costs.row_bytes
    if request.filter is None or (row_bytes is not None and rows * row_bytes <= _KEPT_BYTES):
        return False
    return rows * sum(costs.cost(request.schema.top_level(name)).stored for name in names) > _KEPT_BYTES


# -- threads -----------------------------------------------------------------------------------------------------


def _num_rows(reader: TableReader | FragmentReader, request: ScanRequest) -> int:
    """Estimate the number of rows that a scan examines."""
    if request.rows is not None:
        return sum(int((ranges.stops - ranges.starts).sum()) for ranges in request.rows.values())
    if isinstance(reader, FragmentReader):
        return reader.physical_rows
    counts = reader.manifest.fragment_list.columns.num_rows
    if request.fragments is not None:
        counts = counts[list(request.fragments)]
    return int(counts[counts > 0].sum())


def _num_fragments(reader: TableReader | FragmentReader, request: ScanRequest) -> int:
    """Return the number of fragments that a scan examines, 1 if there are none."""
    if isinstance(reader, FragmentReader):
        return 1
    return len(reader.fragments if request.fragments is None else request.fragments) or 1


def _read_cost(request: ScanRequest, costs: ColumnCosts) -> float:
    stored = [output.field for output in request.projection.columns if output.field is not None]
    if len(stored) > _MANY_COLUMNS:  # opening them all would take longer than to read them
        return sum(map(costs.late_read, stored))
    return reduce(lambda total, field: total + costs.cost(field).read, stored, 0.0)


def _threads(rows: int, fragments: int, costs: ColumnCosts, cost: float, columns: int) -> int:
    """Return the number of decoding threads for `cost` nanoseconds per row; remote requests have their own threads."""
    workers = cpu_count()
    if workers < 2:
        return 1
    if not costs.is_mapped:
        return workers  # requests continue while values are decoded
    return workers if rows * cost > max(_PARALLEL_COST, _PARALLEL_COLUMN_COST * fragments * columns) else 1


def _ahead(request: ScanRequest, usual: int, windows_per_fragment: int) -> int:
    """Return the number of windows to decode ahead of the consumer: `usual` unless the scan sets it."""
    ahead = usual if request.batch_readahead is None else max(request.batch_readahead, 1)
    if request.fragment_readahead is not None:
        ahead = min(ahead, max(request.fragment_readahead, 1) * max(windows_per_fragment, 1))
    return ahead
