"""Options of ``spark.read`` and ``df.write``, parsed from text and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_dataset.errors import InvalidInputError
from lance_dataset.spark.option_parsing import (
    column_names,
    json_object,
    known_options,
    one_of,
    parsed_storage_options,
    path_option,
    positive,
    truth,
    version,
)

__all__ = ["ReadOptions", "StreamOptions", "WriteOptions", "reads_changes"]

_READ_NAMES = (
    "path",
    "version",
    "timestamp",
    "tag",
    "branch",
    "columns",
    "filter",
    "order_by",
    "limit",
    "nearest",
    "full_text",
    "batch_size",
    "num_partitions",
    "rows_per_partition",
    "pushdown",
    "storage_options",
)
_WRITE_NAMES = (
    "path",
    "data_storage_version",
    "max_rows_per_file",
    "enable_stable_row_ids",
    "compression",
    "vector_length",
    "if_exists",
    "merge_schema",
    "replace_where",
    "replace_by",
    "txn_id",
    "storage_options",
)
_STREAM_NAMES = (
    "starting_version",
    "starting_timestamp",
    "ending_version",
    "max_versions_per_trigger",
    "max_rows_per_trigger",
    "max_bytes_per_trigger",
    "skip_changes",
    "read_change_feed",
)
_MAX_ROWS_PER_FILE = 1024 * 1024
_SCHEMES = ("none", "zstd", "lz4", "fsst")


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a dataset.

    Attributes
    ----------
    uri
        Path or URI of the dataset.
    version
        Version number or tag; None for the newest version.
    timestamp
        Moment, in ISO format: the newest version that is not younger.
    branch
        Branch that has the version.
    columns
        Columns to read, in this order; None for all.
    filter
        Filter in Lance's SQL dialect.
    order_by
        Columns to order by, each with a minus sign before it for descending order.
    limit
        Maximum number of rows.
    nearest
        Search for vectors: arguments of `LanceDataset.scanner`'s ``nearest`` as JSON.
    full_text
        Search for text: words, or the arguments of ``full_text_query`` as JSON.
    batch_size
        Maximum number of rows in an Arrow batch; None for as many as have a size that suits Spark.
    num_partitions, rows_per_partition
        Number of Spark partitions, or rows in each; at most one of the two is set.
    pushdown
        True if Spark may push filters of the query down to Lance, with its own means; False if the columns, conditions
        and limits of queries are not to reach Lance at all.
    storage_options
        Settings of the object store, as sorted pairs.
    """

    uri: str
    version: int | str | None = None
    timestamp: str | None = None
    branch: str | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    order_by: tuple[str, ...] = ()
    limit: int | None = None
    nearest: str | None = None
    full_text: str | None = None
    batch_size: int | None = None
    num_partitions: int | None = None
    rows_per_partition: int | None = None
    pushdown: bool | None = None
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str], streaming: bool = False) -> ReadOptions:
        """Parse and check the options of ``spark.read``; raises InvalidInputError.

        Those of ``spark.readStream`` are left out if `streaming` is true, and refused otherwise.
        """
        options = known_options(options, _READ_NAMES + (_STREAM_NAMES if streaming else ()), "read")
        parsed = cls(
            uri=path_option(options, "load"),
            version=version(options.get("version") or options.get("tag")),
            timestamp=options.get("timestamp") or None,
            branch=options.get("branch") or None,
            columns=column_names(options.get("columns"), "columns"),
            filter=options.get("filter") or None,
            order_by=column_names(options.get("order_by"), "order_by") or (),
            limit=positive(options, "limit"),
            nearest=options.get("nearest") or None,
            full_text=options.get("full_text") or None,
            batch_size=positive(options, "batch_size"),
            num_partitions=positive(options, "num_partitions"),
            rows_per_partition=positive(options, "rows_per_partition"),
            pushdown=truth(options, "pushdown") if options.get("pushdown") else None,
            storage_options=parsed_storage_options(options.get("storage_options")),
        )
        one_of(options, "num_partitions", "rows_per_partition")
        one_of(options, "version", "tag", "timestamp")
        if parsed.branch and (options.get("tag") or parsed.timestamp):
            raise InvalidInputError("The option 'branch' goes with a version number only, not with a tag or timestamp")
        one_of(options, "nearest", "full_text")
        if parsed.order_by and (parsed.nearest or parsed.full_text):
            raise InvalidInputError("Searches are ordered by distance or score; leave out the option 'order_by'")
        return parsed

    @property
    def at_once(self) -> bool:
        """True if the rows depend on each other, so that one task has to find them."""
        return bool(self.limit or self.order_by or self.nearest or self.full_text)


