"""Recordings as blobs: written beside their descriptions, read lazily, in part, and after changes."""

import sys

import lance
import pyarrow as pa

uri = sys.argv[1] + "/media.lance"
payloads = [bytes([i]) * (i * 1000) for i in range(6)]
field = pa.field("data", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
table = pa.table(
    [pa.array(range(6)), pa.array([f"clip {i}" for i in range(6)]), pa.array(payloads, pa.large_binary())],
    schema=pa.schema([("id", pa.int64()), ("name", pa.string()), field]),
)
clips = lance.write_dataset(table, uri, data_storage_version="2.1", max_rows_per_file=4)
print(clips.schema.names, clips.schema.field("data").metadata)
print(clips.to_table(["id", "name"], "id > 3").to_pydict())

for blob, number in zip(clips.take_blobs("data", indices=[1, 5, 3]), (1, 5, 3), strict=True):
    with blob as file:
        print(file.size(), file.read(3), file.tell(), file.seek(-2, 2), file.read(), file.seekable(), number)
        file.seek(0)
        print(file.readall() == payloads[number], file.read(1), file.closed)
    print(blob.closed)
rows = clips.to_table(["id"], with_row_id=True, filter="id IN (2, 4)")
print([blob.size() for blob in clips.take_blobs("data", ids=rows["_rowid"].to_pylist())])
descriptions = clips.to_table(["data"], limit=2)["data"].to_pylist()
print([sorted(each) for each in descriptions], [each["size"] for each in descriptions])
print([len(value) for value in clips.to_table(["data"], blob_handling="all_binary")["data"].to_pylist()])
print([(row, len(data)) for row, data in clips.read_blobs("data", indices=[5, 0, 2], preserve_order=True)])

clips.delete("id = 3")
more = pa.table([pa.array([6]), pa.array(["late"]), pa.array([b"tail" * 10], pa.large_binary())], schema=table.schema)
clips = lance.write_dataset(more, uri, mode="append")
print([blob.size() for blob in clips.take_blobs("data", indices=[3, 4, 5])])
try:
    clips.take_blobs("name", indices=[0])
    print("accepted")
except (ValueError, OSError):
    print("not a blob column")

second = sys.argv[1] + "/second.lance"
values = lance.blob_array([b"small", None, lance.Blob.from_bytes(b"x" * 200_000), lance.Blob.empty()])
modern = pa.table({"id": range(4), "b": values}, schema=pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")]))
files = lance.write_dataset(modern, second, data_storage_version="2.2")
found = files.take_blobs("b", indices=[0, 2])
print([blob.size() for blob in found], found[0].readall(), found[1].read_range(10, 4))
print([None if data is None else len(data) for _, data in files.read_blobs("b", indices=[0, 1, 2, 3])])
files.update({"id": "id + 10"}, where="id = 2")
print(sorted(files.to_table(["id"])["id"].to_pylist()), [len(d) for _, d in files.read_blobs("b", indices=[3]) if d])
