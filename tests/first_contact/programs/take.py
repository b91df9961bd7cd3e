"""Random access: rows by number, with some columns, in any order."""

import sys

import lance
import numpy as np
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
data = pa.table(
    {"id": range(5000), "text": [f"text {i}" * (i % 5) for i in range(5000)], "v": [[i, i + 1] for i in range(5000)]}
)
dataset = lance.write_dataset(data, path, max_rows_per_file=1234, max_rows_per_group=100)
print(dataset.take([4999, 0, 7, 7, 1234]).to_pylist())
chosen = np.random.default_rng(3).choice(5000, 10, replace=False)
print(dataset.take(chosen, columns=["text"])["text"].to_pylist())
print(dataset.take([3, 1], columns={"double": "id * 2"}).to_pydict())
print(dataset.head(2, columns=["id"]).to_pydict())
try:
    dataset.take([5000])
except Exception as error:
    print("refused", isinstance(error, (IndexError, OSError, ValueError)))
