"""`Function`: a scalar function of expressions, with the kinds of its parameters and its kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import pyarrow as pa

from lance_dataset.late_dataclass import dataclass

__all__ = ["Function", "Kind"]


class Kind(Enum):
    """Kind of a parameter: the values it accepts, and the type they are converted to."""

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
        Takes one array or scalar per argument, and handles nulls itself.
    optional
        Number of trailing parameters that may be left out.
    variadic
        True if the last parameter may repeat.
    coercion
        Takes the types of the arguments and returns the types they are converted to before the call, for rules that no
        kind expresses. Raises `pyarrow.ArrowInvalid` for types it rejects.
    volatile
        True if every row and every call has its own value (`random()`, `uuid()`). Such a function is never computed
        ahead of the scan, and never twice in one row for the same place in the text. The first argument of the kernel
        is the number of rows.
    describe
        For functions that depend on the field of an argument and not on its values: takes the field of the first
        argument and the other arguments as scalars, and returns the result. The kernel is then not used.
    specialize
        For functions whose kernel depends on the fields of the arguments, such as their extension types: takes the
        field of each argument, and its value if it is constant, and returns the function to call. Raises
        `pyarrow.ArrowInvalid` for fields it rejects.
    metadata
        Metadata of the field of a result of an extension type.
    """

    name: str
    parameters: tuple[Kind, ...]
    kernel: Callable[..., Any]
    optional: int = 0
    variadic: bool = False
    volatile: bool = False
    coercion: Callable[[Sequence[pa.DataType]], Sequence[pa.DataType]] | None = None
    describe: Callable[..., pa.Scalar] | None = None
    specialize: Callable[[Sequence[pa.Field], Sequence[pa.Scalar | None]], Function] | None = None
    metadata: Mapping[bytes, bytes] | None = None

    def accepts(self, count: int) -> bool:
        """Return True if a call with `count` arguments is possible."""
        return len(self.parameters) - self.optional <= count and (self.variadic or count <= len(self.parameters))

    def arity(self) -> str:
        """Describe the number of arguments in words."""
        low, high = len(self.parameters) - self.optional, len(self.parameters)
        if self.variadic:
            return f"at least {low}"
        return str(high) if low == high else f"{low} to {high}"

    def kinds(self, count: int) -> tuple[Kind, ...]:
        """Return the kind of each of `count` arguments."""
        repeated = max(count - len(self.parameters), 0)
        return (self.parameters + self.parameters[-1:] * repeated)[:count]
