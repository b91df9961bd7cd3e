"""Cloud object stores (S3, Google Cloud Storage, Azure) through the client library obstore."""

# ruff: noqa: D102 - the methods are documented in lance_dataset.io.base

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import obstore
from obstore.store import AzureStore, GCSStore, S3Store

from lance_dataset._version import __version__
from lance_dataset.errors import AlreadyExistsError, InvalidInputError, LanceError, StorageError, UnsupportedError
from lance_dataset.io.base import InputFile, ObjectInfo, ObjectStore, OutputFile
from lance_dataset.io.cloud_errors import (
    CLIENT_ERRORS,
    check_process,
    is_exists,
    is_missing,
    is_passing,
    status_of,
    translated,
)
from lance_dataset.io.cloud_input import CloudObject
from lance_dataset.io.cloud_options import (
    AZURE,
    GCS,
    S3,
    CloudOptions,
    StoreKind,
    cloud_environment,
    read_options,
    secret_values,
)
from lance_dataset.io.cloud_output import CloudOutput
from lance_dataset.io.secrets import keep_secret, redacted, scrubbed
from lance_dataset.io.statistics import IOCounter
from lance_dataset.io.vended import VendedOptions
from lance_dataset.locks import SharedLock
from lance_dataset.properties import cached_property

__all__ = ["CLOUD_SCHEMES", "CloudLocation", "CloudStore", "open_cloud"]

CLOUD_SCHEMES: Mapping[str, StoreKind] = {"s3": S3, "gs": GCS, "az": AZURE, "abfss": AZURE}

_DELETE_STEP = 1000
_LIST_STEP = 1000
#: Largest server-side copy of S3; Azure and GCS copy more, but not in one request.
_MAX_COPY = 5 << 30
_COPY_STEP = 16 << 20
_NOT_IMPLEMENTED = 501
_MAX_STORES = 64
_ESCAPES = str.maketrans({"%": "%25", "?": "%3F", "#": "%23"})
#: Attributes that define a store; the others follow from them.
_PICKLED = ("_location", "_storage_options", "table_root", "trusted_bases")


@dataclass(frozen=True)
class CloudLocation:
    """Bucket or container of a cloud store.

    Attributes
    ----------
    scheme
        Scheme of the URI, lower case.
    authority
        Rest of the URI before the path: the bucket, or ``container@account.dfs.core.windows.net``.
    """

    scheme: str
    authority: str

    @property
    def uri(self) -> str:
        """URI without a path and without a trailing slash."""
        return f"{self.scheme}://{self.authority}"

    @property
    def bucket(self) -> str:
        """Name of the bucket or container."""
        return self.authority.partition("@")[0]

    @property
    def account(self) -> str:
        """Account in the authority, empty if there is none."""
        return self.authority.partition("@")[2].partition(".")[0]


def open_cloud(uri: str, storage_options: Mapping[str, str] | None = None) -> tuple[CloudStore, str]:
    """Return the store of a URI, and the path inside it.

    Parameters
    ----------
    uri
        ``s3://bucket/path``, ``gs://bucket/path``, ``az://container/path`` or
        ``abfss://container@account.dfs.core.windows.net/path``; percent escapes are decoded.
    storage_options
        See `lance_dataset.io.cloud_options`.

    Returns
    -------
    store : CloudStore
        The same object for the same bucket, options and environment, so that connections are reused.
    root : str
        Path without leading and trailing slashes.

    Raises
    ------
    InvalidInputError
        The URI or an option is invalid.
    """
    scheme, _, rest = uri.partition("://")
    authority, _, path = rest.partition("/")
    location = CloudLocation(scheme.lower(), authority)
    if "@" in authority and ":" in location.bucket:
        # names of buckets have no colon; messages, events and handles would show the password
        raise InvalidInputError(f"{redacted(uri)!r} has a password; give credentials as storage_options")
    if not location.bucket:
        raise InvalidInputError(f"{redacted(uri)!r} names no bucket; write it as {scheme}://bucket/path")
    if "?" in uri or "#" in uri:
        raise InvalidInputError(
            f"{redacted(uri)!r} has a query or fragment; write '?' as %3F and '#' as %23 if they are meant"
        )
    root = unquote(path[:-1] if path.endswith("/") else path)
    if root and (any(part in ("", ".", "..") for part in root.split("/")) or "\0" in root):
        raise InvalidInputError(
            f"{redacted(uri)!r} has an empty, '.' or '..' segment in its path; object stores have none"
        )
    return _shared_store(location, storage_options or {}), root


