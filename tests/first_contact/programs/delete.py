"""Delete rows by condition and count what is left."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(
    pa.table({"i": range(1000), "s": [f"s{i % 7}" for i in range(1000)]}), path, max_rows_per_file=300
)
dataset.delete("i % 3 = 0")
print(dataset.count_rows(), dataset.count_rows("s = 's1'"))
dataset.delete("s IN ('s1', 's2') AND i > 500")
print(dataset.count_rows(), [fragment.count_rows() for fragment in dataset.get_fragments()])
print([fragment.num_deletions for fragment in dataset.get_fragments()])
print(dataset.to_table(filter="i < 12")["i"].to_pylist())
