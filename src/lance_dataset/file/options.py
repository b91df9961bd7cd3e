"""Field metadata that set options of the writer or describe the storage of the field."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TypeVar

from lance_dataset.errors import InvalidInputError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.schema import EXTENSION_NAME, Field

__all__ = [
    "BLOB_THRESHOLDS",
    "BLOB_V2",
    "SMALLEST",
    "BinaryCompression",
    "EncodingOptions",
    "binary_compression",
    "check_not_descriptor",
    "encoding_options",
    "is_blob",
    "is_blob_descriptor",
    "is_blob_v2",
    "is_packed",
]

_PREFIX = "lance-encoding:"
#: Of Zstandard.
_HIGHEST_LEVEL = 22
_COMPRESSIONS = ("lz4", "zstd", "fsst", "none")
_DICTIONARY_COMPRESSIONS = ("lz4", "zstd", "none")
_STRUCTURES = ("miniblock", "fullzip", "sparse")
#: Key in the metadata of a field, for the encoder alone: another encoding may be used where it is smaller.
SMALLEST = "lance_dataset:smallest"
#: Name of the extension type of blob columns of version 2.
BLOB_V2 = b"lance.blob.v2"
#: Metadata with the thresholds of a blob column of version 2, in bytes, and their defaults: a value up to the first one
#: is stored in the data file, a value above the second one in a file of its own, others in files of up to the third.
BLOB_THRESHOLDS = {
    "lance-encoding:blob-inline-size-threshold": 64 << 10,
    "lance-encoding:blob-dedicated-size-threshold": 4 << 20,
    "lance-encoding:blob-pack-file-size-threshold": 1 << 30,
}
_T = TypeVar("_T")


def is_packed(field: Field) -> bool:
    """Return True if a struct is to be stored row by row."""
    packed = field.metadata.get(_PREFIX + "packed", field.metadata.get("packed", b"false"))
    return field.logical_type == "struct" and packed.lower() not in (b"false", b"0")


def is_blob(field: Field) -> bool:
    """Return True if values are stored apart from their column; only the presence of the key matters."""
    return _PREFIX + "blob" in field.metadata and not is_blob_v2(field) and not is_blob_descriptor(field)


def is_blob_v2(field: Field) -> bool:
    """Return True if the field has the blob extension type that came with 2.2."""
    return field.metadata.get(EXTENSION_NAME) == BLOB_V2


def is_blob_descriptor(field: Field) -> bool:
    """Return True if the field has the form in which files store blobs of version 2: packed locations of the values."""
    return _PREFIX + "blob" in field.metadata and is_packed(field)


def check_not_descriptor(field: Field, path: str) -> None:
    """Raise InvalidInputError for a column of descriptors, as scans return them: they mean nothing in other files."""
    if is_blob_descriptor(field):
        raise InvalidInputError(
            f"Blob v2 field {path!r} has descriptor layout; expected logical or prepared layout: pass values, as "
            'a scan with blob_handling="all_binary" returns them, or a blob_array'
        )


@dataclass(frozen=True)
class EncodingOptions:
    """The ``lance-encoding:*`` metadata of a field; None leaves the choice to the writer.

    Attributes
    ----------
    compression
        "lz4", "zstd", "fsst" or "none".
    compression_level
        Level for lz4 and zstd.
    byte_stream_split
        "on", "off" or "auto".
    rle_threshold
        Run-length encoding is used only if the number of runs is below this share of the values.
    dictionary_divisor
        A dictionary may have at most values / divisor entries.
    dictionary_size_ratio
        A dictionary page must be at most this share of the plain one.
    dictionary_compression, dictionary_compression_level
        Compression of the entries: "lz4", "zstd" or "none".
    chunk_bytes
        Target size of a chunk of variable-width values.
    structure
        "miniblock", "fullzip" or "sparse".
    smallest
        True to use another encoding where that is smaller than `compression`.
    """

    compression: str | None = None
    compression_level: int | None = None
    byte_stream_split: str = "auto"
    rle_threshold: float | None = None
    dictionary_divisor: int | None = None
    dictionary_size_ratio: float | None = None
    dictionary_compression: str | None = None
    dictionary_compression_level: int | None = None
    chunk_bytes: int | None = None
    structure: str | None = None
    smallest: bool = False


def encoding_options(field: Field) -> EncodingOptions:
    """Parse the options of a field.

    As in the reference, an invalid number is ignored with a warning, and an unknown scheme is an error.

    Raises
    ------
    InvalidInputError
        A compression scheme or structural encoding does not exist, or a ratio is out of range.
    """
    if not field.metadata:
        return _DEFAULTS
    given = {key.removeprefix(_PREFIX): value for key, value in field.metadata.items() if key.startswith(_PREFIX)}
    if not given:
        return _DEFAULTS
    reader = _Reader(field.name, given)
    return EncodingOptions(
        compression=reader.choice("compression", _COMPRESSIONS),
        compression_level=reader.number("compression-level", _limited_level),
        byte_stream_split=reader.split_mode(),
        rle_threshold=reader.number("rle-threshold", float),
        dictionary_divisor=reader.number("dict-divisor", _positive),
        dictionary_size_ratio=reader.ratio("dict-size-ratio"),
        dictionary_compression=reader.choice("dict-values-compression", _DICTIONARY_COMPRESSIONS),
        dictionary_compression_level=reader.number("dict-values-compression-level", _limited_level),
        chunk_bytes=reader.number("minichunk-size", _positive),
        structure=reader.choice("structural-encoding", _STRUCTURES, lower=True),
        smallest=SMALLEST in field.metadata,
    )


_DEFAULTS = EncodingOptions()


@dataclass(frozen=True)
class BinaryCompression:
    """Compression of strings and binaries requested of 2.0 files: "lz4", "zstd" (with an optional level) or "fsst"."""

    scheme: str
    level: int | None = None


def binary_compression(field: Field) -> BinaryCompression | None:
    """Return the compression that a field of a 2.0 file requests, if any; other types than binary ones request none.

    As in the reference, unknown schemes are ignored in 2.0, with a warning.
    """
    given = field.metadata.get(_PREFIX + "compression")
    if given is None or given == b"none":
        return None
    scheme = given.decode(errors="replace")
    if scheme not in _COMPRESSIONS:
        warnings.warn(
            f"column {field.name!r}: {_PREFIX}compression is {scheme!r}, which is ignored; known values are "
            f"{', '.join(_COMPRESSIONS)}",
            stacklevel=2,
        )
        return None
    given_level = field.metadata.get(_PREFIX + "compression-level")
    options = {} if given_level is None else {"compression-level": given_level}
    return BinaryCompression(scheme, _Reader(field.name, options).number("compression-level", _level))


def _level(text: str) -> int:
    number = int(text)
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"{number} is not a level")
    return number


def _limited_level(text: str) -> int:
    return min(_level(text), _HIGHEST_LEVEL)  # the library treats higher ones alike


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise ValueError(f"{number} is not positive")
    return number


class _Reader:
    """Typed access to the options of one column."""

    def __init__(self, column: str, given: Mapping[str, bytes]) -> None:
        self._column = column
        self._given = given

    def _text(self, key: str) -> str | None:
        value = self._given.get(key)
        return None if value is None else value.decode(errors="replace")

    def choice(self, key: str, known: tuple[str, ...], lower: bool = False) -> str | None:
        text = self._text(key)
        if text is not None and lower:
            text = text.lower()
        if text is not None and text not in known:
            raise InvalidInputError(
                f"column {self._column!r}: {_PREFIX}{key} is {text!r}; known values are {', '.join(known)}"
            )
        return text

    def number(self, key: str, parse: Callable[[str], _T]) -> _T | None:
        text = self._text(key)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError:
            warnings.warn(f"column {self._column!r}: {_PREFIX}{key} is {text!r}, which is ignored", stacklevel=2)
            return None

    def ratio(self, key: str) -> float | None:
        ratio = self.number(key, float)
        if ratio is not None and not 0 < ratio <= 1:
            raise InvalidInputError(f"column {self._column!r}: {_PREFIX}{key} is {ratio}, outside (0, 1]")
        return ratio

    def split_mode(self) -> str:
        text = self._text("bss")
        if text is None or text.lower() in ("on", "off", "auto"):
            return "auto" if text is None else text.lower()
        warnings.warn(f"column {self._column!r}: {_PREFIX}bss is {text!r}, which is ignored", stacklevel=2)
        return "auto"
