"""Ranges and deltas (2.3): integers that follow from the preceding ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.encodings.base import Encoding, ParsePart, word_bits
from lance_dataset.file.structural.encodings.constant import Constant
from lance_dataset.late_dataclass import dataclass
from lancecodec import sequences

__all__ = ["Delta", "Range"]

_BITS = (32, 64)
_SEQUENCE_BITS = 64


@dataclass(frozen=True)
class Range(Encoding):
    """Integers ``start + i * step`` (2.3)."""

    bits: int
    start: int
    step: int

    message_field = "range"
    is_simple_part = True

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> Range:
        """See `Encoding.parse`."""
        return cls(word_bits(message, _BITS), message.start, message.step)

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        if not hasattr(pb, "Range"):
            return super().to_message(pb)
        stored = pb.Range(uncompressed_bits_per_value=self.bits, start=self.start, step=self.step)
        return pb.CompressiveEncoding(range=stored)

    @property
    def has_payload(self) -> bool:
        """See `Encoding.has_payload`."""
        return False

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """See `Encoding.decode_integers`."""
        sequences.decode_range(self.start, self.step, count, bits, out)

    def count_summing_to(self, payload: pa.Buffer | None, total: int) -> int:
        """See `Encoding.count_summing_to`."""
        return sequences.runs_of_range(self.start, self.step, total)

    def progression(self, length: int) -> tuple[int, int]:
        """See `Encoding.progression`."""
        return self.start, self.step

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"range {self.bits}"


@dataclass(frozen=True)
class Delta(Encoding):
    """Integers that start with `base` and continue with cumulative sums of deltas (2.3)."""

    bits: int
    base: int
    deltas: Encoding

    message_field = "delta"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> Delta:
        """See `Encoding.parse`."""
        return cls(word_bits(message, _BITS), message.base, part(message, "deltas"))

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        if not hasattr(pb, "Delta"):
            return super().to_message(pb)
        deltas = self.deltas.to_message(pb)
        return pb.CompressiveEncoding(
            delta=pb.Delta(uncompressed_bits_per_value=self.bits, base=self.base, deltas=deltas)
        )

    @property
    def has_payload(self) -> bool:
        """See `Encoding.has_payload`."""
        return self.deltas.has_payload

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """See `Encoding.decode_integers`."""
        self.deltas.check_part()
        if count < 2:
            raise CorruptFileError(f"delta encoding of {count} integers")
        sequences.decode_delta(self.base, self.deltas.integers(payload, count - 1, bits), bits, out)

    def simplified(self, length: int) -> Encoding:
        """See `Encoding.simplified`."""
        if length < 2 or not isinstance(self.deltas, Constant):
            return self
        step = self.deltas.sequence_value()
        return Range(_SEQUENCE_BITS, self.base, step) if step else Constant(self.base.to_bytes(8, "little"))

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"delta({self.deltas.text})"
