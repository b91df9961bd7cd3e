"""Work of a scan spread over the threads that the process shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from lance_dataset.file.threads import cpu_count, shared_pool

__all__ = ["map_parallel"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_parallel(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    *,
    parallel: bool,
    costs: Sequence[float] | None = None,
) -> list[_Result]:
    """Results of `function` for every item, in order; on worker threads if `parallel` and there is something to gain.

    `function` must not call this one. With `costs` (one per item, in any unit) expensive items start first and cheap
    ones share a task.
    """
    workers = cpu_count() if parallel and len(items) > 1 else 1
    if workers < 2:
        return [function(item) for item in items]
    # a task costs as much as decoding a small column: few tasks, yet enough of them to even out big columns
    tasks = _tasks([1.0] * len(items) if costs is None else costs, workers * 8)
    results: dict[int, _Result] = {}
    for done in shared_pool().map(lambda task: [(number, function(items[number])) for number in task], tasks):
        results.update(done)
    return [results[number] for number in range(len(items))]


def _tasks(costs: Sequence[float], count: int) -> list[list[int]]:
    """Positions of the costs in about `count` tasks, the most expensive first."""
    limit = sum(costs) / count
    tasks: list[list[int]] = []
    filled = limit
    for number in sorted(range(len(costs)), key=costs.__getitem__, reverse=True):
        if filled >= limit:
            tasks.append([])
            filled = 0.0
        tasks[-1].append(number)
        filled += costs[number]
    return tasks
