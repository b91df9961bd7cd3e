"""Calls of catalogs, the same for every implementation, and their outcomes in a form that can be compared."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import lance_namespace_urllib3_client.models as models
import pyarrow as pa

#: Ids, times and sizes, which differ from run to run and between writers.
_VARYING = (
    "transaction_id",
    "context",
    "uuid",
    "index_uuid",
    "created_at",
    "create_at",
    "e_tag",
    "timestamp_millis",
    "manifest_size",
    "size_bytes",
    "total_bytes",
    "total_files_size",
    "index_details",
    "page_token_of_versions",
)
_HEX = re.compile(r"[0-9a-f]{8}_")


@dataclass(frozen=True)
class Call:
    """Call of a method."""

    method: str
    request: Any
    data: bytes | None = None

    @property
    def label(self) -> str:
        return f"{self.method} {self.request!r}"


def stream_of(rows: pa.Table) -> bytes:
    """Return rows as a stream of Arrow's IPC format."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def rows_of(data: bytes) -> list[dict[str, Any]]:
    """Return the rows of a file of Arrow's IPC format."""
    return pa.ipc.open_file(data).read_all().to_pylist()


def outcome(catalog: Any, call: Call) -> Any:
    """Run a call and return its answer, or the name of the class of its error."""
    arguments = [call.request] if call.data is None else [call.request, call.data]
    try:
        answer = getattr(catalog, call.method)(*arguments)
    except Exception as error:
        return type(error).__name__
    if answer is None or isinstance(answer, str | int):
        return type(answer).__name__
    if getattr(answer, "data", None) is not None and call.method == "query_table":
        return rows_of(answer.data)
    return _plain(answer if isinstance(answer, dict) else answer.model_dump(exclude_none=True, mode="json"))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in sorted(value.items()) if key not in _VARYING}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return _HEX.sub("HEX_", value) if isinstance(value, str) else value


