"""Unsigned integers in block context, as 2.3 stores offsets, positions, counts and the parts of runs.

Encodings of a range or a constant have no bytes at all, so what they claim is bounded here and not by the file.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.v2_1.compressive import (
    Constant,
    Delta,
    Dictionary,
    Encoding,
    Flat,
    General,
    InlineBitpacking,
    OutOfLineBitpacking,
    Range,
    Rle,
)
from lancecodec import CodecError, bitpacking, flat, general, rle, sequences

__all__ = ["decode_integers", "expand_runs", "has_payload", "integer_bits", "split_frame", "split_runs"]

#: Bytes that may come out of nothing; beyond that as many as the narrowest bit packing yields.
_FREE_BYTES = 16 << 20
_MAX_EXPANSION = 64
_MAX_ITEMS = 4096
_BLOCK = bitpacking.BLOCK_VALUES


def has_payload(encoding: Encoding) -> bool:
    """Whether the encoding has a buffer; otherwise the descriptor says it all."""
    if isinstance(encoding, Constant | Range):
        return False
    if isinstance(encoding, Delta):
        return has_payload(encoding.deltas)
    if isinstance(encoding, Rle):
        return has_payload(encoding.values) or has_payload(encoding.lengths)
    if isinstance(encoding, Dictionary):
        return has_payload(encoding.indices) or has_payload(encoding.items)
    return True


def integer_bits(encoding: Encoding) -> int:
    """Width of the integers an encoding yields.

    Raises
    ------
    CorruptFileError
        It does not yield integers of 8, 16, 32 or 64 bits.
    """
    inner = encoding
    while isinstance(inner, General | Rle | Dictionary):
        inner = inner.items if isinstance(inner, Dictionary) else inner.values
    bits = 8 * len(inner.value or b"") if isinstance(inner, Constant) else getattr(inner, "bits", 0)
    if bits not in (8, 16, 32, 64):
        raise CorruptFileError(f"{type(encoding).__name__} encoding of integers of {bits} bits")
    return int(bits)


def decode_integers(encoding: Encoding, payload: pa.Buffer | None, count: int, bits: int) -> pa.Buffer:
    """Integers of `bits` bits.

    Parameters
    ----------
    encoding
        How they are stored.
    payload
        Their buffer; None exactly if the encoding has none.
    count
        How many there must be.
    bits
        8, 16, 32 or 64.

    Raises
    ------
    CodecError, CorruptFileError
        The payload contradicts the encoding, or the encoding is not of so many integers of that width.
    UnsupportedError
        An encoding or a nesting that integers do not have.
    """
    if (payload is not None) != has_payload(encoding):
        raise CorruptFileError(f"{type(encoding).__name__} encoding with too many or too few buffers")
    if count == 0 and encoding == Constant(None):
        return allocate(0)
    if integer_bits(encoding) != bits:
        raise CorruptFileError(f"{encoding} does not hold integers of {bits} bits")
    if isinstance(encoding, General):
        return _decode_general(encoding, payload, count, bits)
    stored = pa.py_buffer(b"") if payload is None else payload
    _check_size(count * bits // 8, stored.size)
    out = allocate(count * bits // 8)
    if isinstance(encoding, Constant):
        np.frombuffer(out, f"u{bits // 8}")[:] = int.from_bytes(encoding.value or b"", "little")
    elif isinstance(encoding, Range):
        sequences.decode_range(encoding.start, encoding.step, count, bits, out)
    elif isinstance(encoding, Flat):
        flat.decode(stored, count, bits, out)
    elif isinstance(encoding, OutOfLineBitpacking):
        bitpacking.out_of_line_decode(stored, bits, encoding.width, count, out)
    elif isinstance(encoding, InlineBitpacking):
        bitpacking.inline_block_decode(stored, bits, count, out)
    elif isinstance(encoding, Delta):
        _decode_delta(encoding, payload, count, bits, out)
    elif isinstance(encoding, Dictionary):
        _decode_dictionary(encoding, payload, count, bits, out)
    elif isinstance(encoding, Rle):
        values, lengths, length_bits = split_runs(encoding, *split_frame(encoding, payload), count)
        rle.decode(values, lengths, count, bits, out, length_bits, strict=True)
    else:
        raise UnsupportedError(f"encoding {type(encoding).__name__} of integers cannot be read by this release")
    return out


def _check_size(size: int, stored: int) -> None:
    if size > _FREE_BYTES + _MAX_EXPANSION * stored:
        raise CorruptFileError(f"{stored} bytes claim to hold {size} bytes of integers")


def _check_leaf(encoding: Encoding) -> None:
    """Parts of nested encodings have no parts themselves, whatever decoding them would cost."""
    plain = encoding.values if isinstance(encoding, General) else encoding
    if not isinstance(plain, Constant | Range | Flat | OutOfLineBitpacking | InlineBitpacking):
        raise UnsupportedError(f"{type(encoding).__name__} encoding as a part of other integers")


def _decode_general(encoding: General, payload: pa.Buffer | None, count: int, bits: int) -> pa.Buffer:
    if not isinstance(encoding.values, Flat | OutOfLineBitpacking | InlineBitpacking | Rle):
        raise UnsupportedError(f"compressed {type(encoding.values).__name__} encoding of integers")
    # No inner encoding is larger than the integers themselves, but for padding to a block and run lengths.
    limit = 2 * count * bits // 8 + _BLOCK * bits // 8 + 16
    plain = general.decompress(encoding.scheme, payload or b"", max_size=limit)
    return decode_integers(encoding.values, pa.py_buffer(plain), count, bits)


def _decode_delta(encoding: Delta, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
    _check_leaf(encoding.deltas)
    if count < 2:
        raise CorruptFileError(f"delta encoding of {count} integers")
    deltas = decode_integers(encoding.deltas, payload, count - 1, bits)
    sequences.decode_delta(encoding.base, deltas, bits, out)


def _decode_dictionary(encoding: Dictionary, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
    _check_leaf(encoding.indices)
    _check_leaf(encoding.items)
    if not 1 <= encoding.size <= _MAX_ITEMS:
        raise CorruptFileError(f"dictionary of {encoding.size} integers")
    indices = items = None
    if payload is not None:
        begin, middle, end = sequences.dictionary_frame(payload)
        indices = _part(encoding.indices, payload.slice(begin, middle - begin))
        items = _part(encoding.items, payload.slice(middle, end - middle))
    sequences.decode_dictionary(
        decode_integers(encoding.indices, indices, count, 32),
        decode_integers(encoding.items, items, encoding.size, bits),
        bits,
        out,
    )


def _part(encoding: Encoding, payload: pa.Buffer) -> pa.Buffer | None:
    """A part of a frame, which is empty if its encoding has no payload."""
    if has_payload(encoding):
        return payload
    if payload.size:
        raise CorruptFileError(f"{payload.size} bytes of a {type(encoding).__name__} encoding, which has none")
    return None


# -- runs --------------------------------------------------------------------------------------------------------


def split_frame(encoding: Rle, payload: pa.Buffer | None) -> tuple[pa.Buffer | None, pa.Buffer | None]:
    """The payloads of run values and run lengths, out of that of both."""
    if (payload is not None) != has_payload(encoding):
        raise CorruptFileError("runs with too many or too few buffers")
    if payload is None:
        return None, None
    begin, middle, end = sequences.rle_frame(payload)
    return (
        _part(encoding.values, payload.slice(begin, middle - begin)),
        _part(encoding.lengths, payload.slice(middle, end - middle)),
    )


def expand_runs(encoding: Rle, values: pa.Buffer | None, lengths: pa.Buffer | None, count: int) -> pa.Buffer:
    """Integers of ``integer_bits(encoding)`` bits out of the payloads of run values and run lengths."""
    bits = integer_bits(encoding)
    _check_size(count * bits // 8, 0)
    run_values, run_lengths, length_bits = split_runs(encoding, values, lengths, count)
    out = allocate(count * bits // 8)
    rle.decode(run_values, run_lengths, count, bits, out, length_bits)
    return out


def split_runs(
    encoding: Rle, values: pa.Buffer | None, lengths: pa.Buffer | None, count: int
) -> tuple[pa.Buffer, pa.Buffer, int]:
    """Run values, run lengths and the width of the latter, out of their payloads.

    How many runs make up `count` integers is not stored: it follows from a part that tells its own number, or from
    the lengths.
    """
    _check_leaf(encoding.values)
    _check_leaf(encoding.lengths)
    stored_values, values = _decompressed(encoding.values, values, count)
    stored_lengths, lengths = _decompressed(encoding.lengths, lengths, count)
    length_bits = integer_bits(stored_lengths)
    if length_bits == 64:
        raise CorruptFileError("run lengths of 64 bits")
    runs = _count_runs(stored_values, values, stored_lengths, lengths, count)
    if runs > count:
        raise CorruptFileError(f"{runs} runs of {count} integers")
    return (
        decode_integers(stored_values, values, runs, integer_bits(stored_values)),
        decode_integers(stored_lengths, lengths, runs, length_bits),
        length_bits,
    )


def _decompressed(encoding: Encoding, payload: pa.Buffer | None, count: int) -> tuple[Encoding, pa.Buffer | None]:
    if not isinstance(encoding, General) or payload is None:
        return encoding, payload
    limit = (count + _BLOCK) * integer_bits(encoding) // 8 + 16
    return encoding.values, pa.py_buffer(general.decompress(encoding.scheme, payload, max_size=limit))


def _count_runs(
    values: Encoding, value_payload: pa.Buffer | None, lengths: Encoding, length_payload: pa.Buffer | None, count: int
) -> int:
    if isinstance(lengths, Constant):
        return sequences.runs_of_constant(int.from_bytes(lengths.value or b"", "little"), count)
    if isinstance(lengths, Range):
        return sequences.runs_of_range(lengths.start, lengths.step, count)
    for encoding, payload in ((lengths, length_payload), (values, value_payload)):
        if isinstance(encoding, Flat) and payload is not None:
            return payload.size * 8 // encoding.bits
    if isinstance(lengths, OutOfLineBitpacking) and length_payload is not None:
        return _count_packed_runs(lengths, length_payload, count)
    if isinstance(lengths, InlineBitpacking) and length_payload is not None:
        out = allocate(_BLOCK * lengths.bits // 8)
        bitpacking.inline_block_decode(length_payload, lengths.bits, _BLOCK, out)
        return _runs_up_to(out, lengths.bits, count)
    raise CorruptFileError(f"the number of runs follows neither from {values} nor from {lengths}")


def _count_packed_runs(lengths: OutOfLineBitpacking, payload: pa.Buffer, count: int) -> int:
    """Runs of bit-packed lengths: as many as fit if the last block is plain, else up to where they sum to `count`."""
    block = _BLOCK * lengths.width // 8
    if block == 0 or payload.size == 0:
        raise CorruptFileError("run lengths that are all 0, or none")
    if payload.size % block == 0:
        packed = payload.size // block * _BLOCK
        out = allocate(packed * lengths.bits // 8)
        bitpacking.unpack(payload, lengths.bits, lengths.width, 0, packed, out)
        try:
            return _runs_up_to(out, lengths.bits, count)
        except CodecError:
            pass  # a plain tail as long as a packed block
    full = (payload.size - 1) // block
    return full * _BLOCK + (payload.size - full * block) * 8 // lengths.bits


def _runs_up_to(lengths: pa.Buffer, bits: int, count: int) -> int:
    ends = np.cumsum(np.frombuffer(lengths, f"u{bits // 8}"), dtype=np.uint64)
    runs = int(np.searchsorted(ends, count)) + 1 if count else 0
    if runs > len(ends) or (runs and ends[runs - 1] != count):
        raise CodecError(f"run lengths that do not add up to {count}")
    return runs
