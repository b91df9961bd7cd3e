"""Parts of a file that are in memory for a while, so that reads inside of them make no requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lance_dataset.io.ranges import merge_ranges
from lance_dataset.locks import SharedLock

__all__ = ["HeldParts"]

#: Held parts change rarely, so all files share the lock of changes. Reads do without it.
_lock = SharedLock()


class HeldParts:
    """Parts of one file that users hold in memory. Parts of several users may overlap."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: tuple[tuple[int, pa.Buffer], ...] = ()

    def find(self, offset: int, length: int) -> pa.Buffer | None:
        """Return the bytes of a range, None unless one part has all of them."""
        for start, content in self._parts:
            if start <= offset and offset + length <= start + content.size:
                return content.slice(offset - start, length)
        return None

    def has(self, offset: int, length: int) -> bool:
        """Return True if one part has all bytes of a range."""
        return any(start <= offset and offset + length <= start + content.size for start, content in self._parts)

    def missing(self, ranges: Sequence[tuple[int, int]], max_gap: int, max_length: int) -> list[tuple[int, int]]:
        """Return the ranges to fetch so that all of some ranges are in memory, merged; see `merge_ranges`."""
        unknown = [each for each in ranges if each[1] and not self.has(*each)]
        return [(request.offset, request.length) for request in merge_ranges(unknown, max_gap, max_length)]

    def hold(self, parts: Sequence[tuple[int, pa.Buffer]]) -> Callable[[], None]:
        """Hold parts, each a position in the file and the bytes there, until the returned function is called."""
        mine = tuple(parts)
        with _lock:
            self._parts += mine

        def release() -> None:
            with _lock:
                self._parts = tuple([part for part in self._parts if not any(part is own for own in mine)])

        return release
