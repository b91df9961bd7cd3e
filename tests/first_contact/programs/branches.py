"""A branch has its own versions."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"i": [1, 2]}), path)
branch = dataset.create_branch("trial")
branch = lance.write_dataset(pa.table({"i": [3]}), branch, mode="append")
print(branch.count_rows(), lance.dataset(path).count_rows())
print(sorted(dataset.branches.list()))
again = dataset.checkout_version(("trial", None))
print(again.to_table().to_pydict())
dataset.branches.delete("trial")
print(sorted(dataset.branches.list()))
