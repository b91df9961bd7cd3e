"""Public API of the package at run time: modules, names, classes and their methods."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import lance.arrow  # noqa: F401 - it cannot be imported when another package has registered the types

from lance_dataset.properties import cached_property

#: All but `namespace`, whose methods are those of the package lance_namespace.
MODULES = (
    "",
    "arrow",
    "blob",
    "commit",
    "dataset",
    "debug",
    "download",
    "errors",
    "file",
    "fragment",
    "hf",
    "indices",
    "log",
    "mem_wal",
    "optimize",
    "otel",
    "progress",
    "pydantic",
    "query",
    "sampler",
    "schema",
    "tracing",
    "udf",
    "util",
    "vector",
)
#: Special methods that users call through syntax or functions.
SPECIAL = frozenset({"__call__", "__enter__", "__exit__", "__getitem__", "__init__", "__iter__", "__len__"})


class Method(NamedTuple):
    """A function of a public class, named ``owner.name`` in messages; `owner` is the class that defines it."""

    owner: str
    name: str
    function: Callable[..., Any]
    is_property: bool

    @property
    def label(self) -> str:
        return f"{self.owner}.{self.name}"


def modules() -> dict[str, ModuleType]:
    """Return the public modules by their names below the package (`dataset` is a function there, so import them)."""
    return {name: importlib.import_module(f"lance_dataset.{name}".rstrip(".")) for name in MODULES}


def names() -> dict[str, Any]:
    """Return the public names with their objects, without modules."""
    found = {name: getattr(module, name) for module in modules().values() for name in module.__all__}
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


def classes() -> dict[str, type]:
    """Return the public classes by their qualified names, including nested ones."""
    found: dict[str, type] = {}

    def add(kind: type) -> None:
        found[kind.__qualname__] = kind
        for value in vars(kind).values():
            if inspect.isclass(value) and value.__qualname__.startswith(f"{kind.__qualname__}."):
                add(value)

    for value in names().values():
        if inspect.isclass(value):
            add(value)
    return found


def functions() -> dict[str, Callable[..., Any]]:
    return {name: value for name, value in names().items() if inspect.isroutine(value)}


def methods() -> list[Method]:
    """Return methods and properties of the public classes, inherited ones of the package once, with their functions."""
    found: dict[Any, Method] = {}
    for kind in classes().values():
        for owner in kind.__mro__:
            if owner.__module__.split(".")[0] == "lance_dataset":
                found.update((method.function, method) for method in _own_methods(owner))
    return list(found.values())


def _own_methods(owner: type) -> Iterator[Method]:
    for name, value in vars(owner).items():
        if name.startswith("_") and name not in SPECIAL:
            continue
        function = value
        if isinstance(value, property):
            function = value.fget
        elif isinstance(value, cached_property):
            function = value.func
        elif isinstance(value, classmethod | staticmethod):
            function = value.__func__
        if inspect.isfunction(function):
            yield Method(owner.__qualname__, name, function, isinstance(value, property | cached_property))
