"""Structs, lists and maps, with nulls at every level."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
rows = [
    {"id": 1, "who": {"name": "Ann", "tags": ["a", "b"]}, "scores": [[1, 2], [], None]},
    {"id": 2, "who": None, "scores": None},
    {"id": 3, "who": {"name": None, "tags": []}, "scores": [[None, 4]]},
]
dataset = lance.write_dataset(pa.Table.from_pylist(rows), path)
print(dataset.schema)
print(dataset.to_table().to_pylist() == rows)
print(dataset.to_table(columns=["who.name"], filter="who.name = 'Ann'").to_pydict())
print(dataset.take([2, 0], columns=["scores", "who"]).to_pylist())
print(dataset.count_rows("who IS NULL"), dataset.count_rows("who.name IS NULL"))
