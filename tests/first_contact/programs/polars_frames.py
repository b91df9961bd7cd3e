"""Polars in and out, lazily."""

import sys

import lance
import polars as pl

path = sys.argv[1] + "/t.lance"
frame = pl.DataFrame({"g": ["a", "b", "a", "c"] * 25, "n": range(100)})
dataset = lance.write_dataset(frame.to_arrow(), path)
lazy = pl.scan_pyarrow_dataset(dataset)
print(lazy.filter(pl.col("n") >= 10).group_by("g").agg(pl.col("n").sum()).sort("g").collect().to_dicts())
print(pl.from_arrow(dataset.to_table(columns=["n"], filter="g = 'c'"))["n"].sum())
