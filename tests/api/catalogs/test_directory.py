"""Tests of catalogs in a folder: what the reference does not do, or does in a dangerous way."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import errors
from lance_namespace_urllib3_client import models
from support.api.catalog_calls import example_rows, stream_of

import lance_dataset
from lance_dataset.api.catalogs.directory import tables
from lance_dataset.errors import InvalidInputError, StoragePermissionError
from lance_dataset.io.vended import VendedOptions
from lance_dataset.namespace import DirectoryNamespace, DynamicContextProvider

_ROWS = stream_of(example_rows())


@pytest.fixture
def catalog(tmp_path: Path) -> DirectoryNamespace:
    return DirectoryNamespace(root=str(tmp_path / "root"))


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "../x", "a\\b", "a$b", "a\0b", "\ud800", "x" * 300, " "])
def test_names_that_lead_elsewhere(catalog: DirectoryNamespace, tmp_path: Path, name: str) -> None:
    """Names that could lead out of the folder, or that cannot be told apart, are refused by every call."""
    for parts in ([name], ["n", name], [name, "t"]):
        calls: list[tuple[Any, ...]] = [
            (catalog.create_table, models.CreateTableRequest(id=parts), _ROWS),
            (catalog.declare_table, models.DeclareTableRequest(id=parts)),
            (catalog.create_namespace, models.CreateNamespaceRequest(id=parts)),
            (catalog.describe_table, models.DescribeTableRequest(id=parts)),
            (catalog.drop_table, models.DropTableRequest(id=parts)),
            (catalog.register_table, models.RegisterTableRequest(id=parts, location="t")),
        ]
        for call, *arguments in calls:
            with pytest.raises(errors.InvalidInputError):
                call(*arguments)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["root"])


@pytest.mark.parametrize("location", ["__manifest", "__manifest/", "__manifest/data", "__MANIFEST"])
def test_entries_are_no_table(catalog: DirectoryNamespace, location: str) -> None:
    """The dataset of the entries cannot be registered as a table, since dropping that would drop the catalog."""
    catalog.create_namespace(models.CreateNamespaceRequest(id=["n"]))
    with pytest.raises(errors.InvalidInputError, match="belongs to the catalog"):
        catalog.register_table(models.RegisterTableRequest(id=["n", "t"], location=location))
    catalog.namespace_exists(models.NamespaceExistsRequest(id=["n"]))


def test_tables_created_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two calls that create the same table at the same time, the later one fails, and leaves nothing behind."""
    catalog = DirectoryNamespace(root=str(tmp_path / "root"))
    catalog.create_namespace(models.CreateNamespaceRequest(id=["n"]))
    original, calls = tables.write_dataset, list[str]()

    def create() -> None:
        catalog.create_table(models.CreateTableRequest(id=["n", "t"]), _ROWS)

    def late(*arguments: Any, **given: Any) -> lance_dataset.LanceDataset:
        calls.append("write")
        if len(calls) == 1:
            create()
        return original(*arguments, **given)

    monkeypatch.setattr(tables, "write_dataset", late)
    with pytest.raises(errors.TableAlreadyExistsError):
        create()
    assert len(calls) == 2
    folders = [path.name for path in (tmp_path / "root").iterdir()]
    place = catalog.describe_table(models.DescribeTableRequest(id=["n", "t"])).location
    assert sorted(folders) == sorted(["__manifest", place.rpartition("/")[2]])
    assert lance_dataset.dataset(place).count_rows() == example_rows().num_rows


def test_entries_that_lead_elsewhere(tmp_path: Path) -> None:
    """A table whose entry names a place outside of the folder is neither opened nor dropped."""
    outside = tmp_path / "outside"
    lance_dataset.write_dataset(example_rows(), outside)
    catalog = DirectoryNamespace(root=str(tmp_path / "root"))
    catalog.create_table(models.CreateTableRequest(id=["t"]), _ROWS)
    entries = tmp_path / "root" / "__manifest"
    lance_dataset.dataset(entries).update({"location": "'../outside'", "object_id": "'n$t'"})
    for call, request in (
        (catalog.count_table_rows, models.CountTableRowsRequest(id=["n", "t"])),
        (catalog.drop_table, models.DropTableRequest(id=["n", "t"])),
    ):
        with pytest.raises(errors.InvalidTableStateError, match="outside"):
            call(request)
    assert lance_dataset.dataset(outside).count_rows() == 3


