"""Common parts of all operations of a catalog: context, counts, and the classes of errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from lance_dataset.api.catalogs.packages import errors
from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    DatasetNotFoundError,
    FieldNotFoundError,
    FilterError,
    IndexNotFoundError,
    InvalidInputError,
    LanceError,
    MemoryLimitError,
    SchemaError,
    StoragePermissionError,
    UnsupportedError,
    VersionNotFoundError,
)

__all__ = ["CountedCatalog", "DynamicContextProvider", "failures_of_tables", "object_id_of", "operation", "parts_of"]

_Method = TypeVar("_Method", bound=Callable[..., Any])
_DELIMITER = "$"


class DynamicContextProvider(ABC):
    """Base class of objects that give the context of each operation, such as headers with a fresh token."""

    @abstractmethod
    def provide_context(self, info: dict[str, str]) -> dict[str, str]:
        """Return the context of an operation.

        Parameters
        ----------
        info
            ``operation`` is the name of the method, ``object_id`` the id of the table or namespace.

        Returns
        -------
        dict
            Text by text. A `RestNamespace` sends ``headers.NAME`` as the header ``NAME``.
        """


def parts_of(request: Any) -> list[str]:
    """Return the names that make the id of a request; empty for the root."""
    found = request.get("id") if isinstance(request, dict) else getattr(request, "id", None)
    return list(found or [])


def object_id_of(request: Any) -> str:
    """Return the id of a request as text."""
    return _DELIMITER.join(parts_of(request))


class CountedCatalog:
    """Catalog that counts its operations and asks for their context."""

    _context_provider: DynamicContextProvider | None = None
    _counts: dict[str, int] | None = None

    def retrieve_ops_metrics(self) -> dict[str, int]:
        """Return the number of calls by operation; empty unless ``ops_metrics_enabled`` is ``true``."""
        return dict(self._counts or {})

    def reset_ops_metrics(self) -> None:
        """Set the numbers of calls to zero."""
        if self._counts is not None:
            self._counts.clear()

    def _begin(self, name: str, request: Any) -> dict[str, str]:
        """Count an operation and return its context."""
        if self._counts is not None:
            self._counts[name] = self._counts.get(name, 0) + 1
        if self._context_provider is None:
            return {}
        context = self._context_provider.provide_context({"operation": name, "object_id": object_id_of(request)})
        return dict(context or {})


def operation(method: _Method) -> _Method:
    """Make a method an operation of a catalog: it is counted, and raises errors of the interface of catalogs."""

    @wraps(method)
    def run(self: Any, request: Any, *arguments: Any) -> Any:
        self._begin(method.__name__, request)
        with failures_of_tables(object_id_of(request)):
            return method(self, request, *arguments)

    return run  # type: ignore[return-value]


#: Errors of this package, those of the interface of catalogs, and how their messages begin; the first one that fits.
_KINDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    (DatasetNotFoundError, "TableNotFoundError", "Table not found"),
    (VersionNotFoundError, "TableVersionNotFoundError", "Table version not found"),
    (IndexNotFoundError, "TableIndexNotFoundError", "Table index not found"),
    (FieldNotFoundError, "TableColumnNotFoundError", "Table column not found"),
    (CommitConflictError, "ConcurrentModificationError", "Concurrent modification"),
    (AlreadyExistsError, "TableAlreadyExistsError", "Table already exists"),
    (StoragePermissionError, "PermissionDeniedError", "Permission denied"),
    (SchemaError, "TableSchemaValidationError", "Table schema validation error"),
    (UnsupportedError, "UnsupportedOperationError", "Not supported"),
    ((InvalidInputError, FilterError, TypeError, MemoryLimitError), "InvalidInputError", "Invalid input"),
    (LanceError, "InternalError", "Internal error"),
)


@contextmanager
def failures_of_tables(what: str) -> Iterator[None]:
    """Raise errors of tables as errors of the interface of catalogs."""
    try:
        yield
    except (LanceError, TypeError) as error:
        name, words = next((name, words) for kind, name, words in _KINDS if isinstance(error, kind))
        raise getattr(errors, name)(f"{words}: {what}: {error}") from error
