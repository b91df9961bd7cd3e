"""Writers in other processes that are killed while they write: what they acknowledged is there."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import lance
import pytest
from support.memwal.shards import SHARD, new_table, seen, values

import lance_dataset

_WRITER = """
    import importlib, sys
    import pyarrow as pa
    library, path, shard = sys.argv[1:]
    dataset = importlib.import_module(library).dataset(path)
    writer = dataset.mem_wal_writer(shard, max_memtable_rows=7)
    schema = dataset.schema
    for number in range(10**6):
        rows = {"id": [number % 50], "v": [str(number)], "n": pa.array([number % 50], pa.int32())}
        writer.put(pa.table(rows, schema=schema))
        print(number, flush=True)
"""


@pytest.mark.parametrize("library", ["lance_dataset", "lance"])
@pytest.mark.parametrize("acknowledged", [1, 30])
def test_kills(tmp_path: Path, library: str, acknowledged: int) -> None:
    path = tmp_path / "t"
    new_table(path)
    command = [sys.executable, "-c", textwrap.dedent(_WRITER), library, str(path), SHARD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(acknowledged):
            last = int(process.stdout.readline())
        time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        last = max([last, *(int(line) for line in process.stdout if line.endswith("\n"))])
    model = {number % 50: str(number) for number in range(last + 1)}
    more = model | {(last + 1) % 50: str(last + 1)}
    with lance_dataset.dataset(path).mem_wal_writer(SHARD) as writer:
        found = values(writer.lsm_scanner().to_table())
    assert found in (model, more)
    assert seen(path) == found
    dataset = lance_dataset.dataset(path)
    dataset.merge_mem_wal()
    assert values(lance.dataset(str(path)).to_table()) == found
