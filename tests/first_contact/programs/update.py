"""Update values with SQL expressions."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"id": range(6), "name": list("abcdef"), "n": [1.5] * 6}), path)
print(dataset.update({"n": "n * 10 + id"}, where="id > 2"))
print(dataset.update({"name": "'x'"}, where="name = 'a' OR id = 5"))
print(sorted(dataset.to_table().to_pylist(), key=lambda row: row["id"]))
dataset.update({"n": "NULL"}, where="id = 0")
print(dataset.count_rows("n IS NULL"))
