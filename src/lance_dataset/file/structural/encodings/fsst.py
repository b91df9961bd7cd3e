"""FSST: strings as codes of a symbol table that is in the message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, octets
from lance_dataset.file.sizes import size_text
from lance_dataset.file.structural.encodings.base import ParsePart, StoredValues
from lance_dataset.file.structural.encodings.fsst_tables import FsstTables, fsst_codes
from lance_dataset.file.structural.encodings.request import Candidate, EncodedChunks, EncodedItems, Request, in_units
from lance_dataset.file.structural.encodings.values import Strings
from lance_dataset.file.structural.encodings.variable import (
    StringEncoding,
    Variable,
    offsets_of,
    plan_chunks,
    text_chunks,
)
from lance_dataset.late_dataclass import dataclass
from lancecodec import CodecError, fsst

__all__ = ["Fsst", "code_items", "forced_fsst"]

#: The reference compresses texts if a value has at least this length, and values and offsets at least these bytes.
_FSST_LEAST_LENGTH = 5
_FSST_LEAST_BYTES = 32768
#: Maximum share of the plain size that is worth the decoding of FSST: for texts that the reference would compress,
#: for other texts, and for binaries.
_SHARE_LARGE_TEXT = 0.995
_SHARE_TEXT = 0.9
_SHARE_BINARY = 0.75
_LONGEST_SYMBOL = 8


@dataclass(frozen=True)
class Fsst(StringEncoding):
    """Strings stored as codes of a symbol table."""

    symbol_table: bytes
    values: Variable

    message_field = "fsst"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> Fsst:
        """See `Encoding.parse`."""
        values = part(message, "values")
        if not isinstance(values, Variable):
            raise CorruptFileError(f"FSST over {type(values).__name__} values")
        return cls(message.symbol_table, values)

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        stored = pb.Fsst(symbol_table=self.symbol_table, values=self.values.to_message(pb))
        return pb.CompressiveEncoding(fsst=stored)

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def least_bits(self) -> tuple[float, ...]:
        """See `Encoding.least_bits`."""
        return self.values.least_bits

    def text_codec(self, where: str) -> tuple[bool, bytes | None]:
        """See `Encoding.text_codec`."""
        return self.values.text_codec(where)[0], self.symbol_table

    @property
    def item_symbols(self) -> bytes:
        """See `Encoding.item_symbols`."""
        return self.symbol_table

    def decode_codes(self, offsets: pa.Buffer, wide: bool, data: pa.Buffer, length: int) -> tuple[pa.Buffer, pa.Buffer]:
        """See `Encoding.decode_codes`."""
        table, width = fsst.SymbolTable(self.symbol_table), 8 if wide else 4
        out_offsets, out = allocate((length + 1) * width), allocate(table.decoded_size(data))
        ends = octets(out_offsets)
        ends[:width] = bytes(width)
        table.decode(data, offsets.slice(width), wide, 0, length, 0, wide, ends[width:], out)
        return out_offsets, out

    # -- writing -------------------------------------------------------------------------------------------------

    @classmethod
    def candidate(cls, strings: Strings, text: bool, plain: int, rival: int, request: Request) -> Candidate | None:
        """See `TextEncoding.candidate`; a table is built only if the codes can be smaller than the rival."""
        least = plain - strings.total + strings.total // _LONGEST_SYMBOL
        if strings.total < 2 * fsst.TABLE_SIZE or rival <= least + fsst.TABLE_SIZE:
            return None
        table, ratio = request.tables.table_for(strings)
        if not _worthwhile(strings, text, ratio):
            return None
        return Candidate(_expected_size(strings, ratio, plain), lambda: _encode(strings, table, request))

    # -- report --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"fsst({self.values.text})"

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        table = size_text(len(self.symbol_table))
        try:
            symbols = fsst.SymbolTable(self.symbol_table)
        except CodecError:
            return f"symbol table of {table} that cannot be read"
        if not symbols.compressed:
            return f"a symbol table that leaves the text as it is: {stored.sizes()}"
        sizes = f"{stored.sizes()}, and {table} of symbols in the description of the page"
        return f"{len(symbols.symbols)} frequent strings as codes of one byte: {sizes}"


def _verbatim_table() -> bytes:
    """Return the table for strings that are not compressed."""
    table = bytearray(fsst.TABLE_SIZE)
    fsst.write_verbatim_table(table)
    return bytes(table)


def _worthwhile(strings: Strings, text: bool, ratio: float) -> bool:
    """Return whether FSST saves enough, after adding its table, to be worth its decoding."""
    raw = strings.total + (strings.count + 1) * strings.offset_width
    expected = raw - strings.total * (1 - ratio) + fsst.TABLE_SIZE
    if not text:
        return expected < _SHARE_BINARY * raw
    large = raw >= _FSST_LEAST_BYTES and strings.longest >= _FSST_LEAST_LENGTH
    return expected < (_SHARE_LARGE_TEXT if large else _SHARE_TEXT) * raw


def forced_fsst(strings: Strings, plain: int, request: Request) -> Candidate:
    """Return the candidate for requested FSST, with uncompressed strings if compressing them would not pay."""
    table, ratio = request.tables.table_for(strings)
    chosen = table if ratio < 1 else _verbatim_table()
    return Candidate(_expected_size(strings, min(ratio, 1.0), plain), lambda: _encode(strings, chosen, request))


def _expected_size(strings: Strings, ratio: float, plain: int) -> int:
    """Return the expected size, given the size without compression."""
    return int(plain - strings.total * (1 - ratio)) + fsst.TABLE_SIZE


def _encode(strings: Strings, table: bytes, request: Request) -> EncodedChunks:
    codes = fsst_codes(strings, table)
    plan = plan_chunks(codes.offsets, strings.wide, strings.count, request)
    encoding = Fsst(table, offsets_of(strings.wide))
    share = codes.data.size / strings.total if strings.total else 1.0
    reason = f"FSST codes with {share:.0%} of the text's bytes"
    return text_chunks(encoding, codes.offsets, codes.data, strings, plan, reason)


def code_items(plain: EncodedItems, strings: Strings, text: bool, asked: bool, tables: FsstTables) -> EncodedItems:
    """Return items with FSST codes if they pay or were requested, otherwise the plain items."""
    if not asked and strings.total < 2 * fsst.TABLE_SIZE:
        return plain
    table, ratio = tables.table_for(strings)
    if asked and ratio >= 1:
        table = _verbatim_table()
    elif not asked and not _worthwhile(strings, text, ratio):
        return plain
    codes = fsst_codes(strings, table)
    reason = f"FSST codes: {in_units(codes.data.size)} instead of {in_units(strings.total)}"
    encoding = Fsst(table, offsets_of(strings.wide))
    return replace(plain, encoding=encoding, values=codes.data, offsets=codes.offsets, reason=reason)
