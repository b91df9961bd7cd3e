"""A test of Spark Connect: a client that knows the server by messages only, so without Java objects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import lance_dataset

EXPECTED = {
    "client": "connect",
    "rows": [[1, "1.50"], [3, "3.50"]],
    "counted": 1001,
    "error": "AlreadyExistsError: Dataset already exists: table.lance; use the mode append or overwrite",
    "unknown": "FieldNotFoundError: The dataset has no column 'txt'; did you mean 'text'?",
    "merged": {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0},
    "backfilled": 2 * sum(range(1, 1000)) + 2 * 9999,
    "taken": [3, 7],
    "nearest": [[5, 5], [8, 8]],
    "compacted": 1,
    "streamed": 1001,
    "statement": ["id_index"],
}


def test_a_client_of_spark_connect_does_what_a_classic_session_does(tmp_path):
    """A program of its own, as a process has one Spark only."""
    paths = [str(Path(lance_dataset.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
    program = subprocess.run(
        [sys.executable, __file__, str(tmp_path)], capture_output=True, text=True, env=environment, check=False
    )
    assert program.returncode == 0, program.stderr[-5000:]
    assert json.loads(program.stdout.splitlines()[-1]) == EXPECTED


def message(action):
    try:
        action()
    except Exception as error:
        return str(error).splitlines()[0].rpartition("lance_dataset.errors.")[2]
    return "no error"


def main(folder: str) -> None:
    from pyspark.sql import SparkSession, functions

    from lance_dataset.spark import (
        add_columns,
        compact,
        create_index,
        lance_sql,
        merge_into,
        nearest_join,
        table,
        take_rows,
    )

    builder = SparkSession.builder.remote("local[2]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    uri, copy = f"{folder}/table.lance", f"{folder}/copy.lance"
    rows = spark.range(0, 1000, 1, 4).selectExpr(
        "id", "CAST(id + 0.5 AS decimal(10, 2)) AS price", "uuid() AS text",
        "CAST(array(id, 0) AS array<float>) AS v",
    )  # fmt: skip
    rows.write.format("lance").option("vector_length", '{"v": 2}').option("enable_stable_row_ids", "true").mode(
        "append"
    ).save(uri)
    load = spark.read.format("lance").load
    found = {
        "client": type(spark).__module__.split(".")[2],
        "rows": [
            [row.id, str(row.price)] for row in table(spark, uri).where("id IN (1, 3)").df().orderBy("id").collect()
        ],
        "error": message(lambda: rows.write.format("lance").option("if_exists", "error").mode("append").save(uri)),
        "unknown": message(lambda: spark.read.format("lance").option("columns", "txt").load(uri).collect()),
    }
    changes = spark.createDataFrame([(0, "a"), (9999, "b")], "id bigint, text string")
    found["merged"] = merge_into(changes, uri, "id")
    add_columns(spark, uri, lambda batch: twice(batch), "twice bigint", read_columns=["id"])
    found["backfilled"] = load(uri).agg({"twice": "sum"}).first()[0]
    found["counted"] = load(uri).count()
    wanted = spark.createDataFrame([(2,), (6,)], "row bigint")
    found["taken"] = sorted(row.id for row in take_rows(wanted, uri, "row", ["id"]).collect())
    queries = spark.createDataFrame([(5, [5.1, 0.0]), (8, [8.1, 0.0])], "query int, q array<float>")
    near = nearest_join(queries, uri, "v", "q", 1, columns=["id"])
    found["nearest"] = [[row["query"], row.id] for row in near.orderBy("query").collect()]
    stream = spark.readStream.format("lance").option("starting_version", 1).option("read_change_feed", "true").load(uri)
    kept = stream.where(functions.col("_change_type").isin("insert", "update_postimage")).select("id")
    writer = kept.writeStream.format("lance").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{folder}/checkpoint").start(copy).awaitTermination()
    found["streamed"] = table(spark, copy).df().select("id").distinct().count()
    compact(spark, uri)
    found["compacted"] = len(lance_dataset.dataset(uri).get_fragments())
    create_index(spark, uri, "id", "BTREE", segments=2, name="id_index")
    found["statement"] = [row[0] for row in lance_sql(spark, f"SHOW INDEXES FROM lance.`{uri}`").collect()]
    spark.stop()
    found["error"] = found["error"].replace(f"{folder}/", "")
    print(json.dumps(found))


def twice(batch):
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.record_batch({"twice": pc.multiply(batch.column("id"), 2)})


if __name__ == "__main__":
    main(sys.argv[1])