def test_drop_of_a_shared_folder(catalog: DirectoryNamespace) -> None:
    """The files of a table that is registered under two names are not removed with the first of them."""
    catalog.create_table(models.CreateTableRequest(id=["t"]), _ROWS)
    catalog.create_namespace(models.CreateNamespaceRequest(id=["n"]))
    catalog.register_table(models.RegisterTableRequest(id=["n", "alias"], location="t.lance"))
    with pytest.raises(errors.InvalidTableStateError, match="n\\$alias"):
        catalog.drop_table(models.DropTableRequest(id=["t"]))
    catalog.deregister_table(models.DeregisterTableRequest(id=["n", "alias"]))
    catalog.drop_table(models.DropTableRequest(id=["t"]))


def test_rename(tmp_path: Path) -> None:
    """A table with an entry gets another name and namespace; its files stay where they are."""
    catalog = DirectoryNamespace(root=str(tmp_path), dir_listing_enabled="false")
    catalog.create_namespace(models.CreateNamespaceRequest(id=["n"]))
    made = catalog.create_table(models.CreateTableRequest(id=["t"], properties={"a": "b"}), _ROWS)
    catalog.create_table(models.CreateTableRequest(id=["other"]), _ROWS)
    with pytest.raises(errors.TableAlreadyExistsError):
        catalog.rename_table(models.RenameTableRequest(id=["t"], new_table_name="other"))
    with pytest.raises(errors.NamespaceNotFoundError):
        catalog.rename_table(models.RenameTableRequest(id=["t"], new_table_name="x", new_namespace_id=["none"]))
    catalog.rename_table(models.RenameTableRequest(id=["t"], new_table_name="u", new_namespace_id=["n"]))
    found = catalog.describe_table(models.DescribeTableRequest(id=["n", "u"]))
    assert (found.location, found.properties) == (made.location, {"a": "b"})
    with pytest.raises(errors.TableNotFoundError):
        catalog.describe_table(models.DescribeTableRequest(id=["t"]))


