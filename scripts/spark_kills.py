"""Kill Spark at random moments, and check that no row is lost, doubled or visible too early.

    .venv/bin/python scripts/spark_kills.py [driver|executor] [number of kills] [seed]

A program writes named jobs of 400 rows, one after the other, and a streaming query copies a growing dataset. ``driver``
kills the program with its Java process and workers, and starts it again. ``executor`` kills an executor of a
``local-cluster``. In the end each job and each row of the stream must be there exactly once, and each version of both
datasets must hold whole jobs and whole versions of the source only.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_dataset

ROWS = 400
PAUSE = 0.2


def work(folder: str, master: str) -> None:
    """Write jobs and stream until the file ``stop`` is there; then finish the stream."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.task.maxFailures": "100",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    path = Path(folder)
    query = start_stream(spark, path)
    job = next_job(path)
    while not (path / "stop").exists():
        rows = spark.range(job * ROWS, (job + 1) * ROWS, 1, 2).selectExpr("id", f"{job}L AS job")
        rows.write.format("lance").mode("append").option("txn_id", f"job {job}").save(str(path / "jobs.lance"))
        lance_dataset.write_dataset(source_rows(job), path / "source.lance", mode="append")
        (path / "noted").write_text(str(job))
        (path / "noted").replace(path / "jobs.txt")
        job += 1
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
    query.processAllAvailable()
    spark.stop()


def source_rows(job: int) -> pa.Table:
    return pa.table({"id": range(job * ROWS, (job + 1) * ROWS)})


def start_stream(spark: Any, path: Path) -> Any:
    if not (path / "source.lance").exists():
        lance_dataset.write_dataset(source_rows(-1), path / "source.lance")
    stream = spark.readStream.format("lance").option("startingVersion", 1).load(str(path / "source.lance"))
    sink = stream.writeStream.format("lance").option("checkpointLocation", str(path / "checkpoint"))
    return sink.start(str(path / "copy.lance"))


def next_job(path: Path) -> int:
    """Return the last job that was begun, which is repeated, for its name makes it count once."""
    noted = path / "jobs.txt"
    return int(noted.read_text()) + 1 if noted.exists() else 0


def descendants(root: int) -> dict[int, str]:
    """Return the command lines of the processes below `root`, by their numbers."""
    parents, lines = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                lines[int(entry.name)] = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                )
    found: dict[int, str] = {}
    waiting = {root}
    while waiting:
        waiting = {pid for pid, parent in parents.items() if parent in waiting}
        found |= {pid: lines[pid] for pid in waiting}
    return found


def kill_all(program: subprocess.Popen[bytes]) -> None:
    children = descendants(program.pid)
    for pid in [program.pid, *children]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    program.wait()


def kill_executor(program: subprocess.Popen[bytes], chance: random.Random) -> bool:
    executors = [pid for pid, line in descendants(program.pid).items() if "CoarseGrainedExecutorBackend" in line]
    if not executors:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(chance.choice(executors), signal.SIGKILL)
    return True


def started(folder: Path, kind: str) -> subprocess.Popen[bytes]:
    master = "local[2]" if kind == "driver" else "local-cluster[2,1,1024]"
    log = (folder / "log.txt").open("ab")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    return subprocess.Popen([sys.executable, __file__, "work", str(folder), master], stderr=log, env=environment)


def wait_for_progress(folder: Path, program: subprocess.Popen[bytes]) -> None:
    """Wait until the program writes jobs again."""
    before = next_job(folder)
    until = time.monotonic() + 900
    while next_job(folder) <= before:
        if program.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"The program ended or stands still; see {folder}/log.txt")
        time.sleep(PAUSE)


def check(folder: Path) -> str:
    jobs, copy, source = (lance_dataset.dataset(folder / f"{name}.lance") for name in ("jobs", "copy", "source"))
    assert sorted(jobs.to_table()["id"].to_pylist()) == list(range(next_job(folder) * ROWS)), "rows of jobs"
    assert sorted(copy.to_table()["id"].to_pylist()) == sorted(source.to_table()["id"].to_pylist()), (
        "rows of the stream"
    )
    for dataset in (jobs, copy):
        for entry in dataset.versions():
            assert dataset.checkout_version(entry["version"]).count_rows() % ROWS == 0, "a part of a job was visible"
        dataset.validate()
    return f"{next_job(folder)} jobs, {copy.version} batches of the stream"


def main() -> None:
    kind = sys.argv[1] if len(sys.argv) > 1 else "driver"
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="spark-kills-"))
    print(f"{kills} kills of the {kind}, seed {seed}, in {folder}", flush=True)
    program = started(folder, kind)
    try:
        for number in range(1, kills + 1):
            wait_for_progress(folder, program)
            time.sleep(chance.uniform(0, 3))
            if kind == "driver":
                kill_all(program)
                program = started(folder, kind)
            else:
                while not kill_executor(program, chance):
                    time.sleep(PAUSE)
            print(f"kill {number} at job {next_job(folder)}", flush=True)
        wait_for_progress(folder, program)
        (folder / "stop").touch()
        if program.wait(900):
            raise SystemExit(f"The program failed; see {folder}/log.txt")
        print("all is there once:", check(folder))
    finally:
        if program.poll() is None:
            kill_all(program)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        main()
