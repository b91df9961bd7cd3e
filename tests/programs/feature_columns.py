"""Features are computed beside the data: by SQL, by a Python function, from a reader, and from another table."""

import sys

import lance
import pyarrow as pa
import pyarrow.compute as pc

uri = sys.argv[1] + "/features.lance"
data = pa.table(
    {"id": range(30), "text": [f"word{i % 7} " * (i % 4) for i in range(30)], "x": [i / 3 for i in range(30)]}
)
dataset = lance.write_dataset(data, uri, max_rows_per_file=12)

dataset.add_columns({"double": "x * 2", "upper": "upper(text)", "big": "id >= 20"})
print(dataset.schema.names, dataset.count_rows("big"), dataset.version)


@lance.batch_udf(output_schema=pa.schema([("length", pa.int32()), ("words", pa.int32())]))
def measures(batch: pa.RecordBatch) -> pa.RecordBatch:
    lengths = pc.utf8_length(batch["text"])
    words = pa.array([len(text.split()) for text in batch["text"].to_pylist()], pa.int32())
    return pa.record_batch([lengths, words], ["length", "words"])


dataset.add_columns(measures, read_columns=["text"], batch_size=5)
print(dataset.to_table(["length", "words"], "id < 6").to_pydict())


def ranks(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([pc.multiply(batch["id"], -1)], ["rank"])


dataset.add_columns(ranks, read_columns=["id"])
reader = pa.RecordBatchReader.from_batches(
    pa.schema([("label", pa.string())]),
    (pa.record_batch([[f"label {i}" for i in range(start, start + 10)]], ["label"]) for start in (0, 10, 20)),
)
dataset.add_columns(reader)
dataset.add_columns(pa.field("later", pa.float32()))
print(dataset.take([0, 12, 29], ["rank", "label", "later"]).to_pylist())

dataset.merge(pa.table({"key": [3, 5, 29, 99], "score": [0.3, 0.5, 2.9, 9.9]}), left_on="id", right_on="key")
print(dataset.to_table(["id", "score"], "score IS NOT NULL").to_pydict())

dataset.alter_columns({"path": "length", "data_type": pa.int64()}, {"path": "label", "name": "title"})
dataset.alter_columns({"path": "x", "nullable": True})
dataset.drop_columns(["double", "upper"])
print([(field.name, str(field.type), field.nullable) for field in dataset.schema])
for change in (
    lambda: dataset.drop_columns(["double"]),
    lambda: dataset.add_columns({"id": "1"}),
    lambda: dataset.add_columns({"bad": "nothing + 1"}),
    lambda: dataset.alter_columns({"path": "title", "data_type": pa.int64()}),
    lambda: dataset.alter_columns({"path": "missing", "name": "found"}),
):
    try:
        change()
        print("accepted")
    except Exception as error:
        print("refused", isinstance(error, (ValueError, OSError)))
print(lance.dataset(uri, version=1).schema.names, lance.dataset(uri).schema.names == dataset.schema.names)
