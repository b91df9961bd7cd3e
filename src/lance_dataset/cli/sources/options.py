"""Options of reading source files: types of columns, nulls, separators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from lance_dataset.cli.sources.files import SourceFormat
from lance_dataset.errors import InvalidInputError

__all__ = ["ReadOptions", "SourceFile", "parse_types"]


@dataclass(frozen=True)
class ReadOptions:
    """Options of `import`.

    Attributes
    ----------
    format
        Format of the files; None to tell it from their names.
    columns
        Columns to read, in this order; None for all.
    delimiter
        Separator of the values of CSV files; None for a comma, or a tab in TSV files.
    types
        Types that the user gave to columns.
    known_types
        Types of the columns of a dataset that gets the rows. Columns of text files are read as these.
    null_values
        Texts that stand for null in CSV files, besides an empty value.
    strict
        True to refuse columns whose values or files have several types.
    union
        True to accept files with different columns.
    partitions
        True to make columns of directories named ``column=value``.
    """

    format: SourceFormat | None = None
    columns: tuple[str, ...] | None = None
    delimiter: str | None = None
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    known_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    null_values: tuple[str, ...] = ()
    strict: bool = False
    union: bool = False
    partitions: bool = True


class SourceFile(Protocol):
    """One file, opened by the module of its format."""

    @property
    def name(self) -> str:
        """Path, for messages."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the file."""

    @property
    def rows(self) -> int | None:
        """Number of rows, or None if it is known only after reading."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the columns of these names, which the file has."""


#: Names of types besides those of Arrow.
_NAMES = {"text": pa.string(), "boolean": pa.bool_(), "timestamp": pa.timestamp("us"), "date": pa.date32()}
_DECIMAL = re.compile(r"(?:decimal|decimal128|numeric)\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_TIMESTAMP_WITH_ZONE = re.compile(r"timestamp\[(s|ms|us|ns),\s*(?:tz=)?([^\]]+)\]")
_COMMA_BETWEEN_TYPES = re.compile(r",(?![^(\[]*[)\]])")


def parse_types(text: str | None) -> dict[str, pa.DataType]:
    """Parse ``column=type,column=type``.

    Types have the names of Arrow (``int32``, ``string``, ``date32``, ``timestamp[us]``), or are ``text``, ``boolean``,
    ``date``, ``timestamp``, ``decimal(10, 2)`` or ``timestamp[us, UTC]``.

    Raises
    ------
    InvalidInputError
        A part is not written like this, a type is unknown, or a column is given twice.
    """
    found: dict[str, pa.DataType] = {}
    for part in _COMMA_BETWEEN_TYPES.split(text or ""):
        column, equals, kind = (each.strip() for each in part.partition("="))
        if not part.strip():
            continue
        if not equals or not column or not kind:
            raise InvalidInputError(f"--types: {part.strip()!r} is not COLUMN=TYPE")
        if column in found:
            raise InvalidInputError(f"--types: column {column!r} is given twice")
        found[column] = _parse_type(column, kind)
    return found


def _parse_type(column: str, text: str) -> pa.DataType:
    try:
        if matched := _DECIMAL.fullmatch(text.lower()):
            return pa.decimal128(int(matched[1]), int(matched[2]))
        if matched := _TIMESTAMP_WITH_ZONE.fullmatch(text):
            return pa.timestamp(matched[1], matched[2].strip())
        return _NAMES.get(text.lower()) or pa.type_for_alias(text.lower())
    except ValueError as error:
        raise InvalidInputError(
            f"--types: column {column!r}: {text!r} is not a type; use int64, double, string, bool, date32, "
            "timestamp[us], decimal(10, 2) or another type of Arrow"
        ) from error
