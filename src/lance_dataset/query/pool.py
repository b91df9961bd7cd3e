"""Work of a scan spread over the threads that the process shares.

The threads never wait for each other: who consumes results does itself what no thread has started yet. So work may be
consumed inside of work, and nothing hangs when all threads are busy with something else.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Generic, TypeVar

from lance_dataset.file.threads import cpu_count, shared_pool
from lance_dataset.io.threads import SharedPool

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
    """Results of `function` for every item, in order; on worker threads if `parallel` and there is something to gain.

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
) -> Iterator[_Result]:
    """Results of `function` for items, computed on worker threads ahead of the consumer.

    Parameters
    ----------
    function
        Called once per item; what it raises is raised here in place of its result, and ends the stream.
    items
        Asked for one after another by the consuming thread.
    ahead
        Most items that are worked on, or done and not consumed yet, besides the next one; less than 1 for working only
        when asked, on the thread of the consumer.
    in_order
        Whether results come in the order of the items, else as they are done.
    weight, budget
        No item is started while those before it weigh more than the budget together, if that leaves any.
    pool
        Whose threads work; None for a thread per processor, if there are several.
    """
    source = _to_the_end(items)
    if ahead >= 1 and (pool is not None or cpu_count() > 1):
        begun = list(islice(source, 2))
        source = chain(begun, source)
        if len(begun) > 1 and not isinstance(begun[1], _End):
            begin = partial(_Task.start, shared_pool if pool is None else pool, function)
            yield from _ahead(begin, source, ahead, in_order, weight, budget)
            return
    for item in source:
        if isinstance(item, _End):
            item.check()
            return
        yield function(item)


@dataclass(frozen=True)
class _End:
    """The end of the items, which may be an error."""

    error: Exception | None = None

    def check(self) -> None:
        if self.error is not None:
            raise self.error


def _to_the_end(items: Iterable[_Item]) -> Iterator[_Item | _End]:
    """The items and their end: an error comes after the results of the items before it."""
    try:
        yield from items
    except Exception as error:
        yield _End(error)
    else:
        yield _End()


def _ahead(
    start: Callable[[_Item, float], _Task[_Item, _Result]],
    items: Iterator[_Item | _End],
    ahead: int,
    in_order: bool,
    weight: Callable[[_Item], float],
    budget: float,
) -> Iterator[_Result]:
    waiting: deque[_Task[_Item, _Result]] = deque()
    total, end = 0.0, None
    try:
        while True:
            while end is None and len(waiting) <= ahead and (not waiting or total < budget):
                item = next(items)
                if isinstance(item, _End):
                    end = item
                else:
                    waiting.append(start(item, weight(item)))
                    total += waiting[-1].weight
            if not waiting:
                break
            task = waiting.popleft() if in_order else _next_done(waiting)
            total -= task.weight
            yield task.result()
    finally:
        for task in waiting:
            task.drop()
    if end is not None:
        end.check()


@dataclass(frozen=True, eq=False)
class _Task(Generic[_Item, _Result]):
    """An item on its way to its result.

    Attributes
    ----------
    weight
        Weight of the item.
    process
        The process that has the threads; a forked child has none of them.
    """

    function: Callable[[_Item], _Result]
    item: _Item
    future: Future[_Result]
    weight: float
    process: int

    @classmethod
    def start(
        cls, pool: SharedPool, function: Callable[[_Item], _Result], item: _Item, weight: float
    ) -> _Task[_Item, _Result]:
        return cls(function, item, pool().submit(function, item), weight, os.getpid())

    @property
    def is_ready(self) -> bool:
        """Whether there is no need to wait for a thread."""
        return self.process != os.getpid() or not self.future.running()

    def result(self) -> _Result:
        """The result, computed right here if no thread has started to."""
        if self.process != os.getpid() or self.future.cancel():
            return self.function(self.item)
        return self.future.result()

    def drop(self) -> None:
        """Nobody wants the result any more."""
        if self.process == os.getpid():
            self.future.cancel()


def _next_done(waiting: deque[_Task[_Item, _Result]]) -> _Task[_Item, _Result]:
    """Take out a task that is done, or else one that no thread has started, or else the first to be done."""
    ready = [task for task in waiting if task.is_ready]
    if not ready:
        wait([task.future for task in waiting], return_when=FIRST_COMPLETED)
        ready = [task for task in waiting if task.is_ready]
    chosen = next((task for task in ready if task.process == os.getpid() and task.future.done()), ready[0])
    waiting.remove(chosen)
    return chosen
