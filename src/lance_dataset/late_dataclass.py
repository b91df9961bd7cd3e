"""Data classes whose methods are made when they are first used.

The methods of a data class are compiled from source text, which takes half a millisecond for each class. A process that
opens a table defines hundreds of classes, and uses a part of them, which it hardly ever compares or shows. These data
classes are those of the standard library in all other respects.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]


class _LateMethod:
    """A method that takes the place of this object in its class when it is first looked up."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: type, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = _made(self._owner, self._name)
        setattr(self._owner, self._name, method)
        return method if instance is None else method.__get__(instance)


def _made(cls: Any, name: str) -> Any:
    """Make a method of a data class: as that of a class with the same fields which has no other methods."""
    fields = dataclasses.fields(cls)
    namespace: dict[str, Any] = {field.name: field for field in fields}
    namespace["__annotations__"] = {field.name: field.type for field in fields}
    namespace |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__ or name}
    if hasattr(cls, "__post_init__"):
        namespace["__post_init__"] = cls.__post_init__
    alike: Any = dataclasses.dataclass(
        init=name == "__init__",
        repr=name == "__repr__",
        eq=name == "__eq__",
        unsafe_hash=name == "__hash__",
        frozen=name == "__init__" and cls.__dataclass_params__.frozen,
    )(type(cls.__name__, (), namespace))
    return vars(alike)[name]


def _freeze(cls: Any) -> None:
    names = frozenset(field.name for field in dataclasses.fields(cls))

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)  # type: ignore[arg-type]

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)  # type: ignore[arg-type]

    for method in (__setattr__, __delattr__):
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
        setattr(cls, method.__name__, method)


def _late(cls: Any, frozen: bool, eq: bool, repr: bool) -> Any:
    own = vars(cls)
    wanted = [("__init__", True), ("__repr__", repr), ("__eq__", eq)]
    missing = [name for name, is_wanted in wanted if is_wanted and name not in own]
    hashes = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    inherits = frozen and any(hasattr(base, "__dataclass_params__") for base in cls.__mro__[1:])
    # the standard library checks that a class is frozen if and only if its bases are, and knows them by this
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=inherits)(cls)
    if frozen and not inherits:
        _freeze(cls)
    parameters = cls.__dataclass_params__
    parameters.init, parameters.repr, parameters.eq, parameters.frozen = True, repr, eq, frozen
    for name in missing:
        setattr(cls, name, _LateMethod(cls, name))
    if eq and not hashes:
        cls.__hash__ = _LateMethod(cls, "__hash__") if frozen else None
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True
    ) -> type | Callable[[type], type]:
        """Add the methods of a data class, as `dataclasses.dataclass` does.

        Parameters
        ----------
        cls
            The class; None if there are other arguments.
        frozen, eq, repr
            As for `dataclasses.dataclass`.
        """

        def wrap(cls: type) -> type:
            return _late(cls, frozen, eq, repr)

        return wrap if cls is None else wrap(cls)
