"""Arrays in single Lance files: written in batches, with global buffers and metadata; read whole, in parts, by rows."""

import sys

import lance
import pyarrow as pa

folder = sys.argv[1]
path = folder + "/array.lance"
schema = pa.schema(
    [
        pa.field("i", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("point", pa.list_(pa.float32(), 2)),
        ("bag", pa.list_(pa.int32())),
    ],
    metadata={"made": "by hand"},
)


def batch(start: int) -> pa.RecordBatch:
    numbers = range(start, start + 100)
    return pa.record_batch(
        [
            pa.array(numbers),
            pa.array([None if i % 10 == 0 else f"name {i % 25}" for i in numbers]),
            pa.array([[i, -i] for i in numbers], pa.list_(pa.float32(), 2)),
            pa.array([list(range(i % 4)) for i in numbers], pa.list_(pa.int32())),
        ],
        schema=schema,
    )


with lance.file.LanceFileWriter(path, schema, version="2.1") as writer:
    for start in range(0, 500, 100):
        writer.write_batch(batch(start))
    buffer = writer.add_global_buffer(b"extra bytes")
    writer.add_schema_metadata("author", "me")
reader = lance.file.LanceFileReader(path)
about = reader.metadata()
print(reader.num_rows(), about.schema.names, about.major_version, about.minor_version, len(about.columns))
print(bytes(reader.read_global_buffer(buffer)), sorted(about.schema.metadata))

print(reader.read_all(batch_size=128).to_table().column("i").to_pylist() == list(range(500)))
print([each.num_rows for each in reader.read_all(batch_size=200).to_batches()])
print(reader.read_range(298, 4).to_table().to_pydict())
print(reader.take_rows([0, 7, 499]).to_table().to_pydict())
narrow = lance.file.LanceFileReader(path, columns=["name", "i"])
print(narrow.read_range(10, 2).to_table().to_pydict())
statistics = reader.file_statistics()
print(len(statistics.columns), [each.num_pages > 0 and each.size_bytes > 0 for each in statistics.columns])

session = lance.file.LanceFileSession(folder)
with session.open_writer("more/second.lance", schema=schema) as second:
    second.write_batch(batch(1000))
print(session.contains("more/second.lance"), session.contains("nothing"), sorted(session.list("more")))
print(session.open_reader("more/second.lance").read_range(5, 1).to_table()["i"].to_pylist())
with open(folder + "/local.bin", "wb") as local:
    local.write(b"123")
session.upload_file(folder + "/local.bin", "up/loaded.bin")
session.download_file("up/loaded.bin", folder + "/back.bin")
with open(folder + "/back.bin", "rb") as local:
    print(local.read())
for wrong in (
    lambda: reader.read_range(499, 5).to_table(),
    lambda: reader.take_rows([500]).to_table(),
    lambda: lance.file.LanceFileReader(folder + "/none"),
):
    try:
        wrong()
        print("accepted")
    except (ValueError, OSError, RuntimeError):
        print("refused")
