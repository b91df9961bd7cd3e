"""A test on a cluster: executors with processes of their own, which share nothing with the driver but files.

By default it writes, reads and checks; ``LANCE_STRESS=1`` merges, adds a column and streams, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import lance_dataset

ROWS = 1000
THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
EXPECTED = {
    "executors": 2,
    "fragments": 4,
    "narrowed": True,
    "filtered": len([n for n in range(500) if n % 7 == 3]),
    "valid": {"fragments": 4, "rows": ROWS},
}
THOROUGH_EXPECTED = {
    "merged": {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0},
    "backfilled": 2 * sum(range(1, ROWS)) + 2 * 9999,
    "streamed": ROWS + 1,
}


def test_a_cluster_does_what_one_process_does(tmp_path):
    """A program of its own, as a process has one Spark only."""
    paths = [str(Path(lance_dataset.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
    program = subprocess.run(
        [sys.executable, __file__, str(tmp_path)], capture_output=True, text=True, env=environment, check=False
    )
    assert program.returncode == 0, program.stderr[-5000:]
    found = json.loads(program.stdout.splitlines()[-1])
    assert found == EXPECTED | (THOROUGH_EXPECTED if THOROUGH else {})


def main(folder: str) -> None:
    from pyspark.sql import SparkSession

    from lance_dataset.spark import validate

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    uri = f"{folder}/table.lance"
    rows = spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 7 AS day", "uuid() AS text")
    rows.write.format("lance").save(uri)
    few = spark.read.format("lance").load(uri).filter("day = 3 AND id < 500").select("id")
    found = {
        "fragments": len(lance_dataset.dataset(uri).get_fragments()),
        "narrowed": "lance_request" in few._jdf.queryExecution().executedPlan().toString(),
        "filtered": few.count(),
        "valid": validate(spark, uri, values=True),
        "executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1,  # one is the driver
    }
    if THOROUGH:
        found |= changed(spark, uri, folder)
    spark.stop()
    print(json.dumps(found))


def changed(spark, uri, folder):
    from lance_dataset.spark import add_columns, merge_into

    changes = spark.createDataFrame([(0, 70, "a"), (9999, 71, "b")], "id bigint, day bigint, text string")
    merged = merge_into(changes, uri, "id")
    add_columns(spark, uri, lambda batch: twice(batch), "twice bigint", read_columns=["id"])
    backfilled = spark.read.format("lance").load(uri).agg({"twice": "sum"}).first()[0]
    stream = spark.readStream.format("lance").load(uri).writeStream.format("lance").trigger(availableNow=True)
    copy = f"{folder}/copy.lance"
    stream.option("checkpointLocation", f"{folder}/checkpoint").start(copy).awaitTermination()
    return {"merged": merged, "backfilled": backfilled, "streamed": lance_dataset.dataset(copy).count_rows()}


def twice(batch):
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.record_batch({"twice": pc.multiply(batch.column("id"), 2)})


if __name__ == "__main__":
    main(sys.argv[1])
