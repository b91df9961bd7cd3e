"""Entries of a catalog in a folder: the rows of a dataset of its own, whose versions are its history."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from lance_dataset.api.catalogs.directory.names import ENTRIES_FOLDER
from lance_dataset.api.catalogs.packages import errors
from lance_dataset.api.dataset.dataset import LanceDataset, write_dataset
from lance_dataset.api.opening import dataset
from lance_dataset.errors import AlreadyExistsError, CommitConflictError, CorruptFileError, DatasetNotFoundError
from lance_dataset.read.session import Session
from lance_dataset.records.operations import LanceOperation
from lance_dataset.table.commit.backoff import Backoff

__all__ = ["NAMESPACE", "TABLE", "CatalogEntries", "Entry"]

NAMESPACE, TABLE = "namespace", "table"
_KEY = {"lance-schema:unenforced-primary-key:position": "0"}
_SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata=_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Entry:
    """Table or namespace of a catalog.

    Attributes
    ----------
    object_id
        Names of the namespaces and its own, joined by ``$``.
    kind
        ``table`` or ``namespace``.
    location
        Folder of a table below the root of the catalog; None for a namespace.
    properties
        Properties; None if there are none.
    base_objects
        Ids of objects that it was made from; None if there are none.
    """

    object_id: str
    kind: str
    location: str | None = None
    properties: Mapping[str, str] | None = None
    base_objects: list[str] | None = field(default=None)


class CatalogEntries:
    """Entries of a catalog in a folder.

    Each change writes all of them as a new version, which must directly follow the version that it was computed from.
    So of two changes at the same time, one is repeated with the result of the other.

    Parameters
    ----------
    root
        Path or URI of the folder of the catalog.
    storage_options, session
        See `lance_dataset.dataset`.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str], session: Session) -> None:
        self._uri = f"{root}/{ENTRIES_FOLDER}"
        self._options = dict(storage_options)
        self._session = session

    def read(self) -> dict[str, Entry]:
        """Return all entries by id; none if nothing was ever added."""
        return self._read()[1]

    def change(self, make: Callable[[dict[str, Entry]], _Result]) -> _Result:
        """Change the entries.

        Parameters
        ----------
        make
            Function that changes the dictionary of all entries. It may be called again if others change the catalog at
            the same time; errors that it raises end the change.

        Returns
        -------
        object
            What the function returned.

        Raises
        ------
        ConcurrentModificationError
            Others changed the catalog at each attempt.
        """
        backoff = Backoff()
        while backoff.start():
            shown, entries = self._read()
            before = dict(entries)
            result = make(entries)
            if entries == before or self._commit(shown, entries):
                return result
            backoff.sleep()
        raise errors.ConcurrentModificationError(
            f"Concurrent modification: others changed the catalog {self._uri} at {backoff.lost} attempts; try again"
        )

    def _read(self) -> tuple[LanceDataset | None, dict[str, Entry]]:
        try:
            shown = dataset(self._uri, storage_options=self._options, session=self._session)
        except DatasetNotFoundError:
            return None, {}
        missing = {"object_id", "object_type", "location", "metadata"} - set(shown.schema.names)
        if missing:
            raise CorruptFileError(f"{self._uri} is not the table of a catalog: it lacks the columns {sorted(missing)}")
        names = [name for name in _SCHEMA.names if name in shown.schema.names]
        rows = shown.to_table(columns=names).to_pylist()
        found = [_entry(self._uri, row) for row in rows]
        return shown, {each.object_id: each for each in found}

    def _commit(self, shown: LanceDataset | None, entries: Mapping[str, Entry]) -> bool:
        """Write the entries as the version after another one. Return False if others made that version."""
        rows = pa.Table.from_pylist([_row(each) for each in entries.values()], schema=_SCHEMA)
        arguments: dict[str, Any] = {"storage_options": self._options, "session": self._session}
        if shown is None:
            try:
                write_dataset(rows, self._uri, data_storage_version="2.2", **arguments)
            except AlreadyExistsError:
                return False
            return True
        from lance_dataset.api.fragment.writing import remove_uncommitted, write_fragments

        fragments = write_fragments(rows, shown, mode="overwrite", **arguments) if rows.num_rows else []
        try:
            LanceDataset.commit(
                shown, LanceOperation.Overwrite(_SCHEMA, fragments), shown.version, max_retries=0, **arguments
            )
        except CommitConflictError:
            remove_uncommitted(fragments, shown)
            return False
        return True


def _row(entry: Entry) -> dict[str, object]:
    text = (
        None
        if entry.properties is None
        else json.dumps(dict(entry.properties), ensure_ascii=False, separators=(",", ":"))
    )
    return {
        "object_id": entry.object_id,
        "object_type": entry.kind,
        "location": entry.location,
        "metadata": text,
        "base_objects": entry.base_objects,
    }


def _entry(uri: str, row: Mapping[str, object]) -> Entry:
    name, kind, location = row["object_id"], row["object_type"], row["location"]
    if not isinstance(name, str) or not isinstance(kind, str) or not isinstance(location, str | None):
        raise CorruptFileError(f"{uri} has an entry without an id or a type, or with a location that is not text")
    bases = row.get("base_objects")
    return Entry(name, kind, location, _properties(uri, name, row["metadata"]), bases if bases else None)  # type: ignore[arg-type]


def _properties(uri: str, name: str, text: object) -> dict[str, str] | None:
    if text is None:
        return None
    try:
        found = json.loads(str(text))
    except ValueError as error:
        raise CorruptFileError(f"{uri}: the properties of {name!r} are not JSON") from error
    if not isinstance(found, dict):
        raise CorruptFileError(f"{uri}: the properties of {name!r} are not a JSON object")
    return {str(key): str(value) for key, value in found.items()}
