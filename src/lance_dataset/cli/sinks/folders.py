"""Folders: images as files, and the Parquet files of a data set of Hugging Face. They appear when they are complete."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import pyarrow as pa

from lance_dataset.cli.output import json_value
from lance_dataset.cli.sources.huggingface import FEATURES, SPLIT
from lance_dataset.cli.sources.images import FILE_NAME, IMAGE, LABEL
from lance_dataset.errors import AlreadyExistsError, InvalidInputError, SchemaError, StorageError
from lance_dataset.reports.cells import python_values

__all__ = ["write_huggingface", "write_images"]

_Batches: TypeAlias = Iterable[pa.RecordBatch]
#: Bytes of rows of a Parquet file, as Hugging Face cuts them.
_SHARD_BYTES = 500_000_000
_MOST_SPLITS = 100
_METADATA = "metadata.jsonl"
_SPLIT_NAME = re.compile(r"\w+(\.\w+)*")
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"GIF8", ".gif"),
    (b"BM", ".bmp"),
    (b"II*\x00", ".tiff"),
    (b"MM\x00*", ".tiff"),
)


@contextmanager
def _new_folder(target: str) -> Iterator[Path]:
    """Create a folder that gets its name at the end of the block, and is removed if that raises."""
    if os.path.lexists(target):
        raise AlreadyExistsError(f"{target} exists already; remove it first, since folders are not replaced")
    partial = Path(f"{os.path.normpath(target)}.partial")
    if partial.exists():
        raise AlreadyExistsError(f"{partial} is left from a conversion that was ended; remove it first")
    partial.mkdir(parents=True)
    try:
        yield partial
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial)
        raise


# -- images ------------------------------------------------------------------------------------------------------------


def write_images(target: str, schema: pa.Schema, batches: _Batches) -> None:
    """Write a file for the image of each row.

    The names are those of the column ``file_name``; without it they are row numbers, below a folder with the name of
    the ``label``. Other columns, and labels that are not the names of folders, go to ``metadata.jsonl``, as Hugging
    Face has it.

    Raises
    ------
    AlreadyExistsError
        The folder exists.
    SchemaError
        There is no column of images.
    InvalidInputError
        A row has no image, or a name that leads out of the folder or that another row has.
    """
    column = _image_column(schema)
    others = [name for name in schema.names if name != column]
    noted = bool(others)
    described = bool(set(others) - {FILE_NAME, LABEL})
    row = 0
    with _new_folder(target) as folder, ExitStack() as opened:
        notes = opened.enter_context(open(folder / _METADATA, "wb")) if noted else None
        for batch in batches:
            values = {name: python_values(batch.column(name)) for name in others}
            for position, image in enumerate(_image_bytes(batch.column(column))):
                facts = {name: column[position] for name, column in values.items()}
                if image is None:
                    raise InvalidInputError(
                        f'row {row} has no image; leave such rows out with --filter "... is not null"'
                    )
                name = _file_name(facts, row, image)
                _write_new(folder / name, image, row)
                if notes is not None:
                    line = json.dumps({FILE_NAME: name, **{k: json_value(facts[k]) for k in others if k != FILE_NAME}})
                    notes.write(f"{line}\n".encode())
                described = described or not _is_told(facts.get(LABEL), name)
                row += 1
        if notes is not None and not described:
            notes.close()
            (folder / _METADATA).unlink()


def _image_column(schema: pa.Schema) -> str:
    names = [field.name for field in schema if _has_bytes(field.type)]
    if IMAGE in names:
        return IMAGE
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise SchemaError(f"images are written from one column of bytes; there are: {found}; choose it with --columns")
    return names[0]


def _has_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _has_bytes(kind.field("bytes").type)
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)


def _image_bytes(column: pa.Array) -> list[bytes | None]:
    if not pa.types.is_struct(column.type):
        found: list[bytes | None] = column.to_pylist()
        return found
    return [None if value is None else value["bytes"] for value in column.to_pylist()]


def _file_name(facts: dict[str, Any], row: int, image: bytes) -> str:
    """Return the path of an image below the folder."""
    if FILE_NAME not in facts:
        label = facts.get(LABEL)
        name = f"{row:08d}{_suffix(image)}"
        given = name if label is None else f"{label}/{name}"
    else:
        given = facts[FILE_NAME]
    path = PurePosixPath(given) if isinstance(given, str) else PurePosixPath()
    unsafe = path.is_absolute() or ".." in path.parts or not path.parts or any(each in str(given) for each in "\\:\0")
    if unsafe or path.name == _METADATA:
        raise InvalidInputError(f"row {row}: {given!r} is not the name of a file below the folder")
    return path.as_posix()


def _is_told(label: object, name: str) -> bool:
    """Return whether the folder of an image has the name of its label."""
    return PurePosixPath(name).parent.name == ("" if label is None else str(label))


def _suffix(image: bytes) -> str:
    if image[:4] == b"RIFF" and image[8:12] == b"WEBP":
        return ".webp"
    return next((suffix for magic, suffix in _MAGIC if image.startswith(magic)), ".bin")


def _write_new(path: Path, image: bytes, row: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as opened:
            opened.write(image)
    except (FileExistsError, NotADirectoryError):
        raise InvalidInputError(f"row {row}: an earlier row has the file name {path.name!r}, too") from None
    except OSError as error:
        raise StorageError(f"row {row}: {path.name!r} cannot be written: {error.strerror}") from error


# -- Parquet files of Hugging Face -------------------------------------------------------------------------------------


class _Split:
    """The Parquet files of a split, which know their number only at the end."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self._folder = folder
        self._name = name
        self._schema = schema
        self._bytes = 0
        self._files: list[Path] = []
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        import pyarrow.parquet

        if self._writer is None or self._bytes >= _SHARD_BYTES:
            self.close()
            self._files.append(self._folder / f"{self._name}-{len(self._files):05d}.parquet")
            self._writer = pyarrow.parquet.ParquetWriter(self._files[-1], self._schema)
            self._bytes = 0
        self._writer.write_batch(batch)
        self._bytes += batch.get_total_buffer_size()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def finish(self) -> None:
        self.close()
        for file in self._files:
            file.rename(file.with_name(f"{file.stem}-of-{len(self._files):05d}.parquet"))


