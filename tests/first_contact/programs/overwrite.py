"""Overwrite a table with another schema and go back."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
lance.write_dataset(pa.table({"a": range(10)}), path)
lance.write_dataset(pa.table({"b": ["x", "y"]}), path, mode="overwrite")
dataset = lance.dataset(path)
print(dataset.to_table().to_pydict(), dataset.version)
old = dataset.checkout_version(1)
print(old.schema, old.count_rows())
old.restore()
dataset = lance.dataset(path)
print(dataset.version, dataset.schema.names, dataset.count_rows())
dataset.checkout_latest()
print(dataset.to_table()["a"].to_pylist())
