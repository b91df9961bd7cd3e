"""Opening of files on other machines: those of many fragments at the same time, and each only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from lance_dataset.errors import LanceError
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.threads.waiting import read_each
from lance_dataset.types.schema import Field

__all__ = ["any_remote", "open_together"]


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


def any_remote(fragments: Iterable[FragmentReader]) -> bool:
    """Return True if a file of some fragments lies on another machine; open few files to find out.

    All files of a base path lie in the same store, so one fragment tells for all that use the same base paths.
    """
    different = {tuple([file.base_id for file in each.fragment.files]): each for each in fragments}
    return any(fragment.is_remote for fragment in different.values())


def _attempted(call: Callable[[], object]) -> None:
    with suppress(LanceError, OSError):
        call()
