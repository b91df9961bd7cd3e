"""Errors of the object store client as errors of this package, and the error of a forked process that cannot use it."""

from __future__ import annotations

import os
import re

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from lance_dataset.errors import (
    InvalidInputError,
    LanceError,
    MissingFileError,
    StorageError,
    StoragePermissionError,
    UnsupportedError,
)
from lance_dataset.io.secrets import scrubbed

__all__ = ["CLIENT_ERRORS", "check_process", "is_exists", "is_missing", "is_passing", "status_of", "translated"]

#: Exceptions of the client's calls.
CLIENT_ERRORS: tuple[type[Exception], ...] = (BaseError, OSError, ValueError, NotImplementedError)

_STATUS = re.compile(r"status code: (\d{3})")
_ERROR_CODE = re.compile(r"<Code>(\w+)</Code>")
#: Statuses of requests that may succeed if they are retried.
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_MISSING_STORE = frozenset({"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"})
_WRONG_REGION = frozenset({"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"})


def status_of(error: Exception) -> int | None:
    """Return the HTTP status of an error, None if there was no answer."""
    found = _STATUS.search(str(error))
    return int(found.group(1)) if found else None


def is_missing(error: Exception) -> bool:
    """Return whether the object does not exist."""
    return isinstance(error, FileNotFoundError) and _code(error) not in _MISSING_STORE


def is_exists(error: Exception) -> bool:
    """Return whether a write was refused because the object exists."""
    return isinstance(error, (AlreadyExistsError, PreconditionError))


def is_passing(error: Exception) -> bool:
    """Return whether a retry may help. It is unknown then whether the request had an effect."""
    if not isinstance(error, GenericError):
        return False
    status = status_of(error)
    return status in _PASSING if status is not None else "builder error" not in str(error)


def translated(error: Exception, uri: str, action: str) -> LanceError:
    """Return the error of this package for an error of the client.

    Parameters
    ----------
    error
        Error of the client.
    uri
        URI of the object.
    action
        Name of the operation, such as "reading".
    """
    if isinstance(error, LanceError):
        return error
    scrubbed(error)
    what = f"{action} {uri} failed"
    detail = str(error).partition("\n\nDebug source")[0].strip()
    code, status = _code(error), status_of(error)
    if code in _MISSING_STORE:
        return StorageError(f"{what}: the store has no such bucket or container; create it, or correct the URI")
    if isinstance(error, FileNotFoundError):
        return MissingFileError(f"{uri} does not exist")
    if code in _WRONG_REGION or status == 301:
        return StorageError(f"{what}: the bucket lies in another region; set storage option aws_region ({detail})")
    if isinstance(error, (PermissionDeniedError, UnauthenticatedError)) or status in (401, 403):
        return StoragePermissionError(
            f"{what}: access was refused; check the credentials in storage_options or the environment, and what they "
            f"allow ({detail})"
        )
    if status == 501 or isinstance(error, (NotSupportedError, NotImplementedError)):
        return UnsupportedError(f"{what}: the store cannot do this ({detail})")
    if isinstance(error, (ValueError, InvalidPathError)):
        return InvalidInputError(f"{what}: {detail}")
    if status is None and isinstance(error, GenericError):
        return StorageError(f"{what}: no answer; check the endpoint, the network and the credentials ({detail})")
    return StorageError(f"{what}: {detail}")


_first_user: int | None = None


def check_process(uri: str) -> None:
    """Raise in a forked child whose parent has used the client library.

    The library runs threads of its own, which the child does not have, so every request would wait forever.

    Raises
    ------
    StorageError
        This process is such a child.
    """
    global _first_user
    if _first_user is None:
        _first_user = os.getpid()
    elif _first_user != os.getpid():
        raise StorageError(
            f"{uri}: this process was forked from one that uses cloud stores, so it cannot use them; start it with "
            "multiprocessing.get_context('spawn') or 'forkserver', or fork before the first use"
        )


def _code(error: Exception) -> str:
    found = _ERROR_CODE.search(str(error))
    return found.group(1) if found else ""
