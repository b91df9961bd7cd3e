"""History of a table: its versions, and what made them."""

import sys
from datetime import datetime, timedelta

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"i": [1, 2, 3]}), path)
dataset.delete("i = 2")
dataset.update({"i": "i + 10"}, where="i = 3")
versions = dataset.versions()
print([each["version"] for each in versions], all(isinstance(each["timestamp"], datetime) for each in versions))
print([type(each.operation).__name__ for each in dataset.get_transactions()])
print(lance.dataset(path, asof=datetime.now() + timedelta(minutes=1)).version)
print(dataset.read_transaction(1).operation.__class__.__name__)
print(sorted(dataset.to_table()["i"].to_pylist()))
