"""Progress of long calls: a bar in the terminal, or calls of a user's function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from lance_dataset.errors import UnsupportedError
from lance_dataset.scan.metrics import NodeMetrics, ScanMetrics
from lance_dataset.threads.progress import Progress

__all__ = ["Progress", "ProgressOption", "metrics_of", "progress_metrics", "reported_progress"]

#: True for a bar, or a function of the numbers of rows, fragments or files done and in all; None or False for nothing.
ProgressOption: TypeAlias = "bool | Callable[[int, int], object] | None"


class _CountedRows(NodeMetrics):
    __slots__ = ("_progress",)

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress

    def add(self, rows: int = 0, *, batches: int = 0, bytes: int = 0, seconds: float = 0.0, **counts: int) -> None:
        super().add(rows, batches=batches, bytes=bytes, seconds=seconds, **counts)
        if rows:
            self._progress.reach(self.rows)


def progress_metrics(progress: Progress) -> ScanMetrics:
    """Make metrics of a scan that report its progress as the number of rows it has scanned."""
    return ScanMetrics({"scan": _CountedRows(progress)})


def metrics_of(progress: Progress | None) -> Callable[[], ScanMetrics | None]:
    """Return a function that makes the metrics of each attempt of a change, whose scan reports its progress."""
    return lambda: None if progress is None else progress_metrics(progress)


@contextmanager
def reported_progress(
    option: ProgressOption, total: Callable[[], int | None], name: str = "scan", unit: str = "row"
) -> Iterator[Progress | None]:
    """Report the progress of a ``with`` block, and its end if it does not raise; yield None without progress.

    Parameters
    ----------
    option
        The progress option of the user.
    total
        Function that returns the total number of units, None if it is not known yet. It is called only if progress is
        reported.
    name, unit
        Name of the call and of the units, for the bar.

    Raises
    ------
    TypeError
        The option is neither a bool nor callable.
    UnsupportedError
        The option is True, and tqdm is not installed.
    """
    if option is None or option is False:
        yield None
        return
    if option is not True and not callable(option):
        raise TypeError(f"progress must be True, or a function of {unit}s done and {unit}s in all, not {option!r}")
    if option is not True:
        progress = Progress(option, total())
        yield progress
        progress.finish()
        return
    wanted = total()
    with _bar(wanted, name, unit) as bar:

        def show(done: int, known: int) -> None:
            if known > done:
                bar.total = known  # of calls that learn it after they begin
            bar.update(done - bar.n)

        progress = Progress(show, wanted)
        yield progress
        progress.finish()


def _bar(total: int | None, name: str, unit: str) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise UnsupportedError(
            "progress=True draws its bar with tqdm, which is not installed: pip install tqdm, or pass a function of "
            "what is done and what there is in all"
        ) from None
    return tqdm(total=total, unit=unit, unit_scale=True, desc=name)
