"""Input of `import`: Parquet, CSV and Arrow files, as one stream of batches."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.fs
import typer

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, nearest_name_hint

__all__ = ["SourceFormat", "SourceStream", "find_files", "is_dataset", "open_files", "open_sources"]

_ARROW_FILE_MAGIC = b"ARROW1"
# Batches that Arrow reads ahead of the writer. Arrow's default (16, from 4 files) uses more memory without benefit.
_READAHEAD = {"batch_readahead": 4, "fragment_readahead": 1}


class SourceFormat(str, Enum):
    """Format of files to import."""

    PARQUET = "parquet"
    CSV = "csv"
    TSV = "tsv"
    ARROW = "arrow"


_SUFFIXES = {
    ".parquet": SourceFormat.PARQUET,
    ".pq": SourceFormat.PARQUET,
    ".csv": SourceFormat.CSV,
    ".csv.gz": SourceFormat.CSV,
    ".tsv": SourceFormat.TSV,
    ".tsv.gz": SourceFormat.TSV,
    ".arrow": SourceFormat.ARROW,
    ".arrows": SourceFormat.ARROW,
    ".feather": SourceFormat.ARROW,
    ".ipc": SourceFormat.ARROW,
}


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


def _format_of(path: Path) -> SourceFormat | None:
    name = path.name.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), None)


def _files_below(directory: Path, every: bool) -> list[Path]:
    """Return files of a directory tree that look like data, or all with `every`; hidden ones (``.x``, ``_x``) never."""

    def hidden(path: Path) -> bool:
        return any(part.startswith((".", "_")) for part in path.relative_to(directory).parts)

    candidates = (path for path in sorted(directory.rglob("*")) if path.is_file() and not hidden(path))
    return [path for path in candidates if every or _format_of(path) is not None]


def is_dataset(source: str) -> bool:
    """Return True if a source is a dataset, not files; only datasets may lie outside the local file system."""
    return "://" in source or (Path(source).expanduser() / "_versions").is_dir()


def find_files(sources: Sequence[str], kind: SourceFormat | None = None) -> list[Path]:
    """Return the files that file names, directory names and glob patterns refer to, in that order.

    Raises
    ------
    InvalidInputError
        A source does not exist, matches nothing, or is not a local path.
    """
    files: list[Path] = []
    for source in sources:
        if "://" in source:
            raise InvalidInputError(f"{source}: only local files can be imported; download it first")
        path = Path(source).expanduser()
        if path.is_dir():
            found = _files_below(path, every=kind is not None)
        elif path.exists():
            found = [path]
        elif glob.has_magic(source):
            found = [match for name in sorted(glob.glob(str(path), recursive=True)) if (match := Path(name)).is_file()]
        else:
            raise InvalidInputError(f"{source}: no such file or directory")
        if not found:
            raise InvalidInputError(f"{source}: no files to import (known suffixes: {', '.join(sorted(_SUFFIXES))})")
        files.extend(found)
    return files


def _common_format(files: Sequence[Path]) -> SourceFormat:
    by_format: dict[SourceFormat, Path] = {}
    for file in files:
        kind = _format_of(file)
        if kind is None:
            raise InvalidInputError(f"{file}: unknown format; set it with --format")
        by_format.setdefault(kind, file)
    if len(by_format) > 1:
        examples = ", ".join(f"{kind.value} ({file})" for kind, file in by_format.items())
        raise InvalidInputError(f"the sources have several formats: {examples}; import them one format at a time")
    return next(iter(by_format))


def open_files(
    files: Sequence[Path],
    kind: SourceFormat | None = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    types: pa.Schema | None = None,
) -> SourceStream:
    """Open files of one format, without reading their rows yet.

    Parameters
    ----------
    kind
        Format of the files; by default, derived from their names.
    columns
        Columns to read, in this order; by default all.
    delimiter
        Separator of the values in a CSV file; by default a comma, or a tab in TSV files.
    types
        Columns of a dataset. Columns of CSV files get the same types where text can be parsed as such; other types
        are inferred.

    Raises
    ------
    InvalidInputError
        Formats are unknown or mixed.
    SchemaError
        The files do not share a schema.
    FieldNotFoundError
        None of the files has one of the columns.
    """
    kind = kind or _common_format(files)
    if kind is SourceFormat.ARROW:
        streams = [file for file in files if not _is_arrow_file(file)]
        if len(streams) == len(files):
            return _open_arrow_streams(files, columns)
        if streams:
            raise InvalidInputError(
                f"{streams[0]} is an Arrow stream (or no Arrow data at all) while other sources are Arrow files; "
                "import them one at a time"
            )
    return _open_dataset(files, _file_format(kind, delimiter, types), columns, countable=kind not in _TEXT)


def open_sources(
    sources: Sequence[str],
    format_name: str | None,
    columns: Sequence[str] | None,
    delimiter: str | None,
    types: pa.Schema | None = None,
) -> SourceStream:
    """Open the sources named on the command line; see `find_files` and `open_files`."""
    kind = None if format_name is None else _format_named(format_name)
    return open_files(find_files(sources, kind), kind, columns, delimiter, types)


def _format_named(name: str) -> SourceFormat:
    try:
        return SourceFormat(name)
    except ValueError:
        known = ", ".join(kind.value for kind in SourceFormat)
        raise typer.BadParameter(f"{name!r} is not one of {known}", param_hint="--format") from None


_TEXT = (SourceFormat.CSV, SourceFormat.TSV)


def _file_format(kind: SourceFormat, delimiter: str | None, types: pa.Schema | None) -> pa.dataset.FileFormat:
    if kind in _TEXT:
        separator = delimiter or ("\t" if kind is SourceFormat.TSV else ",")
        known = {field.name: field.type for field in types or () if _is_read_from_text(field.type)}
        return pa.dataset.CsvFileFormat(
            parse_options=pa.csv.ParseOptions(delimiter=separator),
            convert_options=pa.csv.ConvertOptions(column_types=known),
        )
    if kind is SourceFormat.PARQUET:
        return pa.dataset.ParquetFileFormat()
    return pa.dataset.IpcFileFormat()


def _is_read_from_text(kind: pa.DataType) -> bool:
    tests = ("integer", "float32", "float64", "boolean", "decimal128", "date", "time", "timestamp")
    texts = ("string", "large_string")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in (*tests, *texts))


def _is_arrow_file(file: Path) -> bool:
    """Return True if the file has the random access format; a stream starts with its schema instead."""
    with file.open("rb") as opened:
        return opened.read(len(_ARROW_FILE_MAGIC)) == _ARROW_FILE_MAGIC


def _open_dataset(
    files: Sequence[Path], file_format: pa.dataset.FileFormat, columns: Sequence[str] | None, *, countable: bool
) -> SourceStream:
    paths = [str(file.absolute()) for file in files]
    local = pa.fs.LocalFileSystem()
    try:
        # All files are inspected, so that a column that only a later file has is not lost.
        schema = pa.unify_schemas([file_format.inspect(path, local) for path in paths], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise SchemaError(f"cannot combine {_listed(files)} into one table: {error}") from error
    dataset = pa.dataset.dataset(paths, schema=schema, format=file_format, filesystem=local)
    _check_columns(columns, schema)
    scanner_options = {"columns": None if columns is None else list(columns), **_READAHEAD}
    return SourceStream(
        schema=schema if columns is None else pa.schema([schema.field(name) for name in columns], schema.metadata),
        rows=dataset.count_rows() if countable else None,
        batches=lambda: dataset.scanner(**scanner_options).to_batches(),
    )


def _stream_schema(file: Path) -> pa.Schema:
    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_stream(source).schema


def _open_arrow_streams(files: Sequence[Path], columns: Sequence[str] | None) -> SourceStream:
    schema = _stream_schema(files[0])
    for file in files[1:]:
        if not _stream_schema(file).equals(schema):
            raise SchemaError(
                f"{file} and {files[0]} have different schemas, and streams are imported together only if equal"
            )
    _check_columns(columns, schema)

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            with pa.memory_map(str(file)) as source:
                for batch in pa.ipc.open_stream(source):
                    yield batch if columns is None else batch.select(list(columns))

    chosen = schema if columns is None else pa.schema([schema.field(name) for name in columns], schema.metadata)
    return SourceStream(schema=chosen, rows=None, batches=batches)


def _check_columns(columns: Sequence[str] | None, schema: pa.Schema) -> None:
    for name in columns or ():
        if name not in schema.names:
            raise FieldNotFoundError(f"the sources have no column {name!r}{nearest_name_hint(name, schema.names)}")


def _listed(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
