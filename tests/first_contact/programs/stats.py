"""Statistics of a table and of its columns."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"i": range(100), "s": ["x"] * 100}), path, max_rows_per_file=40)
dataset.delete("i < 5")
print(dataset.stats.dataset_stats())
print([(field.id, field.bytes_on_disk > 0) for field in dataset.stats.data_stats().fields])
print(dataset.max_field_id, dataset.data_storage_version, dataset.uri.endswith("t.lance"))
print([field.name() for field in dataset.lance_schema.fields()])
