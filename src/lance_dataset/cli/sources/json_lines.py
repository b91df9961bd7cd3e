"""JSON files: one object a line (NDJSON), objects one after another, or one list of objects.

Files are read twice: once to find the types of the columns, once for the rows. Strings stay strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from lance_dataset.cli.sources.options import ReadOptions
from lance_dataset.cli.sources.text_types import is_read_from_text
from lance_dataset.errors import InvalidInputError

__all__ = ["JsonFile", "open_json_files"]

_BLOCK_BYTES = 8 << 20
#: Numbers that a float64 may not keep.
_LONG_NUMBER = re.compile(rb"[0-9]{16}")
_EXACT = 2**53
#: Levels of lists and objects, as columns may have them.
_DEEPEST = 128


@dataclass(frozen=True)
class JsonFile:
    """A JSON file, whose types and number of rows are known."""

    path: Path
    schema: pa.Schema
    rows: int

    @property
    def name(self) -> str:
        """Path, for messages."""
        return str(self.path)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read columns."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        for row, block in _blocks(self.path):
            yield from _parsed(self.path, row, block, schema, other_fields="ignore").to_batches()


def open_json_files(files: Sequence[Path], options: ReadOptions) -> list[JsonFile]:
    """Find the types of the columns of files.

    Raises
    ------
    InvalidInputError
        A file is not JSON, a row is not an object, values of a column have several types, or an integer does not fit
        its column: the file and the row are named.
    """
    known = {name: kind for name, kind in options.known_types.items() if is_read_from_text(kind)}
    told = known | dict(options.types)
    return [_opened(file, told, frozenset(options.types)) for file in files]


def _opened(path: Path, told: Mapping[str, pa.DataType], named: frozenset[str]) -> JsonFile:
    schema, rows = pa.schema([]), 0
    for row, block in _blocks(path):
        table = _parsed(path, row, block, pa.schema([]), other_fields="infer")
        found = pa.schema(
            [field.with_type(told.get(field.name) or _without_times(field.type)) for field in table.schema]
        )
        if not told.keys().isdisjoint(found.names):
            _parsed(path, row, block, found, other_fields="error")
        try:
            schema = pa.unify_schemas([schema, found], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise InvalidInputError(
                f"{path}: rows {row + 1:,} to {row + table.num_rows:,} have other types than the rows before: {error}"
            ) from error
        if _LONG_NUMBER.search(block):
            _check_exact(path, row, block, schema, named)
        rows += table.num_rows
    if not schema.names:
        raise InvalidInputError(f"{path}: there are no rows with values, so its columns are not known")
    return JsonFile(path, schema, rows)


def _without_times(kind: pa.DataType) -> pa.DataType:
    """Replace timestamps, which Arrow makes of strings that look like them, by strings."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_times(field.type)) for field in kind.fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_times(kind.value_type)))
    return kind


def _check_exact(path: Path, row: int, block: bytes, schema: pa.Schema, named: frozenset[str]) -> None:
    """Raise InvalidInputError if an integer would change as a float64."""
    floats = [field.name for field in schema if field.name not in named and _has_floats(field.type)]
    if not floats:
        return
    for position, line in enumerate(block.splitlines()):
        if not line.strip() or not _LONG_NUMBER.search(line):
            continue
        values = json.loads(line)
        for name in floats:
            number = next(_inexact(values.get(name), schema.field(name).type), None)
            if number is not None:
                raise InvalidInputError(
                    f"{path}: row {row + position + 1}: column {name!r}: {number} does not fit int64 or double; give "
                    "the column another type with --types, as uint64 or decimal(38, 0)"
                )


def _has_floats(kind: pa.DataType) -> bool:
    children = [kind.field(position).type for position in range(kind.num_fields)]
    return pa.types.is_floating(kind) or any(map(_has_floats, children))


def _inexact(value: Any, kind: pa.DataType) -> Iterator[int]:
    """Yield the integers of a value that its type would change."""
    if pa.types.is_floating(kind):
        if isinstance(value, int) and abs(value) > _EXACT and int(float(value)) != value:
            yield value
    elif pa.types.is_struct(kind) and isinstance(value, dict):
        for field in kind.fields:
            yield from _inexact(value.get(field.name), field.type)
    elif pa.types.is_list(kind) and isinstance(value, list):
        for each in value:
            yield from _inexact(each, kind.value_type)


