"""Tags name versions."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"i": [1]}), path)
dataset = lance.write_dataset(pa.table({"i": [2]}), path, mode="append")
dataset.tags.create("first", 1)
dataset.tags.create("second", 2)
print(sorted((name, tag["version"]) for name, tag in dataset.tags.list().items()))
print(lance.dataset(path, version="first").to_table().to_pydict(), dataset.checkout_version("second").count_rows())
dataset.tags.update("second", 1)
dataset.tags.delete("first")
print(sorted((name, tag["version"]) for name, tag in dataset.tags.list().items()))
