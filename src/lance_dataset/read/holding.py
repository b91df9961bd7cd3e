"""Columns of fragments on other machines: fetched with one or two requests per file, and held while they are decoded.

Each request takes processor time and a wait, however few bytes it returns. So columns of a small fragment are not
requested page by page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType

from lance_dataset.errors import LanceError
from lance_dataset.file.blob_fields import is_resolved
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.threads.waiting import read_each
from lance_dataset.types.schema import Field

__all__ = ["SMALL_FILE", "Holding", "can_hold", "is_worth_all"]

#: Columns of a fragment with more stored bytes than this are read part by part.
_MOST_HELD = 8 << 20
#: Larger files are not fetched as a whole when they are opened.
_MOST_WHOLE = 4 << 20
#: Files up to this size are fetched as a whole by those who may need all columns, even if only a few rows of each.
SMALL_FILE = 256 << 10
#: Bytes that are fetched although nobody wants them, to save a request.
_WASTED = 128 << 10


def is_worth_all(share: float, most: int = _MOST_WHOLE) -> Callable[[int], bool]:
    """Return a function that tells by the size of a file if it is fetched as a whole when it is opened.

    Parameters
    ----------
    share
        Share of its bytes that are going to be read.
    most
        Larger files are not.
    """
    return lambda size: size <= most and size * (1.0 - share) <= _WASTED


def can_hold(
    fragment: FragmentReader, fields: Sequence[Field], ranges: Sequence[tuple[int, int]], share: float
) -> bool:
    """Return True if columns are best held: all rows are wanted, they are few bytes, and all these are in their pages.

    Parameters
    ----------
    fragment
        The fragment.
    fields
        Top-level fields.
    ranges
        Rows that are wanted.
    share
        Share of the bytes of the fragment that the columns take.
    """
    size = _known_bytes(fragment)
    if size is None or size * share > _MOST_HELD:
        return False
    if len(ranges) != 1 or ranges[0] != (0, fragment.physical_rows):
        return False
    return not any(node.blob is not None or is_resolved(node) for field in fields for node in field.walk())


class Holding:
    """Columns of fragments that are in memory until this is released, or ends as a context."""

    def __init__(self) -> None:
        self._held: list[Callable[[], None] | None] = []
        self._released = False

    def __enter__(self) -> Holding:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def fetch(self, fragments: Sequence[FragmentReader], fields: Sequence[Field], whole: Callable[[int], bool]) -> None:
        """Fetch all pages of columns of some fragments at the same time, and the deletion files.

        Errors are left to those who read the columns: they report what is wrong. See `FragmentReader.hold` for the
        parameters.
        """
        calls: list[Callable[[], object]] = [partial(each.hold, fields, whole, self._held) for each in fragments]
        calls += [partial(_load_deletions, each) for each in fragments if each.fragment.deletion_file is not None]
        read_each(_attempted, calls)
        if self._released:  # meanwhile: nobody waits for what an abandoned scan fetches
            self.release()

    def fetch_small(self, fragments: Iterable[FragmentReader], fields: Sequence[Field]) -> None:
        """Fetch columns of the fragments that are so small that a request for each costs more than to fetch all."""
        small = [each for each in fragments if (_known_bytes(each) or SMALL_FILE + 1) <= SMALL_FILE]
        if small:
            self.fetch(small, fields, lambda size: True)

    def release(self) -> None:
        """Let go of what was fetched, and of what is being fetched once it has come."""
        self._released = True
        while self._held:
            release = self._held.pop()
            if release is not None:
                release()


def _known_bytes(fragment: FragmentReader) -> int | None:
    """Return the size of the files of a fragment; None if one is legacy, or has to be opened to know its size."""
    files = fragment.fragment.files
    if fragment.is_legacy or not all(file.file_size_bytes for file in files):
        return None
    return sum(file.file_size_bytes for file in files)


def _load_deletions(fragment: FragmentReader) -> None:
    _ = fragment.deletions


def _attempted(call: Callable[[], object]) -> None:
    with suppress(LanceError, OSError):
        call()
