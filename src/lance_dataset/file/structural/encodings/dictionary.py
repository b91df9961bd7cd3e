"""Dictionary (2.3) of integers: indices into some items. Dictionaries of values belong to their page."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.encodings.base import Encoding, ParsePart
from lance_dataset.late_dataclass import dataclass
from lancecodec import sequences

__all__ = ["Dictionary"]

_MAX_ITEMS = 4096
_INDEX_BITS = 32


@dataclass(frozen=True)
class Dictionary(Encoding):
    """Integers stored as indices into `size` items (2.3)."""

    indices: Encoding
    items: Encoding
    size: int

    message_field = "dictionary"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> Dictionary:
        """See `Encoding.parse`."""
        return cls(part(message, "indices"), part(message, "items"), message.num_dictionary_items)

    @property
    def has_payload(self) -> bool:
        """See `Encoding.has_payload`."""
        return self.indices.has_payload or self.items.has_payload

    @property
    def integer_bits(self) -> int:
        """See `Encoding.integer_bits`."""
        return self.items.integer_bits

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """See `Encoding.decode_integers`."""
        self.indices.check_part()
        self.items.check_part()
        if not 1 <= self.size <= _MAX_ITEMS:
            raise CorruptFileError(f"dictionary of {self.size} integers")
        indices = items = None
        if payload is not None:
            begin, middle, end = sequences.dictionary_frame(payload)
            indices = self.indices.part(payload.slice(begin, middle - begin))
            items = self.items.part(payload.slice(middle, end - middle))
        sequences.decode_dictionary(
            self.indices.integers(indices, count, _INDEX_BITS), self.items.integers(items, self.size, bits), bits, out
        )

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"dictionary({self.indices.text}; {self.size:,} {self.items.text})"
