"""Constant: one value for all, stored in the message only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.structural.encodings.base import Encoding, ParsePart
from lance_dataset.late_dataclass import dataclass
from lancecodec import sequences

__all__ = ["Constant"]

_SEQUENCE_BITS = 64


@dataclass(frozen=True)
class Constant(Encoding):
    """One value for all; None means null."""

    value: bytes | None

    message_field = "constant"
    is_simple_part = True

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> Constant:
        """See `Encoding.parse`."""
        return cls(message.value if message.HasField("value") else None)

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        return pb.CompressiveEncoding(constant=pb.Constant(value=self.value))

    @property
    def item_width(self) -> int:
        """See `Encoding.item_width`."""
        return 0

    # -- integers ------------------------------------------------------------------------------------------------

    @property
    def has_payload(self) -> bool:
        """See `Encoding.has_payload`."""
        return False

    @property
    def integer_bits(self) -> int:
        """See `Encoding.integer_bits`."""
        return 8 * len(self.value or b"")

    def integers(self, payload: pa.Buffer | None, count: int, bits: int) -> pa.Buffer:
        """See `Encoding.integers`; null means that there are no integers."""
        if payload is None and count == 0 and self.value is None:
            return allocate(0)
        return super().integers(payload, count, bits)

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """See `Encoding.decode_integers`."""
        np.frombuffer(out, f"u{bits // 8}")[:] = int.from_bytes(self.value or b"", "little")

    def count_summing_to(self, payload: pa.Buffer | None, total: int) -> int:
        """See `Encoding.count_summing_to`."""
        return sequences.runs_of_constant(int.from_bytes(self.value or b"", "little"), total)

    def simplified(self, length: int) -> Encoding:
        """See `Encoding.simplified`."""
        if length > 0:
            self.sequence_value()
        return self

    def progression(self, length: int) -> tuple[int, int] | None:
        """See `Encoding.progression`."""
        return (self.sequence_value(), 1) if length == 1 else None

    def runs(self, payload: pa.Buffer | None, length: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """See `Encoding.runs`."""
        return np.array([self.sequence_value()], np.uint64), np.array([length], np.uint64)

    def sequence_value(self) -> int:
        """Return the value as a 64-bit integer, raise CorruptFileError if it is not one."""
        if self.value is None or len(self.value) * 8 != _SEQUENCE_BITS:
            raise CorruptFileError(f"{self} in a sequence of 64-bit integers")
        return int.from_bytes(self.value, "little")

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return "null" if self.value is None else "constant"
