"""Full scans: all rows of a table, cut into parts of columns that threads decode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from math import ceil
from typing import TypeAlias

import pyarrow as pa

from lance_dataset.expr.array_predicates import places_of
from lance_dataset.file.column import Part
from lance_dataset.limits import ResultLimit
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.concatenate import bisected, keep_rows, read_chunks
from lance_dataset.read.empty_batches import empty_batch
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.holding import Holding, can_hold, is_worth_all
from lance_dataset.read.kept_values import kept_values
from lance_dataset.read.open_together import open_together
from lance_dataset.read.projection import OutputColumn
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.costs import ColumnCosts
from lance_dataset.scan.plain_values import plain_range
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.selected_values import descend, output_chunks
from lance_dataset.scan.selection import live_rows
from lance_dataset.scan.strategy import ScanStrategy, strategy
from lance_dataset.scan.window_values import may_read_together, window_columns
from lance_dataset.scan.windows import Slice, Window, fragments_of
from lance_dataset.threads.pools import cpu_count
from lance_dataset.threads.streams import map_parallel, stream
from lance_dataset.threads.waiting import each_read, read_each, without_waits

__all__ = ["whole_table"]

#: Numbers of output columns that are read together, or of one.
_Columns: TypeAlias = "tuple[int, ...]"
#: Fragment, columns, and the part of them that is decoded together.
_Task: TypeAlias = "tuple[FragmentReader, _Columns, Part]"
#: Fragment, columns, and the rows ``[start, stop)`` wanted of them.
_Place: TypeAlias = "tuple[FragmentReader, _Columns, int, int]"
#: Chunks of each column of a task.
_Chunks: TypeAlias = "list[list[pa.Array]]"
_Cut: TypeAlias = "Callable[[_Place], list[Part]]"
_Decode: TypeAlias = "Callable[[_Task], _Chunks]"
#: Parts of each place, and what was decoded for each part.
_Done: TypeAlias = "tuple[list[list[Part]], list[_Chunks]]"
#: Number of a place, parts of it, and what was decoded for each part.
_Read: TypeAlias = "list[tuple[int, list[Part], list[_Chunks]]]"
#: Numbers of places in one fragment, and a part of each, None for all of it.
_Group: TypeAlias = "list[tuple[int, Part | None]]"

#: Columns of fewer bytes on average are decoded one after another: threads would only wait for the interpreter lock.
_PARALLEL_BYTES = 256 << 10
#: Nanoseconds of decoding, in total and per part of a column, above which threads gain more than they cost.
_PARALLEL_COST = 1e6
_PARALLEL_TASK_COST = 2e4
#: Nanoseconds of decoding columns together that are worth a task, and the rows of which windows have a multiple: pages
#: are cut where their chunks end.
_WINDOW_COST = 1e6
_WINDOW_ROWS = 1 << 13
#: Windows of a scan for each thread, if fragments are few.
_TASKS_PER_THREAD = 4
#: Nanoseconds that a value of a computed column takes.
_DERIVED_COST = 10.0
#: Maximum bytes of the columns that are fetched at the same time.
_FETCHED_BYTES = 64 << 20


def whole_table(reader: TableReader, request: ScanRequest) -> pa.Table:
    """Return all live rows, chunked as the files are, so that nothing is copied unnecessarily."""
    schema = request.projection.schema
    # a strategy weighs all columns against each other, which only the inputs of computed columns need
    computes = any(output.field is None for output in request.projection.columns)
    plan = strategy(reader, request) if computes else None
    costs = ColumnCosts.of(reader, request) if plan is None else plan.costs
    pieces = _decode(request, plan, list(fragments_of(reader, request)), reader.limit, costs)
    if not any(pieces):
        return pa.Table.from_batches([empty_batch(schema)])
    columns = [pa.chunked_array(found, field_.type) for found, field_ in zip(pieces, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _decode(
    request: ScanRequest,
    plan: ScanStrategy | None,
    ranges: Sequence[tuple[FragmentReader, int, int]],
    limit: ResultLimit,
    costs: ColumnCosts,
) -> list[list[pa.Array]]:
    """Decode the live rows of some ranges of fragments; return non-empty chunks of every output column."""
    outputs, waits = request.projection.columns, costs.is_remote
    apart = waits or limit.max_bytes is not None
    plain = [{} if apart else plain_range(fragment, outputs, start, stop) for fragment, start, stop in ranges]
    places: list[_Place] = []
    homes: list[int] = []
    for at, ((fragment, start, stop), known) in enumerate(zip(ranges, plain, strict=True)):
        wanted = [number for number in range(len(outputs)) if number not in known]
        columns = [(number,) for number in wanted] if apart else _together(fragment, outputs, wanted)
        places.extend((fragment, group, start, stop) for group in columns)
        homes.extend([at] * len(columns))

    def parts(place: _Place) -> list[Part]:
        fragment, group, start, stop = place
        if len(group) == 1 and (apart or not _joins(outputs[group[0]])):
            return _parts(fragment, outputs[group[0]], start, stop)
        most = ceil(_TASKS_PER_THREAD * cpu_count() / len(ranges))
        return _windows(fragment, [outputs[number] for number in group], start, stop, most)

    def decode_part(task: _Task) -> _Chunks:
        fragment, group, part = task
        known = {} if apart else _read_window(fragment, outputs, group, part)
        return [
            known[number]
            if number in known
            else _read_part(fragment, outputs[number], request, plan, part.start, part.stop)
            for number in group
        ]

    decode = _limited(decode_part, limit)
    if waits:
        cut, decoded = _fetched(parts, decode, places, request, costs)
    else:
        threads = any(_is_read(fragment, request, stop - start) for fragment, start, stop in ranges)
        cut, decoded = _decoded(parts, decode, places, parallel=threads)
    read = {(at, number): [array] for at, known in enumerate(plain) for number, array in known.items()}
    tasks = ((at, group) for at, (_, group, _, _), found in zip(homes, places, cut, strict=True) for _ in found)
    for (at, group), done in zip(tasks, decoded, strict=True):
        for number, chunks in zip(group, done, strict=True):
            read.setdefault((at, number), []).extend(chunks)
    return [
        [piece for at in range(len(ranges)) for piece in read.get((at, number), ()) if len(piece)]
        for number in range(len(outputs))
    ]


def _decoded(parts: _Cut, decode: _Decode, places: Sequence[_Place], *, parallel: bool) -> _Done:
    """Cut ranges of columns into parts and decode them; use threads if that is much work, or if `parallel` is true."""
    cut = map_parallel(parts, places, parallel=parallel)
    tasks = _tasks(places, cut)
    costs = [part.cost for _, _, part in tasks]
    heavy = sum(costs) > max(_PARALLEL_COST, _PARALLEL_TASK_COST * len(tasks))
    return cut, map_parallel(decode, tasks, parallel=heavy or parallel, costs=costs)


def _fetched(parts: _Cut, decode: _Decode, places: Sequence[_Place], request: ScanRequest, costs: ColumnCosts) -> _Done:
    """Do the same for files on other machines: wait for many of them at a time, as memory allows."""
    fields = request.stored_fields
    share = costs.share(fields)
    first = {id(place[0]): place for place in places}.values()
    small = {id(fragment): can_hold(fragment, fields, [(low, high)], share) for fragment, _, low, high in first}
    rest = [at for at, place in enumerate(places) if not small[id(place[0])]]
    open_together({id(places[at][0]): places[at][0] for at in rest}.values(), fields)
    cut_rest = dict(zip(rest, read_each(parts, [places[at] for at in rest]), strict=True))
    whole = is_worth_all(share)
    widths = [costs.output_bytes(output) for output in request.projection.columns]
    holdings: list[Holding] = []

    def fetch(group: _Group) -> tuple[_Group, Holding, _Read]:
        """Fetch the columns of a small fragment; of a large one, decode a part, which fetches what it needs."""
        fragment, held = places[group[0][0]][0], Holding()
        if small[id(fragment)]:
            holdings.append(held)
            held.fetch([fragment], fields, whole)
        return group, held, [(at, [part], [decode((fragment, places[at][1], part))]) for at, part in group if part]

    def read(fetched: tuple[_Group, Holding, _Read]) -> _Read:
        group, held, done = fetched
        with held, without_waits():
            cut = [(at, parts(places[at])) for at, part in group if part is None]
            return done + [
                (at, found, [decode((places[at][0], places[at][1], part)) for part in found]) for at, found in cut
            ]

    def weight(group: _Group) -> float:
        rows = [(at, places[at][3] - places[at][2] if part is None else part.stop - part.start) for at, part in group]
        return sum(count * widths[number] for at, count in rows for number in places[at][1])

    budget = share_of_memory(request.io_buffer_size or _FETCHED_BYTES, MemoryUse.WINDOWS, request.memory_limit)
    cut: list[list[Part]] = [[] for _ in places]
    decoded: list[list[_Chunks]] = [[] for _ in places]
    fetched = each_read(fetch, _groups(places, cut_rest), weight=weight, budget=budget)
    try:
        # decoded by few threads: memory for results is taken in megabytes for each
        ahead = cpu_count() + 2
        for done in stream(read, fetched, ahead=ahead, weight=lambda each: weight(each[0]), budget=budget, join=True):
            for at, found, chunks in done:
                cut[at] += found
                decoded[at] += chunks
    finally:
        for held in holdings:
            held.release()
    return cut, list(chain.from_iterable(decoded))


def _groups(places: Sequence[_Place], cut: Mapping[int, list[Part]]) -> list[_Group]:
    """Return each part of the places that were cut, and all places of each other fragment together."""
    groups: list[_Group] = []
    whole: dict[int, _Group] = {}
    for at, place in enumerate(places):
        if at in cut:
            groups += [[(at, part)] for part in cut[at]]
        elif id(place[0]) in whole:
            whole[id(place[0])].append((at, None))
        else:
            groups.append(whole.setdefault(id(place[0]), [(at, None)]))
    return groups


def _tasks(places: Sequence[_Place], cut: Sequence[list[Part]]) -> list[_Task]:
    return [(place[0], place[1], part) for place, found in zip(places, cut, strict=True) for part in found]


def _limited(decode: _Decode, limit: ResultLimit) -> _Decode:
    """Return the same function, whose results together must not be larger than a limit."""
    if limit.max_bytes is None:
        return decode
    meter = limit.meter("the result of the scan")

    def metered(task: _Task) -> _Chunks:
        columns = decode(task)
        meter.add(sum(chunk.nbytes for chunks in columns for chunk in chunks))
        return columns

    return limit.around(metered)


def _is_read(fragment: FragmentReader, request: ScanRequest, rows: int) -> bool:
    """Return True if files are not mapped and so much is read that threads pay off."""
    return (
        not fragment.is_mapped and rows * fragment.bytes_per_row / max(len(request.schema.fields), 1) > _PARALLEL_BYTES
    )


def _together(fragment: FragmentReader, outputs: Sequence[OutputColumn], wanted: Sequence[int]) -> list[_Columns]:
    """Group the columns that may be read together; the others are groups of their own."""
    if not fragment.is_mapped:
        return [(number,) for number in wanted]
    joined = tuple(number for number in wanted if _joins(outputs[number]))
    return [*([joined] if joined else []), *((number,) for number in wanted if not _joins(outputs[number]))]


def _joins(output: OutputColumn) -> bool:
    return output.field is not None and not output.path and may_read_together(output.field)


def _windows(fragment: FragmentReader, outputs: Sequence[OutputColumn], start: int, stop: int, most: int) -> list[Part]:
    """Cut the rows of columns that are read together into at most `most` windows that are worth a task each."""
    cost = sum(part.cost for output in outputs for part in _parts(fragment, output, start, stop))
    rows = stop - start
    count = min(ceil(cost / _WINDOW_COST), ceil(rows / _WINDOW_ROWS), most)
    if count < 2:
        return [Part(start, stop, cost)] if rows else []
    size = ceil(rows / count / _WINDOW_ROWS) * _WINDOW_ROWS
    cuts = [*range(start, stop, size), stop]
    return [Part(low, high, cost * (high - low) / rows) for low, high in pairwise(cuts)]


def _read_window(
    fragment: FragmentReader, outputs: Sequence[OutputColumn], group: _Columns, part: Part
) -> dict[int, list[pa.Array]]:
    """Return the live rows of the columns of a group that are read together."""
    fields = {number: field for number in group if _joins(outputs[number]) and (field := outputs[number].field)}
    if not fields or not fragment.is_mapped or part.stop - part.start < _WINDOW_ROWS:
        return {}
    live = fragment.live_mask(part.start, part.stop)
    found = window_columns(fragment, fields, part.start, part.stop, live)
    return {number: [array] for number, array in found.items()}


def _parts(fragment: FragmentReader, output: OutputColumn, start: int, stop: int) -> list[Part]:
    if output.field is None:
        return [Part(start, stop, _DERIVED_COST * (stop - start))] if start < stop else []
    return fragment.column(output.field).parts(start, stop)


def _read_part(
    fragment: FragmentReader,
    output: OutputColumn,
    request: ScanRequest,
    plan: ScanStrategy | None,
    start: int,
    stop: int,
) -> list[pa.Array]:
    """Read the live rows of a part of a column, in chunks."""
    if output.field is None:
        if plan is None:
            raise TypeError(f"column {output.arrow.name!r} is computed, which needs a strategy")
        return output_chunks(output, live_rows(Window((Slice(fragment, ((start, stop),)),)), request), request, plan)
    reader, name = fragment.column(output.field), output.field.name
    read = [piece for part in bisected(partial(read_chunks, reader, name), start, stop) for piece in part]
    pieces = [descend(piece, output.path) for piece in read]
    live = fragment.live_mask(start, stop)
    return pieces if live is None else _live(pieces, live)


def _live(chunks: list[pa.Array], mask: pa.BooleanArray) -> list[pa.Array]:
    """Return the values of chunks that a mask of their rows keeps. Chunks that are kept as a whole are not copied."""
    found, base = [], 0
    for chunk in chunks:
        part = mask.slice(base, len(chunk))
        base += len(chunk)
        count = part.true_count
        if count == len(chunk):
            found.append(chunk)
        elif count:
            picked = kept_values(chunk, part)
            found.extend(keep_rows([chunk], places_of(part)) if picked is None else [picked])
    return found