@dataclass(frozen=True)
class StreamOptions:
    """Options of ``spark.readStream``, and of reads of changes, besides those of `ReadOptions`.

    Attributes
    ----------
    starting_version
        First version whose rows are read; None for all rows that the newest version has.
    starting_timestamp
        Moment, in ISO format, of the first version whose rows are read.
    ending_version
        Last version whose changes are read, of a read that is not a stream; None for the newest.
    max_versions, max_rows, max_bytes
        Numbers of versions, rows or bytes in a batch; at most one of the three is set.
    skip_changes
        True to leave out versions that changed or deleted rows, instead of ending the query with an error.
    changes
        True for rows that were inserted, updated and deleted, with what happened to them.
    """

    starting_version: int | None = None
    starting_timestamp: str | None = None
    ending_version: int | None = None
    max_versions: int | None = None
    max_rows: int | None = None
    max_bytes: int | None = None
    skip_changes: bool = False
    changes: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str], streaming: bool = True) -> StreamOptions:
        """Parse and check the options; raises InvalidInputError.

        Without `streaming` they are those of a read of changes, which has no limits.
        """
        options = known_options(options, _READ_NAMES + _STREAM_NAMES, "read")
        parsed = cls(
            starting_version=positive(options, "starting_version"),
            starting_timestamp=options.get("starting_timestamp") or None,
            ending_version=positive(options, "ending_version"),
            max_versions=positive(options, "max_versions_per_trigger"),
            max_rows=positive(options, "max_rows_per_trigger"),
            max_bytes=positive(options, "max_bytes_per_trigger"),
            skip_changes=truth(options, "skip_changes"),
            changes=truth(options, "read_change_feed"),
        )
        what = "readStream" if streaming else "a read of changes"
        limits = ("max_versions_per_trigger", "max_rows_per_trigger", "max_bytes_per_trigger")
        unfit: tuple[str, ...] = ("ending_version",) if streaming else (*limits, "skip_changes")
        for name in ("version", "tag", "timestamp", "branch", "limit", "order_by", "nearest", "full_text", *unfit):
            if options.get(name):
                raise InvalidInputError(f"The option {name!r} does not go with {what}")
        one_of(options, "starting_version", "starting_timestamp")
        one_of(options, *limits)
        if parsed.changes and parsed.skip_changes:
            raise InvalidInputError("The option 'skip_changes' contradicts 'read_change_feed', which reads changes")
        return parsed


def reads_changes(options: Mapping[str, str]) -> bool:
    """Return True if the options of ``spark.read`` or ``spark.readStream`` ask for changes of rows."""
    return truth(known_options(options, _READ_NAMES + _STREAM_NAMES, "read"), "read_change_feed")


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
    stable_row_ids
        True if a new dataset gets stable row ids, which record the versions that changed each row.
    compression
        Compression by column, as sorted pairs; the column ``"*"`` stands for all others.
    vector_length
        Length of the vectors of array columns, as sorted pairs.
    if_exists
        ``"error"`` or ``"ignore"``: only create the dataset, and raise or skip the write if it exists. None for the
        modes append and overwrite.
    merge_schema
        True if an append adds columns that only the data has.
    replace_where
        Condition in Lance's SQL: an overwrite replaces the rows for which it is true, and keeps the others.
    replace_by
        Columns: an overwrite replaces the rows whose values in them occur in the data, and keeps the others.
    txn_id
        Name of the job: a write with the name of an earlier one changes nothing.
    storage_options
        Settings of the object store, as sorted pairs.
    """

    uri: str
    data_storage_version: str | None = None
    max_rows_per_file: int = _MAX_ROWS_PER_FILE
    stable_row_ids: bool = False
    compression: tuple[tuple[str, str], ...] = ()
    vector_length: tuple[tuple[str, int], ...] = ()
    if_exists: str | None = None
    merge_schema: bool = False
    replace_where: str | None = None
    replace_by: tuple[str, ...] = ()
    txn_id: str | None = None
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Parse and check the options of ``df.write``; raises InvalidInputError."""
        options = known_options(options, _WRITE_NAMES, "write")
        if_exists = options.get("if_exists")
        if if_exists is not None and if_exists not in ("error", "ignore"):
            raise InvalidInputError(f"The option 'if_exists' must be 'error' or 'ignore', not {if_exists!r}")
        one_of(options, "replace_where", "replace_by")
        return cls(
            uri=path_option(options, "save"),
            data_storage_version=options.get("data_storage_version") or None,
            max_rows_per_file=positive(options, "max_rows_per_file") or _MAX_ROWS_PER_FILE,
            stable_row_ids=truth(options, "enable_stable_row_ids"),
            compression=_compression(options.get("compression")),
            vector_length=_vector_length(options),
            if_exists=if_exists,
            merge_schema=truth(options, "merge_schema"),
            replace_where=options.get("replace_where") or None,
            replace_by=column_names(options.get("replace_by"), "replace_by") or (),
            txn_id=options.get("txn_id") or None,
            storage_options=parsed_storage_options(options.get("storage_options")),
        )


def _compression(text: str | None) -> tuple[tuple[str, str], ...]:
    """Parse one scheme for all columns, or a JSON object of schemes by column."""
    if not text:
        return ()
    schemes = json_object({"compression": text}, "compression") if text.lstrip().startswith("{") else {"*": text}
    for column, scheme in schemes.items():
        name, _, level = str(scheme).partition(":")
        if name not in _SCHEMES or (level and not level.isdecimal()):
            raise InvalidInputError(
                f"The option 'compression' has {scheme!r} for the column {column!r}; it must be one of "
                f"{', '.join(_SCHEMES)}, with a level as in 'zstd:6' if need be"
            )
    return tuple(sorted((column, str(scheme)) for column, scheme in schemes.items()))


def _vector_length(options: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """Parse a JSON object of lengths by column."""
    lengths = json_object(options, "vector_length")
    return tuple(sorted((name, positive({name: str(length)}, name) or 0) for name, length in lengths.items()))
