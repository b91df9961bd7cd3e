"""Spark on this package beside Spark's own Parquet (zstd): 2 million line items, two cores, medians of 3.

    .venv/bin/python benchmarks/spark_tables.py [rows] [name of one case ...]

The formats take turns. Each query loads its table anew, as programs do; the first run of each query is not counted.
Beside each time are the CPU seconds of the driver, Java and the Python workers, which depend less on other programs.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lineitem

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

RUNS = 3
Q1 = """
SELECT returnflag, linestatus, sum(quantity), sum(extendedprice), sum(extendedprice * (1 - discount)),
       sum(extendedprice * (1 - discount) * (1 + tax)), avg(quantity), avg(extendedprice), avg(discount), count(*)
FROM {t} WHERE shipdate <= date'1998-09-02' GROUP BY returnflag, linestatus ORDER BY returnflag, linestatus
"""
Q1_COLUMNS = "returnflag,linestatus,quantity,extendedprice,discount,tax,shipdate"
Q6_WHERE = """shipdate >= date'1994-01-01' AND shipdate < date'1995-01-01'
              AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24"""
Q6 = f"SELECT sum(extendedprice * discount) FROM {{t}} WHERE {Q6_WHERE}"
Q6_COLUMNS = "shipdate,discount,quantity,extendedprice"


def start() -> Any:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.parquet.compression.codec", "zstd")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def make_source(folder: Path, rows: int) -> str:
    rng = np.random.default_rng(5)
    path = str(folder / "source.parquet")
    with pq.ParquetWriter(path, lineitem.SCHEMA, compression="zstd") as writer:
        for first in range(0, rows, 250_000):
            columns = lineitem.make_batch(rng, first, min(250_000, rows - first))
            writer.write_table(pa.Table.from_batches([pa.record_batch(columns, schema=lineitem.SCHEMA)]))
    return path


def cases(spark: Any, lance: str, parquet: str, rows: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Return pairs of the same query on both formats."""
    from pyspark.sql import functions as F

    from lance_dataset.spark import table, take_rows

    def load(**options: Any) -> Any:
        return spark.read.format("lance").options(**options).load(lance)

    def other() -> Any:
        return spark.read.parquet(parquet)

    def sql(text: str, frame: Any) -> Any:
        return spark.sql(text, t=frame).collect()

    def drained(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    def counted(frame: Any) -> Any:
        return frame.agg(*[F.count(name) for name in frame.columns]).collect()

    key = int(pq.read_table(parquet, columns=["orderkey"])["orderkey"][rows // 3].as_py())
    numbers = np.random.default_rng(1).choice(rows, min(1000, rows // 2), replace=False).tolist()
    wanted = spark.createDataFrame([(int(n),) for n in numbers], "row bigint").cache()
    wanted.count()
    return {
        "all columns": (lambda: drained(load()), lambda: drained(other())),
        "all columns, table()": (lambda: drained(table(spark, lance).df()), lambda: drained(other())),
        "all columns counted": (lambda: counted(load()), lambda: counted(other())),
        "count(*), format": (lambda: load().count(), lambda: other().count()),
        "count(*), table()": (lambda: table(spark, lance).count(), lambda: other().count()),
        "Q6, columns named": (lambda: sql(Q6, load(columns=Q6_COLUMNS)), lambda: sql(Q6, other())),
        "Q6, plain": (lambda: sql(Q6, load()), lambda: sql(Q6, other())),
        "Q6, table()": (
            lambda: table(spark, lance).where(Q6_WHERE).select("extendedprice", "discount").df()
            .agg(F.sum(F.expr("extendedprice * discount"))).collect(),
            lambda: sql(Q6, other()),
        ),
        "Q1, columns named": (lambda: sql(Q1, load(columns=Q1_COLUMNS)), lambda: sql(Q1, other())),
        "point lookup": (
            lambda: table(spark, lance).where(f"orderkey = {key}").df().collect(),
            lambda: other().filter(f"orderkey = {key}").collect(),
        ),
        "point lookup, option": (
            lambda: load(filter=f"orderkey = {key}").collect(),
            lambda: other().filter(f"orderkey = {key}").collect(),
        ),
        "1,000 rows by number": (
            lambda: take_rows(wanted, lance, "row", ["orderkey", "comment"]).collect(),
            lambda: other().filter(F.col("orderkey").isin(numbers)).select("orderkey", "comment").collect(),
        ),
        "limit 1": (lambda: load().limit(1).collect(), lambda: other().limit(1).collect()),
        "limit 1, table()": (lambda: table(spark, lance).limit(1).df().collect(), lambda: other().limit(1).collect()),
        "one small column": (
            lambda: load(columns="linenumber").agg(F.sum("linenumber")).collect(),
            lambda: other().agg(F.sum("linenumber")).collect(),
        ),
    }  # fmt: skip


def processor_time() -> float:
    """Return the CPU seconds of this process and all its descendants, by Linux's count."""
    parents, ticks = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    mine, waiting = set(), {os.getpid()}
    while waiting:
        mine |= waiting
        waiting = {pid for pid, parent in parents.items() if parent in waiting}
    return sum(ticks.get(pid, 0) for pid in mine) / os.sysconf("SC_CLK_TCK")


def timed(action: Callable[[], Any]) -> tuple[float, float]:
    begin, spent = time.perf_counter(), processor_time()
    action()
    return time.perf_counter() - begin, processor_time() - spent


def compare(mine: Callable[[], Any], theirs: Callable[[], Any]) -> list[float]:
    """Return the medians of time and CPU seconds of one, then those of the other."""
    mine()
    theirs()
    pairs = [(*timed(mine), *timed(theirs)) for _ in range(RUNS)]
    return [round(statistics.median(values), 3) for values in zip(*pairs, strict=True)]


def show(name: str, found: list[float]) -> None:
    time_, cpu, other_time, other_cpu = found
    print(f"{name:24} {time_:8.3f} s {other_time:8.3f} s   CPU {cpu:8.2f} s {other_cpu:8.2f} s", flush=True)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    chosen = sys.argv[2:]
    folder = Path(tempfile.mkdtemp(prefix="spark-tables-"))
    spark = start()
    results = {}
    try:
        source = spark.read.parquet(make_source(folder, rows)).repartition(2).cache()
        source.count()
        lance, parquet = str(folder / "lines.lance"), str(folder / "lines.parquet")
        results["write"] = compare(
            lambda: source.write.format("lance").mode("overwrite").save(lance),
            lambda: source.write.mode("overwrite").parquet(parquet),
        )
        show("write", results["write"])
        source.unpersist(blocking=True)
        import lance_dataset

        lance_dataset.dataset(lance).create_scalar_index("orderkey", "BTREE")
        for name, (mine, theirs) in cases(spark, lance, parquet, rows).items():
            if not chosen or name in chosen:
                results[name] = compare(mine, theirs)
                show(name, results[name])
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
