"""Write and read datasets with one release: worker.py MODULE, where MODULE is `lance` or `lance_dataset`.

Tasks are JSON objects, one per line of the standard input; each has one result on the standard output. It also runs
with Python 3.8 and pyarrow 12. Every error of a task, including panics, becomes its result. An abort ends the process,
and the caller has to continue with a new one.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from typing import Any

import pyarrow as pa

lance = importlib.import_module(sys.argv[1])


def about(task: dict) -> dict:
    version = sys.version_info
    return {"release": lance.__version__, "python": f"{version[0]}.{version[1]}", "pyarrow": pa.__version__}


def write(task: dict) -> dict:
    """Write a new dataset with the rows of an Arrow IPC file, in its batches; then delete some rows."""
    with pa.OSFile(task["source"]) as source:
        table = pa.ipc.open_stream(source).read_all()
    known = inspect.signature(lance.write_dataset).parameters
    options = {"max_rows_per_group": task["group"], "max_rows_per_file": task["file"]}
    version = task["version"]
    if "data_storage_version" in known:
        options["data_storage_version"] = version
    elif "use_legacy_format" in known:
        options["use_legacy_format"] = version == "legacy"
    elif version != "legacy":
        raise ValueError("this release writes legacy files only")
    if "enable_v2_manifest_paths" in known:
        options["enable_v2_manifest_paths"] = task["new_names"]
    lance.write_dataset(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), task["path"], **options)
    return {}


def delete(task: dict) -> dict:
    lance.dataset(task["path"]).delete(task["predicate"])
    return {}


def store(table: Any, path: str) -> None:
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def read(task: dict) -> dict:
    """Run a scan, a take from back to front, and a filtered scan; store Arrow IPC streams; return errors by name."""
    dataset = lance.dataset(task["path"])
    readers = {
        "scan": dataset.to_table,
        "take": lambda: dataset.take(list(range(dataset.count_rows()))[:: -task["step"]]),
        "filter": lambda: dataset.to_table(filter=task["predicate"]),
    }
    errors = {}
    for name, reader in readers.items():
        try:
            store(reader(), task["out"] + "." + name)
        except BaseException as error:
            errors[name] = message(error)
    return {"errors": errors}


def message(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        raise error
    return f"{type(error).__name__}: {error}"


def main() -> None:
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of the libraries goes to stderr
    for line in sys.stdin:
        task = json.loads(line)
        try:
            result = {"about": about, "write": write, "delete": delete, "read": read}[task["do"]](task)
        except BaseException as error:
            result = {"error": message(error)}
        results.write(json.dumps(result) + "\n")
        results.flush()


if __name__ == "__main__":
    main()
