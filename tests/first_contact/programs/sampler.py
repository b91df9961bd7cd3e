"""Shards of a table for the ranks of a training job."""

import sys

import lance
import pyarrow as pa
from lance.sampler import ShardedBatchSampler, ShardedFragmentSampler

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"i": range(100)}), path, max_rows_per_file=25)
for rank in range(2):
    batches = list(ShardedBatchSampler(rank, 2)(dataset, batch_size=10, columns=["i"]))
    print(rank, [batch.num_rows for batch in batches], sum(sum(batch["i"].to_pylist()) for batch in batches))
for rank in range(2):
    rows = [
        row
        for batch in ShardedFragmentSampler(rank, 2)(dataset, batch_size=25, columns=["i"])
        for row in batch["i"].to_pylist()
    ]
    print(rank, len(rows), rows[:3])
