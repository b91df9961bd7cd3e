"""SQL by DuckDB over a dataset."""

import sys

import duckdb
import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
dataset = lance.write_dataset(pa.table({"k": [i % 4 for i in range(100)], "v": range(100)}), path)
print(duckdb.sql("select k, sum(v) as total, count(*) from dataset where v > 20 group by k order by k").fetchall())
other = lance.write_dataset(pa.table({"k": [0, 1], "name": ["zero", "one"]}), sys.argv[1] + "/names.lance")
print(duckdb.sql("select name, max(v) from dataset join other using (k) group by name order by name").fetchall())
