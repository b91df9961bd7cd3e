"""Plan of a scan: a readable tree of steps, with the counters of each step once the scan has run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import OutputColumn, Projection
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.costs import is_worth_searching
from lance_dataset.scan.explain.plan_nodes import (
    ColumnPlan,
    CountPlan,
    FilterPlan,
    FragmentPlan,
    LatePlan,
    LimitPlan,
    PlanNode,
    ProjectPlan,
    ScanPlan,
    SortPlan,
)
from lance_dataset.scan.narrowing import narrowed
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.strategy import ScanStrategy, strategy
from lance_dataset.scan.windows import Pruning, Slice, Window, fragments_of

__all__ = ["counting_plan", "scan_plan"]

#: Fragments whose statistics are examined unless a plan is to be thorough: examining them opens their files.
_FEW_FRAGMENTS = 16


def scan_plan(reader: TableReader, request: ScanRequest, *, thorough: bool = True) -> PlanNode:
    """Return the plan of a scan, outermost step first.

    Parameters
    ----------
    reader
        The version of the table.
    request
        The scan.
    thorough
        Examine the statistics of all fragments, not only of some, to report the rows they exclude.
    """
    asked, request = request, narrowed(reader, request)
    chosen = strategy(reader, request)
    late = _columns(request, chosen, chosen.late)
    if request.order_by:
        # the keys are read to find the rows, then the output columns of those rows
        keys = tuple(dict.fromkeys(key.column.partition(".")[0] for key in request.order_by))
        late = _columns(request, chosen, _returned(request))
        filtered = (name for step in chosen.steps for name in step.columns if name in request.schema.names)
        chosen = replace(chosen, early=tuple(dict.fromkeys((*filtered, *keys))))
        node = _found_rows(reader, asked, request, chosen, thorough)
        node = SortPlan(node, request.order_by, chosen.top, _columns(request, chosen, keys))
    else:
        node = _found_rows(reader, asked, request, chosen, thorough)
    if late:
        node = LatePlan(node, late)
    projection = request.projection
    node = ProjectPlan(node, tuple(projection.schema.names), tuple(_source(each) for each in projection.columns))
    return LimitPlan(node, request.offset, request.limit) if _is_limited(request) else node


def counting_plan(reader: TableReader, request: ScanRequest) -> PlanNode:
    """Return the plan of counting the rows of a scan."""
    known = request.filter is None and request.row_range is None and request.rows is None
    if known and not request.include_deleted:
        return CountPlan(LimitPlan(None, request.offset, request.limit) if _is_limited(request) else None, True)
    nothing = Projection((), request.projection.schema.empty_table().select([]).schema)
    asked = replace(request, projection=nothing, order_by=())
    request = narrowed(reader, asked)
    found = _found_rows(reader, asked, request, strategy(reader, request), True)
    return CountPlan(LimitPlan(found, request.offset, request.limit) if _is_limited(request) else found, False)


def _returned(request: ScanRequest) -> tuple[str, ...]:
    """Return the names of the stored columns that the output is computed from."""
    found: list[str] = []
    for output in request.projection.columns:
        if output.field is not None:
            found.append(output.field.name)
        elif output.expression is not None:
            found.extend(name for name in output.expression.columns if name in request.schema.names)
    return tuple(dict.fromkeys(found))


def _is_limited(request: ScanRequest) -> bool:
    return request.limit is not None or request.offset > 0


def _found_rows(
    reader: TableReader, asked: ScanRequest, request: ScanRequest, chosen: ScanStrategy, thorough: bool
) -> PlanNode:
    """Return the steps that find the rows of a scan."""
    node = _scan(reader, asked, request, chosen, thorough)
    if request.filter is None:
        return node
    steps = tuple(step.columns for step in chosen.steps)
    encoded = _encoded(reader, request, chosen)
    return FilterPlan(node, str(request.filter), steps, request.filter.tree is not None, encoded)


def _encoded(reader: TableReader, request: ScanRequest, chosen: ScanStrategy) -> tuple[str, ...]:
    """Return the columns that conditions compare in their stored form, as far as the first fragment tells."""
    first = next((fragment for fragment, start, stop in fragments_of(reader, request) if start < stop), None)
    if first is None or request.late is False or isinstance(request.late, tuple):
        return ()
    if not is_worth_searching(first.physical_rows):
        return ()
    found = []
    for step, test in zip(chosen.steps, chosen.tests, strict=True):
        if test is not None and first.column(request.schema.top_level(step.columns[0])).can_search(test):
            found.append(step.columns[0])
    return tuple(found)


def _scan(
    reader: TableReader, asked: ScanRequest, request: ScanRequest, chosen: ScanStrategy, thorough: bool
) -> ScanPlan:
    fragments = list(fragments_of(reader, request))
    before = [_slice(request, fragment, start, stop) for fragment, start, stop in fragments]
    pruning = Pruning(request)
    after = [
        next(iter(pruning.prune(Window((part,))).slices), Slice(part.fragment, ()))
        if part.ranges and (thorough or number < _FEW_FRAGMENTS)
        else part
        for number, part in enumerate(before)
    ]
    looked = [part for part in after if part.ranges]
    counts = reader.manifest.fragment_list.columns.physical_rows
    return ScanPlan(
        None,
        version=reader.manifest.version,
        columns=_columns(request, chosen, chosen.early),
        fragments=len(looked),
        all_fragments=len(reader.fragments),
        rows=sum(part.width for part in looked),
        all_rows=int(counts[counts > 0].sum()),
        pruned=tuple(_reasons(reader, asked, request, before, after, thorough)),
        is_in_order=request.in_order,
        window_rows=chosen.window_rows,
        threads=chosen.threads,
        fetched_ahead=chosen.ahead + 1 if chosen.waits else 0,
        batch_size=request.batch_size,
        by_fragment=tuple(_fragment(part) for part in looked),
    )


def _slice(request: ScanRequest, fragment: FragmentReader, start: int, stop: int) -> Slice:
    if request.rows is None:
        return Slice(fragment, ((start, stop),) if start < stop else ())
    return Slice(fragment, tuple(request.rows[fragment.fragment.id].within(start, stop)))


def _reasons(
    reader: TableReader,
    asked: ScanRequest,
    request: ScanRequest,
    before: Sequence[Slice],
    after: Sequence[Slice],
    thorough: bool,
) -> Iterator[str]:
    """Yield the reasons why fragments or rows are left out."""
    total = len(reader.fragments)
    if asked.fragments is not None and asked.rows is None and len(asked.fragments) != total:
        yield f"{total - len(asked.fragments)} fragments left out by the caller"
    if asked.row_range is not None:
        yield f"rows {asked.row_range[0]}..{asked.row_range[1]} of each fragment"
    yield from request.used_indices
    if asked.indices is not None and asked.filter is not None:
        # Imported here, so that `import lance_dataset` does not load what only tables with indices need.
        from lance_dataset.scan.indexed.reasons import reasons_against_indices

        yield from reasons_against_indices(reader, asked, request.used_indices)
    if request.rows is not None and not request.used_indices:
        yield "rows chosen by their addresses" if asked.rows is not None else "rows named by the filter"
    gone = sum(part.width for part in before) - sum(part.width for part in after)
    if gone:
        emptied = sum(1 for old, new in zip(before, after, strict=True) if old.ranges and not new.ranges)
        yield f"statistics exclude {gone:,} rows" + (f", all rows of {emptied} fragments" if emptied else "")
        if not thorough and len(before) > _FEW_FRAGMENTS:
            yield f"counting only the first {_FEW_FRAGMENTS} fragments (verbose=True looks at all, as the scan does)"


def _fragment(part: Slice) -> FragmentPlan:
    fragment = part.fragment.fragment
    files = tuple(f"{file.path} ({file.storage_version})" for file in fragment.files)
    deleted = 0
    if fragment.deletion_file is not None:
        deleted = fragment.deletion_file.num_deleted_rows or -1
    return FragmentPlan(fragment.id, files, part.fragment.physical_rows, deleted, part.ranges)


def _columns(request: ScanRequest, chosen: ScanStrategy, names: Sequence[str]) -> tuple[ColumnPlan, ...]:
    """Describe stored columns as they are read; for pruned output columns, only the part that is read."""
    found = []
    pruned = {output.field.name: output.field for output in request.projection.columns if output.field is not None}
    for name in names:
        field = pruned.get(name, request.schema.top_level(name))
        found.append(ColumnPlan(name, str(field.to_arrow().type), chosen.costs.cost(field).stored))
    return tuple(found)


def _source(output: OutputColumn) -> str:
    name, kind = output.arrow.name, output.arrow.type
    if output.expression is not None:
        return f"{name}: {kind} = {output.expression}"
    if output.system is not None:
        return f"{name}: {kind}, from the row position" if output.system in _OF_PLACE else f"{name}: {kind}, lineage"
    stored = name if output.field is None else ".".join((output.field.name, *output.path))
    return f"{name}: {kind}" if stored == name else f"{name}: {kind} = {stored}"


_OF_PLACE = frozenset(("_rowaddr", "_rowoffset"))
