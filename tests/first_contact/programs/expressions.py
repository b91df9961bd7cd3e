"""Filters as pyarrow expressions."""

import sys
from datetime import date, datetime

import lance
import pyarrow as pa
import pyarrow.compute as pc

path = sys.argv[1] + "/t.lance"
days = [date(2024, 1, 1 + i) for i in range(20)]
times = [datetime(2024, 1, 1 + i, 12) for i in range(20)]
dataset = lance.write_dataset(
    pa.table({"i": range(20), "day": days, "time": times, "ok": [i % 2 == 0 for i in range(20)]}), path
)
print(dataset.to_table(filter=pc.field("i") > 15)["i"].to_pylist())
print(dataset.to_table(filter=(pc.field("ok")) & (pc.field("i").isin([1, 2, 3, 4])))["i"].to_pylist())
print(dataset.count_rows(filter="day >= date '2024-01-15'"))
print(dataset.to_table(filter="time < timestamp '2024-01-03 00:00:00' AND NOT ok")["i"].to_pylist())
print(dataset.to_table(filter=pc.field("day") == date(2024, 1, 2)).to_pylist())
