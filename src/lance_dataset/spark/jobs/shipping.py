"""Pickles for Spark's workers, which say what is wrong where the package is not installed."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from pyspark import cloudpickle

__all__ = ["Shipped"]


def _restored(payload: bytes) -> Any:
    # This function is sent by value, so all that it needs is imported here.
    import pickle
    import platform
    import sys

    try:
        import lance_dataset  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "lance_dataset":
            raise
        raise ModuleNotFoundError(
            f"the Spark worker on {platform.node()} has no package lance_dataset in {sys.executable}: install "
            "lance-dataset there, in the same version as in the driver, or set PYSPARK_PYTHON to a Python that has it",
            name=error.name,
        ) from error
    from lance_dataset.spark.jobs.workers import settle

    kind, state = pickle.loads(payload)
    settle()
    restored = kind.__new__(kind)
    restored.__dict__.update(state)
    return restored


def _by_value(function: FunctionType) -> FunctionType:
    """Return a copy that cloudpickle sends as code, as it does with the functions of the main program."""
    copy = FunctionType(function.__code__, {"__builtins__": __builtins__}, function.__name__)
    copy.__module__ = "__main__"
    return copy


class Shipped:
    """Base class of what tasks get. Its state is unpickled only where the package can be imported."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the function that restores this object on a worker, and its argument."""
        return _by_value(_restored), (cloudpickle.dumps((type(self), self._shipped_state())),)  # type: ignore[arg-type]

    def _shipped_state(self) -> dict[str, Any]:
        """Return the attributes that tasks need."""
        return self.__dict__
