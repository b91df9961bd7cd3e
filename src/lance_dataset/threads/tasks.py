"""Single calls on other threads: a result computed ahead of its use, and work in the background."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextvars import copy_context
from types import TracebackType
from typing import Generic, TypeVar

from lance_dataset.late_dataclass import dataclass
from lance_dataset.threads.pools import SharedPool

__all__ = ["Background", "Task", "drop"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_STEP_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class Task(Generic[_Item, _Result]):
    """Call whose result is computed by a thread of a pool, or by the thread that needs it if that comes first.

    So a task may wait for other tasks of the same pool: none of them waits for a free thread.

    Attributes
    ----------
    function, item
        The function and its argument.
    future
        Result of the thread.
    process
        Process that has the threads; a forked child has none of them.
    """

    function: Callable[[_Item], _Result]
    item: _Item
    future: Future[_Result]
    process: int

    @classmethod
    def start(cls, pool: SharedPool, function: Callable[[_Item], _Result], item: _Item) -> Task[_Item, _Result]:
        """Hand a call to a pool."""
        return cls(function, item, pool().submit(copy_context().run, function, item), os.getpid())

    @property
    def is_ready(self) -> bool:
        """True if `result` need not wait for a thread."""
        return self.process != os.getpid() or not self.future.running()

    @property
    def is_done(self) -> bool:
        """True if a thread of this process has computed the result."""
        return self.process == os.getpid() and self.future.done()

    def result(self) -> _Result:
        """Return the result; compute it here if no thread has started to."""
        if self.process != os.getpid() or self.future.cancel():
            return self.function(self.item)
        return self.future.result()

    def drop(self, *, wait: bool = False) -> None:
        """Do not start the call any more; with `wait`, wait until it has ended if it has started."""
        if self.process == os.getpid() and not self.future.cancel() and wait:
            self.future.exception()


class Background:
    """Calls that run on threads of a pool while the caller goes on.

    When it ends as a context, all calls have ended. The error of the oldest call that failed is raised. If the body
    raises, calls that have not started are dropped, and errors of the others are ignored.

    Parameters
    ----------
    pool
        The pool. Its calls must not start others in a `Background` of the same pool.
    """

    def __init__(self, pool: SharedPool) -> None:
        self._pool = pool
        self._calls: deque[Future[None]] = deque()

    def __len__(self) -> int:
        """Return the number of calls that were not waited for yet."""
        return len(self._calls)

    def __enter__(self) -> Background:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            while self._calls and kind is None:
                self.wait_for_oldest()
        finally:
            self.drop()

    def start(self, call: Callable[[], object]) -> None:
        """Run a call on a thread of the pool.

        Raises
        ------
        RuntimeError
            The system gives the process no thread.
        """
        future: Future[None] = Future()
        self._calls.append(future)  # before a thread can start it, so that an interrupt does not lose track of it
        self._pool().submit(_run, future, call)

    def wait_for_oldest(self) -> None:
        """Wait until the oldest call has ended; raise its error."""
        oldest = self._calls[0]
        while not oldest.done():  # in steps: an interrupt just before a wait does not end the wait
            wait([oldest], timeout=_STEP_SECONDS)
        self._calls.popleft().result()

    def drop(self) -> None:
        """Drop the calls that have not started, and wait until the others have ended; ignore their errors."""
        drop(self._calls)
        self._calls.clear()


def drop(futures: Iterable[Future[_Result]]) -> None:
    """Cancel calls that have not started and wait for the others, which may hold what the caller is about to close."""
    for future in [future for future in futures if not future.cancel()]:
        future.exception()


def _run(future: Future[None], call: Callable[[], object]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        call()
    except BaseException as error:
        future.set_exception(error)
        del future, call  # else the traceback of the error, which the future has, keeps the future
    else:
        future.set_result(None)
