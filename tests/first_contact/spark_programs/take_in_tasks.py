"""Tasks look up rows of a dataset by number with `mapInArrow`."""

import sys
from collections.abc import Iterator

import lance
import pyarrow as pa
from pyspark.sql import SparkSession

path = sys.argv[1] + "/t.lance"
lance.write_dataset(
    pa.table({"id": range(1000), "name": [f"name {i}" for i in range(1000)]}), path, max_rows_per_file=300
)
spark = SparkSession.builder.getOrCreate()


def look_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    dataset = lance.dataset(path)
    for batch in batches:
        yield from dataset.take(batch["row"].to_pylist(), columns=["id", "name"]).to_batches()


rows = spark.createDataFrame([(i * 37 % 1000,) for i in range(40)], "row long").repartition(2)
found = rows.mapInArrow(look_up, "id long, name string")
print(sorted(map(tuple, found.collect()))[:5], found.count())
