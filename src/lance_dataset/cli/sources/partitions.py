"""Columns of directories that are named ``column=value``, as Hive, Spark and Arrow write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from lance_dataset.cli.sources.options import ReadOptions
from lance_dataset.cli.sources.text_types import TypeFinder, convert, is_read_from_text
from lance_dataset.errors import InvalidInputError

__all__ = ["partition_columns"]

_NULL = "__HIVE_DEFAULT_PARTITION__"


def partition_columns(files: Sequence[Path], options: ReadOptions) -> list[dict[str, pa.Scalar]]:
    """Return the columns that the directories of each file stand for, and their values.

    Names and values are percent-decoded. The type of a column is the one that all its values have.

    Raises
    ------
    InvalidInputError
        A value does not have the type that was given to its column, or the files have different partition columns.
    """
    if not options.partitions:
        return [{} for _ in files]
    texts = [_pairs(file) for file in files]
    names = list(dict.fromkeys(name for pairs in texts for name in pairs))
    if not options.union:
        for file, pairs in zip(files, texts, strict=True):
            for name in names:
                if name not in pairs:
                    other = next(str(each) for each, found in zip(files, texts, strict=True) if name in found)
                    raise InvalidInputError(
                        f"{file} is in no directory {name}=..., as {other} is; import it with --union, or without "
                        "columns of directories with --no-partitions"
                    )
    columns = {name: _column(name, files, [pairs.get(name) for pairs in texts], options) for name in names}
    return [{name: columns[name][position] for name in names} for position in range(len(files))]


def _pairs(file: Path) -> dict[str, str | None]:
    """Return the names and values in the path of a file."""
    found: dict[str, str | None] = {}
    for part in file.parts[:-1]:
        name, equals, value = part.partition("=")
        if equals and name:
            found[unquote(name)] = None if value == _NULL else unquote(value)
    return found


def _column(name: str, files: Sequence[Path], texts: Sequence[str | None], options: ReadOptions) -> pa.Array:
    values = pa.array(texts, pa.string())
    told: Mapping[str, pa.DataType] = {**options.known_types, **options.types}
    kind = told.get(name)
    if kind is None:
        finder = TypeFinder()
        finder.add(values)
        kind = pa.string() if pa.types.is_null(finder.kind) else finder.kind
    elif not is_read_from_text(kind):
        raise InvalidInputError(f"the names of directories {name}=... cannot be read as {kind}")
    try:
        return convert(values, kind)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"{files[0].parent} and others: {name}=... cannot be read as {kind}: {error}"
        ) from error
