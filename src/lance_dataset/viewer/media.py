"""Bytes of binary and blob columns: images, audio, video and PDF for the page, everything else as a download."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lance_dataset import LanceDataset
from lance_dataset.errors import InvalidInputError
from lance_dataset.reports.columns import ColumnKind, column_kind, quoted
from lance_dataset.viewer.parameters import Parameters
from lance_dataset.viewer.source import Source

__all__ = ["Content", "content", "media_type"]

#: Bytes of one answer; browsers ask for the rest of a video by ranges.
_MOST_BYTES = 16 << 20
_SNIFFED = 32
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_ISO_BRANDS = {b"avif": "image/avif", b"avis": "image/avif", b"M4A ": "audio/mp4"}
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
)
UNKNOWN_MEDIA = "application/octet-stream"


@dataclass(frozen=True)
class Content:
    """Part of a value.

    Attributes
    ----------
    data
        Its bytes.
    start, size
        Where they begin, and the size of the whole value.
    type
        Media type of the value, by its first bytes.
    partial
        Whether the request named a range, or the value is too large for one answer.
    """

    data: bytes
    start: int
    size: int
    type: str
    partial: bool


def media_type(head: bytes) -> str:
    """Return the media type of a value that begins with these bytes; a browser runs no script in any of them."""
    for magic, found in _MAGIC:
        if head.startswith(magic):
            return found
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], UNKNOWN_MEDIA)
    if head[4:8] == b"ftyp":
        return _ISO_BRANDS.get(head[8:12], "video/mp4")
    return UNKNOWN_MEDIA


def content(source: Source, given: Parameters, wanted: str | None) -> Content | None:
    """Return the bytes of a value, or the range of them that a header names; None for a null.

    Raises
    ------
    InvalidInputError
        The column has no bytes, the range is none of the value, or the value is not the small image that is wanted.
    """
    found = _content(source, given, wanted)
    most = given.integer("most", 0)
    if most and found is not None and (found.size > most or not found.type.startswith("image/")):
        raise InvalidInputError(
            f"the value, {found.size:,} bytes of {found.type}, is not an image of at most {most:,} bytes"
        )
    return found


def _content(source: Source, given: Parameters, wanted: str | None) -> Content | None:
    dataset = source.dataset(given.text("version"))
    field = source.column(dataset, given.integer("column"))
    kind = column_kind(field)
    row = given.integer("row")
    if kind is ColumnKind.BLOB:
        return _blob(dataset, field.name, row, wanted)
    if kind is not ColumnKind.BINARY:
        raise InvalidInputError(f"the column {field.name!r} has no binary values")
    value = dataset.take([row], columns=[quoted(field.name)]).column(0)[0].as_py()
    if value is None:
        return None
    start, stop, partial = _bounds(wanted, len(value))
    return Content(value[start:stop], start, len(value), media_type(value[:_SNIFFED]), partial)


def _blob(dataset: LanceDataset, column: str, row: int, wanted: str | None) -> Content | None:
    found = dataset.take_blobs(column, indices=[row])
    opened = found[0] if found else None
    if opened is None:
        return None
    with opened:
        size = opened.size()
        start, stop, partial = _bounds(wanted, size)
        head = opened.read(min(size, _SNIFFED))
        opened.seek(start)
        return Content(opened.read(stop - start), start, size, media_type(head), partial)


def _bounds(wanted: str | None, size: int) -> tuple[int, int, bool]:
    match = None if wanted is None else _RANGE.fullmatch(wanted.strip())
    if match is None or match.group(0) == "bytes=-":
        return 0, min(size, _MOST_BYTES), size > _MOST_BYTES
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    stop = min(int(last) + 1, size) if first and last else size
    if start >= stop:
        raise InvalidInputError(f"the range {wanted} is none of a value of {size:,} bytes")
    return start, min(stop, start + _MOST_BYTES), True
