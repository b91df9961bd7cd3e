"""A data pipeline on Spark: daily files of flights and passages of text become tables that are changed and searched.

Run with ``make demo-pipeline``, or with ``python -m demo.pipeline`` if lance-dataset is installed with the extra
``demo``. Each step prints what it found and stops if that is wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lance_dataset
from lance_dataset.spark import (
    add_columns_from,
    compact,
    create_index,
    drop_near_duplicates,
    nearest_join,
    search_join,
    table,
    upsert_into,
)
from lance_dataset.spark.types import FIXED_SIZE_KEY

from .flights import check, flights, start_spark
from .passages import DIMENSION, embedder, passages
from .timings import Timings

FOLDER = Path(".demo") / "pipeline"
DAYS = 90
DAYS_PER_BATCH = 15
#: Flights that left later than this are reported without their arrival, which the next day's file brings.
OPEN_AFTER = 60


@dataclass
class Pipeline:
    """The tables of one run, and what it measured.

    Parameters
    ----------
    spark
        Spark session.
    folder
        Folder for all files.
    days
        Number of days of the year 2013 that arrive as files.
    days_per_batch
        Number of files in a batch of the stream.
    repeats
        Number of times that a query is run to time it.
    """

    spark: Any
    folder: Path
    days: int = DAYS
    days_per_batch: int = DAYS_PER_BATCH
    repeats: int = 3
    timings: Timings = field(default_factory=lambda: Timings("Lance", "Parquet"))
    upserts: list[float] = field(default_factory=list)
    rewrites: list[float] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)
    expected: int = 0
    unknown: int = 0

    @property
    def flights(self) -> str:
        """Path of the dataset of flights."""
        return str(self.folder / "flights.lance")

    @property
    def passages(self) -> str:
        """Path of the dataset of passages."""
        return str(self.folder / "passages.lance")

    def run(self) -> None:
        """Run all steps."""
        steps = (
            self.arrive, self.stream, self.watch, self.tidy, self.write_passages, self.index, self.query, self.search,
            self.travel,
        )  # fmt: skip
        for step in steps:
            print(f"\n{(step.__doc__ or '').strip().splitlines()[0]}")
            with _timed() as seconds:
                step()
            print(f"  {seconds():.1f} s")

    def arrive(self) -> None:
        """Write a file for each day: its flights, and the arrivals that were open the day before."""
        year = flights()
        numbered = year.append_column("id", pa.array(range(year.num_rows), pa.int64()))
        day = pc.day_of_year(numbered["time_hour"])
        incoming = self.folder / "incoming"
        incoming.mkdir()
        late = numbered.slice(0, 0)
        for number in range(1, self.days + 1):
            today = numbered.filter(pc.equal(day, number))
            is_open = pc.fill_null(pc.greater(today["dep_delay"], OPEN_AFTER), False)
            index = today.column_names.index("arr_delay")
            reported = pc.if_else(is_open, pa.scalar(None, pa.int16()), today["arr_delay"])
            file = pa.concat_tables([today.set_column(index, "arr_delay", reported), late])
            file = file.append_column("reported", pa.array([number] * file.num_rows, pa.int32()))
            path = incoming / f"day-{number:03}.parquet"
            pq.write_table(file, path)
            os.utime(path, (number, number))  # Spark takes the oldest first
            self.expected += today.num_rows
            self.unknown = late["arr_delay"].null_count + pc.sum(is_open).as_py()
            late = today.filter(is_open)
        check("files", len(list(incoming.iterdir())), self.days)

    def stream(self) -> None:
        """Stream the files into a table, batch by batch, by key; beside it, rewrite Parquet for each batch."""
        upsert = upsert_into(self.flights, "id", latest_by="reported", enable_stable_row_ids=True)

        def batch(frame: Any, number: int) -> None:
            frame = frame.persist()
            rows = frame.count()
            self.upserts.append(_once(lambda: upsert(frame, number)))
            self.rewrites.append(_once(lambda: self._rewrite_parquet(frame, number)))
            print(f"  batch {number}: {rows:,} rows, {self.upserts[-1]:.1f} s; Parquet {self.rewrites[-1]:.1f} s")
            frame.unpersist()

        incoming = str(self.folder / "incoming")
        schema = self.spark.read.parquet(incoming).schema
        files = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", self.days_per_batch).parquet(incoming)
        self._finish(files.writeStream.foreachBatch(batch), "flights")
        dataset = lance_dataset.dataset(self.flights)
        check("flights", dataset.count_rows(), self.expected)
        check("flights in Parquet", self.spark.read.parquet(self._parquet()).count(), self.expected)
        check(
            "late flights whose arrival is unknown",
            dataset.count_rows(f"dep_delay > {OPEN_AFTER} AND arr_delay IS NULL AND reported = {self.days}"),
            self.unknown,
        )
        self.timings.add("upsert of a batch", _middle(self.upserts), _middle(self.rewrites))

    def _rewrite_parquet(self, frame: Any, number: int) -> None:
        """Do what a pipeline on Parquet has to do: read all rows, replace some, write all to a new folder."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        latest = Window.partitionBy("id").orderBy(F.col("reported").desc())
        new = frame.withColumn("rank", F.row_number().over(latest)).where("rank = 1").drop("rank")
        before = self._parquet()
        if before:
            new = self.spark.read.parquet(before).join(new.select("id"), "id", "left_anti").unionByName(new)
        new.write.parquet(str(self.folder / f"flights-{number:03}.parquet"))

    def _parquet(self) -> str:
        return max(map(str, self.folder.glob("flights-*.parquet")), default="")

    def watch(self) -> None:
        """Read the changes of the table as a stream, as another team would."""
        counts: dict[str, int] = {}

        def batch(frame: Any, number: int) -> None:
            for row in frame.groupBy("_change_type").count().collect():
                counts[row["_change_type"]] = counts.get(row["_change_type"], 0) + row["count"]

        reader = self.spark.readStream.format("lance").option("readChangeFeed", "true").option("startingVersion", 1)
        changes = reader.option("columns", "id,_change_type").load(self.flights)
        self._finish(changes.writeStream.foreachBatch(batch), "changes")
        self.changes = counts
        check("inserted", counts["insert"], self.expected)
        check("updates are pairs", counts.get("update_preimage", 0) == counts.get("update_postimage", 0), True)
        print(f"  {counts.get('update_postimage', 0):,} rows were updated")

    def _finish(self, writer: Any, name: str) -> None:
        """Run a streaming query until it has read all that there is."""
        query = writer.option("checkpointLocation", str(self.folder / f"checkpoint-{name}")).trigger(availableNow=True)
        query.start().awaitTermination()

    def write_passages(self) -> None:
        """Write passages of text without near duplicates, then add a column of vectors that a pandas function makes."""
        rows = passages()
        frame = self.spark.createDataFrame(rows, "id int, topic string, text string").repartition(2)
        drop_near_duplicates(frame, "text", "id").write.format("lance").save(self.passages)
        kept = lance_dataset.dataset(self.passages).count_rows()
        print(f"  {len(rows) - kept} of {len(rows)} passages nearly repeat another")
        stored = self.spark.read.format("lance").option("columns", "id,text").load(self.passages)
        vectors = stored.select("id", embedder()("text").alias("embedding"))
        add_columns_from(vectors.withMetadata("embedding", {FIXED_SIZE_KEY: DIMENSION}), self.passages, "id")
        found = lance_dataset.dataset(self.passages)
        check("vectors", found.count_rows("embedding IS NOT NULL"), kept)

    def index(self) -> None:
        """Build indices in tasks: of numbers, of words, of vectors."""
        create_index(self.spark, self.flights, "id", "BTREE")
        create_index(self.spark, self.flights, "dest", "BITMAP")
        create_index(self.spark, self.passages, "text", "INVERTED")
        create_index(self.spark, self.passages, "embedding", "IVF_FLAT", num_partitions=4, segments=1)
        check("indices", len(lance_dataset.dataset(self.passages).describe_indices()), 2)

    def tidy(self) -> None:
        """Compact the small files that the stream left, before indices tie fragments to their segments."""
        before = len(lance_dataset.dataset(self.flights).get_fragments())
        compact(self.spark, self.flights)
        dataset = lance_dataset.dataset(self.flights)
        after = len(dataset.get_fragments())
        check("fewer fragments", after < before or before == 1, True)
        check("flights", dataset.count_rows(), self.expected)

    def query(self) -> None:
        """Ask both formats the same questions with Spark."""
        parquet = self.spark.read.parquet(self._parquet())
        lance = table(self.spark, self.flights)
        number = self.expected // 2

        def by_carrier(frame: Any) -> Any:
            return frame.groupBy("carrier").avg("arr_delay").orderBy("carrier").collect()

        def one(frame: Any) -> Any:
            return frame.where(f"id = {number}").select("id", "dest").collect()

        check("same averages", by_carrier(lance.df()) == by_carrier(parquet), True)
        check("same flight", one(lance.df()) == one(parquet), True)
        wanted = lance.select("carrier", "arr_delay")
        self._compare("average by carrier", lambda: by_carrier(wanted.df()), lambda: by_carrier(parquet))
        point = lance.where(f"id = {number}").select("id", "dest")
        self._compare("one flight by its number", lambda: point.df().collect(), lambda: one(parquet))
        self._compare("count", lance.count, parquet.count)

    def _compare(self, what: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
        best = [min(_once(action) for _ in range(self.repeats)) for action in (ours, theirs)]
        self.timings.add(what, best[0], best[1])

    def search(self) -> None:
        """Join questions with the passages that are nearest to them, and with those that have their words."""
        questions = [
            (1, "how do list displays and comprehensions create a new list"),
            (2, "which exception does an import raise when a module is not found"),
        ]
        frame = self.spark.createDataFrame(questions, "number int, question string")
        asked = frame.withColumn("vector", embedder()("question"))
        near = nearest_join(asked, self.passages, "embedding", "vector", 1, ["topic", "text"], nprobes=4).collect()
        words = search_join(frame, self.passages, "question", 1, ["topic", "text"]).collect()
        check("answers", (len(near), len(words)), (len(questions), len(questions)))
        for row in sorted([*near, *words], key=lambda row: row.number):
            print(f"  {row.question}? {row.topic}: {row.text[:70]}")
        own = self.spark.read.format("lance").option("limit", 50).load(self.passages).select("embedding", "text")
        found = nearest_join(own.withColumnsRenamed({"embedding": "q", "text": "asked"}), self.passages, "embedding",
                             "q", 1, ["text"], nprobes=4)  # fmt: skip
        check("each passage finds itself", found.where("_distance < 1e-5").count(), 50)

    def travel(self) -> None:
        """Read the table as it was after the first batch."""
        dataset = lance_dataset.dataset(self.flights)
        first = next(
            version for version in range(1, dataset.version + 1) if dataset.checkout_version(version).count_rows()
        )
        then = table(self.spark, self.flights, version=first).count()
        check("flights then", then <= self.expected and then > 0, True)
        print(f"  version {first} of {dataset.version} has {then:,} flights")


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    start = time.perf_counter()
    yield lambda: time.perf_counter() - start


def _once(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def draw(pipeline: Pipeline, path: Path) -> None:
    """Write a picture: what each batch cost, and how late the flights of each day were.

    Parameters
    ----------
    pipeline
        A run that is finished.
    path
        Path of the PNG.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = lance_dataset.dataset(pipeline.flights).to_table(["time_hour", "arr_delay"])
    days = columns.append_column("day", pc.day_of_year(columns["time_hour"])).group_by("day")
    late = days.aggregate([("arr_delay", "mean")]).sort_by("day")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    batches = range(len(pipeline.upserts))
    left.plot(batches, pipeline.rewrites, "o-", color="tab:gray", label="Parquet, rewritten")
    left.plot(batches, pipeline.upserts, "o-", color="tab:blue", label="Lance, upserted")
    left.set(xlabel="batch", ylabel="seconds", title="Cost of a batch", ylim=(0, None))
    left.legend()
    right.plot(late["day"].to_pylist(), late["arr_delay_mean"].to_pylist(), color="tab:red")
    right.set(xlabel="day of 2013", ylabel="minutes", title="Mean delay at arrival")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    """Run everything; the folder .demo/pipeline is removed first and kept afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=DAYS, help="days of the year 2013 (%(default)s)")
    options = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    print("Starting Spark ...")
    spark = start_spark()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    # The first job of a session is slow, whatever it does.
    upsert_into(str(FOLDER / "warm.lance"), "id", latest_by="id", name="warm")(spark.range(1), 0)
    pipeline = Pipeline(spark, FOLDER, options.days)
    try:
        pipeline.run()
    finally:
        spark.stop()
    draw(pipeline, FOLDER / "pipeline.png")
    pipeline.timings.show()
    print(f"The tables and the picture pipeline.png are in {FOLDER}/.")


if __name__ == "__main__":
    main()
