"""Random samples for training."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"id": range(1000), "x": [i / 7 for i in range(1000)]}), path)
sample = dataset.sample(50, columns=["id"])
ids = sample["id"].to_pylist()
print(sample.num_rows, len(set(ids)), all(0 <= each < 1000 for each in ids), sample.schema.names)
seen = set()
for _epoch in range(2):
    for batch in dataset.to_batches(columns=["id"], batch_size=64):
        seen.update(batch["id"].to_pylist())
print(len(seen))
