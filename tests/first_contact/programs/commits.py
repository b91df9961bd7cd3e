"""Two handles change one table: the second one sees the conflict, or goes on."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
one = lance.write_dataset(pa.table({"id": [1, 2, 3], "v": [0, 0, 0]}), path)
two = lance.dataset(path)
one.delete("id = 1")
two.delete("id = 2")
print(lance.dataset(path).to_table()["id"].to_pylist())
stale = lance.dataset(path, version=1)
lance.write_dataset(pa.table({"id": [4], "v": [4]}), stale, mode="append")
print(sorted(lance.dataset(path).to_table()["id"].to_pylist()))
try:
    lance.LanceDataset.commit(path, lance.LanceOperation.Delete([], [0], "true"), read_version=1)
except Exception as error:
    print("conflict", "onflict" in str(error))