def test_changes_at_the_same_time(tmp_path: Path) -> None:
    """Of changes at the same time, none is lost."""
    catalogs = [DirectoryNamespace(root=str(tmp_path)) for _ in range(4)]

    def change(catalog: DirectoryNamespace, number: int) -> None:
        for each in range(3):
            catalog.create_namespace(models.CreateNamespaceRequest(id=[f"n{number}_{each}"]))

    threads = [threading.Thread(target=change, args=(each, number)) for number, each in enumerate(catalogs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = catalogs[0].list_namespaces(models.ListNamespacesRequest(id=[])).namespaces
    assert len(found) == 12


def test_without_entries(tmp_path: Path) -> None:
    """A catalog without entries has the tables at the root only, and marks those that are deregistered."""
    catalog = DirectoryNamespace(root=str(tmp_path), manifest_enabled="false")
    catalog.create_table(models.CreateTableRequest(id=["t"]), _ROWS)
    for call, request in (
        (catalog.create_namespace, models.CreateNamespaceRequest(id=["n"])),
        (catalog.describe_table, models.DescribeTableRequest(id=["n", "t"])),
    ):
        with pytest.raises(errors.UnsupportedOperationError):
            call(request)
    catalog.deregister_table(models.DeregisterTableRequest(id=["t"]))
    with pytest.raises(errors.TableNotFoundError):
        catalog.describe_table(models.DescribeTableRequest(id=["t"]))
    assert (tmp_path / "t.lance" / ".lance-deregistered").exists()
    assert not (tmp_path / "__manifest").exists()


def test_properties_of_the_catalog(tmp_path: Path) -> None:
    """Missing and invalid properties are refused, and credentials of a vendor are not pretended."""
    for properties in ({}, {"root": ""}, {"root": "x", "manifest_enabled": "maybe"}):
        with pytest.raises(InvalidInputError):
            DirectoryNamespace(**properties)
    with pytest.raises(errors.UnsupportedOperationError, match="vend_input_storage_options"):
        DirectoryNamespace(root=str(tmp_path), **{"credential_vendor.enabled": "true"})
    copy = pickle.loads(pickle.dumps(DirectoryNamespace(root=str(tmp_path))))
    assert copy.namespace_id() == f'DirectoryNamespace {{ root: "{tmp_path}" }}'


def test_context_and_counts(tmp_path: Path) -> None:
    """A provider is told of each operation, and calls are counted on demand."""
    told: list[dict[str, str]] = []

    class Provider(DynamicContextProvider):
        def provide_context(self, info: dict[str, str]) -> dict[str, str]:
            told.append(info)
            return {}

    catalog = DirectoryNamespace(context_provider=Provider(), root=str(tmp_path), ops_metrics_enabled="true")
    catalog.list_tables(models.ListTablesRequest(id=[]))
    catalog.create_namespace(models.CreateNamespaceRequest(id=["n"]))
    assert told[1] == {"operation": "create_namespace", "object_id": "n"}
    assert catalog.retrieve_ops_metrics() == {"list_tables": 1, "create_namespace": 1}
    catalog.reset_ops_metrics()
    assert catalog.retrieve_ops_metrics() == {}


def test_lent_options(tmp_path: Path) -> None:
    """A catalog lends its storage options; they replace those of the user and are not kept in the way of the store."""
    catalog = DirectoryNamespace(
        root=str(tmp_path),
        vend_input_storage_options="true",
        vend_input_storage_options_refresh_interval_millis="60000",
        **{"storage.local_fsync": "false"},
    )
    own = {"local_fsync": "true", "mmap": "false"}
    target = {"namespace_client": catalog, "table_id": ["t"]}
    made = lance_dataset.write_dataset(example_rows(), **target, storage_options=own)
    assert dict(made.snapshot.location.storage_options) == {"local_fsync": "false", "mmap": "false"}


def test_renewal_of_lent_options() -> None:
    """Options that are about to expire are asked for again; what a store is named by stays the same."""
    asked: list[int] = []

    def renew() -> dict[str, str]:
        asked.append(1)
        return {"token": f"new{len(asked)}", "expires_at_millis": str(int(time.time() * 1000) + 3_600_000)}

    soon = str(int(time.time() * 1000) + 1000)
    options = VendedOptions.merged({"own": "1", "token": "mine"}, {"token": "old", "expires_at_millis": soon}, renew)
    assert dict(options) == {"own": "1", "token": "old"}
    assert options.current() == {"own": "1", "token": "new1"}
    assert options.current() == {"own": "1", "token": "new1"}
    assert (dict(options), len(asked)) == ({"own": "1", "token": "old"}, 1)
    assert VendedOptions.merged({}, {"token": "t"}, renew).expires is None


def test_lent_options_that_end() -> None:
    """A catalog that lends no options any more is an error, which the next use tries again, and not a lack of any."""
    soon = {"token": "old", "expires_at_millis": str(int(time.time() * 1000) + 1000)}
    answers: list[dict[str, str]] = [{}, {"token": "new"}]
    options = VendedOptions.merged({}, soon, lambda: answers.pop(0))
    with pytest.raises(StoragePermissionError, match="lends no new ones"):
        options.current()
    assert options.current() == {"token": "new"}


def test_lent_options_in_a_forked_child() -> None:
    """A child that is forked while another thread renews options does not wait for that thread."""
    asked, go = threading.Event(), threading.Event()
    parent = os.getpid()

    def renew() -> dict[str, str]:
        if os.getpid() == parent:
            asked.set()
            go.wait()
        return {"token": "new"}

    options = VendedOptions.merged({}, {"token": "old", "expires_at_millis": "1000"}, renew)
    thread = threading.Thread(target=options.current)
    thread.start()
    asked.wait()
    if (child := os.fork()) == 0:
        signal.alarm(20)
        os._exit(0 if options.current() == {"token": "new"} else 1)
    go.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_staged_manifests_that_lead_elsewhere(tmp_path: Path) -> None:
    """A version is created only from a staged manifest of the table itself, and only as the next one."""
    catalog = DirectoryNamespace(root=str(tmp_path), table_version_tracking_enabled="true")
    catalog.create_table(models.CreateTableRequest(id=["t"]), _ROWS)
    (tmp_path / "secret").write_text("secret")
    inside = f"{tmp_path}/t.lance/_versions"
    for path in (
        f"{tmp_path}/secret",
        f"{inside}/../../secret",
        f"{inside}/18446744073709551613.manifest-x/../../../secret",
        f"{inside}/18446744073709551612.manifest-00000000-0000-0000-0000-000000000000",
        "",
    ):
        request = {"id": ["t"], "version": 2, "manifest_path": path}
        with pytest.raises(errors.InvalidInputError):
            catalog.create_table_version(request)
    first = catalog.describe_table_version({"id": ["t"], "version": 1}).version
    with pytest.raises(errors.ConcurrentModificationError):
        catalog.create_table_version({"id": ["t"], "version": 1, "manifest_path": first.manifest_path})
    with pytest.raises(errors.InvalidInputError, match="newest"):
        catalog.batch_delete_table_versions({"id": ["t"], "ranges": [{"start_version": 0, "end_version": 5}]})
