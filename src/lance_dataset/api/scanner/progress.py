"""Progress of long scans: a bar in the terminal, or calls of a user's function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from lance_dataset.errors import UnsupportedError
from lance_dataset.scan.metrics import NodeMetrics, ScanMetrics

__all__ = ["Progress", "ProgressOption", "progress_metrics", "reported_progress"]

#: True for a bar, or a function of (rows done, total rows); None or False for no progress.
ProgressOption: TypeAlias = "bool | Callable[[int, int], object] | None"


class Progress:
    """Progress of a scan, reported when the number of rows done increases, by one call at a time.

    Parameters
    ----------
    report
        Function that is called with the number of rows done and the total number.
    total
        Total number of rows.
    """

    def __init__(self, report: Callable[[int, int], object], total: int) -> None:
        self._report = report
        self._total = total
        self._done = 0
        self._lock = threading.Lock()

    def reach(self, done: int) -> None:
        """Report that at least `done` rows are done."""
        with self._lock:
            done = min(done, self._total)
            if done > self._done:
                self._done = done
                self._report(done, self._total)

    def finish(self) -> None:
        """Report that all rows are done, even if the scan skipped some."""
        self.reach(self._total)
        with self._lock:
            if self._total == 0:
                self._report(0, 0)


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


@contextmanager
def reported_progress(option: ProgressOption, total: Callable[[], int]) -> Iterator[Progress | None]:
    """Report the progress of a ``with`` block, and its end if it does not raise; yield None without progress.

    Parameters
    ----------
    option
        The progress option of the user.
    total
        Function that returns the total number of rows. It is called only if progress is reported.

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
        raise TypeError(f"progress must be True, or a function of rows done and rows in all, not {option!r}")
    if option is not True:
        progress = Progress(option, total())
        yield progress
        progress.finish()
        return
    rows = total()
    with _bar(rows) as bar:
        progress = Progress(lambda done, _: bar.update(done - bar.n), rows)
        yield progress
        progress.finish()


def _bar(total: int) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise UnsupportedError(
            "progress=True draws its bar with tqdm, which is not installed: pip install tqdm, or pass a function of "
            "rows done and rows in all"
        ) from None
    return tqdm(total=total, unit="row", unit_scale=True, desc="scan")