# -- parsing -----------------------------------------------------------------------------------------------------------


def _parsed(path: Path, row: int, block: bytes, schema: pa.Schema, *, other_fields: str) -> pa.Table:
    """Parse lines with one object each. The first is row number `row`, counted from 0."""
    try:
        return pa.json.read_json(
            pa.BufferReader(block),
            pa.json.ReadOptions(use_threads=True, block_size=max(len(block), 1)),
            pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=other_fields),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        matched = _ROW.fullmatch(str(error))
        if matched is not None:
            raise InvalidInputError(f"{path}: row {row + int(matched[2]) + 1}: {matched[1]}") from error
        raise InvalidInputError(f"{path}: after row {row:,}: {error}") from error


_ROW = re.compile(r"(?:JSON parse error: )?(.*) in row (\d+)", re.DOTALL)


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines with one object each, and the number of rows before each."""
    rows = 0
    try:
        with pa.input_stream(str(path), compression="detect") as opened:
            lines = _lines(path, opened)
            while block := _block(lines):
                for position, line in enumerate(block):
                    if _is_deep(line):
                        raise _too_deep(path, rows + position + 1)
                yield rows, b"".join(block)
                rows += len(block)
    except OSError as error:
        if isinstance(error, InvalidInputError) or error.errno is not None:
            raise
        raise InvalidInputError(f"{path}: after row {rows:,}: {error}") from error


def _block(lines: Iterator[bytes]) -> list[bytes]:
    block, size = [], 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= _BLOCK_BYTES:
            break
    return block


def _is_deep(line: bytes) -> bool:
    """Return whether a row is nested so deeply that Arrow's parser, which calls itself, would crash."""
    if len(line) < 2 * _DEEPEST or line.count(b"{") + line.count(b"[") <= _DEEPEST:
        return False
    codes = np.frombuffer(_STRING.sub(b"", line), np.uint8)
    steps = _STEPS[codes]
    return bool(np.cumsum(steps, dtype=np.int64).max(initial=0) > _DEEPEST)


def _too_deep(path: Path, row: int) -> InvalidInputError:
    return InvalidInputError(f"{path}: row {row:,}: the values are nested more than {_DEEPEST} levels deep")


_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"{[")], _STEPS[list(b"}]")] = 1, -1


def _lines(path: Path, opened: IO[bytes]) -> Iterator[bytes]:
    """Yield one line for each row."""
    text = _text(opened)
    first = next((line for line in text if line.strip()), b"")
    if _is_object(first):
        yield first if first.endswith(b"\n") else first + b"\n"
        yield from (line if line.endswith(b"\n") else line + b"\n" for line in text if line.strip())
    elif first:
        yield from _values(path, first + b"".join(text))


def _text(opened: Any) -> Iterator[bytes]:
    """Yield lines of a stream."""
    rest = b""
    while chunk := opened.read(_BLOCK_BYTES):
        lines = (rest + bytes(chunk)).splitlines(keepends=True)
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        yield from lines
    if rest:
        yield rest


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _values(path: Path, text: bytes) -> Iterator[bytes]:
    """Yield the objects of a list, or objects that are written over several lines."""
    try:
        decoded = text.decode("utf-8-sig")
        position = _SPACE.match(decoded).end()  # type: ignore[union-attr]
        in_list = decoded[position] == "["
        position += in_list
        decoder = json.JSONDecoder()
        row = 0
        while (position := _BETWEEN.match(decoded, position).end()) < len(decoded):  # type: ignore[union-attr]
            if in_list and decoded[position] == "]":
                break
            row += 1
            value, end = decoder.raw_decode(decoded, position)
            if not isinstance(value, dict):
                raise InvalidInputError(f"{path}: row {row}: {decoded[position:end][:80]} is not an object")
            yield decoded[position:end].replace("\n", " ").replace("\r", " ").encode() + b"\n"
            position = end
    except RecursionError:
        raise _too_deep(path, row) from None
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path}: the file is not UTF-8: {error}") from error
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"{path}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error


_SPACE = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,]*")
