"""Upsert by key, with the statistics of what happened."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/stock.lance"
lance.write_dataset(pa.table({"sku": ["a", "b", "c"], "count": [1, 2, 3]}), path)
dataset = lance.dataset(path)
news = pa.table({"sku": ["b", "c", "d"], "count": [20, 30, 40]})
stats = dataset.merge_insert("sku").when_matched_update_all().when_not_matched_insert_all().execute(news)
print(
    {
        name: stats[name]
        for name in sorted(stats)
        if name.startswith("num_") and "file" not in name and "attempt" not in name
    }
)
print(sorted(dataset.to_table().to_pylist(), key=lambda row: row["sku"]))
