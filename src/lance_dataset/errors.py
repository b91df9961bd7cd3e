"""Exception classes of the package.

`LanceError` is the base class. Each subclass also derives from the built-in exceptions that the reference
implementation raises for the same error, so programs written for it keep working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "AlreadyExistsError",
    "CommitConflictError",
    "CorruptFileError",
    "DamagedIndexError",
    "DatasetNotFoundError",
    "FieldNotFoundError",
    "FilterError",
    "IndexNotFoundError",
    "IndexProblem",
    "IndexedFieldNotFoundError",
    "InvalidIndexError",
    "InvalidInputError",
    "LanceError",
    "MemoryLimitError",
    "MissingFileError",
    "OutOfRangeError",
    "ReferenceExistsError",
    "RowIndexError",
    "SchemaError",
    "StorageError",
    "StoragePermissionError",
    "UnsafePathError",
    "UnsupportedError",
    "VersionNotFoundError",
    "WrongTypeError",
    "nearest_name_hint",
]


class LanceError(Exception):
    """Base class of the errors that this package raises."""


class InvalidInputError(LanceError, ValueError, OSError):
    """An argument has an invalid value."""


class WrongTypeError(InvalidInputError, TypeError):
    """An argument has a type that cannot be used."""


class OutOfRangeError(InvalidInputError, OverflowError):
    """A number is negative or too large."""


class DatasetNotFoundError(LanceError, FileNotFoundError, ValueError):
    """The dataset does not exist at the given location."""


class VersionNotFoundError(LanceError, FileNotFoundError, ValueError, RuntimeError):
    """The dataset exists, but the requested version, tag or branch does not."""


class MissingFileError(LanceError, FileNotFoundError, ValueError):
    """A file that the dataset refers to does not exist."""


class AlreadyExistsError(LanceError, FileExistsError):
    """The dataset, or another object to create, already exists."""


class ReferenceExistsError(AlreadyExistsError, ValueError):
    """The tag or branch to create already exists."""


class CorruptFileError(LanceError, ValueError, OSError):
    """A file is malformed. The message names the file, column and page, and the problem."""


@dataclass(frozen=True)
class IndexProblem:
    """A mistake in an index.

    Attributes
    ----------
    index
        Name of the index.
    kind
        Its kind, such as ``BTree``.
    segment
        UUID of the segment of the index, which is the name of the folder of its files; None for a mistake that several
        segments make together.
    what
        Description of the mistake.
    num_rows
        Number of rows about which queries may get a wrong answer; None if it is not known.
    remedy
        Python code that mends the index of a dataset ``ds``.
    """

    index: str
    kind: str
    segment: str | None
    what: str
    num_rows: int | None
    remedy: str

    def __str__(self) -> str:
        place = "" if self.segment is None else f", segment {self.segment}"
        return f"the {self.kind} index {self.index!r}{place}: {self.what}; to mend it: {self.remedy}"


class DamagedIndexError(CorruptFileError):
    """Indices contradict the values of the table, or themselves.

    Attributes
    ----------
    problems : tuple of IndexProblem
        The mistakes.
    """

    def __init__(self, message: str, problems: Iterable[IndexProblem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.problems)


class MemoryLimitError(LanceError, ValueError, OSError):
    """Content of a file, or a result, needs more memory than it may take. The message names the limit."""


class UnsafePathError(LanceError, ValueError, OSError):
    """A dataset refers to a place outside of it by a link or a base path, and files there must not be used that way."""


class UnsupportedError(LanceError, NotImplementedError, ValueError, OSError):
    """A feature flag, an encoding, a type or a parameter is valid, but not supported by this release."""


class SchemaError(LanceError, ValueError, OSError, RuntimeError):
    """The schema of the data does not fit the schema of the dataset, or cannot be stored."""


class FieldNotFoundError(LanceError, ValueError, OSError, RuntimeError):
    """A column does not exist in the schema."""


class IndexedFieldNotFoundError(FieldNotFoundError, KeyError):
    """The column of an index does not exist in the schema."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # that of KeyError adds quotes


class InvalidIndexError(InvalidInputError, RuntimeError):
    """An index cannot have this name or these parameters."""


class IndexNotFoundError(LanceError, KeyError, RuntimeError):
    """The dataset has no index of this name."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # that of KeyError adds quotes


class FilterError(LanceError, ValueError, OSError):
    """A filter cannot be parsed, or does not fit the schema.

    Parameters
    ----------
    message
        Description of the problem.
    text
        Text of the filter, if any.
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
    """Return the line of a text that contains a position, shortened if it is long, with a caret below the position."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position) if "\n" in text[position:] else len(text)
    first, last = max(start, position - around), min(end, position + around)
    before, after = "..." if first > start else "", "..." if last < end else ""
    return f"  {before}{text[first:last]}{after}\n  {' ' * (len(before) + position - first)}^"


class RowIndexError(LanceError, IndexError, OverflowError, OSError):
    """A row number is outside the dataset or fragment."""


class StorageError(LanceError, OSError, ValueError):
    """A request to a cloud store failed. The message names the request and suggests what to do."""


class StoragePermissionError(StorageError, PermissionError):
    """A cloud store does not accept the credentials, or they do not permit the request."""


class CommitConflictError(LanceError, OSError):
    """Another writer committed a change that conflicts with this one.

    Attributes
    ----------
    retryable
        True if repeating the whole operation on the newest version can succeed.
    """

    def __init__(self, message: str = "", retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable

    def __reduce__(self) -> tuple[Any, ...]:
        # exceptions are made of their positional arguments alone
        return _commit_conflict, (type(self), str(self), self.retryable), self.__dict__


def _commit_conflict(kind: type[CommitConflictError], message: str, retryable: bool) -> CommitConflictError:
    return kind(message, retryable=retryable)


def nearest_name_hint(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message that suggests the known name most similar to `name`.

    Returns
    -------
    str
        ``"; did you mean 'x'?"``, or a list of the first known names if none is similar, or ``""``.
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
