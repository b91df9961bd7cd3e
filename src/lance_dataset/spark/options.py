"""Options of ``spark.read`` and ``df.write``, parsed from text and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_dataset.errors import InvalidInputError, nearest_name_hint
from lance_dataset.util import strict_bool

__all__ = ["ReadOptions", "WriteOptions", "storage_options_text"]

_READ_NAMES = (
    "path",
    "version",
    "columns",
    "filter",
    "batch_size",
    "num_partitions",
    "rows_per_partition",
    "pushdown",
    "storage_options",
)
_WRITE_NAMES = ("path", "data_storage_version", "max_rows_per_file", "if_exists", "storage_options")
_MAX_ROWS_PER_FILE = 1024 * 1024
_BATCH_SIZE = 8192


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a dataset.

    Attributes
    ----------
    uri
        Path or URI of the dataset.
    version
        Version number or tag; None for the newest version.
    columns
        Columns to read, in this order; None for all.
    filter
        Filter in Lance's SQL dialect.
    batch_size
        Maximum number of rows in an Arrow batch.
    num_partitions, rows_per_partition
        Number of Spark partitions, or rows in each; at most one of the two is set.
    pushdown
        True if Spark may push filters of the query down to Lance.
    storage_options
        Settings of the object store, as sorted pairs.
    """

    uri: str
    version: int | str | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    batch_size: int = _BATCH_SIZE
    num_partitions: int | None = None
    rows_per_partition: int | None = None
    pushdown: bool = False
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Parse and check the options of ``spark.read``; raises InvalidInputError."""
        _refuse_unknown(options, _READ_NAMES, "read")
        parsed = cls(
            uri=_path(options, "load"),
            version=_version(options.get("version")),
            columns=_columns(options.get("columns")),
            filter=options.get("filter") or None,
            batch_size=_positive(options, "batch_size") or _BATCH_SIZE,
            num_partitions=_positive(options, "num_partitions"),
            rows_per_partition=_positive(options, "rows_per_partition"),
            pushdown=_truth(options, "pushdown"),
            storage_options=_storage_options(options.get("storage_options")),
        )
        if parsed.num_partitions and parsed.rows_per_partition:
            raise InvalidInputError("Give one of the options 'num_partitions' and 'rows_per_partition', not both")
        return parsed


@dataclass(frozen=True)
class WriteOptions:
    """Options for writing a dataset.

    Attributes
    ----------
    uri
        Path or URI of the dataset.
    data_storage_version
        File format version such as ``"2.1"``; None for that of the dataset, or the default for a new one.
    max_rows_per_file
        Maximum number of rows in a data file.
    if_exists
        ``"error"`` or ``"ignore"``: only create the dataset, and raise or skip the write if it exists. None for the
        modes append and overwrite.
    storage_options
        Settings of the object store, as sorted pairs.
    """

    uri: str
    data_storage_version: str | None = None
    max_rows_per_file: int = _MAX_ROWS_PER_FILE
    if_exists: str | None = None
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Parse and check the options of ``df.write``; raises InvalidInputError."""
        _refuse_unknown(options, _WRITE_NAMES, "write")
        if_exists = options.get("if_exists")
        if if_exists is not None and if_exists not in ("error", "ignore"):
            raise InvalidInputError(f"The option 'if_exists' must be 'error' or 'ignore', not {if_exists!r}")
        return cls(
            uri=_path(options, "save"),
            data_storage_version=options.get("data_storage_version") or None,
            max_rows_per_file=_positive(options, "max_rows_per_file") or _MAX_ROWS_PER_FILE,
            if_exists=if_exists,
            storage_options=_storage_options(options.get("storage_options")),
        )


def storage_options_text(options: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Convert storage options of a Python call to the hashable form that the option classes hold."""
    return tuple(sorted((str(key), str(value)) for key, value in (options or {}).items()))


def _refuse_unknown(options: Mapping[str, str], known: tuple[str, ...], direction: str) -> None:
    for name in options:
        if name.lower() not in known:
            raise InvalidInputError(f"Unknown option {name!r} to {direction} lance{nearest_name_hint(name, known)}")


def _path(options: Mapping[str, str], method: str) -> str:
    path = options.get("path")
    if not path:
        raise InvalidInputError(f'No dataset given: call {method}("path or URI of the dataset")')
    return path


def _positive(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise InvalidInputError(f"The option {name!r} must be a positive whole number, not {text!r}")
    return value


def _truth(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false")
    truth = strict_bool(text.lower())
    if truth is None:
        raise InvalidInputError(f"The option {name!r} must be true or false, not {text!r}")
    return truth


def _version(text: str | None) -> int | str | None:
    if text is None or text == "":
        return None
    return int(text) if text.isascii() and text.isdigit() else text


def _columns(text: str | None) -> tuple[str, ...] | None:
    """Parse a JSON list of names, or names separated by commas."""
    if text is None:
        return None
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except ValueError as error:
            raise InvalidInputError(f"The option 'columns' is not a JSON list of names: {text!r} ({error})") from error
        if not all(isinstance(name, str) for name in names):
            raise InvalidInputError(f"The option 'columns' must hold names only: {text!r}")
    else:
        names = [name.strip() for name in text.split(",")]
    if not names or not all(names):
        raise InvalidInputError(f"The option 'columns' has no names or an empty one: {text!r}")
    if len(set(names)) < len(names):
        raise InvalidInputError(f"The option 'columns' names a column twice: {text!r}")
    return tuple(names)


def _storage_options(text: str | None) -> tuple[tuple[str, str], ...]:
    if not text:
        return ()
    try:
        parsed = json.loads(text)
    except ValueError as error:  # it has the whole text
        raise InvalidInputError(f"The option 'storage_options' is not a JSON object ({error})") from None
    if not isinstance(parsed, dict):
        raise InvalidInputError("The option 'storage_options' must be a JSON object of names and values")
    return storage_options_text(parsed)
