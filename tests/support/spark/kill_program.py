"""Programs for tests of kills: jobs and a streaming query on a table, and one that kills its executors."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter

ROWS, TASKS = 400, 4


def session(folder, master):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.task.maxFailures": "20",
        "spark.stage.maxConsecutiveAttempts": "20",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def append(spark, folder, job):
    """Write the rows of a job, unless it was committed before."""
    rows = spark.range(job * ROWS, (job + 1) * ROWS, 1, TASKS).selectExpr("id", f"{job}L AS job")
    rows.write.format("lance").mode("append").option("txn_id", f"job {job}").save(f"{folder}/table.lance")


def copying(spark, folder):
    """Return the writer of the query that copies the table."""
    stream = spark.readStream.format("lance").option("starting_version", 1).option("maxVersionsPerTrigger", 2)
    writer = stream.load(f"{folder}/table.lance").writeStream.format("lance")
    return writer.option("checkpointLocation", f"{folder}/checkpoint")


def jobs_of(uri):
    """Return the number of rows by job; raise if a row is there twice, or belongs to another job."""
    import lance_dataset

    if not os.path.exists(uri):
        return {}
    table = lance_dataset.dataset(uri).to_table()
    ids, jobs = table["id"].to_pylist(), table["job"].to_pylist()
    assert len(ids) == len(set(ids)), "rows are there twice"
    assert all(row // ROWS == job for row, job in zip(ids, jobs, strict=True))
    return dict(Counter(jobs))


def until_killed(folder):
    """Append and copy without an end. Jobs begin with the one that was the last, as nobody knows whether it ended."""
    spark = session(folder, "local[2]")
    job = max(jobs_of(f"{folder}/table.lance"), default=0)
    append(spark, folder, job)
    copying(spark, folder).trigger(processingTime="0 seconds").start(f"{folder}/copy.lance")
    print("started", flush=True)
    while True:
        job += 1
        append(spark, folder, job)


def finish(folder):
    """Copy the rest; print the rows by job of both."""
    spark = session(folder, "local[2]")
    copying(spark, folder).trigger(availableNow=True).start(f"{folder}/copy.lance").awaitTermination()
    spark.stop()
    print(json.dumps([sorted(jobs_of(f"{folder}/{name}.lance").items()) for name in ("table", "copy")]))


def executors(folder, kills):
    """Kill a random executor at a random moment of each job; print how many died, and the rows by job."""
    spark = session(folder, "local-cluster[2,1,1024]")
    chance, died = random.Random(7), 0
    append(spark, folder, 0)
    for job in range(1, kills + 1):
        killer = _Killer(spark.sparkContext._gateway.proc.pid, chance.uniform(0, 1.5), chance)
        killer.start()
        append(spark, folder, job)
        if job % 3 == 0:
            copying(spark, folder).trigger(availableNow=True).start(f"{folder}/copy.lance").awaitTermination()
        killer.join()
        died += killer.killed
    copying(spark, folder).trigger(availableNow=True).start(f"{folder}/copy.lance").awaitTermination()
    spark.stop()
    print(json.dumps([died, *(sorted(jobs_of(f"{folder}/{name}.lance").items()) for name in ("table", "copy"))]))


class _Killer(threading.Thread):
    """Kills one of the executors, which are children of the driver's Java process, after some seconds."""

    def __init__(self, driver, delay, chance):
        super().__init__()
        self.driver, self.delay, self.chance, self.killed = driver, delay, chance, 0

    def run(self):
        threading.Event().wait(self.delay)
        listed = subprocess.run(
            ["ps", "-o", "pid=,args=", "--ppid", str(self.driver)], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        found = [int(line.split()[0]) for line in listed if "CoarseGrainedExecutorBackend" in line]
        if found:
            os.kill(self.chance.choice(found), signal.SIGKILL)
            self.killed = 1


if __name__ == "__main__":
    mode, place, *rest = sys.argv[1:]
    {"until_killed": until_killed, "finish": finish, "executors": executors}[mode](place, *map(int, rest))
