"""Opening of files on other machines: those of many fragments at the same time, and each only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from lance_dataset.errors import LanceError
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.threads.waiting import read_each
from lance_dataset.types.schema import Field

__all__ = ["open_together"]


def open_together(fragments: Iterable[FragmentReader], fields: Sequence[Field]) -> None:
    """Open the data files that hold columns of some fragments, and the deletion files, with as few waits as possible.

    Threads that read columns afterwards find the files open. Otherwise each would open them again, or one after the
    other. A file that cannot be opened is left to them: they report what is wrong.

    Parameters
    ----------
    fragments
        The fragments.
    fields
        Top-level fields.
    """
    calls: list[Callable[[], object]] = []
    for fragment in fragments:
        with suppress(LanceError):
            calls.extend(fragment.unopened(fields))
    read_each(_attempted, calls)


def _attempted(call: Callable[[], object]) -> None:
    with suppress(LanceError, OSError):
        call()
