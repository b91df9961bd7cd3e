"""A page as the writer hands it on."""

from __future__ import annotations

from dataclasses import dataclass

from lance_dataset.file.v2_1.layout import Layout
from lance_dataset.file.v2_1.write.encoded import Bytes

__all__ = ["WrittenPage"]


@dataclass(frozen=True)
class WrittenPage:
    """Layout and buffers of a page.

    Attributes
    ----------
    layout
        Its descriptor.
    buffers
        The page buffers in order, each as the parts whose concatenation it is.
    reason
        Why it is laid out so, in a short sentence.
    """

    layout: Layout
    buffers: list[list[Bytes]]
    reason: str

    @property
    def size(self) -> int:
        """Bytes of all buffers."""
        return sum(memoryview(part).nbytes for parts in self.buffers for part in parts)
