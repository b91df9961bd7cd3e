"""Sources of a command as one stream of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lance_dataset.cli.sources.arrow import open_arrow_files
from lance_dataset.cli.sources.files import SourceFormat, common_format, find_files, format_of
from lance_dataset.cli.sources.huggingface import SPLIT, splits_of
from lance_dataset.cli.sources.images import open_images
from lance_dataset.cli.sources.json_lines import open_json_files
from lance_dataset.cli.sources.options import ReadOptions, SourceFile
from lance_dataset.cli.sources.partitions import partition_columns
from lance_dataset.cli.sources.text import open_text_files
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, nearest_name_hint

__all__ = ["SourceStream", "open_sources"]


@dataclass(frozen=True)
class SourceStream:
    """Rows of all source files.

    Attributes
    ----------
    rows
        Number of rows, or None if it is known only after reading.
    """

    schema: pa.Schema
    rows: int | None
    batches: Callable[[], Iterator[pa.RecordBatch]]


def open_sources(sources: Sequence[str], options: ReadOptions) -> SourceStream:
    """Open the files that the sources of a command stand for.

    Columns of several files are combined by name. Columns of directories follow those of the files.

    Raises
    ------
    InvalidInputError
        A source does not exist, formats are unknown or mixed, or a file is damaged.
    SchemaError
        The files have different columns, or columns of the same name whose types have nothing in common.
    FieldNotFoundError
        None of the files has one of the columns.
    """
    found = find_files(sources, any_name=options.format is not None)
    kind = options.format or common_format(found)
    files, constants = _opened(sources, found, kind, options)
    names = list(dict.fromkeys([name for file in files for name in file.schema.names] + list(constants[0])))
    _check_known(names, options.columns or (), "--columns")
    _check_known(names, options.types, "--types")
    schema = _with_constants(_combined(files, options), files, constants)
    if options.columns is not None:
        schema = pa.schema([schema.field(name) for name in options.columns], schema.metadata)

    def batches() -> Iterator[pa.RecordBatch]:
        for file, values in zip(files, constants, strict=True):
            yield from _fitted(file, values, schema)

    rows = [file.rows for file in files]
    known = [count for count in rows if count is not None]
    return SourceStream(schema, sum(known) if len(known) == len(rows) else None, batches)


def _opened(
    sources: Sequence[str], found: Sequence[Path], kind: SourceFormat, options: ReadOptions
) -> tuple[Sequence[SourceFile], list[dict[str, pa.Scalar]]]:
    """Return the opened sources, and the columns that have one value in each of them."""
    if kind is SourceFormat.IMAGES:
        _check_not_text(kind, options)
        folders = open_images(sources, options)
        return folders, [{} for _ in folders]
    if kind is SourceFormat.HUGGINGFACE:
        _check_not_text(kind, options)
        shards = [file for file in found if format_of(file) is SourceFormat.PARQUET]
        if not shards:
            raise InvalidInputError(f"{', '.join(sources)}: no Parquet files")
        opened = open_arrow_files(shards, SourceFormat.PARQUET)
        own = next((file.name for file in opened if SPLIT in file.schema.names), None)
        if own is not None:
            raise SchemaError(f"{own} has a column {SPLIT!r}, too; import the files with --format parquet")
        return opened, splits_of(shards)
    return _open(found, kind, options), partition_columns(found, options)


def _check_not_text(kind: SourceFormat, options: ReadOptions) -> None:
    if options.delimiter is not None or options.null_values:
        raise InvalidInputError(f"--delimiter and --null-values are for CSV files, not for {kind.value}")


def _open(files: Sequence[Path], kind: SourceFormat, options: ReadOptions) -> Sequence[SourceFile]:
    if kind in (SourceFormat.CSV, SourceFormat.TSV):
        return open_text_files(files, kind, options)
    _check_not_text(kind, options)
    if kind in (SourceFormat.JSON, SourceFormat.NDJSON):
        return open_json_files(files, options)
    return open_arrow_files(files, kind)


def _combined(files: Sequence[SourceFile], options: ReadOptions) -> pa.Schema:
    """Return the columns of all files, with types that hold the values of all."""
    for file in files:
        twice = next((name for name in file.schema.names if file.schema.names.count(name) > 1), None)
        if twice is not None:
            raise SchemaError(f"{file.name} has the column {twice!r} twice")
    if not options.union:
        _check_same_columns(files, options.columns)
    fields = _unified(files, options)
    typed = [field.with_type(options.types.get(field.name, field.type)) for field in fields]
    return pa.schema(typed, metadata=files[0].schema.metadata)


def _unified(files: Sequence[SourceFile], options: ReadOptions) -> pa.Schema:
    schema = pa.schema([])
    for file in files:
        own = pa.schema([field for field in file.schema if options.columns is None or field.name in options.columns])
        if options.strict:
            _check_same_types(files[0], file)
        try:
            schema = pa.unify_schemas([schema, own], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise SchemaError(f"cannot combine {file.name} with the files before it: {error}") from error
    return schema


def _check_same_columns(files: Sequence[SourceFile], columns: Sequence[str] | None) -> None:
    first = files[0]
    wanted = set(first.schema.names)
    for file in files[1:]:
        names = set(file.schema.names)
        for one, other, missing in ((file, first, wanted - names), (first, file, names - wanted)):
            missing = missing if columns is None else missing & set(columns)
            if missing:
                raise SchemaError(
                    f"{one.name} has no column {', '.join(map(repr, sorted(missing)))}, which {other.name} has; import "
                    "both with --union (values that are missing become null), or choose columns with --columns"
                )


def _check_same_types(first: SourceFile, other: SourceFile) -> None:
    for field in other.schema:
        position = first.schema.get_field_index(field.name)
        if position >= 0 and first.schema.field(position).type != field.type:
            raise SchemaError(
                f"column {field.name!r} is {first.schema.field(position).type} in {first.name} and {field.type} in "
                f"{other.name}; leave out --strict to combine them, or give it one type with --types"
            )


def _with_constants(
    schema: pa.Schema, files: Sequence[SourceFile], constants: Sequence[Mapping[str, pa.Scalar]]
) -> pa.Schema:
    for name, value in constants[0].items():
        for file in files:
            if name in file.schema.names:
                raise SchemaError(
                    f"{file.name} has a column {name!r}, and is in a directory {name}=...; import it with "
                    "--no-partitions to keep the column of the file"
                )
        schema = schema.append(pa.field(name, value.type))
    return schema


def _check_known(names: Sequence[str], chosen: Iterable[str], option: str) -> None:
    for name in chosen:
        if name not in names:
            raise FieldNotFoundError(f"{option}: the sources have no column {name!r}{nearest_name_hint(name, names)}")


def _fitted(file: SourceFile, constants: Mapping[str, pa.Scalar], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read a file, and give its batches the columns and types of the stream."""
    own = [field.name for field in schema if field.name in file.schema.names]
    for batch in file.batches(own):
        arrays = [_column(file, batch, constants, field) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(file: SourceFile, batch: pa.RecordBatch, constants: Mapping[str, pa.Scalar], field: pa.Field) -> pa.Array:
    if field.name in constants:
        return pa.repeat(constants[field.name], batch.num_rows)
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    values = batch.column(field.name)
    if values.type == field.type:
        return values
    try:
        return values.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(
            f"{file.name}: column {field.name!r}: {values.type} cannot be read as {field.type}: {error}"
        ) from error