_stores: dict[object, CloudStore] = {}
_stores_lock = SharedLock()


def _shared_store(location: CloudLocation, options: Mapping[str, str]) -> CloudStore:
    environment = cloud_environment(CLOUD_SCHEMES[location.scheme])
    texts = {str(key): str(value) for key, value in options.items() if value is not None}
    key = location, frozenset(texts.items()), frozenset(environment.items())
    with _stores_lock:
        store = _stores.get(key)
        if store is None:
            vended = isinstance(options, VendedOptions)
            store = CloudStore(location, options if vended else texts, environment)
            while len(_stores) >= _MAX_STORES:
                del _stores[next(iter(_stores))]
            _stores[key] = store
        return store


class CloudStore(ObjectStore):
    """Objects of one bucket; safe to use from several threads, and to pickle.

    Paths have no leading slash; one that is there is ignored.

    Parameters
    ----------
    location
        The bucket.
    storage_options
        Options of the user.
    environment
        See `lance_dataset.io.cloud_options.cloud_environment`.
    """

    is_remote = True

    def __init__(
        self, location: CloudLocation, storage_options: Mapping[str, str], environment: Mapping[str, str]
    ) -> None:
        self._location = location
        self._storage_options = storage_options if isinstance(storage_options, VendedOptions) else dict(storage_options)
        self._environment = environment
        self._kind = CLOUD_SCHEMES[location.scheme]
        self._use(storage_options)
        express = self._options.express or location.bucket.endswith("--x-s3")
        self.lists_in_order = not (self._kind is S3 and express)

    def _use(self, options: Mapping[str, str]) -> None:
        """Connect with options of the user or of a catalog."""
        keep_secret(secret_values(self._kind, options, self._environment))
        self._options = read_options(self._kind, options, self._environment, self._location.uri)
        self._connection = _client(self._location, self._kind, self._options, self._options.max_retries)
        self._used = options
        self.__dict__.pop("_once", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _PICKLED}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # use the connections and the environment of the process that unpickles it
        shared = _shared_store(state["_location"], state["_storage_options"])
        self.__dict__ |= {**shared.__dict__, **state, "statistics": IOCounter()}

    @property
    def _client(self) -> Any:
        check_process(self._location.uri)
        if isinstance(self._storage_options, VendedOptions):
            current = self._storage_options.current()
            if current is not self._used and current != self._used:
                self._use(current)
        return self._connection

    @cached_property
    def _once(self) -> Any:
        """Client that does not retry by itself."""
        return _client(self._location, self._kind, self._options, 0)

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        return self._object(path).open(size)

    def open_whole(self, path: str, size: int) -> tuple[InputFile, Callable[[], None] | None]:
        return self._object(path).open_whole(size)

    def open_output(self, path: str) -> OutputFile:
        def check_new() -> None:
            if self.exists(path):
                raise AlreadyExistsError(f"{self.uri(path)} exists already")

        def put_whole(content: bytes) -> None:
            try:
                self.put_if_absent(path, content)
            except UnsupportedError:  # names of such objects are unique, so nobody else can write this one
                check_new()
                self.put(path, content)

        return CloudOutput(self._client, _key(path), self.uri(path), put_whole, check_new, self.statistics)

    def read(self, path: str) -> bytes:
        try:
            return bytes(self._object(path).get()[1])
        except CLIENT_ERRORS as error:
            raise self._error(error, path, "reading") from error

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        try:
            obstore.put(self._client, _key(path), data)
            self.statistics.add_write(len(data))
        except CLIENT_ERRORS as error:
            raise self._error(error, path, "writing") from error

    def put_if_absent(self, path: str, data: bytes) -> None:
        # The client library must not retry this request: the first one may have written the object although its answer
        # got lost, and the second one would then fail because the object exists.
        check_process(self._location.uri)
        doubtful: Exception | None = None
        deadline = time.monotonic() + self._options.retry_timeout
        for attempt in range(self._options.max_retries + 1):
            if attempt:
                time.sleep(min(0.1 * 2**attempt, 5.0) * random.uniform(0.5, 1.0))
            try:
                obstore.put(self._once, _key(path), data, mode="create", use_multipart=False)
                self.statistics.add_write(len(data))
                return
            except CLIENT_ERRORS as error:
                scrubbed(error)
                if status_of(error) == _NOT_IMPLEMENTED:
                    raise UnsupportedError(
                        f"writing {self.uri(path)} failed: the store cannot write on condition that a name is free, "
                        "which commits need; use an external manifest store (s3+ddb://, or storage option "
                        "manifest_store_url)"
                    ) from error
                if not is_exists(error) and not is_passing(error):
                    raise self._error(error, path, "writing") from error
                if is_exists(error) and self._is_there(path, data, doubtful):
                    return
                # otherwise a conflicting write was refused as well, and the name is still free
                doubtful = doubtful or (None if is_exists(error) else error)
            if time.monotonic() > deadline:
                break
        if self._is_there(path, data, doubtful):
            return
        raise StorageError(
            f"writing {self.uri(path)} failed, and it is not there now: {doubtful or 'the store refuses to write it'}"
        ) from doubtful

    def _is_there(self, path: str, data: bytes, doubtful: Exception | None) -> bool:
        """Return True if the object is the one to be written, False if there is none; raise if it is another one.

        Parameters
        ----------
        path, data
            The object.
        doubtful
            Error of an earlier attempt that may have written it; None if no earlier attempt can have.
        """
        try:
            found = self._object(path).get()[1] if doubtful is not None else self._object(path).head()
        except CLIENT_ERRORS as error:
            if is_missing(error):
                return False
            scrubbed(error)
            raise StorageError(
                f"{self.uri(path)}: whether it was written is not known, as the store cannot be asked ({error}); look "
                "at the newest version before trying again"
            ) from error
        if doubtful is not None and bytes(found) == data:
            return True
        raise AlreadyExistsError(f"{self.uri(path)} exists already")

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        for meta in self._listed(prefix):
            if not isinstance(meta, str):
                yield _info(meta)

    def list_names(self, prefix: str) -> Iterator[str]:
        for meta in self._listed(prefix):
            yield (meta if isinstance(meta, str) else meta["path"]).rsplit("/", 1)[-1]

    def _listed(self, prefix: str) -> Iterator[Any]:
        """Iterate over the metadata of the objects directly in a folder, and the paths of its folders.

        A folder without folders is listed page by page, so the newest version is found with one request. Only the
        listing of a whole folder in one call leaves out deeper objects.
        """
        start = _key(prefix).rstrip("/")
        done = set()
        try:
            if self.lists_in_order:
                for meta in self._pages(start):
                    if "/" in meta["path"][len(start) + bool(start) :]:
                        break
                    done.add(meta["path"])
                    yield meta
                else:
                    return
            found = self._client.list_with_delimiter(start or None)
        except CLIENT_ERRORS as error:
            raise self._error(error, prefix, "listing") from error
        for meta in found["objects"]:
            if meta["path"] not in done:
                yield meta
        yield from found["common_prefixes"]

    def _pages(self, start: str) -> Iterator[Any]:
        for page in self._client.list(start or None, chunk_size=_LIST_STEP):
            yield from page

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        try:
            for meta in self._pages(_key(prefix).rstrip("/")):
                yield _info(meta)
        except CLIENT_ERRORS as error:
            raise self._error(error, prefix, "listing") from error

    def exists(self, path: str) -> bool:
        try:
            self._object(path).head()
        except CLIENT_ERRORS as error:
            if is_missing(error):
                return False
            raise self._error(error, path, "looking for") from error
        return True

    def modified(self, path: str) -> float:
        try:
            return _info(self._object(path).head()).modified
        except CLIENT_ERRORS as error:
            raise self._error(error, path, "looking for") from error

    def delete(self, path: str) -> None:
        try:
            self._client.delete(_key(path))
        except CLIENT_ERRORS as error:
            if not is_missing(error):
                raise self._error(error, path, "deleting") from error

    def delete_tree(self, prefix: str) -> None:
        start = _key(prefix).rstrip("/")
        try:
            # list all names first: some stores skip names if objects are removed during a listing
            paths = [meta["path"] for meta in self._pages(start)]
            for first in range(0, len(paths), _DELETE_STEP):
                self._client.delete(paths[first : first + _DELETE_STEP])
        except CLIENT_ERRORS as error:
            raise self._error(error, prefix, "deleting") from error

    def copy(self, source: str, target: str, origin: ObjectStore | None = None) -> None:
        try:
            if self._object(source).head()["size"] <= _MAX_COPY:
                self._client.copy(_key(source), _key(target))
                return
        except CLIENT_ERRORS as error:
            raise self._error(error, source, "copying") from error
        self._copy_in_parts(source, target)

    def _copy_in_parts(self, source: str, target: str) -> None:
        opened = self.open_input(source)
        name, counter = self.uri(target), self.statistics
        output = CloudOutput(self._client, _key(target), name, lambda data: self.put(target, data), _pass, counter)
        try:
            for start in range(0, opened.size, _COPY_STEP):
                output.write(opened.read(start, min(_COPY_STEP, opened.size - start)))
            output.close()
        finally:
            output.abort()
            opened.close()

    def uri(self, path: str) -> str:
        # `open_cloud` decodes escapes, and takes these characters for the start of other parts
        return f"{self._location.uri}/{_key(path).translate(_ESCAPES)}"

    def _object(self, path: str) -> CloudObject:
        options = self._options
        suffix_ranges = self._kind is not AZURE
        return CloudObject(
            self._client,
            _key(path),
            self.uri(path),
            options.block_size,
            options.download_retries,
            suffix_ranges,
            self.statistics,
        )

    def _error(self, error: Exception, path: str, action: str) -> LanceError:
        return translated(error, self.uri(path), action)


