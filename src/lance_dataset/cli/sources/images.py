"""Folders of images: one row for each file, with the name of its folder as label, and columns of a metadata file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.cli.sources.files import SourceFormat, find_files, is_image
from lance_dataset.cli.sources.json_lines import open_json_files
from lance_dataset.cli.sources.options import ReadOptions
from lance_dataset.cli.sources.text import open_text_files
from lance_dataset.errors import InvalidInputError, SchemaError

__all__ = ["FILE_NAME", "IMAGE", "LABEL", "ImageFolder", "open_images"]

#: Columns: path below the folder, name of the folder that the file is in, and the bytes of the file.
FILE_NAME, LABEL, IMAGE = "file_name", "label", "image"
_BATCH_BYTES = 32 << 20
_BATCH_ROWS = 1024
_METADATA = ("metadata.csv", "metadata.jsonl")


@dataclass(frozen=True)
class ImageFolder:
    """Images of one source."""

    root: Path
    files: tuple[Path, ...]
    facts: pa.Table | None
    labels: bool

    @property
    def name(self) -> str:
        """Path, for messages."""
        return str(self.root)

    @property
    def schema(self) -> pa.Schema:
        """Columns: ``file_name``, ``label`` if there are folders, those of the metadata file, ``image``."""
        fields = [pa.field(FILE_NAME, pa.string())]
        if self.labels:
            fields.append(pa.field(LABEL, pa.string()))
        if self.facts is not None:
            fields += [field for field in self.facts.schema if field.name != FILE_NAME]
        return pa.schema([*fields, pa.field(IMAGE, pa.binary())])

    @property
    def rows(self) -> int:
        """Number of images."""
        return len(self.files)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read columns; the files only if the images are wanted."""
        files: list[Path] = []
        images: list[bytes] = []
        size = 0
        for file in self.files:
            files.append(file)
            if IMAGE in columns:
                images.append(file.read_bytes())
                size += len(images[-1])
            if size >= _BATCH_BYTES or len(files) >= _BATCH_ROWS:
                yield self._batch(files, images, columns)
                files, images, size = [], [], 0
        if files:
            yield self._batch(files, images, columns)

    def _batch(self, files: Sequence[Path], images: Sequence[bytes], columns: Sequence[str]) -> pa.RecordBatch:
        names = [self._relative(file).as_posix() for file in files]
        found = {FILE_NAME: pa.array(names, pa.string())}
        if self.labels:
            found[LABEL] = pa.array([_label(self._relative(file)) for file in files], pa.string())
        if IMAGE in columns:
            found[IMAGE] = pa.array(images, pa.binary())
        if self.facts is not None:
            places = pc.index_in(found[FILE_NAME], self.facts[FILE_NAME].combine_chunks())
            for name in set(columns) - set(found):
                found[name] = self.facts[name].combine_chunks().take(places)
        schema = self.schema
        return pa.RecordBatch.from_arrays(
            [found[name] for name in columns], schema=pa.schema([schema.field(name) for name in columns])
        )

    def _relative(self, file: Path) -> Path:
        return file.relative_to(self.root)


def _label(relative: Path) -> str | None:
    return relative.parent.name or None


def open_images(sources: Sequence[str], options: ReadOptions) -> list[ImageFolder]:
    """Find the images of sources, without reading them.

    Raises
    ------
    InvalidInputError
        A source has no images, or a file of metadata names no files or a file twice.
    SchemaError
        A metadata file has the column ``image``.
    """
    return [_open(source, options) for source in sources]


def _open(source: str, options: ReadOptions) -> ImageFolder:
    found = [file for file in find_files([source], any_name=True) if is_image(file)]
    if not found:
        raise InvalidInputError(f"{source}: no images")
    root = Path(source).expanduser()
    if not root.is_dir():
        root = Path(*_common_parts(found))
    facts = _facts(root, options)
    labels = any(file.parent != root for file in found) and (facts is None or LABEL not in facts.schema.names)
    return ImageFolder(root, tuple(found), facts, labels)


def _common_parts(files: Sequence[Path]) -> tuple[str, ...]:
    parents = [file.parent.parts for file in files]
    shared = 0
    for level in zip(*parents, strict=False):
        if len(set(level)) > 1:
            break
        shared += 1
    return parents[0][:shared]


def _facts(root: Path, options: ReadOptions) -> pa.Table | None:
    """Read the file that describes the images of a folder, if there is one."""
    files = [root / name for name in _METADATA if (root / name).is_file()]
    if not files:
        return None
    if len(files) > 1:
        raise InvalidInputError(f"{root}: expected one of {' and '.join(_METADATA)}, not both")
    file = files[0]
    known = ReadOptions(types={k: v for k, v in options.types.items() if k not in (IMAGE, FILE_NAME)})
    read = (
        open_json_files([file], known) if file.suffix == ".jsonl" else open_text_files([file], SourceFormat.CSV, known)
    )
    opened = read[0]
    if FILE_NAME not in opened.schema.names:
        raise InvalidInputError(f"{file}: expected a column {FILE_NAME!r} with the paths of the images")
    if IMAGE in opened.schema.names:
        raise SchemaError(f"{file}: the column {IMAGE!r} is that of the images; give it another name")
    facts = pa.Table.from_batches(opened.batches(opened.schema.names), opened.schema)
    names = facts[FILE_NAME].cast(pa.string())
    if names.null_count or pc.count_distinct(names).as_py() < len(names):
        raise InvalidInputError(f"{file}: a row has no {FILE_NAME}, or the same as another")
    return facts.set_column(facts.schema.get_field_index(FILE_NAME), FILE_NAME, names)
