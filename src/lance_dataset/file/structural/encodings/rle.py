"""Run-length encoding: values and the number of times that each repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.structural.encodings.base import Encoding, ParsePart, StoredValues
from lance_dataset.file.structural.encodings.constant import Constant
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.request import Candidate, EncodedChunks, Request, WordEncoding
from lance_dataset.file.structural.encodings.values import RUN_CUT, MeasuredWords, Words
from lance_dataset.late_dataclass import dataclass
from lancecodec import bitpacking, miniblock_levels, miniblock_values, rle, sequences
from lancecodec.statistics import FixedStatistics

__all__ = ["Rle"]

_LONGEST_RUN = 255
_CHUNK_BYTES = 8186
_LEVELS = Flat(16)
#: Encoding of run lengths before 2.3.
_LENGTHS = Flat(8)


@dataclass(frozen=True)
class Rle(WordEncoding):
    """Runs: values and the number of times that each repeats."""

    values: Encoding
    lengths: Encoding

    message_field = "rle"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> Rle:
        """See `Encoding.parse`."""
        return cls(part(message, "values"), part(message, "run_lengths"))

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        stored = pb.Rle(values=self.values.to_message(pb), run_lengths=self.lengths.to_message(pb))
        return pb.CompressiveEncoding(rle=stored)

    # -- chunks and blocks ---------------------------------------------------------------------------------------

    @property
    def num_buffers(self) -> int:
        """See `Encoding.num_buffers`."""
        return 2

    @property
    def least_bits(self) -> tuple[float, ...]:
        """See `Encoding.least_bits`."""
        bits = self.values.flat_bits
        return () if bits is None else (bits / _LONGEST_RUN, 8 / _LONGEST_RUN)

    def chunk_codec(self, where: str) -> tuple[int, int]:
        """See `Encoding.chunk_codec`."""
        bits = self.values.flat_bits
        if bits is None or self.lengths != _LENGTHS:
            raise UnsupportedError(f"{where}: run-length encoding with encoded parts exists in file version 2.3 only")
        return miniblock_values.RLE, bits

    @property
    def level_codec(self) -> tuple[int, int] | None:
        """See `Encoding.level_codec`."""
        return (miniblock_levels.RLE, 0) if self.values == _LEVELS and self.lengths == _LENGTHS else None

    @property
    def block_bits(self) -> int | None:
        """See `Encoding.block_bits`."""
        return getattr(self.values, "bits", None)

    def decode_block(self, buffer: pa.Buffer, count: int, bits: int, out: pa.Buffer, where: str) -> None:
        """See `Encoding.decode_block`."""
        if self.lengths != _LENGTHS:
            super().decode_block(buffer, count, bits, out, where)
        rle.decode_block(buffer, count, bits, out)

    # -- chunks of 2.3 -------------------------------------------------------------------------------------------

    @property
    def plain_chunks(self) -> Encoding:
        """See `Encoding.plain_chunks`."""
        if self.values.flat_bits is not None and self.lengths == _LENGTHS:
            return self
        return Flat(self.checked_integer_bits())

    @property
    def stored_buffers(self) -> int:
        """See `Encoding.stored_buffers`."""
        return self.values.has_payload + self.lengths.has_payload

    def plain_chunk(self, buffers: list[pa.Buffer], count: int) -> pa.Buffer | bytes:
        """See `Encoding.plain_chunk`."""
        stored = iter(buffers)
        values = next(stored) if self.values.has_payload else None
        lengths = next(stored) if self.lengths.has_payload else None
        return self.expand_runs(values, lengths, count)

    # -- integers ------------------------------------------------------------------------------------------------

    @property
    def has_payload(self) -> bool:
        """See `Encoding.has_payload`."""
        return self.values.has_payload or self.lengths.has_payload

    @property
    def integer_bits(self) -> int:
        """See `Encoding.integer_bits`."""
        return self.values.integer_bits

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """See `Encoding.decode_integers`."""
        values, lengths, length_bits = self.split_runs(*self.split_frame(payload), count)
        rle.decode(values, lengths, count, bits, out, length_bits, strict=True)

    def split_frame(self, payload: pa.Buffer | None) -> tuple[pa.Buffer | None, pa.Buffer | None]:
        """Split the payload into those of run values and run lengths."""
        if (payload is not None) != self.has_payload:
            raise CorruptFileError("runs with too many or too few buffers")
        if payload is None:
            return None, None
        begin, middle, end = sequences.rle_frame(payload)
        values = self.values.part(payload.slice(begin, middle - begin))
        return values, self.lengths.part(payload.slice(middle, end - middle))

    def expand_runs(self, values: pa.Buffer | None, lengths: pa.Buffer | None, count: int) -> pa.Buffer:
        """Decode integers from the payloads of run values and run lengths."""
        bits = self.checked_integer_bits()
        self.check_size(count * bits // 8, 0)
        run_values, run_lengths, length_bits = self.split_runs(values, lengths, count)
        out = allocate(count * bits // 8)
        rle.decode(run_values, run_lengths, count, bits, out, length_bits)
        return out

    def split_runs(
        self, values: pa.Buffer | None, lengths: pa.Buffer | None, count: int
    ) -> tuple[pa.Buffer, pa.Buffer, int]:
        """Decode run values and run lengths from their payloads; return them with the width of the lengths in bits.

        The number of runs that make up `count` integers is not stored. It follows from a part that tells its own
        number,
        or from the lengths.
        """
        self.values.check_part()
        self.lengths.check_part()
        stored_values, values = _decompressed(self.values, values, count)
        stored_lengths, lengths = _decompressed(self.lengths, lengths, count)
        length_bits = stored_lengths.checked_integer_bits()
        if length_bits == 64:
            raise CorruptFileError("run lengths of 64 bits")
        runs = _count_runs(stored_values, values, stored_lengths, lengths, count)
        if runs > count:
            raise CorruptFileError(f"{runs} runs of {count} integers")
        return (
            stored_values.integers(values, runs, stored_values.checked_integer_bits()),
            stored_lengths.integers(lengths, runs, length_bits),
            length_bits,
        )

    def runs(self, payload: pa.Buffer | None, length: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """See `Encoding.runs`."""
        values, lengths, length_bits = self.split_runs(*self.split_frame(payload), length)
        counts = np.frombuffer(values, np.uint64)
        repeats = np.frombuffer(lengths, f"u{length_bits // 8}").astype(np.uint64)
        if len(counts) != len(repeats) or not (repeats > 0).all() or int(repeats.sum()) != length:
            raise CorruptFileError(f"runs that do not add up to {length} counts")
        return counts, repeats

    def simplified(self, length: int) -> Encoding:
        """See `Encoding.simplified`."""
        return self.values if isinstance(self.values, Constant) and not self.lengths.has_payload else self

    # -- writing -------------------------------------------------------------------------------------------------

    @classmethod
    def candidate(cls, measured: MeasuredWords, plain: int, request: Request) -> Candidate | None:
        """See `WordEncoding.candidate`."""
        words, found = measured.runs, measured.found
        entries = found.rle_entries or 0
        if entries * (words.width + 1) >= plain:
            return None
        threshold = request.options.rle_threshold
        if threshold is not None and found.run_count >= threshold * words.count:
            return None
        chunks = max(1, entries * words.width // _CHUNK_BYTES, words.count // RUN_CUT)
        size = entries * (words.width + 1) + chunks * request.header(2)
        size += request.level_bytes(words.count) if chunks == 1 else words.count // 8 * request.nullable
        return Candidate(size, lambda: _encode(words, found, request))

    # -- report --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"rle({self.values.text}, {self.lengths.text})"

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        sizes = stored.sizes("flat")
        if not stored.runs:
            return f"runs of equal values: {sizes}"
        return f"{stored.runs:,} runs of {stored.count / stored.runs:,.1f} equal values on average: {sizes}"

    def run_count(self, sizes: NDArray[np.int64]) -> int | None:
        """See `Encoding.run_count`: every run has a length of 8 bits in the second buffer."""
        if self.lengths != _LENGTHS or sizes.shape[1] != 2:
            return None
        return int(sizes[:, 1].sum())


def _decompressed(encoding: Encoding, payload: pa.Buffer | None, count: int) -> tuple[Encoding, pa.Buffer | None]:
    if encoding.inner is encoding or payload is None:
        return encoding, payload
    limit = (count + bitpacking.BLOCK_VALUES) * encoding.checked_integer_bits() // 8 + 16
    return encoding.inner, encoding.decompress(payload, limit)


def _count_runs(
    values: Encoding, value_payload: pa.Buffer | None, lengths: Encoding, length_payload: pa.Buffer | None, count: int
) -> int:
    runs = None
    if lengths.has_payload:
        runs = lengths.stored_count(length_payload)
        runs = values.stored_count(value_payload) if runs is None else runs
    if runs is None:
        runs = lengths.count_summing_to(length_payload, count)
    if runs is None:
        raise CorruptFileError(f"the number of runs follows neither from {values} nor from {lengths}")
    return runs


def _encode(words: Words, found: FixedStatistics, request: Request) -> EncodedChunks:
    limits = (8, max(64, min(RUN_CUT, request.max_values)), _CHUNK_BYTES)
    entries = found.rle_entries or 0
    if limits[1] != RUN_CUT:
        _, entries = rle.count(words.buffer, words.bits, limits[1])
    value_bytes, length_bytes, chunks = rle.encode_bound(words.count, words.bits, entries, *limits)
    values, lengths = allocate(value_bytes), allocate(length_bytes)
    value_ends, length_ends, counts = (np.empty(chunks, np.int64) for _ in range(3))
    used = rle.encode(words.buffer, words.bits, values, lengths, value_ends, length_ends, counts, *limits)
    buffers = [
        (values.slice(0, int(value_ends[used - 1])), value_ends[:used]),
        (lengths.slice(0, int(length_ends[used - 1])), length_ends[:used]),
    ]
    reason = f"{found.run_count:,} runs"
    return EncodedChunks(Rle(Flat(words.bits), _LENGTHS), counts[:used], buffers, 0, None, reason)
