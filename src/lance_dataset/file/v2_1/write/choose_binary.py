"""Strings and binaries in chunks: as they are, or as FSST codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate
from lance_dataset.file.v2_1.compressive import Encoding, Flat, Fsst, Variable
from lance_dataset.file.v2_1.write.encoded import Bytes, EncodedChunks
from lance_dataset.file.v2_1.write.fsst_table import fsst_codes
from lance_dataset.file.v2_1.write.leaf_values import Strings
from lance_dataset.file.v2_1.write.request import CHUNK_BYTES, Candidate, Request
from lancecodec import fsst, variable

__all__ = ["forced_fsst", "fsst_candidate", "fsst_worthwhile", "plain_candidate", "verbatim_table"]

#: The reference compresses texts with a value of so many bytes, and with so many bytes of values and offsets.
_FSST_LEAST_LENGTH = 5
_FSST_LEAST_BYTES = 32768
#: Largest share of the plain size that makes FSST worth its decoding: texts the reference would compress, other texts
#: and binaries.
_SHARE_LARGE_TEXT = 0.995
_SHARE_TEXT = 0.9
_SHARE_BINARY = 0.75
_LONGEST_SYMBOL = 8
_MOST_VALUES = 8192


def plain_candidate(strings: Strings, request: Request) -> Candidate:
    """The strings as they are."""
    encoding = Variable(Flat(64 if strings.wide else 32))
    plan = _plan(strings.offsets, strings.wide, strings.count, request)
    size = request.layout_size(plan[0], [plan[1]])
    return Candidate(size, lambda: _chunks(encoding, strings.offsets, strings.data, strings, plan, "plain"))


def _plan(offsets: Bytes, wide: bool, count: int, request: Request) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Values and end bytes of the chunks."""
    target = request.options.chunk_bytes
    if target is None:
        # Definition levels come in blocks of 1,024: fuller chunks have fewer of them. And they compress better.
        roomy = request.nullable or request.options.compression in ("lz4", "zstd")
        target = 2 * CHUNK_BYTES if roomy else CHUNK_BYTES
    elif not request.large:
        target = min(target, 2 * CHUNK_BYTES)
    bound = variable.plan_bound(count)
    counts, ends = np.empty(bound, np.int64), np.empty(bound, np.int64)
    most = min(_MOST_VALUES, 2 * request.max_values)
    used = variable.plan(offsets, wide, count, wide, counts, ends, target, most)
    return counts[:used], ends[:used]


def _chunks(
    encoding: Encoding,
    offsets: Bytes,
    data: Bytes,
    strings: Strings,
    plan: tuple[NDArray[np.int64], NDArray[np.int64]],
    reason: str,
) -> EncodedChunks:
    counts, ends = plan
    out = allocate(int(ends[-1]) if len(ends) else 0)
    variable.encode(offsets, strings.wide, data, strings.count, strings.wide, counts, ends, out)
    return EncodedChunks(encoding, counts, [(out, ends)], 0, None, reason)


# -- FSST --------------------------------------------------------------------------------------------------------


def verbatim_table() -> bytes:
    """The table of strings that are not compressed."""
    table = bytearray(fsst.TABLE_SIZE)
    fsst.write_verbatim_table(table)
    return bytes(table)


def fsst_worthwhile(strings: Strings, text: bool, ratio: float) -> bool:
    """Whether FSST saves enough, the table counted, for what its decoding costs."""
    raw = strings.total + (strings.count + 1) * strings.offset_width
    expected = raw - strings.total * (1 - ratio) + fsst.TABLE_SIZE
    if not text:
        return expected < _SHARE_BINARY * raw
    large = raw >= _FSST_LEAST_BYTES and strings.longest >= _FSST_LEAST_LENGTH
    return expected < (_SHARE_LARGE_TEXT if large else _SHARE_TEXT) * raw


def fsst_candidate(strings: Strings, text: bool, plain: int, rival: int, request: Request) -> Candidate | None:
    """FSST, if it pays; `plain` is the size without it, and the smallest size otherwise possible is `rival`."""
    least = plain - strings.total + strings.total // _LONGEST_SYMBOL
    if strings.total < 2 * fsst.TABLE_SIZE or rival <= least + fsst.TABLE_SIZE:
        return None
    table, ratio = request.tables.table_for(strings)
    if not fsst_worthwhile(strings, text, ratio):
        return None
    return Candidate(_fsst_size(strings, ratio, plain), lambda: _encode_fsst(strings, table, request))


def forced_fsst(strings: Strings, plain: int, request: Request) -> Candidate:
    """FSST because it was asked for, with strings as they are if compressing them would not pay."""
    table, ratio = request.tables.table_for(strings)
    chosen = table if ratio < 1 else verbatim_table()
    return Candidate(_fsst_size(strings, min(ratio, 1.0), plain), lambda: _encode_fsst(strings, chosen, request))


def _fsst_size(strings: Strings, ratio: float, plain: int) -> int:
    """What is expected, given the size without compression."""
    return int(plain - strings.total * (1 - ratio)) + fsst.TABLE_SIZE


def _encode_fsst(strings: Strings, table: bytes, request: Request) -> EncodedChunks:
    codes = fsst_codes(strings, table)
    plan = _plan(codes.offsets, strings.wide, strings.count, request)
    encoding = Fsst(table, Variable(Flat(64 if strings.wide else 32)))
    share = codes.data.size / strings.total if strings.total else 1.0
    reason = f"FSST codes with {share:.0%} of the text's bytes"
    return _chunks(encoding, codes.offsets, codes.data, strings, plan, reason)
