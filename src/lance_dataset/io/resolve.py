"""Stores and paths of the locations that users pass."""

from __future__ import annotations

import copy
import os
import weakref
from collections.abc import Mapping

from lance_dataset.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.external.options import without_manifests
from lance_dataset.io.guarded import with_manifests
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.io.option_values import flag_option
from lance_dataset.io.secrets import redacted
from lance_dataset.io.statistics import IOCounter
from lance_dataset.io.uris import CLOUD_SCHEMES, LOCAL_SCHEMES, file_path, has_authority, split_scheme, unknown_scheme
from lance_dataset.locks import SharedLock

__all__ = ["check_options", "resolve"]

_memory_stores: weakref.WeakKeyDictionary[object, MemoryStore] = weakref.WeakKeyDictionary()
_memory_lock = SharedLock()


def check_options(storage_options: object) -> None:
    """Raise WrongTypeError unless storage options are a dictionary or None."""
    if not isinstance(storage_options, Mapping | None):
        raise WrongTypeError(f"storage options must be a dictionary, not {type(storage_options).__name__}")


def resolve(
    uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None, session: object | None = None
) -> tuple[ObjectStore, str]:
    """Return the store of a location, and the path inside it.

    Parameters
    ----------
    uri
        A plain path (made absolute; ``~`` is the home directory), a ``file:`` URI, ``memory://name``, or a URI of a
        cloud store.
    storage_options
        For local files: ``mmap`` (``"false"`` for plain reads instead of memory mapping) and ``local_fsync``
        (``"false"`` to skip syncing files and directories). For any store: ``manifest_store_url`` (a URL of SQLAlchemy)
        and ``manifest_store_table``, for datasets whose manifests are listed in an SQL database. Other keys are
        ignored.
    session
        Owner of ``memory://`` data: the same object finds the same data again. Without one every call makes a new
        store.

    Returns
    -------
    store : ObjectStore
    root : str
        Path without trailing slash.

    Raises
    ------
    UnsupportedError
        There is no store for the scheme of the URI, or a package that it needs is not installed.
    InvalidInputError
        The location is empty or contains a NUL, or an option has an invalid value.
    """
    text = os.fspath(uri)
    if not isinstance(text, str):
        raise WrongTypeError(f"a location must be text or a path of text, not {text!r}")
    if not text or "\0" in text:
        raise InvalidInputError(
            f"{redacted(text)!r} is not a location of a dataset: it is empty or contains a NUL character"
        )
    check_options(storage_options)
    location, manifests = without_manifests(text, storage_options or {})
    store, root = _without_manifests(location, storage_options, session)
    return with_manifests(store.for_table(root), manifests), root


def _without_manifests(
    text: str, storage_options: Mapping[str, str] | None, session: object | None
) -> tuple[ObjectStore, str]:
    scheme, rest = split_scheme(text)
    if scheme in ("", *LOCAL_SCHEMES):
        return _local_store(storage_options or {}), _absolute(file_path(text) if scheme else text)
    if not has_authority(text):
        raise unknown_scheme(text)
    if scheme == "memory":
        return _counting_apart(_memory_store(session)), "/" + rest.strip("/")
    if scheme in CLOUD_SCHEMES:
        store, root = _cloud_store(text, storage_options)
        return _counting_apart(store), root
    raise unknown_scheme(text)


def _cloud_store(uri: str, options: Mapping[str, str] | None) -> tuple[ObjectStore, str]:
    try:
        from lance_dataset.io.cloud import open_cloud
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise UnsupportedError(
            f"{redacted(uri)!r} lies in a cloud store, which needs the package obstore: "
            "pip install lance-dataset[cloud]"
        ) from error
    return open_cloud(uri, options)


def _counting_apart(store: ObjectStore) -> ObjectStore:
    """Return a store of the same objects that counts only its own reads and writes."""
    store = copy.copy(store)
    store.statistics = IOCounter()
    return store


def _absolute(path: str) -> str:
    if path == "~" or path.startswith("~/"):
        path = os.path.expanduser(path)
    absolute = os.path.abspath(path)
    return absolute.replace(os.sep, "/").rstrip("/")


def _local_store(options: Mapping[str, str]) -> LocalStore:
    lowered = {key.lower(): value for key, value in options.items()}
    return LocalStore(mmap=_flag(lowered, "mmap"), fsync=_flag(lowered, "local_fsync") is not False)


def _flag(options: Mapping[str, str], key: str) -> bool | None:
    value = options.get(key)
    return None if value is None else flag_option(key, value)


def _memory_store(session: object | None) -> MemoryStore:
    if session is None:
        return MemoryStore()
    with _memory_lock:
        store = _memory_stores.get(session)
        if store is None:
            store = _memory_stores[session] = MemoryStore()
        return store