def write_huggingface(target: str, schema: pa.Schema, batches: _Batches) -> None:
    """Write the Parquet files of a data set: ``data/SPLIT-00000-of-00001.parquet``.

    The splits are the values of the column ``split``; without it, all rows are ``train``.

    Raises
    ------
    AlreadyExistsError
        The folder exists.
    InvalidInputError
        A split is null or has no valid name, or there are more than 100.
    """
    kept = [name for name in schema.names if name != SPLIT]
    written = _with_known_features(pa.schema([schema.field(name) for name in kept], schema.metadata))
    splits: dict[str, _Split] = {}
    with _new_folder(target) as folder, ExitStack() as stack:
        data = folder / "data"
        data.mkdir()
        for batch in batches:
            for name, part in _by_split(batch):
                if name not in splits:
                    _check_split(name, len(splits))
                    splits[name] = _Split(data, name, written)
                    stack.callback(splits[name].close)
                splits[name].write(part.select(kept).replace_schema_metadata(written.metadata))
        if not splits:
            splits["train"] = _Split(data, "train", written)
            splits["train"].write(pa.RecordBatch.from_pylist([], schema=written))
        for split in splits.values():
            split.finish()


def _by_split(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    import pyarrow.compute as pc

    if SPLIT not in batch.schema.names:
        yield "train", batch
        return
    values = batch.column(SPLIT)
    for name in pc.unique(values).to_pylist():
        _check_split(name, 0)
        yield name, batch.filter(pc.equal(values, name))


def _check_split(name: object, known: int) -> None:
    if not isinstance(name, str) or not _SPLIT_NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} is not a name of a split: letters, digits, underscores and dots")
    if known >= _MOST_SPLITS:
        raise InvalidInputError(f"the column {SPLIT!r} has more than {_MOST_SPLITS} values, which become files each")


def _with_known_features(schema: pa.Schema) -> pa.Schema:
    """Keep what Hugging Face knows of the columns that are written; if it does not know all of them, nothing."""
    metadata = dict(schema.metadata or {})
    try:
        info = json.loads(metadata.get(FEATURES, b"{}"))
        features = info["info"]["features"]
        info["info"]["features"] = {name: features[name] for name in schema.names}
        metadata[FEATURES] = json.dumps(info).encode()
    except (ValueError, KeyError, TypeError):
        metadata.pop(FEATURES, None)
    return schema.with_metadata(metadata)