def _key(path: str) -> str:
    return path.lstrip("/")


def _info(meta: Any) -> ObjectInfo:
    return ObjectInfo(meta["path"], meta["size"], meta["last_modified"].timestamp())


def _pass() -> None:
    pass


def _client(location: CloudLocation, kind: StoreKind, options: CloudOptions, retries: int) -> Any:
    """Return a store of the client library."""
    config = dict(options.config)
    if location.account:
        config["account_name"] = location.account
    client = {"user_agent": f"lance-dataset/{__version__}", **options.client}
    retry = {"max_retries": retries, "retry_timeout": timedelta(seconds=options.retry_timeout)}
    stores = {S3.name: S3Store, GCS.name: GCSStore, AZURE.name: AzureStore}
    try:
        return stores[kind.name](location.bucket, config=config, client_options=client, retry_config=retry)
    except CLIENT_ERRORS as error:
        # the client quotes the value, which may be a secret in the wrong place, also in what it says for debugging
        detail = re.split(r"\n\nDebug source", str(error))[0]
        named = {key: str(value) for key, value in {**config, **client}.items() if str(value) in detail}
        for value in sorted(named.values(), key=len, reverse=True):
            detail = detail.replace(value, "***")
        which = f"the storage option {' or '.join(map(repr, named))}" if named else "a storage option"
        raise InvalidInputError(f"{location.uri}: {which} cannot be used: {redacted(detail)}") from None
