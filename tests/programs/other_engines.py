"""One table read by pyarrow, pandas, polars and DuckDB, and written from each of them."""

import sys

import duckdb
import lance
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

uri = sys.argv[1] + "/shared.lance"
frame = pd.DataFrame({"city": ["Bern", "Rome", None, "Oslo"] * 5, "n": range(20), "x": [i / 4 for i in range(20)]})
dataset = lance.write_dataset(frame, uri, max_rows_per_file=6)
print([(field.name, str(field.type)) for field in dataset.schema])

print(isinstance(dataset, pads.Dataset), dataset.scanner(["n"], filter=pc.field("n") > 16).to_table().to_pydict())
print(dataset.count_rows(pc.field("city") == "Rome"), dataset.head(2, columns=["n"]).to_pydict())
print([batch.num_rows for batch in dataset.to_batches(columns=["n"], batch_size=4)])
print(dataset.to_table().group_by("city").aggregate([("x", "sum")]).sort_by("city").to_pylist())

back = dataset.to_pandas(columns=["city", "x"], filter="x > 4")
print(type(back).__name__, back["x"].tolist(), back["city"].isna().sum())

lazy = pl.scan_pyarrow_dataset(dataset)
print(lazy.filter(pl.col("n") >= 15).select(["n", "city"]).collect().to_dicts())
print(lazy.group_by("city").agg(pl.col("n").sum()).sort("city").collect().to_dicts())
print(pl.from_arrow(dataset.to_table(["n"])).sum().item())

print(
    duckdb.query(
        "SELECT city, count(*) AS c, max(x) AS m FROM dataset WHERE n < 18 GROUP BY city ORDER BY city"
    ).fetchall()
)
print(duckdb.query("SELECT n FROM dataset WHERE city = 'Oslo' AND x > 2 ORDER BY n").fetchall())
other = lance.write_dataset(
    pa.table({"city": ["Rome", "Oslo"], "land": ["Italy", "Norway"]}), sys.argv[1] + "/lands.lance"
)
joined = duckdb.query("SELECT land, sum(n) FROM dataset JOIN other USING (city) GROUP BY land ORDER BY land")
print(joined.fetchall())

frame = pl.DataFrame({"city": ["Kyiv"], "n": [100], "x": [0.5]})
lance.write_dataset(frame.to_arrow().cast(dataset.schema), dataset, mode="append")
dataset = lance.dataset(uri)
dataset.insert(duckdb.query("SELECT 'Lima' AS city, 200::BIGINT AS n, 1.5::DOUBLE AS x").to_arrow_table())
dataset.insert(pd.DataFrame({"city": ["Cork"], "n": [300], "x": [2.5]}))
dataset.insert([{"city": "Bonn", "n": 400, "x": 3.5}])
print(dataset.to_table(filter="n >= 100").to_pydict())
reader = dataset.scanner(["n"], batch_size=10).to_reader()
copy = lance.write_dataset(reader, sys.argv[1] + "/copy.lance")
print(copy.count_rows(), copy.to_table(["n"]) == dataset.to_table(["n"]))
whole = pads.dataset(dataset.to_table(), schema=dataset.schema)
print(
    lance.write_dataset(whole, sys.argv[1] + "/third.lance").count_rows(),
    lance.write_dataset({"a": [1, 2]}, sys.argv[1] + "/d.lance").to_table().to_pydict(),
)
print(
    dataset.sql("SELECT city, n FROM dataset WHERE n > 150 ORDER BY n DESC").build().to_batch_records()[0].to_pydict()
)
