"""Every exception class of the package.

`LanceError` is the root. Each subclass also derives from the built-in exceptions that users of the reference
implementation catch for the same mistake, so programs written for it keep working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "AlreadyExistsError",
    "CommitConflictError",
    "CorruptFileError",
    "DatasetNotFoundError",
    "FieldNotFoundError",
    "FilterError",
    "InvalidInputError",
    "LanceError",
    "MissingFileError",
    "OutOfRangeError",
    "ReferenceExistsError",
    "RowIndexError",
    "SchemaError",
    "StorageError",
    "StoragePermissionError",
    "UnsupportedError",
    "VersionNotFoundError",
    "nearest_name_hint",
]


class LanceError(Exception):
    """Root of every error this package raises on purpose."""


class InvalidInputError(LanceError, ValueError, OSError):
    """An argument has a value the call cannot accept."""


class OutOfRangeError(InvalidInputError, OverflowError):
    """A number that is negative, or larger than anything of its kind can be."""


class DatasetNotFoundError(LanceError, FileNotFoundError, ValueError):
    """There is no dataset at the given location."""


class VersionNotFoundError(LanceError, FileNotFoundError, ValueError, RuntimeError):
    """The dataset exists but the asked version (or time, or reference) does not."""


class MissingFileError(LanceError, FileNotFoundError, ValueError):
    """A file that the dataset refers to is not in the store."""


class AlreadyExistsError(LanceError, FileExistsError):
    """The dataset, or the object to create, exists already."""


class ReferenceExistsError(AlreadyExistsError, ValueError):
    """The tag or branch to create exists already."""


class CorruptFileError(LanceError, ValueError, OSError):
    """Bytes of a file contradict the format; the message names file, column, page and what is wrong."""


class UnsupportedError(LanceError, NotImplementedError, ValueError, OSError):
    """Valid, but not something this release can do: a feature flag, an encoding, a type, a parameter."""


class SchemaError(LanceError, ValueError, OSError, RuntimeError):
    """The schema of the data does not fit the schema of the dataset, or cannot be stored at all."""


class FieldNotFoundError(LanceError, ValueError, OSError, RuntimeError):
    """A column name that the schema does not hold."""


class FilterError(LanceError, ValueError, OSError):
    """A filter that cannot be parsed or does not fit the schema.

    Parameters
    ----------
    message
        What is wrong.
    text
        The filter text, if there is one.
    position
        0-based character position of the offending token in `text`.
    """

    def __init__(self, message: str, text: str | None = None, position: int | None = None) -> None:
        if text is not None and position is not None:
            message = f"{message} (at position {position})\n{_excerpt(text, position)}"
        super().__init__(message)
        self.text = text
        self.position = position


def _excerpt(text: str, position: int, around: int = 80) -> str:
    """The line of a text that a position is in, or what is near to it, over a caret."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position) if "\n" in text[position:] else len(text)
    first, last = max(start, position - around), min(end, position + around)
    before, after = "..." if first > start else "", "..." if last < end else ""
    return f"  {before}{text[first:last]}{after}\n  {' ' * (len(before) + position - first)}^"


class RowIndexError(LanceError, IndexError, OverflowError, OSError):
    """A row number outside the dataset or fragment."""


class StorageError(LanceError, OSError, ValueError):
    """A cloud store refused or failed a request; the message says which, and what can be done."""


class StoragePermissionError(StorageError, PermissionError):
    """A cloud store does not accept the credentials, or they do not allow what was tried."""


class CommitConflictError(LanceError, OSError):
    """Another writer committed something this change cannot be applied on top of.

    Attributes
    ----------
    retryable
        True when repeating the whole operation on the newest version can succeed.
    """

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


def nearest_name_hint(name: str, known: Iterable[str]) -> str:
    """The tail of an error message that suggests the known name most like `name`.

    Returns
    -------
    str
        ``"; did you mean 'x'?"``, or a list of the first known names when nothing is similar, or ``""``.
    """
    names = list(known)
    lowered = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {lowered[close[0]]!r}?"
    if names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        return f"; the names are: {shown}"
    return ""
