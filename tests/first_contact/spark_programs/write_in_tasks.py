"""Tasks write fragments with `mapInArrow`; the driver commits them."""

import json
import sys
from collections.abc import Iterator

import lance
import pyarrow as pa
from pyspark.sql import SparkSession

path = sys.argv[1] + "/t.lance"
spark = SparkSession.builder.getOrCreate()
schema = pa.schema([("id", pa.int64()), ("square", pa.int64())])


def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    reader = pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in batches))
    written = [json.dumps(each.to_json()) for each in lance.fragment.write_fragments(reader, path)]
    yield pa.record_batch([pa.array(written, pa.string())], ["fragment"])


rows = spark.range(100).repartition(2).selectExpr("id", "id * id as square")
written = [row.fragment for row in rows.mapInArrow(write, "fragment string").collect()]
fragments = [lance.FragmentMetadata.from_json(each) for each in written]
dataset = lance.LanceDataset.commit(path, lance.LanceOperation.Overwrite(schema, fragments))
print(dataset.count_rows(), len(dataset.get_fragments()))
print(sorted(dataset.to_table(filter="square > 9000")["id"].to_pylist()))
