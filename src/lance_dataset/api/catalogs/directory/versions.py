"""Versions, tags, branches and transactions of the tables of a catalog in a folder."""

# ruff: noqa: D102 - the interface of catalogs documents its methods

from __future__ import annotations

from contextlib import suppress
from typing import Any

from lance_dataset.api.catalogs.directory.base import FolderPart
from lance_dataset.api.catalogs.directory.names import check_id
from lance_dataset.api.catalogs.directory.store import TablePlace
from lance_dataset.api.catalogs.operation import operation, parts_of
from lance_dataset.api.catalogs.packages import errors, models
from lance_dataset.api.dataset.dataset import LanceDataset
from lance_dataset.api.opening import dataset
from lance_dataset.errors import (
    AlreadyExistsError,
    DatasetNotFoundError,
    MissingFileError,
    ReferenceExistsError,
    VersionNotFoundError,
)
from lance_dataset.io.base import is_plain_path
from lance_dataset.table.naming import (
    VERSIONS_FOLDER,
    ManifestName,
    final_manifest_name,
    named_path,
    parse_manifest_name,
)
from lance_dataset.table.references.names import check_new_branch_name
from lance_dataset.table.versions import list_versions

__all__ = ["Versions"]


class Versions(FolderPart):
    """Versions, tags, branches and transactions of the tables of a catalog in a folder."""

    # -- versions --------------------------------------------------------------------------------------------------

    @operation
    def list_table_versions(self, request: Any) -> Any:
        _, root = self._root(request)
        names = {each.version: each for each in list_versions(self._folder.store, root)}
        descending = bool(_field(request, "descending"))
        numbers = sorted(names, reverse=descending)
        token, limit = _field(request, "page_token"), _field(request, "limit")
        if token:
            after = _number(token)
            numbers = [each for each in numbers if (each < after if descending else each > after)]
        page = numbers if not limit or limit < 0 else numbers[:limit]
        rest = str(page[-1]) if page and len(page) < len(numbers) else None
        found = []
        for number in page:
            with suppress(MissingFileError):  # removed since the listing
                found.append(self._version(root, names[number]))
        return models.ListTableVersionsResponse(versions=found, page_token=rest)

    @operation
    def describe_table_version(self, request: Any) -> Any:
        place, root = self._root(request)
        number = _field(request, "version")
        names = {each.version: each for each in list_versions(self._folder.store, root)}
        if number is None and names:
            number = max(names)
        if number not in names:
            raise errors.TableVersionNotFoundError(
                f"Table version not found: version {number} for table table id '{'$'.join(place.parts)}'"
            )
        return models.DescribeTableVersionResponse(version=self._version(root, names[number]))

    @operation
    def create_table_version(self, request: Any) -> Any:
        place, root = self._root(request)
        number, path = _field(request, "version"), _field(request, "manifest_path")
        prefix = f"{root.strip('/')}/{VERSIONS_FOLDER}/"
        staged = str(path or "").strip("/")
        name = final_manifest_name(staged.removeprefix(prefix)) if staged.startswith(prefix) else None
        final = None if name is None or not is_plain_path(staged) else parse_manifest_name(name)
        if final is None or final.version != number:
            raise errors.InvalidInputError(
                f"Invalid input: {path!r} is not a staged manifest of version {number} in {prefix!r}"
            )
        store, source = self._folder.store, f"{root}/{VERSIONS_FOLDER}/{staged.removeprefix(prefix)}"
        latest = max((each.version for each in list_versions(store, root)), default=0)
        # a branch begins with the version after the one that it started from
        if latest and number != latest + 1:
            raise errors.ConcurrentModificationError(
                f"Concurrent modification: Version CAS failed for table '{'$'.join(place.parts)}': requested {number}, "
                f"expected {latest + 1} (latest {latest})"
            )
        try:
            store.put_if_absent(named_path(root, final), store.read(source))
        except MissingFileError as error:
            raise errors.InvalidInputError(f"Invalid input: the staged manifest {path!r} does not exist") from error
        except AlreadyExistsError as error:
            raise errors.ConcurrentModificationError(
                f"Concurrent modification: version {number} of '{'$'.join(place.parts)}' exists"
            ) from error
        if source != named_path(root, final):
            store.delete(source)
        return models.CreateTableVersionResponse(version=self._version(root, final))

    @operation
    def batch_delete_table_versions(self, request: Any) -> Any:
        _, root = self._root(request)
        ranges = [(_field(each, "start_version"), _field(each, "end_version")) for each in _field(request, "ranges")]
        names = list_versions(self._folder.store, root)
        newest = max((each.version for each in names), default=0)
        chosen = [each for each in names if any(start <= each.version < end for start, end in ranges)]
        if any(each.version == newest for each in chosen):
            raise errors.InvalidInputError(f"Invalid input: version {newest} is the newest one and cannot be deleted")
        for each in chosen:
            self._folder.store.delete(named_path(root, each))
        return models.BatchDeleteTableVersionsResponse(deleted_count=len(chosen))

    @operation
    def restore_table(self, request: Any) -> Any:
        shown = self._open(request, request.version)
        shown.restore()
        return models.RestoreTableResponse(transaction_id=self._last_transaction(shown))

    @operation
    def batch_create_table_versions(self, request: Any) -> Any:
        raise _several("batch_create_table_versions")

    @operation
    def batch_commit_tables(self, request: Any) -> Any:
        raise _several("batch_commit_tables")

    def _root(self, request: Any) -> tuple[TablePlace, str]:
        """Return the place of a table, and the path of it or of its branch."""
        place = self._place(request)
        root = f"{self._folder.path}/{place.folder}"
        branch = _field(request, "branch")
        if not branch:
            return place, root
        check_new_branch_name(branch)
        return place, f"{root}/tree/{branch}"

    def _version(self, root: str, name: ManifestName) -> Any:
        path = named_path(root, name)
        store = self._folder.store
        size = store.open_input(path).size
        return models.TableVersion(
            version=name.version,
            manifest_path=path.lstrip("/"),
            manifest_size=size,
            timestamp_millis=int(store.modified(path) * 1000),
        )

    # -- tags ------------------------------------------------------------------------------------------------------

    @operation
    def list_table_tags(self, request: Any) -> Any:
        tags = {
            name: models.TagContents(branch=tag["branch"], version=tag["version"], manifest_size=tag["manifest_size"])
            for name, tag in self._open(request).tags.list().items()
        }
        return models.ListTableTagsResponse(tags=tags)

    @operation
    def get_table_tag_version(self, request: Any) -> Any:
        tag = self._tag(self._open(request), request.tag)
        return models.GetTableTagVersionResponse(version=tag["version"], branch=tag["branch"])

    @operation
    def create_table_tag(self, request: Any) -> Any:
        shown = self._open_main(request)
        try:
            shown.tags.create(request.tag, (request.branch, request.version))
        except ReferenceExistsError as error:
            raise errors.TableTagAlreadyExistsError(f"Table tag already exists: tag '{request.tag}'") from error
        return models.CreateTableTagResponse()

    @operation
    def update_table_tag(self, request: Any) -> Any:
        shown = self._open_main(request)
        self._tag(shown, request.tag)
        shown.tags.update(request.tag, (request.branch, request.version))
        return models.UpdateTableTagResponse()

    @operation
    def delete_table_tag(self, request: Any) -> Any:
        shown = self._open(request)
        self._tag(shown, request.tag)
        shown.tags.delete(request.tag)
        return models.DeleteTableTagResponse()

    def _tag(self, shown: LanceDataset, name: str) -> Any:
        found = shown.tags.list().get(name)
        if found is None:
            raise errors.TableTagNotFoundError(f"Table tag not found: tag '{name}'")
        return found

    def _open_main(self, request: Any) -> LanceDataset:
        """Open the table of a request whose branch belongs to something else than the table."""
        return dataset(**self._folder.location(self._place(request).folder))

    # -- branches --------------------------------------------------------------------------------------------------

    @operation
    def list_table_branches(self, request: Any) -> Any:
        branches = {
            name: models.BranchContents(
                parent_branch=branch["parent_branch"],
                parent_version=branch["parent_version"],
                create_at=branch["create_at"],
                manifest_size=branch["manifest_size"],
            )
            for name, branch in self._open(request).branches.list().items()
        }
        return models.ListTableBranchesResponse(branches=branches)

    @operation
    def create_table_branch(self, request: Any) -> Any:
        shown = self._open(request)
        start = (request.from_branch, request.from_version)
        try:
            shown.create_branch(request.name, start)
        except ReferenceExistsError as error:
            raise errors.TableBranchAlreadyExistsError(
                f"Table branch already exists: branch '{request.name}'"
            ) from error
        return models.CreateTableBranchResponse()

    @operation
    def delete_table_branch(self, request: Any) -> Any:
        shown = self._open(request)
        if request.name not in shown.branches.list():
            raise errors.TableBranchNotFoundError(f"Table branch not found: branch '{request.name}'")
        shown.branches.delete(request.name)
        return models.DeleteTableBranchResponse()

    # -- transactions ----------------------------------------------------------------------------------------------

    @operation
    def describe_transaction(self, request: Any) -> Any:
        parts = parts_of(request)
        check_id(parts, "transaction")
        if len(parts) < 2:
            raise errors.InvalidInputError("Invalid input: the id of a transaction is that of its table and a version")
        shown = dataset(**self._folder.location(self._folder.find(parts[:-1]).folder))
        number, made = self._transaction(shown, parts[-1])
        properties = {
            "operation": type(made.operation).__name__,
            "read_version": str(made.read_version),
            "uuid": str(made.uuid),
            "version": str(number),
        }
        return models.DescribeTransactionResponse(status="SUCCEEDED", properties=properties)

    def _transaction(self, shown: LanceDataset, name: str) -> tuple[int, Any]:
        """Find a transaction by its version or its id."""
        numbers = [int(name)] if name.isdecimal() and len(name) < 20 else []
        numbers = numbers or [each["version"] for each in reversed(shown.version_refs())]
        for number in numbers:
            with suppress(VersionNotFoundError, DatasetNotFoundError, MissingFileError):
                made = shown.read_transaction(number)
                if made is not None and (name.isdecimal() or str(made.uuid) == name):
                    return number, made
        raise errors.TransactionNotFoundError(f"Transaction not found: {name}")

    @operation
    def alter_transaction(self, request: Any) -> Any:
        raise errors.UnsupportedOperationError(
            "Not supported: alter_transaction: transactions of a catalog in a folder are final when they exist"
        )


def _field(request: Any, name: str) -> Any:
    return request.get(name) if isinstance(request, dict) else getattr(request, name, None)


def _number(token: str) -> int:
    if not token.isdecimal() or len(token) > 20:
        raise errors.InvalidInputError(f"Invalid input: {token!r} is not a token of a page of versions")
    return int(token)


def _several(call: str) -> Exception:
    return errors.UnsupportedOperationError(
        f"Not supported: {call}: a folder cannot change several tables at once; change them one by one"
    )