def example_rows() -> pa.Table:
    """Return three rows with a number, a text and a vector."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 1, 2, 3, 4, 5], pa.float32()), 2)
    return pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"], "v": vectors})


def scenario() -> Iterator[Call]:
    """Return calls of all kinds, each of which builds on those before it."""
    m, rows = models, stream_of(example_rows())
    # -- tables at the root
    yield Call("create_table", m.CreateTableRequest(id=["t1"], properties={"a": "b"}), rows)
    yield Call("create_table", m.CreateTableRequest(id=["t1"]), rows)
    yield Call("create_table", m.CreateTableRequest(id=["t1"], mode="exist_ok"), rows)
    yield Call("create_table", m.CreateTableRequest(id=["t1"], mode="foo"), rows)
    yield Call("create_table", m.CreateTableRequest(id=["t0"]), b"")
    yield Call("create_table", m.CreateTableRequest(id=["t1"], mode="Overwrite"), rows)
    yield Call("describe_table", m.DescribeTableRequest(id=["t1"]))
    yield Call("describe_table", m.DescribeTableRequest(id=["t1"], load_detailed_metadata=True))
    yield Call("describe_table", m.DescribeTableRequest(id=["t1"], check_declared=True))
    yield Call("describe_table", m.DescribeTableRequest(id=["none"]))
    yield Call("table_exists", m.TableExistsRequest(id=["t1"]))
    yield Call("table_exists", m.TableExistsRequest(id=["none"]))
    yield Call("list_tables", m.ListTablesRequest(id=[]))
    # -- namespaces
    yield Call("create_namespace", m.CreateNamespaceRequest(id=["n1"], properties={"x": "y"}))
    yield Call("create_namespace", m.CreateNamespaceRequest(id=["n1"]))
    yield Call("create_namespace", m.CreateNamespaceRequest(id=["q", "r"]))
    yield Call("create_namespace", m.CreateNamespaceRequest(id=[]))
    yield Call("create_namespace", m.CreateNamespaceRequest(id=["n1", "n2"]))
    yield Call("describe_namespace", m.DescribeNamespaceRequest(id=["n1"]))
    yield Call("describe_namespace", m.DescribeNamespaceRequest(id=["none"]))
    yield Call("describe_namespace", m.DescribeNamespaceRequest(id=[]))
    yield Call("list_namespaces", m.ListNamespacesRequest(id=[]))
    yield Call("list_namespaces", m.ListNamespacesRequest(id=["n1"]))
    yield Call("list_namespaces", m.ListNamespacesRequest(id=["none"]))
    yield Call("namespace_exists", m.NamespaceExistsRequest(id=["n1"]))
    yield Call("namespace_exists", m.NamespaceExistsRequest(id=["none"]))
    yield Call("create_table", m.CreateTableRequest(id=["n1", "t2"], properties={"p": "q"}), rows)
    yield Call("list_tables", m.ListTablesRequest(id=["n1"]))
    yield Call("list_all_tables", m.ListTablesRequest())
    yield Call("describe_table", m.DescribeTableRequest(id=["n1", "t2"], load_detailed_metadata=True))
    yield Call("drop_namespace", m.DropNamespaceRequest(id=["n1"]))
    yield Call("drop_namespace", m.DropNamespaceRequest(id=["n1"], behavior="Cascade"))
    yield Call("drop_namespace", m.DropNamespaceRequest(id=["none"]))
    yield Call("drop_namespace", m.DropNamespaceRequest(id=[]))
    yield Call("drop_namespace", m.DropNamespaceRequest(id=["n1", "n2"]))
    # -- declared and registered tables
    yield Call("declare_table", m.DeclareTableRequest(id=["d1"], properties={"k": "v"}))
    yield Call("declare_table", m.DeclareTableRequest(id=["d1"]))
    yield Call("declare_table", m.DeclareTableRequest(id=["n1", "d2"], location="elsewhere"))
    yield Call("declare_table", m.DeclareTableRequest(id=["n1", "d3"]))
    yield Call("describe_table", m.DescribeTableRequest(id=["d1"], check_declared=True))
    yield Call("describe_table", m.DescribeTableRequest(id=["d1"], load_detailed_metadata=True))
    yield Call("count_table_rows", m.CountTableRowsRequest(id=["d1"]))
    yield Call("list_tables", m.ListTablesRequest(id=[]))
    yield Call("list_tables", m.ListTablesRequest(id=[], include_declared=False))
    yield Call("list_tables", m.ListTablesRequest(id=[], limit=1))
    yield Call("list_tables", m.ListTablesRequest(id=[], limit=1, page_token="d1"))
    yield Call("list_tables", m.ListTablesRequest(id=["none"]))
    yield Call("register_table", m.RegisterTableRequest(id=["n1", "r1"], location="t1.lance"))
    yield Call("register_table", m.RegisterTableRequest(id=["n1", "r1"], location="t1.lance"))
    yield Call("register_table", m.RegisterTableRequest(id=["n1", "r3"], location="/tmp/t1.lance"))
    yield Call("register_table", m.RegisterTableRequest(id=["n1", "r3"], location="s3://x/t1.lance"))
    yield Call("register_table", m.RegisterTableRequest(id=["n1", "r3"], location="a/../t1.lance"))
    yield Call("register_table", m.RegisterTableRequest(id=["none", "r3"], location="t1.lance"))
    yield Call("describe_table", m.DescribeTableRequest(id=["n1", "r1"]))
    yield Call("count_table_rows", m.CountTableRowsRequest(id=["n1", "r1"]))
    yield Call("count_table_rows", m.CountTableRowsRequest(id=["t1"], predicate="id > 1"))
    yield Call("count_table_rows", m.CountTableRowsRequest(id=["t1"], version=77))
    yield Call("deregister_table", m.DeregisterTableRequest(id=["n1", "r1"]))
    yield Call("deregister_table", m.DeregisterTableRequest(id=["n1", "r1"]))
    # -- rows
    yield Call("insert_into_table", m.InsertIntoTableRequest(id=["t1"]), rows)
    yield Call("insert_into_table", m.InsertIntoTableRequest(id=["t1"], mode="overwrite"), rows)
    yield Call("insert_into_table", m.InsertIntoTableRequest(id=["t1"], mode="foo"), rows)
    yield Call("insert_into_table", m.InsertIntoTableRequest(id=["t1"]), b"garbage")
    merge = m.MergeInsertIntoTableRequest(
        id=["t1"], on=["id"], when_matched_update_all=True, when_not_matched_insert_all=True
    )
    yield Call("merge_insert_into_table", merge, rows)
    yield Call("merge_insert_into_table", m.MergeInsertIntoTableRequest(id=["t1"]), rows)
    yield Call("update_table", m.UpdateTableRequest(id=["t1"], predicate="id=1", updates=[["s", "'zz'"]]))
    yield Call("delete_from_table", m.DeleteFromTableRequest(id=["t1"], predicate="id=2"))
    yield from _queries(m)
    yield from _structure(m)
    yield from _references(m)
    yield Call("drop_table", m.DropTableRequest(id=["t1"]))
    yield Call("drop_table", m.DropTableRequest(id=["t1"]))
    yield Call("drop_table", m.DropTableRequest(id=["n1", "t2"]))
    yield Call("drop_table", m.DropTableRequest(id=["d1"]))
    yield Call("list_tables", m.ListTablesRequest(id=[]))
    yield Call("list_tables", m.ListTablesRequest(id=["n1"]))


def _queries(m: Any) -> Iterator[Call]:
    near, none = m.QueryTableRequestVector(single_vector=[0.0, 0.0]), m.QueryTableRequestVector()
    words = m.QueryTableRequestFullTextQuery(string_query=m.StringFtsQuery(query="zz", columns=["s"]))
    structured = m.QueryTableRequestFullTextQuery(
        structured_query=m.StructuredFtsQuery(query=m.FtsQuery(match=m.MatchQuery(terms="zz", column="s")))
    )
    yield Call("query_table", m.QueryTableRequest(id=["t1"], k=2, vector=near, vector_column="v"))
    yield Call("query_table", m.QueryTableRequest(id=["t1"], k=2, vector=none, filter="id > 1"))
    several = m.QueryTableRequestColumns(column_names=["id"])
    yield Call("query_table", m.QueryTableRequest(id=["t1"], k=2, vector=none, columns=several))
    yield Call("query_table", m.QueryTableRequest(id=["t1"], k=2, vector=none, full_text_query=words))
    yield Call("query_table", m.QueryTableRequest(id=["t1"], k=2, vector=none, full_text_query=structured))
    yield Call("explain_table_query_plan", _explain(m, none))
    yield Call("analyze_table_query_plan", m.AnalyzeTableQueryPlanRequest(id=["t1"], k=2, vector=none))


def _explain(m: Any, vector: Any) -> Any:
    return m.ExplainTableQueryPlanRequest(id=["t1"], query=m.QueryTableRequest(k=2, vector=vector))


def _structure(m: Any) -> Iterator[Call]:
    yield Call(
        "create_table_scalar_index", m.CreateTableIndexRequest(id=["t1"], column="id", index_type="BTREE", name="i")
    )
    for column, kind, name in (("id", "BTREE", "i"), ("s", "FTS", None)):
        request = m.CreateTableIndexRequest(id=["t1"], column=column, index_type=kind, name=name)
        yield Call("create_table_scalar_index", request)
    vectors = m.CreateTableIndexRequest(
        id=["t1"], column="v", index_type="IVF_FLAT", distance_type="l2", num_partitions=1
    )
    yield Call("create_table_index", vectors)
    yield Call("create_table_index", m.CreateTableIndexRequest(id=["t1"], column="none", index_type="BTREE"))
    yield Call("describe_table_index_stats", m.DescribeTableIndexStatsRequest(id=["t1"], index_name="i"))
    yield Call("describe_table_index_stats", m.DescribeTableIndexStatsRequest(id=["t1"], index_name="none"))
    yield Call("drop_table_index", m.DropTableIndexRequest(id=["t1"], index_name="i"))
    yield Call("drop_table_index", m.DropTableIndexRequest(id=["t1"], index_name="i"))
    added = [m.AddColumnsEntry(name="c", expression="id + 1")]
    yield Call("alter_table_add_columns", m.AlterTableAddColumnsRequest(id=["t1"], new_columns=added))
    renamed = [m.AlterColumnsEntry(path="c", rename="cc")]
    yield Call("alter_table_alter_columns", m.AlterTableAlterColumnsRequest(id=["t1"], alterations=renamed))
    yield Call("alter_table_drop_columns", m.AlterTableDropColumnsRequest(id=["t1"], columns=["cc"]))
    yield Call("update_table_schema_metadata", m.UpdateTableSchemaMetadataRequest(id=["t1"], metadata={"a": "b"}))
    yield Call("list_table_versions", m.ListTableVersionsRequest(id=["t1"]))
    yield Call("list_table_versions", m.ListTableVersionsRequest(id=["t1"], descending=True))


def _references(m: Any) -> Iterator[Call]:
    for version, method in ((2, "create_table_tag"), (2, "create_table_tag"), (3, "update_table_tag")):
        request = m.CreateTableTagRequest if method.startswith("create") else m.UpdateTableTagRequest
        yield Call(method, request(id=["t1"], tag="tt", version=version))
    yield Call("update_table_tag", m.UpdateTableTagRequest(id=["t1"], tag="none", version=3))
    yield Call("list_table_tags", m.ListTableTagsRequest(id=["t1"]))
    for name in ("tt", "none"):
        yield Call("get_table_tag_version", m.GetTableTagVersionRequest(id=["t1"], tag=name))
        yield Call("delete_table_tag", m.DeleteTableTagRequest(id=["t1"], tag=name))
    yield Call("create_table_branch", m.CreateTableBranchRequest(id=["t1"], name="bb", from_version=3))
    yield Call("create_table_branch", m.CreateTableBranchRequest(id=["t1"], name="bb"))
    yield Call("list_table_branches", m.ListTableBranchesRequest(id=["t1"]))
    yield Call("count_table_rows", m.CountTableRowsRequest(id=["t1"], branch="bb"))
    for name in ("bb", "none"):
        yield Call("delete_table_branch", m.DeleteTableBranchRequest(id=["t1"], name=name))
    yield Call("restore_table", m.RestoreTableRequest(id=["t1"], version=2))
    yield Call("describe_transaction", m.DescribeTransactionRequest(id=["t1", "2"]))
