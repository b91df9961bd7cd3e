"""Compact many small files, then remove old versions."""

import sys
from datetime import timedelta

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
for i in range(6):
    dataset = lance.write_dataset(pa.table({"i": [i] * 10}), path, mode="append" if i else "create")
dataset.delete("i = 3")
metrics = dataset.optimize.compact_files(target_rows_per_fragment=1000)
print(metrics.fragments_removed, metrics.fragments_added, dataset.count_rows(), len(dataset.get_fragments()))
stats = dataset.cleanup_old_versions(older_than=timedelta(0))
print(stats.old_versions, stats.bytes_removed > 0, [each["version"] for each in dataset.versions()])
print(sorted(set(dataset.to_table()["i"].to_pylist())))
