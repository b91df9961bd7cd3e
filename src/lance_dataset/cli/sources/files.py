"""Search for the files to import, and their formats."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from lance_dataset.errors import InvalidInputError

__all__ = ["SourceFormat", "common_format", "find_files", "format_of", "is_dataset", "is_image"]


class SourceFormat(str, Enum):
    """Format of files to import."""

    PARQUET = "parquet"
    CSV = "csv"
    TSV = "tsv"
    ARROW = "arrow"
    JSON = "json"
    NDJSON = "ndjson"
    IMAGES = "images"
    HUGGINGFACE = "huggingface"


_SUFFIXES = {
    ".parquet": SourceFormat.PARQUET,
    ".pq": SourceFormat.PARQUET,
    ".csv": SourceFormat.CSV,
    ".tsv": SourceFormat.TSV,
    ".arrow": SourceFormat.ARROW,
    ".arrows": SourceFormat.ARROW,
    ".feather": SourceFormat.ARROW,
    ".ipc": SourceFormat.ARROW,
    ".json": SourceFormat.JSON,
    ".ndjson": SourceFormat.NDJSON,
    ".jsonl": SourceFormat.NDJSON,
}
_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".avif", ".heic", ".svg"}
#: Formats of text, which may be compressed as a whole.
_COMPRESSIBLE = {SourceFormat.CSV, SourceFormat.TSV, SourceFormat.JSON, SourceFormat.NDJSON}
_COMPRESSIONS = (".gz", ".zst", ".bz2")


def format_of(path: Path) -> SourceFormat | None:
    """Return the format that the name of a file stands for."""
    name = path.name.lower()
    stem = next((name.removesuffix(suffix) for suffix in _COMPRESSIONS if name.endswith(suffix)), name)
    found = next((kind for suffix, kind in _SUFFIXES.items() if stem.endswith(suffix)), None)
    if found is None and is_image(path):
        return SourceFormat.IMAGES
    return found if stem == name or found in _COMPRESSIBLE else None


def is_image(path: Path) -> bool:
    """Return whether the name of a file is that of an image."""
    return path.suffix.lower() in _IMAGE_SUFFIXES


def is_dataset(source: str) -> bool:
    """Return True if a source is a dataset, not files; only datasets may lie outside the local file system."""
    return "://" in source or (Path(source).expanduser() / "_versions").is_dir()


def find_files(sources: Sequence[str], *, any_name: bool = False) -> list[Path]:
    """Return the files that file names, directory names and glob patterns refer to, in that order.

    Parameters
    ----------
    sources
        Local paths and patterns. Directories are searched, except for names that begin with ``.`` or ``_``.
    any_name
        True for all files of directories; by default only those whose names end like those of a known format, and
        images only where there are no others.

    Raises
    ------
    InvalidInputError
        A source does not exist, matches nothing, or is not a local path.
    """
    files: list[Path] = []
    for source in sources:
        found = _files_of(source, any_name)
        if not found:
            raise InvalidInputError(f"{source}: no files to import (known suffixes: {', '.join(sorted(_SUFFIXES))})")
        files.extend(found)
    return files


def _files_of(source: str, any_name: bool) -> list[Path]:
    if "://" in source:
        raise InvalidInputError(f"{source}: only local files can be imported; download it first")
    path = Path(source).expanduser()
    if path.is_dir():
        return _files_below(path, any_name)
    if path.exists():
        return [path]
    if glob.has_magic(source):
        return [match for name in sorted(glob.glob(str(path), recursive=True)) if (match := Path(name)).is_file()]
    raise InvalidInputError(f"{source}: no such file or directory")


def _files_below(directory: Path, any_name: bool) -> list[Path]:
    def hidden(path: Path) -> bool:
        return any(part.startswith((".", "_")) for part in path.relative_to(directory).parts)

    candidates = (path for path in sorted(directory.rglob("*")) if path.is_file() and not hidden(path))
    if any_name:
        return list(candidates)
    known = [path for path in candidates if format_of(path) is not None]
    return [path for path in known if not is_image(path)] or known


def common_format(files: Sequence[Path]) -> SourceFormat:
    """Return the format of files by their names.

    Raises
    ------
    InvalidInputError
        A name is of no known format, or the files have several formats.
    """
    by_format: dict[SourceFormat, Path] = {}
    for file in files:
        kind = format_of(file)
        if kind is None:
            raise InvalidInputError(f"{file}: unknown format; set it with --format")
        by_format.setdefault(kind, file)
    if len(by_format) > 1:
        examples = ", ".join(f"{kind.value} ({file})" for kind, file in by_format.items())
        raise InvalidInputError(f"the sources have several formats: {examples}; import them one format at a time")
    return next(iter(by_format))
