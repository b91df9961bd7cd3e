"""Maps and streams: work on many items spread over the threads that the process shares.

The threads never wait for each other. A consumer of results computes itself what no thread has started yet. So work
may be consumed inside of work, and nothing hangs when all threads are busy with something else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from functools import partial
from itertools import chain, islice
from typing import TypeVar

from lance_dataset.late_dataclass import dataclass
from lance_dataset.threads.pools import SharedPool, cpu_count, cpu_pool
from lance_dataset.threads.tasks import Task

__all__ = ["map_parallel", "stream"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_parallel(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    *,
    parallel: bool,
    costs: Sequence[float] | None = None,
) -> list[_Result]:
    """Return the results of `function` for all items, in order; use a thread per processor if `parallel`.

    With `costs` (one per item, in any unit) expensive items start first and cheap ones share a task.
    """
    workers = cpu_count() if parallel and len(items) > 1 else 1
    if workers < 2:
        return [function(item) for item in items]
    # a task costs as much as decoding a small column: few tasks, yet enough of them to even out big columns
    tasks = _tasks([1.0] * len(items) if costs is None else costs, workers * 8)
    results: dict[int, _Result] = {}

    def run(task: list[int]) -> list[tuple[int, _Result]]:
        return [(number, function(items[number])) for number in task]

    for done in stream(run, tasks, ahead=len(tasks)):
        results.update(done)
    return [results[number] for number in range(len(items))]


def _tasks(costs: Sequence[float], count: int) -> list[list[int]]:
    """Distribute the positions of the costs over about `count` tasks, the most expensive first."""
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


# -- streams -----------------------------------------------------------------------------------------------------


def stream(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
    ahead: int,
    in_order: bool = True,
    weight: Callable[[_Item], float] = lambda item: 0.0,
    budget: float = 1.0,
    pool: SharedPool | None = None,
    join: bool = False,
) -> Iterator[_Result]:
    """Yield the results of `function` for items, computed on worker threads ahead of the consumer.

    Parameters
    ----------
    function
        Called once per item. Its error is raised in place of the result, and ends the stream.
    items
        Iterated by the consuming thread.
    ahead
        Maximum number of items that are in progress or finished and not consumed yet, besides the next one. If less
        than 1, the consumer's thread computes each result when it is asked for.
    in_order
        True for results in the order of the items, False for the order in which they are finished.
    weight, budget
        No item is started while the unconsumed ones before it together weigh as much as the budget.
    pool
        Pool of the threads, None for `cpu_pool` if there are several processors.
    join
        True for waiting, when the stream ends early, until the calls that have started have ended.
    """
    source = _to_the_end(items)
    if ahead >= 1 and (pool is not None or cpu_count() > 1):
        begun = list(islice(source, 2))
        source = chain(begun, source)
        if len(begun) > 1 and not isinstance(begun[1], _End):
            begin = partial(Task.start, cpu_pool if pool is None else pool, function)
            yield from _ahead(begin, source, ahead, in_order, weight, budget, join)
            return
    for item in source:
        if isinstance(item, _End):
            item.check()
            return
        yield function(item)


@dataclass(frozen=True)
class _End:
    """End of the items, which may be an error."""

    error: Exception | None = None

    def check(self) -> None:
        if self.error is not None:
            raise self.error


def _to_the_end(items: Iterable[_Item]) -> Iterator[_Item | _End]:
    """Yield the items and their end: an error comes after the results of the items before it."""
    try:
        yield from items
    except Exception as error:
        yield _End(error)
    else:
        yield _End()


def _ahead(
    start: Callable[[_Item], Task[_Item, _Result]],
    items: Iterator[_Item | _End],
    ahead: int,
    in_order: bool,
    weight: Callable[[_Item], float],
    budget: float,
    join: bool,
) -> Iterator[_Result]:
    waiting: deque[tuple[Task[_Item, _Result], float]] = deque()
    total, end = 0.0, None
    task: Task[_Item, _Result] | None = None
    try:
        while True:
            while end is None and len(waiting) <= ahead and (not waiting or total < budget):
                item = next(items)
                if isinstance(item, _End):
                    end = item
                else:
                    waiting.append((start(item), weight(item)))
                    total += waiting[-1][1]
            if not waiting:
                break
            task, weighed = waiting.popleft() if in_order else _next_done(waiting)
            total -= weighed
            yield task.result()
    finally:
        for left, _ in waiting:
            left.drop()
        if join:
            for left in [*([] if task is None else [task]), *(left for left, _ in waiting)]:
                left.drop(wait=True)
    if end is not None:
        end.check()


def _next_done(waiting: deque[tuple[Task[_Item, _Result], float]]) -> tuple[Task[_Item, _Result], float]:
    """Take out a task that is done, or else one that no thread has started, or else the first to be done."""
    ready = [each for each in waiting if each[0].is_ready]
    if not ready:
        wait([task.future for task, _ in waiting], return_when=FIRST_COMPLETED)
        ready = [each for each in waiting if each[0].is_ready]
    chosen = next((each for each in ready if each[0].is_done), ready[0])
    waiting.remove(chosen)
    return chosen
