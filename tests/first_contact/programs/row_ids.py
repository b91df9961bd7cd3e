"""Stable row ids survive updates and compaction."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"i": range(30)}), path, max_rows_per_file=10, enable_stable_row_ids=True)
ids = dataset.to_table(with_row_id=True, filter="i IN (3, 14, 25)")["_rowid"].to_pylist()
dataset.delete("i < 3")
dataset.update({"i": "i + 100"}, where="i = 14")
dataset.optimize.compact_files()
print(ids, sorted(dataset.to_table(with_row_id=True, filter="_rowid IN (3, 14, 25)").to_pydict()["i"]))
print(dataset.count_rows(), len(dataset.get_fragments()))
