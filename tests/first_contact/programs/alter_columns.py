"""Rename, cast and drop columns."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
points = [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}]
dataset = lance.write_dataset(pa.table({"id": pa.array([1, 2], pa.int32()), "p": points, "junk": ["a", "b"]}), path)
dataset.alter_columns({"path": "id", "data_type": pa.int64()}, {"path": "p.x", "name": "longitude"})
dataset.drop_columns(["junk"])
print(dataset.schema)
dataset.alter_columns({"path": "id", "name": "key"})
print(dataset.to_table().to_pylist(), dataset.version)
print(dataset.to_table(columns=["p.longitude"]).to_pydict())
