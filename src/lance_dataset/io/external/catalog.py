"""Manifest entries kept by a catalog that manages the versions of its tables."""

# ruff: noqa: D102 - the methods are documented in lance_dataset.io.external.base

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from lance_dataset.errors import AlreadyExistsError, CorruptFileError, InvalidInputError, StorageError
from lance_dataset.io.external.base import ExternalManifests, ManifestEntry, required_package

__all__ = ["CatalogManifests", "CatalogRequest", "answer_field"]

_BRANCHES = "tree/"


class CatalogRequest(dict[str, Any]):
    """Request about versions: a dictionary, as some clients need it, whose items are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return a plain dictionary."""
        return dict(self)


def answer_field(answer: Any, name: str) -> Any:
    """Return a field of an answer, which is a dictionary or an object; None if it does not have it."""
    return answer.get(name) if isinstance(answer, dict) else getattr(answer, name, None)


class CatalogManifests(ExternalManifests):
    """Versions of one table and its branches, which a catalog creates and lists.

    Parameters
    ----------
    client
        Client of the catalog, a `lance_namespace.LanceNamespace`.
    table_id
        Names of the namespaces and of the table.
    root
        Path of the table in the store of its objects.
    """

    def __init__(self, client: Any, table_id: tuple[str, ...], root: str) -> None:
        self._client = client
        self._table_id = table_id
        self._root = root.strip("/")

    def __repr__(self) -> str:
        return f"the catalog's table {'.'.join(self._table_id)!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return CatalogManifests, (self._client, self._table_id, self._root)

    def key(self, uri: str, root: str) -> str:
        key = root.strip("/")
        if key != self._root and not key.startswith(f"{self._root}/{_BRANCHES}"):
            raise InvalidInputError(f"{uri} is not {self!r}, whose versions the catalog manages; open it by its own id")
        return key

    def get(self, key: str, version: int) -> ManifestEntry | None:
        answer = self._call("describe_table_version", key, version=version)
        found = None if answer is None else answer_field(answer, "version")
        return None if found is None else self._entry(key, found)

    def get_latest(self, key: str) -> ManifestEntry | None:
        answer = self._call("list_table_versions", key, limit=1, descending=True)
        found = None if answer is None else answer_field(answer, "versions")
        return self._entry(key, found[0]) if found else None

    def put_if_absent(self, key: str, entry: ManifestEntry) -> None:
        errors = _errors()
        name = entry.path.rpartition("/")[2].partition(".")[0]
        scheme = "V2" if len(name) == 20 else "V1"
        try:
            self._call(
                "create_table_version",
                key,
                version=entry.version,
                manifest_path=f"{key}/{entry.path}",
                manifest_size=entry.size,
                naming_scheme=scheme,
            )
        except errors.ConcurrentModificationError as error:
            raise AlreadyExistsError(f"{self!r} has version {entry.version} already: {error}") from error

    def put_if_exists(self, key: str, entry: ManifestEntry) -> None:
        # The catalog itself gives a manifest its final name when it creates a version.
        return

    def delete(self, key: str, versions: Iterable[int] | None = None) -> None:
        if versions is None:
            return
        ranges = [{"start_version": version, "end_version": version + 1} for version in versions]
        if ranges:
            self._call("batch_delete_table_versions", key, ranges=ranges)

    def _call(self, method: str, key: str, **fields: Any) -> Any:
        """Call the client; None if the table or the version does not exist."""
        branch = key[len(self._root) + 1 + len(_BRANCHES) :]
        given = {"id": list(self._table_id), "branch": branch or None, **fields}
        request = CatalogRequest({name: value for name, value in given.items() if value is not None})
        with self._failures():
            try:
                return getattr(self._client, method)(request)
            except (_errors().TableVersionNotFoundError, _errors().TableNotFoundError):
                if method == "create_table_version":
                    raise
                return None

    @contextmanager
    def _failures(self) -> Iterator[None]:
        errors = _errors()
        try:
            yield
        except errors.ConcurrentModificationError:
            raise
        except errors.LanceNamespaceError as error:
            raise StorageError(f"{self!r} cannot be reached through its catalog: {error}") from error

    def _entry(self, key: str, found: Any) -> ManifestEntry:
        version, path, size = (answer_field(found, name) for name in ("version", "manifest_path", "manifest_size"))
        if not isinstance(version, int) or not isinstance(path, str) or not (size is None or isinstance(size, int)):
            raise CorruptFileError(f"{self!r} has a version without a proper number, path or size")
        inside = path.strip("/")
        if not inside.startswith(f"{key}/"):
            raise CorruptFileError(f"{self!r} has version {version} in {path!r}, outside of {key!r}")
        return ManifestEntry(version, inside[len(key) + 1 :], size)


def _errors() -> Any:
    return required_package("lance_namespace.errors", "namespace", "a table of a catalog")
