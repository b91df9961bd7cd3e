"""Join a table of new columns by key."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"id": [1, 2, 3, 4], "a": list("wxyz")}), path, max_rows_per_file=2)
dataset.merge(pa.table({"key": [4, 2, 1], "score": [0.4, 0.2, 0.1]}), left_on="id", right_on="key")
print(dataset.to_table().to_pylist())
print(len(dataset.get_fragments()), [len(each.data_files()) for each in dataset.get_fragments()])
