"""A shallow clone shares files until it is changed."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"i": range(5)}), path)
clone = dataset.shallow_clone(sys.argv[1] + "/clone.lance", 1)
print(clone.to_table().to_pydict())
clone.delete("i < 2")
clone = lance.write_dataset(pa.table({"i": [50]}), clone, mode="append")
print(sorted(clone.to_table()["i"].to_pylist()), dataset.count_rows())
