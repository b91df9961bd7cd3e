"""Add columns: SQL expressions, a function of batches, a reader, and an empty one."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}), path)
dataset.add_columns({"total": "a + b", "text": "concat('row ', CAST(a AS string))"})


@lance.batch_udf(output_schema=pa.schema([("square", pa.int64())]))
def square(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([pa.array([each**2 for each in batch["a"].to_pylist()])], ["square"])


dataset.add_columns(square, read_columns=["a"])
dataset.add_columns(pa.field("later", pa.float32()))
print(dataset.schema)
print(dataset.to_table().to_pylist())
