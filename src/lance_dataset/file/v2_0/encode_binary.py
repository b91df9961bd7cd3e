"""Encoding of strings and binaries to 2.0 pages: plain, with a dictionary, or compressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import aligned, allocate, concat_arrays
from lance_dataset.file.column import EncodedPage
from lance_dataset.file.kinds import is_text, is_wide
from lance_dataset.file.options import BinaryCompression
from lance_dataset.file.v2_0.messages import all_nulls, flat, no_nulls
from lancecodec import CodecError, fsst, general, utf8
from lancecodec import offsets as offset_codec

__all__ = ["encode_binary", "encode_binary_column", "encode_ends", "without_hidden_bytes"]

#: As in the reference, strings may get a dictionary if there are at least this many values and fewer distinct ones.
_DICTIONARY_THRESHOLD = 100
_SAMPLE = 1024
_ZSTD_MAX_LEVEL = 22
_ZSTD_PREFIX = 8


def encode_binary_column(
    column: int, arrays: Sequence[pa.Array], path: str, compression: BinaryCompression | None
) -> EncodedPage:
    """Encode a page of strings or binaries.

    Parameters
    ----------
    arrays
        The values, of one type.
    path
        Path of the field, for error messages.
    compression
        Compression that the metadata of the field requests. As in the reference, a dictionary is preferred if possible.

    Raises
    ------
    CodecError
        A text is not UTF-8.
    UnsupportedError
        There are more bytes than the compression scheme takes.
    """
    length = sum(len(array) for array in arrays)
    if sum(array.null_count for array in arrays) == length:
        return EncodedPage(column, length, all_nulls())
    if pa.types.is_string(arrays[0].type) and length >= _DICTIONARY_THRESHOLD:
        page = _encode_string_dictionary(column, arrays, length)
        if page is not None:
            return page
    buffers: list[list[pa.Buffer | bytes]] = []
    if compression is not None and compression.scheme == "fsst":
        encoding = _encode_fsst(arrays, length, buffers)
    else:
        encoding = encode_binary(arrays, length, buffers, compression, path)
    return EncodedPage(column, length, encoding, buffers)


@dataclass(frozen=True)
class _Spans:
    """Values of a page: their ends, and their bytes in parts."""

    ends: list[pa.Buffer]
    data: list[pa.Buffer]
    total: int


def encode_binary(
    arrays: Sequence[pa.Array],
    length: int,
    buffers: list[list[pa.Buffer | bytes]],
    compression: BinaryCompression | None = None,
    path: str = "",
) -> pb.ArrayEncoding:
    """Return the binary encoding of `length` values; append the ends, then the bytes to `buffers`."""
    spans = _spans(arrays)
    data: list[pa.Buffer | bytes] = list(spans.data)
    scheme, level = "", None
    if compression is not None and spans.total:
        packed = _compressed(spans, compression, path)
        if len(packed) < spans.total:
            data, scheme, level = [packed], compression.scheme, compression.level
    buffers.extend([list(spans.ends), data])
    binary = pb.Binary(
        indices=no_nulls(flat(64, len(buffers) - 2)),
        bytes=_bytes(len(buffers) - 1, scheme, level),
        null_adjustment=spans.total + 1 if length else 0,
    )
    return pb.ArrayEncoding(binary=binary)


def _bytes(buffer: int, scheme: str, level: int | None) -> pb.ArrayEncoding:
    """Return the encoding of the bytes of all values; "no nulls" is stated for releases before 0.18, which need it."""
    values = flat(8, buffer, scheme, level)
    return values if scheme else no_nulls(values)


def _compressed(spans: _Spans, compression: BinaryCompression, path: str) -> bytes:
    level = None if compression.level is None else min(compression.level, _ZSTD_MAX_LEVEL)
    scheme: general.Scheme = "lz4" if compression.scheme == "lz4" else "zstd"
    try:
        framed = general.compress(scheme, level, b"".join(spans.data))
    except CodecError as error:
        raise UnsupportedError(f"column {path!r}: {error}") from error
    # Releases before 1.0 do not know the length before a frame; later ones read frames without it.
    return framed[_ZSTD_PREFIX:] if scheme == "zstd" else framed


def _spans(arrays: Sequence[pa.Array]) -> _Spans:
    arrays = [without_hidden_bytes(array) for array in arrays]
    wide = is_wide(arrays[0].type)
    entry = 8 if wide else 4
    views = []
    for array in arrays:
        offsets = aligned(array.buffers()[1].slice(array.offset * entry, (len(array) + 1) * entry), entry)
        views.append((array, offsets, np.frombuffer(offsets, np.int64 if wide else np.int32)))
    total = sum(int(view[-1] - view[0]) for _, _, view in views)
    ends, data, base = [], [], 0
    for array, offsets, view in views:
        first, last = int(view[0]), int(view[-1])
        validity = array.buffers()[0] if array.null_count else None
        ends.append(encode_ends(offsets, wide, len(array), validity, array.offset, base, total + 1))
        base += last - first
        if last > first:
            content = array.buffers()[2].slice(first, last - first)
            if is_text(array.type):
                utf8.validate(content, offsets if first == 0 else pa.py_buffer(view - first), wide)
            data.append(content)
    return _Spans(ends, data, total)


def _encode_fsst(arrays: Sequence[pa.Array], length: int, buffers: list[list[pa.Buffer | bytes]]) -> pb.ArrayEncoding:
    """Encode as FSST codes of a symbol table, or as plain values if codes are not smaller."""
    array = without_hidden_bytes(concat_arrays(list(arrays), arrays[0].type))
    validity, offsets, content = array.buffers()
    view = np.frombuffer(aligned(offsets, 4), np.int32, length + 1, array.offset * 4)
    total = int(view[-1] - view[0])
    if total <= fsst.TABLE_SIZE:
        return encode_binary([array], length, buffers)
    if is_text(array.type):
        utf8.validate(content.slice(int(view[0]), total), (view - view[0]).data, False)
    table = bytearray(fsst.TABLE_SIZE)
    fsst.build(content, view.data, False, length, table)
    codes, starts = allocate(fsst.encode_bound(total)), np.empty(length + 1, np.int32)
    encoder = fsst.Encoder(fsst.SymbolTable(table))
    size = encoder.encode(content, view.data, False, length, False, starts.data, codes)
    if size + fsst.TABLE_SIZE >= total:
        return encode_binary([array], length, buffers)
    bits = validity if array.null_count else None
    ends = encode_ends(pa.py_buffer(starts), False, length, bits, array.offset, 0, size + 1)
    buffers.extend([[ends], [codes.slice(0, size)]])
    binary = pb.Binary(indices=no_nulls(flat(64, 0)), bytes=flat(8, 1), null_adjustment=size + 1)
    inner = pb.ArrayEncoding(binary=binary)
    return pb.ArrayEncoding(fsst=pb.Fsst(binary=inner, symbol_table=bytes(table)))


def encode_ends(
    offsets: pa.Buffer, wide: bool, length: int, validity: pa.Buffer | None, bit: int, base: int, adjustment: int
) -> pa.Buffer:
    """Return the ends of `length` values after `base` bytes, given their offsets and a bitmap that starts at `bit`."""
    out = allocate(8 * length)
    bits = None if validity is None else validity
    offset_codec.encode(offsets, wide, length, bits, bit, base, adjustment, out)
    return out


def without_hidden_bytes(array: pa.Array) -> pa.Array:
    """Return the same values, without bytes under nulls."""
    if array.null_count == 0:
        return array
    lengths = pc.binary_length(array)
    visible = pc.sum(lengths).as_py() or 0
    wide = is_wide(array.type)
    offsets = array.buffers()[1].slice(array.offset * (8 if wide else 4))
    view = np.frombuffer(aligned(offsets, 8 if wide else 4), np.int64 if wide else np.int32, len(array) + 1)
    if int(view[-1]) - int(view[0]) == visible:
        return array
    # Taking every value copies only the visible bytes.
    return array.take(pa.array(np.arange(len(array), dtype=np.int64)))


def _encode_string_dictionary(column: int, arrays: Sequence[pa.Array], length: int) -> EncodedPage | None:
    """Encode u8 indices, 0 for null and k for item k - 1; return None if there are too many distinct strings."""
    if len(pc.unique(arrays[0].slice(0, _SAMPLE))) > _DICTIONARY_THRESHOLD:
        return None
    encoded = pa.chunked_array(list(arrays)).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    items = encoded.dictionary
    if not 0 < len(items) < _DICTIONARY_THRESHOLD:
        return None
    indices = pc.fill_null(pc.add(encoded.indices, 1), 0).cast(pa.uint8())
    content = pc.sum(pc.binary_length(items)).as_py()
    counts = np.bincount(np.asarray(indices), minlength=len(items) + 1)[1:]
    plain = 8 * length + int(counts @ np.asarray(pc.binary_length(items), np.int64))
    if length + 8 * len(items) + content >= plain:
        return None
    buffers: list[list[pa.Buffer | bytes]] = [[indices.buffers()[1].slice(indices.offset, length)]]
    items_encoding = encode_binary([items], len(items), buffers)
    dictionary = pb.Dictionary(indices=no_nulls(flat(8, 0)), items=items_encoding, num_dictionary_items=len(items))
    return EncodedPage(column, length, pb.ArrayEncoding(dictionary=dictionary), buffers)
