"""Namespaces and tables of a catalog in a folder: creating, finding, listing, removing."""

# ruff: noqa: D102 - the interface of catalogs documents its methods

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from lance_dataset.api.catalogs.directory.base import FolderPart, sent_rows
from lance_dataset.api.catalogs.directory.entries import NAMESPACE, TABLE, Entry
from lance_dataset.api.catalogs.directory.names import check_id, new_folder, object_id, register_location
from lance_dataset.api.catalogs.directory.schema_form import described_schema
from lance_dataset.api.catalogs.directory.store import DEREGISTERED, TablePlace
from lance_dataset.api.catalogs.operation import operation, parts_of
from lance_dataset.api.catalogs.packages import errors, models
from lance_dataset.api.dataset.dataset import write_dataset
from lance_dataset.api.opening import dataset

__all__ = ["Tables"]

_MODES = {"create": "create", "existok": "exist_ok", "exist_ok": "exist_ok", "overwrite": "overwrite"}


class Tables(FolderPart):
    """Namespaces and tables of a catalog in a folder."""

    # -- namespaces ------------------------------------------------------------------------------------------------

    @operation
    def create_namespace(self, request: Any) -> Any:
        self._check_entries()
        parts = parts_of(request)
        if not parts:
            raise errors.NamespaceAlreadyExistsError("Namespace already exists: root namespace")
        check_id(parts, "namespace")
        mode = (request.mode or "create").replace("_", "").lower()
        properties = dict(request.properties) if request.properties else None
        entry = Entry(object_id(parts), NAMESPACE, None, properties)

        def add(entries: dict[str, Entry]) -> None:
            _check_parent(entries, parts)
            found = entries.get(entry.object_id)
            if found is not None and (mode == "create" or found.kind != NAMESPACE):
                raise errors.NamespaceAlreadyExistsError(f"Namespace already exists: {entry.object_id}")
            if found is None or mode == "overwrite":
                entries[entry.object_id] = entry

        if mode not in ("create", "existok", "overwrite"):
            raise errors.InvalidInputError(
                f"Invalid input: Unsupported create_namespace mode '{request.mode}'. Supported modes are: 'Create', "
                "'ExistOk', 'Overwrite'"
            )
        self._folder.entries.change(add)
        return models.CreateNamespaceResponse(properties=properties)

    @operation
    def describe_namespace(self, request: Any) -> Any:
        parts = parts_of(request)
        entry = self._namespace(parts) if parts else None
        return models.DescribeNamespaceResponse(properties={} if entry is None else entry.properties)

    @operation
    def namespace_exists(self, request: Any) -> Any:
        parts = parts_of(request)
        if parts:
            self._namespace(parts)
        return models.NamespaceExistsResponse()

    @operation
    def drop_namespace(self, request: Any) -> Any:
        self._check_entries()
        parts = parts_of(request)
        if not parts:
            raise errors.InvalidInputError("Invalid input: Root namespace cannot be dropped")
        if (getattr(request, "behavior", None) or "restrict").lower() not in ("restrict", "cascade"):
            raise errors.InvalidInputError("Invalid input: behavior must be 'Restrict' or 'Cascade'")
        name = object_id(parts)

        def remove(entries: dict[str, Entry]) -> None:
            found = entries.get(name)
            if found is None or found.kind != NAMESPACE:
                raise errors.NamespaceNotFoundError(f"Namespace not found: {name}")
            inside = sum(each.startswith(f"{name}$") for each in entries)
            if inside:
                # Never with behavior Cascade either, as in the reference: it would remove tables unasked.
                raise errors.NamespaceNotEmptyError(
                    f"Namespace not empty: '{name}' (contains {inside} child objects); drop them first"
                )
            del entries[name]

        self._folder.entries.change(remove)
        return models.DropNamespaceResponse()

    @operation
    def list_namespaces(self, request: Any) -> Any:
        names, token = _page(self._folder.namespace_names(parts_of(request)), request)
        return models.ListNamespacesResponse(namespaces=names, page_token=token)

    def _namespace(self, parts: list[str]) -> Entry:
        entry = self._folder.read_entries().get(object_id(parts))
        if entry is None or entry.kind != NAMESPACE:
            raise errors.NamespaceNotFoundError(f"Namespace not found: {object_id(parts)}")
        return entry

    # -- tables ----------------------------------------------------------------------------------------------------

    @operation
    def list_tables(self, request: Any) -> Any:
        return self._tables(parts_of(request), request)

    @operation
    def list_all_tables(self, request: Any) -> Any:
        return self._tables([], request)

    def _tables(self, parts: list[str], request: Any) -> Any:
        found = self._folder.table_names(parts)
        if request.include_declared is False:
            found = {name: folder for name, folder in found.items() if not self._folder.is_only_declared(folder)}
        names, token = _page(found, request)
        return models.ListTablesResponse(tables=names, page_token=token)

    @operation
    def table_exists(self, request: Any) -> Any:
        place = self._place(request)
        if request.version is not None:
            dataset(**self._folder.location(place.folder), version=request.version)
        return models.TableExistsResponse()

    @operation
    def describe_table(self, request: Any) -> Any:
        place = self._place(request)
        location = self._location(place)
        declared = None
        if request.check_declared or request.load_detailed_metadata:
            declared = self._folder.is_only_declared(place.folder)
        details: dict[str, Any] = {}
        if request.load_detailed_metadata and not declared:
            details = self._details(place, request)
        properties = None if place.entry is None else place.entry.properties
        return models.DescribeTableResponse(
            table=place.parts[-1],
            namespace=list(place.parts[:-1]),
            location=location,
            table_uri=location,
            storage_options=self._folder.vended(),
            managed_versioning=self._managed(),
            properties=properties if len(place.parts) > 1 else None,
            is_only_declared=declared,
            **details,
        )

    def _details(self, place: TablePlace, request: Any) -> dict[str, Any]:
        version = request.version if request.version is not None else request.tag
        shown = dataset(**self._folder.location(place.folder), version=version)
        counts = shown.get_version()["metadata"] if len(place.parts) == 1 else None
        return {"version": shown.version, "schema": described_schema(shown.schema), "metadata": counts}

    @operation
    def create_table(self, request: Any, request_data: bytes) -> Any:
        parts = parts_of(request)
        check_id(parts, "table")
        mode = _MODES.get((request.mode or "create").lower())
        if mode is None:
            raise errors.InvalidInputError(
                f"Invalid input: Unsupported create_table mode '{request.mode}'. Supported modes are: 'Create', "
                "'ExistOk', 'Overwrite'"
            )
        rows = sent_rows(request_data, "create_table")
        found = self._found(parts)
        exists = found is not None and not self._folder.is_only_declared(found.folder)
        if exists and mode == "create":
            raise errors.TableAlreadyExistsError(f"Table already exists: {object_id(parts)}")
        properties = dict(request.properties) if request.properties else None
        if found is not None and exists and mode == "exist_ok":
            return models.CreateTableResponse(
                location=self._folder.uri(found.folder),
                properties=properties if found.entry is None else found.entry.properties,
                storage_options=self._folder.vended(),
            )
        folder = found.folder if found is not None else self._new_folder(parts)
        shown = write_dataset(rows, **self._folder.location(folder), mode="overwrite" if exists else "create")
        try:
            self._enter(
                Entry(object_id(parts), TABLE, folder, properties),
                lambda known: mode == "overwrite" or known.location == folder,
            )
        except (errors.TableAlreadyExistsError, errors.InvalidInputError):
            if found is None:  # nobody knows the folder
                self._folder.remove(folder)
            raise
        return models.CreateTableResponse(
            location=self._folder.uri(folder),
            version=shown.version,
            properties=properties,
            storage_options=self._folder.vended(),
        )

    @operation
    def declare_table(self, request: Any) -> Any:
        parts = parts_of(request)
        check_id(parts, "table")
        if len(parts) > 1:
            self._check_entries()
        if self._found(parts) is not None:
            raise errors.TableAlreadyExistsError(f"Table already exists: {object_id(parts)}")
        folder = self._new_folder(parts)
        place = self._folder.uri(folder)
        if request.location and request.location.rstrip("/") not in (place, self._folder.table_uri(folder)):
            raise errors.InvalidInputError(
                f"Invalid input: Cannot declare table {parts[-1]} at location {request.location}, must be at location "
                f"{place}"
            )
        properties = dict(request.properties) if request.properties else None
        self._enter(Entry(object_id(parts), TABLE, folder, properties), lambda known: False)
        self._folder.reserve(folder)
        return models.DeclareTableResponse(
            location=place,
            properties=properties,
            storage_options=self._folder.vended(),
            managed_versioning=self._managed(),
        )

    @operation
    def register_table(self, request: Any) -> Any:
        self._check_entries()
        parts = parts_of(request)
        check_id(parts, "table")
        location = register_location(request.location)
        mode = (request.mode or "create").lower()
        properties = dict(request.properties) if request.properties else None
        entry = Entry(object_id(parts), TABLE, location, properties)
        if mode not in ("create", "overwrite"):
            raise errors.InvalidInputError(f"Invalid input: Unsupported register_table mode '{request.mode}'")

        def add(entries: dict[str, Entry]) -> None:
            _check_parent(entries, parts)
            if entry.object_id in entries and mode == "create":
                raise errors.TableAlreadyExistsError(f"Table already exists: {entry.object_id}")
            entries[entry.object_id] = entry

        if mode == "create" and self._found(parts) is not None:
            raise errors.TableAlreadyExistsError(f"Table already exists: {entry.object_id}")
        self._folder.entries.change(add)
        return models.RegisterTableResponse(location=location, properties=properties)

    @operation
    def rename_table(self, request: Any) -> Any:
        self._check_entries()
        place = self._place(request)
        space = list(place.parts[:-1]) if request.new_namespace_id is None else list(request.new_namespace_id)
        parts = [*space, request.new_table_name]
        check_id(parts, "table")
        if self._found(parts) is not None:
            raise errors.TableAlreadyExistsError(f"Table already exists: {object_id(parts)}")
        if place.entry is None or (len(place.parts) == 1 and self._folder.options.lists_folders):
            # Its folder has its name, and would be listed under it still.
            raise errors.UnsupportedOperationError(
                f"Not supported: {place.parts[-1]!r} is found by the name of its folder {place.folder!r}, so it cannot "
                "be renamed; move the folder, or use dir_listing_enabled=false"
            )
        old, new = place.entry, replace(place.entry, object_id=object_id(parts))

        def move(entries: dict[str, Entry]) -> None:
            _check_parent(entries, parts)
            if entries.get(old.object_id) != old:
                raise errors.ConcurrentModificationError(f"Concurrent modification: {old.object_id} was changed")
            if new.object_id in entries:
                raise errors.TableAlreadyExistsError(f"Table already exists: {new.object_id}")
            del entries[old.object_id]
            entries[new.object_id] = new

        self._folder.entries.change(move)
        return models.RenameTableResponse()

    @operation
    def deregister_table(self, request: Any) -> Any:
        parts = parts_of(request)
        place = self._place(request)
        if self._folder.options.has_entries:
            if place.entry is None:
                raise errors.TableNotFoundError(
                    f"Table not found: {object_id(parts)} has no entry: it is found by its folder {place.folder!r}"
                )
            self._forget(place)
        else:
            self._folder.store.put(f"{self._folder.path}/{place.folder}/{DEREGISTERED}", b"")
        return models.DeregisterTableResponse(id=parts, location=self._folder.uri(place.folder))

    @operation
    def drop_table(self, request: Any) -> Any:
        place = self._place(request)
        shared = [
            each.object_id
            for each in self._folder.read_entries().values()
            if each.kind == TABLE and each.location == place.folder and each != place.entry
        ]
        if shared:
            raise errors.InvalidTableStateError(
                f"the folder {place.folder!r} of {object_id(place.parts)!r} also belongs to {', '.join(shared)}; "
                "deregister the one that is not wanted"
            )
        self._forget(place)
        self._folder.remove(place.folder)
        return models.DropTableResponse(id=list(place.parts), location=self._folder.uri(place.folder))

    # -- parts -----------------------------------------------------------------------------------------------------

    def _location(self, place: TablePlace) -> str:
        """Return the location of a table: a plain path for tables at the root, else a URI, as the reference does."""
        at_root = len(place.parts) == 1 and self._folder.options.lists_folders
        return self._folder.table_uri(place.folder) if at_root else self._folder.uri(place.folder)

    def _managed(self) -> bool | None:
        return True if self._folder.options.manages_versions else None

    def _found(self, parts: list[str]) -> TablePlace | None:
        try:
            return self._folder.find(parts)
        except errors.TableNotFoundError:
            return None

    def _new_folder(self, parts: list[str]) -> str:
        options = self._folder.options
        if len(parts) > 1:
            self._check_entries()
        return new_folder(parts, plain=options.lists_folders or not options.has_entries)

    def _enter(self, entry: Entry, may_replace: Callable[[Entry], bool]) -> None:
        """Add the entry of a new table, in the place of one that another call may have added meanwhile."""
        if not self._folder.options.has_entries:
            return

        def add(entries: dict[str, Entry]) -> None:
            found = entries.get(entry.object_id)
            if found is not None and found.kind != TABLE:
                raise errors.InvalidInputError(f"Invalid input: {entry.object_id} is a namespace")
            if found is not None and not may_replace(found):
                raise errors.TableAlreadyExistsError(f"Table already exists: {entry.object_id}")
            if found is None or found.location != entry.location or entry.properties is not None:
                entries[entry.object_id] = entry

        self._folder.entries.change(add)

    def _forget(self, place: TablePlace) -> None:
        if place.entry is not None:
            self._folder.entries.change(lambda entries: entries.pop(object_id(place.parts), None))


def _check_parent(entries: dict[str, Entry], parts: list[str]) -> None:
    parent = object_id(parts[:-1])
    if parent and (parent not in entries or entries[parent].kind != NAMESPACE):
        raise errors.NamespaceNotFoundError(f"Namespace not found: parent namespace '{parent}'")


def _page(names: Iterable[str], request: Any) -> tuple[list[str], str | None]:
    """Return a page of names in their order, and the token of the next one."""
    after, limit = request.page_token, request.limit
    found = sorted(name for name in names if after is None or name > after)
    if limit is None or limit <= 0 or len(found) <= limit:
        return found, None
    return found[:limit], found[limit - 1]
