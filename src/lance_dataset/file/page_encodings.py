"""Parsing of the serialized encodings of pages, with a cache, because thousands of pages share a few encodings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from lance_dataset.file.cache import PageCache
from lance_dataset.io.messages import message_memory
from lance_dataset.limits import BASE_MEMORY, check_memory

__all__ = ["EncodingParser", "PageMemory", "cached_by_encoding", "needs_little"]

_V = TypeVar("_V")

#: Maximum size in bytes of encodings that are cached by number, and bytes of memory for a byte of them.
_SHORT = 256
_EXPANSION = 16
#: Bytes of memory for a message and a number in a longer encoding, in addition to those of the message itself.
_PER_MESSAGE = 320
_PER_NUMBER = 40
_KEPT_BYTES = 32 << 20
#: Most bytes of memory for a byte of any encoding.
_MOST_EXPANSION = 300
#: Bytes of memory for the objects of a page without its encoding, and its least bytes in a file.
_PAGE = 600
_STORED_PAGE = 40


class EncodingParser(Generic[_V]):
    """Parser of serialized encodings; equal ones share one result.

    Parameters
    ----------
    kind
        Class of the message.
    parse
        Parses an encoding, raises CorruptFileError or UnsupportedError without the place.
    count
        Number of short encodings to cache.
    """

    def __init__(self, kind: type[Message], parse: Callable[[bytes], _V], count: int) -> None:
        self._kind = kind
        self._parse = parse
        self._short = lru_cache(maxsize=count)(parse)
        self._long = PageCache(_KEPT_BYTES)
        self.__doc__ = parse.__doc__

    def __call__(self, encoding: bytes) -> _V:
        """Return the parsed encoding. Raises as the function does, and MemoryLimitError."""
        if len(encoding) <= _SHORT:
            return self._short(encoding)

        def make() -> _V:
            check_memory(self.memory(encoding), len(encoding), "a page encoding")
            return self._parse(encoding)

        return self._long.get(encoding, make, lambda _: self.memory(encoding))

    def memory(self, encoding: bytes) -> int:
        """Return about how many bytes of memory a parsed encoding takes."""
        if len(encoding) <= _SHORT:
            return _EXPANSION * len(encoding)
        return message_memory(
            self._kind, encoding, "page encoding", per_message=_PER_MESSAGE, per_number=_PER_NUMBER, exact=True
        )


def cached_by_encoding(kind: type[Message], count: int = 4096) -> Callable[[Callable[[bytes], _V]], EncodingParser[_V]]:
    """Turn a function into an `EncodingParser`."""
    return lambda parse: EncodingParser(kind, parse, count)


def needs_little(encodings: Sequence[bytes]) -> bool:
    """Return True if pages with these encodings may have any content, so that no `PageMemory` is needed."""
    return _PAGE * len(encodings) + _MOST_EXPANSION * sum(map(len, encodings)) <= BASE_MEMORY


class PageMemory:
    """Memory of the objects of the pages of a column.

    Parameters
    ----------
    where
        File and column, for error messages.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._known: set[int] = set()
        self._needed = self._stored = 0
        # Pages that were not weighed yet, because there is room for them however large they are.
        self._light: list[tuple[bytes, object, EncodingParser[Any]]] = []
        self._most = 0

    def add(self, encoding: bytes, parsed: object, parser: EncodingParser[Any]) -> None:
        """Add a page; `parsed` is its parsed encoding.

        Raises
        ------
        MemoryLimitError
            The pages need too much memory.
        """
        self._light.append((encoding, parsed, parser))
        self._most += _PAGE + _MOST_EXPANSION * len(encoding)
        if self._most > BASE_MEMORY:
            self._weigh()

    def _weigh(self) -> None:
        for encoding, parsed, parser in self._light:
            self._needed += _PAGE
            self._stored += _STORED_PAGE + len(encoding)
            if id(parsed) not in self._known:
                self._known.add(id(parsed))
                self._needed += parser.memory(encoding)
        self._light, self._most = [], 0
        check_memory(self._needed, self._stored, f"{self._where}: its pages")
