"""A PyTorch model learns from a dataset: batches as tensors, two ranks that share the rows, sampling, a map style."""

import sys

import lance
import numpy as np
import pyarrow as pa
import torch
from lance.sampler import ShardedBatchSampler, ShardedFragmentSampler
from lance.torch.data import LanceDataset, SafeLanceDataset

uri = sys.argv[1] + "/train.lance"
random = np.random.default_rng(11)
features = random.normal(0, 1, (600, 4)).astype(np.float32)
labels = features @ np.array([1.0, -2.0, 0.5, 3.0], dtype=np.float32) + 1
table = pa.table(
    {
        "id": range(600),
        "x": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 4),
        "y": pa.array(labels),
        "split": ["train" if i % 5 else "test" for i in range(600)],
    }
)
dataset = lance.write_dataset(table, uri, max_rows_per_file=150)

batches = LanceDataset(dataset, batch_size=64, columns=["x", "y"])
sizes = [(tuple(batch["x"].shape), batch["y"].dtype) for batch in batches]
print(sizes[0], len(sizes), sum(shape[0] for shape, _ in sizes))

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    for batch in LanceDataset(uri, batch_size=50, columns=["x", "y"], filter="split = 'train'"):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch["x"]).squeeze(1), batch["y"])
        loss.backward()
        optimizer.step()
print("loss", round(float(loss), 4), [round(float(value), 2) for value in model.weight[0]], round(float(model.bias), 2))
with torch.no_grad():
    wrong = [
        model(batch["x"]).squeeze(1) - batch["y"]
        for batch in LanceDataset(uri, 100, columns=["x", "y"], filter="split = 'test'")
    ]
print("test rows", sum(map(len, wrong)), bool(torch.cat(wrong).abs().max() < 0.05))

seen = []
for rank in (0, 1):
    part = LanceDataset(dataset, 50, columns=["id"], sampler=ShardedFragmentSampler(rank, 2))
    seen.append(sorted(int(i) for batch in part for i in batch))
print("fragments", [len(each) for each in seen], not set(seen[0]) & set(seen[1]))
seen = []
for rank in (0, 1):
    part = LanceDataset(dataset, 50, columns=["id"], sampler=ShardedBatchSampler(rank, 2))
    seen.append(sorted(int(i) for batch in part for i in batch))
print("batches", [len(each) for each in seen], sorted(seen[0] + seen[1]) == list(range(600)))
sample = LanceDataset(dataset, 40, columns=["id"], samples=100)
drawn = [int(i) for batch in sample for i in batch]
print("sample", len(drawn), len(set(drawn)), max(drawn) < 600)

rows = SafeLanceDataset(uri)
loader = torch.utils.data.DataLoader(rows, batch_size=3, collate_fn=lambda items: [item["id"] for item in items])
print("rows", len(rows), sorted(rows[5]), next(iter(loader)))
