"""CSV and TSV files. They are read twice: once to find the types of the columns, once for the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from lance_dataset.cli.sources.files import SourceFormat
from lance_dataset.cli.sources.options import ReadOptions
from lance_dataset.cli.sources.text_types import LookFinder, TypeFinder, convert, first_misfit, is_read_from_text
from lance_dataset.errors import InvalidInputError

__all__ = ["TextFile", "open_text_files"]

_BLOCK_BYTES = 8 << 20
_TEXT = pa.string()


@dataclass(frozen=True)
class TextFile:
    """A CSV file, whose types and number of rows are known. Columns that were not asked for appear as text."""

    path: Path
    delimiter: str
    null_values: tuple[str, ...]
    schema: pa.Schema
    rows: int

    @property
    def name(self) -> str:
        """Path, for messages."""
        return str(self.path)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read columns."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        row = 0
        for batch in _read(self.path, self.delimiter, self.null_values, columns):
            arrays = [_converted(self.path, field, batch.column(field.name), row) for field in schema]
            row += batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def open_text_files(files: Sequence[Path], kind: SourceFormat, options: ReadOptions) -> list[TextFile]:
    """Find the types of the columns of files, each column from the values of all files.

    Types that are told are checked. A column has the type that all its values have, and is text if there is none.

    Raises
    ------
    InvalidInputError
        A file is not a CSV file, or a value does not have the type of its column: the file and the row are named. With
        `strict`, values of a column have several types.
    """
    delimiter = options.delimiter or ("\t" if kind is SourceFormat.TSV else ",")
    if len(delimiter) != 1:
        raise InvalidInputError(f"--delimiter: {delimiter!r} is not one character")
    told = {name: kind for name, kind in options.known_types.items() if is_read_from_text(kind)} | dict(options.types)
    for name, kind_ in options.types.items():
        if not is_read_from_text(kind_):
            raise InvalidInputError(f"--types: column {name!r}: text cannot be read as {kind_}")
    finders: dict[str, TypeFinder] = {}
    looks: dict[str, LookFinder] = {}
    found = [_scan(file, delimiter, options, told, finders, looks) for file in files]
    kinds = told | {name: finder.kind for name, finder in finders.items()}

    def schema(names: list[str]) -> pa.Schema:
        return pa.schema([(name, kinds.get(name, _TEXT)) for name in names])

    return [
        TextFile(file, delimiter, options.null_values, schema(names), rows)
        for file, (names, rows) in zip(files, found, strict=True)
    ]


def _scan(
    path: Path,
    delimiter: str,
    options: ReadOptions,
    told: dict[str, pa.DataType],
    finders: dict[str, TypeFinder],
    looks: dict[str, LookFinder],
) -> tuple[list[str], int]:
    """Note the types of the values of a file. Return the names of its columns and the number of its rows."""
    names = _names(path, delimiter, told=options.delimiter is not None)
    wanted = names if options.columns is None else [name for name in options.columns if name in names]
    rows = 0
    for batch in _read(path, delimiter, options.null_values, wanted):
        for name in wanted:
            values = batch.column(name)
            if name in told:
                _converted(path, pa.field(name, told[name]), values, rows)
                continue
            finders.setdefault(name, TypeFinder()).add(values)
            if options.strict:
                _check_looks(path, name, values, rows, looks.setdefault(name, LookFinder()))
        rows += batch.num_rows
    for name in wanted:
        if name not in told:
            finders.setdefault(name, TypeFinder())
    return names, rows


def _check_looks(path: Path, name: str, values: pa.Array, row: int, looks: LookFinder) -> None:
    position = looks.add(values)
    if position is not None:
        raise InvalidInputError(
            f"{path}: row {row + position + 1}: column {name!r}: {values[position].as_py()!r} does not look like the "
            f"values before, which are {looks.look}; import it as text with --types {name}=string, or name what stands "
            "for null with --null-values"
        )


def _converted(path: Path, field: pa.Field, values: pa.Array, row: int) -> pa.Array:
    try:
        return convert(values, field.type)
    except pa.ArrowInvalid as error:
        position = first_misfit(values, field.type)
        raise InvalidInputError(
            f"{path}: row {row + position + 1}: column {field.name!r}: {values[position].as_py()!r} is not a value of "
            f"type {field.type}; give the column another type with --types, or name what stands for null with "
            "--null-values"
        ) from error


# -- parsing -----------------------------------------------------------------------------------------------------------


def _names(path: Path, delimiter: str, *, told: bool) -> list[str]:
    """Return the names in the header."""
    with _opened(path, delimiter, None, []) as reader:
        names = reader.schema.names
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInputError(f"{path}: the header has the column {twice[0]!r} twice")
    other = next((each for each in ";\t|," if each != delimiter and each in names[0]), None)
    if other is not None and len(names) == 1 and not told:
        raise InvalidInputError(
            f"{path}: the header has the only column {names[0]!r}; if values are separated by {other!r}, set "
            f"--delimiter {other!r}, else {delimiter!r}"
        )
    return names


def _read(path: Path, delimiter: str, null_values: tuple[str, ...], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read columns as strings. Empty values without quotes are null, and so are those in `null_values`."""
    bad: list[pa.csv.InvalidRow] = []
    nulls = pa.array(null_values, _TEXT)
    rows = 0
    try:
        with _opened(path, delimiter, columns, bad) as reader:
            for batch in reader:
                rows += batch.num_rows
                yield _with_nulls(batch, nulls) if null_values else batch
    except _BROKEN as error:
        raise _explained(path, error, bad, rows) from error


def _opened(
    path: Path, delimiter: str, columns: Sequence[str] | None, bad: list[pa.csv.InvalidRow]
) -> pa.csv.CSVStreamingReader:
    def note(row: pa.csv.InvalidRow) -> str:
        bad.append(row)
        return "error"

    try:
        return pa.csv.open_csv(
            pa.input_stream(str(path), compression="detect"),
            read_options=pa.csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(columns or (), _TEXT),
                include_columns=list(columns or ()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except _BROKEN as error:
        raise _explained(path, error, bad, 0) from error


#: Errors of the parser, and of streams of compressed files.
_BROKEN = (pa.ArrowInvalid, OSError)


def _explained(path: Path, error: Exception, bad: Sequence[pa.csv.InvalidRow], rows: int) -> Exception:
    """Return an error that names the file, and the row if it is known."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    if bad:
        row = f"row {bad[0].number - 1}" if bad[0].number else f"after row {rows:,}"
        return InvalidInputError(
            f"{path}: {row}: expected {bad[0].expected_columns} values, found {bad[0].actual_columns}: "
            f"{bad[0].text[:80]!r}"
        )
    if "straddl" in str(error):
        return InvalidInputError(f"{path}: after row {rows:,}: a row has more than {_BLOCK_BYTES >> 20} MiB")
    return InvalidInputError(f"{path}: {f'after row {rows:,}: ' if rows else ''}{error}")


def _with_nulls(batch: pa.RecordBatch, null_values: pa.Array) -> pa.RecordBatch:
    arrays = [pc.if_else(pc.is_in(column, null_values), pa.scalar(None, _TEXT), column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
