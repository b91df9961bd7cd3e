"""Fragments one by one."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"i": range(25)}), path, max_rows_per_file=10)
for fragment in dataset.get_fragments():
    print(
        fragment.fragment_id,
        fragment.count_rows(),
        fragment.physical_rows,
        fragment.to_table(filter="i % 5 = 0").to_pydict(),
    )
print(dataset.get_fragment(1).take([0, 3]).to_pydict())
print(dataset.get_fragment(2).head(2).to_pydict())
dataset.delete("i = 11")
print(dataset.get_fragment(1).count_rows(), dataset.get_fragment(1).num_deletions)
print([batch.num_rows for batch in dataset.get_fragment(0).to_batches(batch_size=4)])
