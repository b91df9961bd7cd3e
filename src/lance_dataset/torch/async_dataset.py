"""Datasets that another process reads ahead."""

from __future__ import annotations

import contextlib
import queue
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch.multiprocessing
from torch.utils.data import IterableDataset

from lance_dataset.errors import InvalidInputError, LanceError

__all__ = ["AsyncDataset", "async_dataset"]

_CHECK_SECONDS = 1.0
_ITEM, _END, _ERROR = "item", "end", "error"


class AsyncDataset(IterableDataset[Any]):
    """Dataset that is made and read in another process, some items ahead of what the loop gets.

    Each iteration starts a process, with the start method of ``torch.multiprocessing``.

    Parameters
    ----------
    dataset_creator
        Function without arguments that returns the dataset. It is called in the other process.
    queue_size
        Number of items to read ahead, at least 1.

    Raises
    ------
    InvalidInputError
        `queue_size` is less than 1.
    """

    def __init__(self, dataset_creator: Callable[[], IterableDataset[Any]], *, queue_size: int = 4) -> None:
        if queue_size < 1:
            raise InvalidInputError(f"queue_size must be at least 1, not {queue_size}")
        self._creator = dataset_creator
        self._queue_size = queue_size
        self._process: Any = None

    def __iter__(self) -> Iterator[Any]:
        self.close()
        context = torch.multiprocessing.get_context()
        items = context.Queue(self._queue_size)
        taken = context.Event()
        process = context.Process(target=_produce, args=(self._creator, items, taken), daemon=True)
        self._process = process
        process.start()
        try:
            while True:
                kind, item = _next(items, process)
                if kind == _ERROR:
                    raise LanceError(f"the process that reads the dataset failed:\n{item}")
                if kind == _END:
                    return
                yield item
        finally:
            taken.set()
            _stop(process)

    def close(self) -> None:
        """End the process that reads, if there is one. An iteration that is going on ends with an error."""
        if self._process is not None:
            _stop(self._process)
            self._process = None


@contextlib.contextmanager
def async_dataset(
    dataset_creator: Callable[[], IterableDataset[Any]], *, queue_size: int = 4
) -> Iterator[AsyncDataset]:
    """Return a context with an `AsyncDataset`, which is closed at its end. Parameters are those of the class."""
    dataset = AsyncDataset(dataset_creator, queue_size=queue_size)
    try:
        yield dataset
    finally:
        dataset.close()


def _produce(creator: Callable[[], IterableDataset[Any]], items: Any, taken: Any) -> None:
    try:
        for item in creator():
            items.put((_ITEM, item))
        items.put((_END, None))
    except Exception:
        items.put((_ERROR, traceback.format_exc()))
    taken.wait()  # tensors are in memory of this process until the other one has taken them


def _next(items: Any, process: Any) -> tuple[str, Any]:
    while True:
        try:
            found: tuple[str, Any] = items.get(timeout=_CHECK_SECONDS)
            return found
        except queue.Empty:
            if not process.is_alive() and items.empty():
                raise LanceError(
                    f"the process that reads the dataset ended with the exit code {process.exitcode}"
                ) from None


def _stop(process: Any) -> None:
    if process.is_alive():
        process.terminate()
    process.join()
