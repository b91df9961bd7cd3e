"""Tests of catalogs of this package beside those of the reference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import lance.namespace
import pyarrow as pa
import pytest
from lance_namespace.errors import TableAlreadyExistsError, TableNotFoundError
from lance_namespace_urllib3_client import models
from support.api.catalog_calls import example_rows, outcome, scenario, stream_of

import lance_dataset
import lance_dataset.namespace
from lance_dataset import LanceDataset, LanceOperation

_EITHER = {"ours": lance_dataset.namespace, "reference": lance.namespace}


def _outcomes(catalog: Any) -> dict[str, Any]:
    return {f"{number}: {call.label}": outcome(catalog, call) for number, call in enumerate(scenario())}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("reference")
    return _outcomes(lance.namespace.DirectoryNamespace(root=str(root / "root"))) | {"root": str(root / "root")}


def _compared(found: dict[str, Any], expected: dict[str, Any], root: str) -> dict[str, tuple[Any, Any]]:
    """Return what differs, with the same root in both."""
    wanted = {name: _moved(each, expected["root"], root) for name, each in expected.items() if name != "root"}
    return {name: (found[name], wanted[name]) for name in wanted if found[name] != wanted[name]}


def _moved(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: _moved(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [_moved(each, old, new) for each in value]
    return value.replace(old, new).replace(old[1:], new[1:]) if isinstance(value, str) else value


def test_folder_answers_like_the_reference(tmp_path: Path, expected: dict[str, Any]) -> None:
    """A catalog in a folder gives the answers and the classes of errors of the reference, call by call."""
    root = str(tmp_path / "root")
    assert _compared(_outcomes(lance_dataset.namespace.DirectoryNamespace(root=root)), expected, root) == {}


@pytest.mark.parametrize(("server", "client"), [("ours", "ours"), ("ours", "reference"), ("reference", "ours")])
def test_server_answers_like_the_reference(tmp_path: Path, expected: dict[str, Any], server: str, client: str) -> None:
    """Client and server of either package understand each other, and give the answers of a catalog in a folder."""
    root = str(tmp_path / "root")
    with _EITHER[server].RestAdapter("dir", {"root": root}, port=0) as adapter:
        catalog = _EITHER[client].RestNamespace(uri=f"http://127.0.0.1:{adapter.port}")
        assert _compared(_outcomes(catalog), expected, root) == {}


@pytest.fixture(params=["ours", "reference"])
def first(request: pytest.FixtureRequest) -> Any:
    return _EITHER[request.param]


@pytest.fixture
def second(first: Any) -> Any:
    return next(each for each in _EITHER.values() if each is not first)


def test_folders_are_shared(tmp_path: Path, first: Any, second: Any) -> None:
    """Each package finds and changes what the other one put into the folder of a catalog."""
    rows = stream_of(example_rows())
    one, two = (each.DirectoryNamespace(root=str(tmp_path)) for each in (first, second))
    one.create_namespace(models.CreateNamespaceRequest(id=["n"], properties={"a": "1"}))
    one.create_table(models.CreateTableRequest(id=["n", "t"], properties={"b": "2"}), rows)
    one.create_table(models.CreateTableRequest(id=["r"]), rows)
    assert two.describe_namespace(models.DescribeNamespaceRequest(id=["n"])).properties == {"a": "1"}
    assert two.list_tables(models.ListTablesRequest(id=["n"])).tables == ["t"]
    described = two.describe_table(models.DescribeTableRequest(id=["n", "t"]))
    assert described == one.describe_table(models.DescribeTableRequest(id=["n", "t"]))
    two.insert_into_table(models.InsertIntoTableRequest(id=["n", "t"]), rows)
    assert one.count_table_rows(models.CountTableRowsRequest(id=["n", "t"])).count == 6
    two.create_namespace(models.CreateNamespaceRequest(id=["n", "inner"]))
    two.drop_table(models.DropTableRequest(id=["n", "t"]))
    assert one.list_namespaces(models.ListNamespacesRequest(id=["n"])).namespaces == ["inner"]
    assert one.list_tables(models.ListTablesRequest(id=["n"])).tables == []
    assert one.list_tables(models.ListTablesRequest(id=[])).tables == ["r"]
    one.drop_namespace(models.DropNamespaceRequest(id=["n", "inner"]))
    two.drop_namespace(models.DropNamespaceRequest(id=["n"]))
    assert one.list_namespaces(models.ListNamespacesRequest(id=[])).namespaces == []


def test_entries_have_one_form(tmp_path: Path) -> None:
    """The dataset with the entries of a catalog has the schema and the rows that the reference writes."""
    found = []
    for name, module in _EITHER.items():
        catalog = module.DirectoryNamespace(root=str(tmp_path / name))
        catalog.create_namespace(models.CreateNamespaceRequest(id=["n"], properties={"x": 'é " {}'}))
        catalog.declare_table(models.DeclareTableRequest(id=["d"]))
        entries = lance.dataset(str(tmp_path / name / "__manifest"))
        found.append((entries.schema, entries.data_storage_version, len(entries.get_fragments()), entries.to_table()))
    assert found[0][:3] == found[1][:3]
    assert found[0][0].field("object_id").metadata == found[1][0].field("object_id").metadata
    assert found[0][3].sort_by("object_id") == found[1][3].sort_by("object_id")


@pytest.fixture(params=[False, True], ids=["plain", "managed"])
def properties(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    tracked = {"table_version_tracking_enabled": "true"} if request.param else {}
    return {"root": str(tmp_path / "root"), **tracked}


@pytest.fixture(params=["folder", "server"])
def catalogs(request: pytest.FixtureRequest, properties: dict[str, str], first: Any) -> Iterator[Any]:
    """Catalog of either package, itself or behind its server."""
    if request.param == "folder":
        yield first.DirectoryNamespace(**properties)
        return
    with first.RestAdapter("dir", properties, port=0) as adapter:
        yield first.RestNamespace(uri=f"http://127.0.0.1:{adapter.port}")


def test_tables_by_id(catalogs: Any) -> None:
    """Tables of a catalog of either package are written, opened and changed by id, also if it manages versions."""
    rows, target = example_rows(), {"namespace_client": catalogs, "table_id": ["t"]}
    made = lance_dataset.write_dataset(rows, **target)
    with pytest.raises(TableAlreadyExistsError):
        lance_dataset.write_dataset(rows, **target)
    lance_dataset.write_dataset(rows, **target, mode="append")
    opened = lance_dataset.dataset(**target)
    assert (opened.version, opened.count_rows(), opened.uri) == (2, 6, made.uri)
    opened.delete("id = 1")
    assert lance_dataset.dataset(**target, version=1).count_rows() == 3
    fragments = lance_dataset.write_fragments(rows, made.uri, **target)
    added = LanceDataset.commit(made.uri, LanceOperation.Append(fragments), read_version=3, **target)
    assert (added.version, added.count_rows()) == (4, 7)
    branch = opened.create_branch("side")
    branch.delete("true")
    assert branch.count_rows() == 0
    opened.checkout_latest()
    assert opened.version == 4
    opened.cleanup_old_versions(retain_versions=1)
    assert [each["version"] for each in opened.versions()][-1] == 4
    with pytest.raises(TableNotFoundError):
        lance_dataset.dataset(namespace_client=catalogs, table_id=["none"])


def test_reference_uses_our_catalog(tmp_path: Path) -> None:
    """The reference writes and opens tables by their ids in a catalog of this package, also if it manages versions."""
    for name, tracked in (("plain", "false"), ("managed", "true")):
        catalog = lance_dataset.namespace.DirectoryNamespace(
            root=str(tmp_path / name), table_version_tracking_enabled=tracked
        )
        target = {"namespace_client": catalog, "table_id": ["t"]}
        lance.write_dataset(example_rows(), **target)
        lance.write_dataset(example_rows(), **target, mode="append")
        opened = lance.dataset(**target)
        opened.delete("id = 1")
        assert (opened.version, lance_dataset.dataset(**target).count_rows()) == (3, 4)
        assert lance.dataset(**target, version=1).count_rows() == 3


@pytest.mark.parametrize("name", ["DirectoryNamespace", "DynamicContextProvider", "RestAdapter", "RestNamespace"])
def test_all_methods_are_there(name: str) -> None:
    """Classes of catalogs have all methods of those of the reference."""
    ours, theirs = (vars(module)[name] for module in _EITHER.values())
    assert {each for each in dir(theirs) if not each.startswith("_")} - set(dir(ours)) == set()


def test_arguments_of_catalogs(tmp_path: Path) -> None:
    """A table is given by a location or by client and id, never by both."""
    catalog = lance_dataset.namespace.DirectoryNamespace(root=str(tmp_path))
    for arguments in ({"namespace_client": catalog}, {"table_id": ["t"]}):
        for call in (lance_dataset.dataset, lambda **given: lance_dataset.write_dataset(pa.table({"a": [1]}), **given)):
            with pytest.raises(ValueError, match="must be provided together"):
                call(**arguments)
    with pytest.raises(ValueError, match="Cannot specify both"):
        lance_dataset.dataset("t", namespace_client=catalog, table_id=["t"])
    with pytest.raises(ValueError, match="list of names"):
        lance_dataset.dataset(namespace_client=catalog, table_id="t")
    with pytest.raises(TypeError, match="LanceNamespace"):
        lance_dataset.dataset(namespace_client=object(), table_id=["t"])
