"""Scans with projection, filter, order, limit and offset."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
data = pa.table(
    {
        "id": range(200),
        "k": [i * 37 % 101 for i in range(200)],
        "s": [None if i % 11 == 0 else f"n{i % 5}" for i in range(200)],
    }
)
dataset = lance.write_dataset(data, path)
print(dataset.to_table(columns=["id"], filter="k < 10 AND s LIKE 'n%'")["id"].to_pylist())
print(dataset.to_table(filter="s IS NULL", limit=3, offset=2).to_pylist())
print(dataset.scanner(columns={"sum": "id + k"}, filter="id BETWEEN 5 AND 8").to_table().to_pydict())
print(dataset.scanner(order_by=["k", "id"], columns=["k", "id"], limit=4).to_table().to_pydict())
print(dataset.scanner(with_row_id=True, filter="id >= 198").to_table().to_pydict())
print(sum(batch.num_rows for batch in dataset.scanner(batch_size=33).to_batches()))
print(dataset.count_rows(filter="s = 'n1' OR k = 3"))
