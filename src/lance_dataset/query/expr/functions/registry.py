"""What a function is, and the table of all of them.

A function names the kinds of its parameters and gives a kernel over Arrow arrays and scalars. The binder converts the
arguments as the kinds demand and learns the result type by running the kernel on empty arrays, so adding a function
means adding one line to a table in one of the sibling modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any

import pyarrow as pa

__all__ = ["Function", "Kind", "find_function", "function_names"]


class Kind(Enum):
    """What a parameter takes, and into what the argument is converted first."""

    ANY = "any value"
    NUMBER = "a number"
    FLOAT = "a number (computed in float64)"
    INTEGER = "an integer"
    TEXT = "a string"
    PRINTED = "a string or a value that can be printed"
    BYTES = "a string or binary value"
    BOOLEAN = "a boolean"
    TEMPORAL = "a date or timestamp"
    INTERVAL = "an interval"
    LIST = "a list"
    ELEMENT = "a value of the list's element type"
    SAME = "values of one common type"


@dataclass(frozen=True)
class Function:
    """A scalar function.

    Attributes
    ----------
    name
        Lower-case name.
    parameters
        Kinds of the parameters, in order.
    kernel
        Takes as many arrays or scalars as there are arguments; nulls are its business.
    optional
        How many parameters at the end may be left out.
    variadic
        The last parameter may repeat.
    coercion
        Takes the types of the arguments and gives those they are converted to before the call, for rules that no kind
        expresses; raises `pyarrow.ArrowInvalid` for types it refuses.
    volatile
        Every row, and every call, has a value of its own (`random()`, `uuid()`): never computed ahead of the scan, and
        never twice in one row for the same place in the text. The kernel is called with the number of rows first.
    describe
        For functions of what an argument is instead of what its values are: takes the field that the first argument
        is, and the other arguments as scalars, and gives the result. There is no kernel to run then.
    """

    name: str
    parameters: tuple[Kind, ...]
    kernel: Callable[..., Any]
    optional: int = 0
    variadic: bool = False
    volatile: bool = False
    coercion: Callable[[Sequence[pa.DataType]], Sequence[pa.DataType]] | None = None
    describe: Callable[..., pa.Scalar] | None = None

    def accepts(self, count: int) -> bool:
        """True when `count` arguments are a possible call."""
        return len(self.parameters) - self.optional <= count and (self.variadic or count <= len(self.parameters))

    def arity(self) -> str:
        """The number of arguments in words."""
        low, high = len(self.parameters) - self.optional, len(self.parameters)
        if self.variadic:
            return f"at least {low}"
        return str(high) if low == high else f"{low} to {high}"

    def kinds(self, count: int) -> tuple[Kind, ...]:
        """The kind of each of `count` arguments."""
        repeated = max(count - len(self.parameters), 0)
        return (self.parameters + self.parameters[-1:] * repeated)[:count]


#: Modules with `FUNCTIONS` and `ALIASES`; a later one may replace functions of an earlier one.
_MODULES = (
    "math",
    "conditional",
    "text",
    "regex",
    "encodings",
    "temporal",
    "moments",
    "statement",
    "lists",
    "list_edits",
    "list_sets",
    "list_text",
    "series",
    "maps",
    "structs",
    "vectors",
    "hashes",
    "engine",
    "geometry",
    "json",
)


def _table() -> dict[str, Function]:
    global _FUNCTIONS
    if _FUNCTIONS is None:
        _FUNCTIONS = {}
        for name in _MODULES:
            module = import_module(f".{name}", __package__)
            _FUNCTIONS.update({function.name: function for function in module.FUNCTIONS})
            _FUNCTIONS.update({alias: _FUNCTIONS[known] for alias, known in module.ALIASES.items()})
    return _FUNCTIONS


_FUNCTIONS: dict[str, Function] | None = None


def find_function(name: str) -> Function | None:
    """The function of a name in any case."""
    return _table().get(name.lower())


def function_names() -> tuple[str, ...]:
    """Every name and alias."""
    return tuple(_table())
