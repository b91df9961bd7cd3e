"""Tables by name: a catalogue in a folder with namespaces, and the dataset calls that take its client."""

import io
import sys

import lance
import pyarrow as pa
from lance.namespace import DirectoryNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableRequest,
    DescribeTableRequest,
    DropTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    NamespaceExistsRequest,
    TableExistsRequest,
)

catalog = DirectoryNamespace(root=sys.argv[1] + "/catalog")


def stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


catalog.create_namespace(CreateNamespaceRequest(id=["sales"]))
catalog.create_namespace(CreateNamespaceRequest(id=["stock"]))
print(sorted(catalog.list_namespaces(ListNamespacesRequest(id=[])).namespaces))
rows = pa.table({"id": [1, 2, 3], "amount": [10.5, None, 7.25]})
answer = catalog.create_table(CreateTableRequest(id=["sales", "orders"]), stream(rows))
print(answer.version, answer.location.startswith("file:") or answer.location.startswith("/"))
print(
    catalog.list_tables(ListTablesRequest(id=["sales"])).tables,
    catalog.list_tables(ListTablesRequest(id=["stock"])).tables,
)

where = catalog.describe_table(DescribeTableRequest(id=["sales", "orders"]))
orders = lance.dataset(where.location)
print(orders.count_rows(), orders.to_table(filter="amount > 8").to_pydict())
orders = lance.dataset(namespace_client=catalog, table_id=["sales", "orders"])
orders.insert(pa.table({"id": [4], "amount": [1.0]}))
print(lance.dataset(namespace_client=catalog, table_id=["sales", "orders"]).count_rows())

items = lance.write_dataset(
    pa.table({"sku": ["a", "b"]}), namespace_client=catalog, table_id=["stock", "items"], mode="create"
)
lance.write_dataset(pa.table({"sku": ["c"]}), namespace_client=catalog, table_id=["stock", "items"], mode="append")
print(items.version, lance.dataset(namespace_client=catalog, table_id=["stock", "items"]).to_table().to_pydict())
print(catalog.list_tables(ListTablesRequest(id=["stock"])).tables)
lance.write_dataset(pa.table({"sku": ["z"]}), namespace_client=catalog, table_id=["stock", "items"], mode="overwrite")
print(lance.dataset(namespace_client=catalog, table_id=["stock", "items"], version=1).count_rows())

catalog.drop_table(DropTableRequest(id=["stock", "items"]))
for label, call in {
    "table": lambda: catalog.table_exists(TableExistsRequest(id=["stock", "items"])),
    "namespace": lambda: catalog.namespace_exists(NamespaceExistsRequest(id=["nowhere"])),
    "again": lambda: catalog.create_namespace(CreateNamespaceRequest(id=["sales"])),
    "dataset": lambda: lance.dataset(namespace_client=catalog, table_id=["stock", "items"]),
}.items():
    try:
        call()
        print(label, "accepted")
    except Exception as error:
        print(label, "refused", type(error).__name__)
print(
    catalog.table_exists(TableExistsRequest(id=["sales", "orders"])),
    catalog.list_tables(ListTablesRequest(id=["stock"])).tables,
)
