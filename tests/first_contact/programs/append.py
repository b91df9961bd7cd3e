"""Create a table from Arrow, append to it, look at its versions."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/people.lance"
people = pa.table({"id": [1, 2, 3], "name": ["Ann", "Bob", "Cid"], "age": [31, None, 45]})
dataset = lance.write_dataset(people, path)
print(dataset.count_rows(), dataset.schema.names, dataset.version)

dataset = lance.write_dataset(pa.table({"id": [4], "name": ["Dee"], "age": [22]}), path, mode="append")
dataset.insert(pa.table({"id": [5], "name": [None], "age": [61]}, schema=people.schema))
print(dataset.to_table().to_pydict())
print([each["version"] for each in dataset.versions()], dataset.latest_version)
print(lance.dataset(path, version=1).count_rows())
try:
    lance.write_dataset(people, path)
except OSError as error:
    print("exists:", isinstance(error, OSError))
