"""Processes that Spark starts for Python code: short errors in those that plan, and cheap tasks in those that work."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from lance_dataset.errors import LanceError

__all__ = ["planning", "settle"]

_Method = TypeVar("_Method", bound=Callable[..., Any])
_settled: list[int] = []


def planning(method: _Method) -> _Method:
    """Wrap a method that Spark calls to plan, in a process of its own.

    Spark puts the traceback of an error before its message, unless a variable of that process says otherwise. The
    process ends after the error, so nothing else is shortened.
    """

    @functools.wraps(method)
    def planned(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except (LanceError, TypeError):
            if _is_worker():
                os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise
        finally:
            settle()

    return planned  # type: ignore[return-value]


def settle() -> None:
    """Exempt what is loaded so far from garbage collection, once in each process of Spark.

    Spark's daemon collects all garbage of a worker after each task. That takes 0.1 to 0.2 seconds for the modules that
    are loaded by then, more than a small task itself.
    """
    if os.getpid() not in _settled and _is_worker():
        _settled[:] = [os.getpid()]
        gc.collect()
        gc.freeze()


def _is_worker() -> bool:
    """Return True in a process that Spark started for Python code, as opposed to the user's program."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name.startswith("pyspark.")
