"""Properties that are computed on first use and kept, without a lock.

`functools.cached_property` of Python 3.10 and 3.11 computes under one lock for all objects of a class. Threads that
open different files then wait for each other, and a process that is forked while a thread computes waits forever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["cached_property"]

_Value = TypeVar("_Value")


class cached_property(Generic[_Value]):
    """Property whose value is kept in the object's dictionary.

    Two threads that ask first at the same time may both compute it; the value that is kept is the same for all later
    uses.

    Parameters
    ----------
    function
        Computes the value from the object.
    """

    def __init__(self, function: Callable[[Any], _Value]) -> None:
        self.func = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[_Value]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _Value: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[_Value] | _Value:
        if instance is None:
            return self
        value: _Value = instance.__dict__.setdefault(self._name, self.func(instance))
        return value
