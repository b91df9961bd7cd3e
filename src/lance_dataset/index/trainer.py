"""Description of the training of one kind of index: columns that fit, parameters, format versions, the work itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidIndexError
from lance_dataset.index.files import IndexFolder, NewIndexFolder

__all__ = ["ORDERED", "OldSegment", "Parameter", "Trainer", "Training", "is_ordered", "positive"]


@dataclass(frozen=True)
class Training:
    """One segment that is to be written.

    Attributes
    ----------
    entries
        Values and rows in storage order, see `lance_dataset.index.scalar.sorting.entry_schema`. Each iteration reads
        them again.
    kind
        Type of the values.
    target
        Folder of the files.
    parameters
        Parameters of the kind of index, complete and checked.
    memory_limit
        Maximum number of bytes to work with, approximately.
    """

    entries: Iterable[pa.RecordBatch]
    kind: pa.DataType
    target: NewIndexFolder
    parameters: Mapping[str, Any]
    memory_limit: int


@dataclass(frozen=True)
class OldSegment:
    """A segment whose content goes into a new one.

    Attributes
    ----------
    folder
        Folder of its files.
    is_covered
        Returns for each of several ids (or addresses, if the kind stores these) whether it is of a row that the
        segment still covers. Entries of other rows must be left out.
    """

    folder: IndexFolder
    is_covered: Callable[[NDArray[np.uint64]], NDArray[np.bool_]]


@dataclass(frozen=True)
class Parameter:
    """A parameter of the indices of one kind.

    Attributes
    ----------
    default
        Its value unless given.
    check
        Returns a given value as it is used; raises InvalidIndexError or InvalidInputError with a text that begins
        with what is wanted, such as ``must be a positive number``.
    """

    default: Any
    check: Callable[[Any], Any]


@dataclass(frozen=True)
class Trainer:
    """Training of the indices of one kind.

    Attributes
    ----------
    name
        Name for messages.
    type_url
        Type of the details in the manifest.
    fits
        Returns True for types of columns that can have such an index. The type may be an extension type.
    wanted
        Description of these types.
    write
        Writes the files of a segment; returns the value of the details.
    parameters
        Parameters by name.
    version, stable_version
        Format version of tables without and with stable row ids.
    uses_addresses
        True if entries have the addresses of rows even if the table has stable row ids.
    stable_refusal
        Why tables with stable row ids cannot get such an index, and what to do; None if they can.
    read_parameters
        Returns the parameters of an existing index; None if the kind has none.
    extend
        Writes a segment with the content of old ones, in their order, and that of new rows, whose entries are those
        of the training; returns the value of the details. None if segments are always trained from all of their rows.
    can_extend
        Returns whether the content of an old segment can be taken over; None if that of all can.
    misfit
        Class of the error for types that do not fit.
    fits_field
        Returns True for columns that can have such an index, where that depends on the metadata of the field.
    specialize
        Returns the training for given parameters, where that depends on them; None if it does not.
    restore
        Returns the parameters for `specialize` of an existing index, from its details and its files.
    name_suffix
        What follows the name of the column in names that are derived from it, before ``_idx``.
    batch_rows
        Rows of a batch of entries.
    """

    name: str
    type_url: str
    fits: Callable[[pa.DataType], bool]
    wanted: str
    write: Callable[[Training], bytes]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    version: int = 0
    stable_version: int = 0
    uses_addresses: bool = False
    stable_refusal: str | None = None
    read_parameters: Callable[[IndexFolder], Mapping[str, Any]] | None = None
    extend: Callable[[Sequence[OldSegment], Training], bytes] | None = None
    can_extend: Callable[[IndexFolder], bool] | None = None
    misfit: type[Exception] = TypeError
    fits_field: Callable[[pa.Field], bool] | None = None
    specialize: Callable[[Mapping[str, Any]], Trainer] | None = None
    restore: Callable[[bytes, IndexFolder], Mapping[str, Any]] | None = None
    name_suffix: str = ""
    batch_rows: int = 1 << 16

    @property
    def defaults(self) -> dict[str, Any]:
        """Parameters unless given."""
        return {name: parameter.default for name, parameter in self.parameters.items()}

    def fits_column(self, field: pa.Field) -> bool:
        """Return True if a column can have such an index."""
        return self.fits(field.type) if self.fits_field is None else self.fits_field(field)

    def checked(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters, checked. Those of other kinds of indices are ignored, as in the reference.

        Raises
        ------
        InvalidIndexError, InvalidInputError
            A parameter has the wrong type or is out of range.
        """
        found = self.defaults
        for name in found.keys() & parameters.keys():
            if parameters[name] is None:
                continue
            try:
                found[name] = self.parameters[name].check(parameters[name])
            except ValueError as error:
                raise type(error)(f"{name} of a {self.name} index {error}, not {parameters[name]!r}") from None
            except InvalidIndexError as error:
                raise InvalidIndexError(f"{name} of a {self.name} index {error}, not {parameters[name]!r}") from None
        return found

    def parameters_of(self, folder: IndexFolder) -> dict[str, Any]:
        """Return the parameters that an existing index was built with."""
        return {**self.defaults, **({} if self.read_parameters is None else self.read_parameters(folder))}

    def of_index(self, details: bytes, folder: IndexFolder) -> tuple[Trainer, dict[str, Any]]:
        """Return the training that made an existing index, and its parameters."""
        if self.specialize is None or self.restore is None:
            return self, self.parameters_of(folder)
        parameters = self.restore(details, folder)
        trainer = self.specialize(parameters)
        return trainer, trainer.checked(parameters)


def positive(value: Any) -> int:
    """Return a positive number of 32 bits.

    Raises
    ------
    InvalidIndexError
        It is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 32:
        raise InvalidIndexError("must be a positive number")
    return value


def is_ordered(kind: pa.DataType) -> bool:
    """Return True for types whose values have an order: neither nested nor dictionaries nor null."""
    tests = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_temporal,
    )
    return any(test(kind) for test in tests) and not pa.types.is_interval(kind)


#: Description of the types that `is_ordered` accepts.
ORDERED: Final = "int, float, bool, str, large_str, binary, large_binary, decimal, fixed-size-binary, or temporal"
