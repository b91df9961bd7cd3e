from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa

from codec_targets.chaos import Chaos
from lancecodec import arrow_file


def only_batch(c: Chaos) -> object:
    count = c.random.randint(0, 50)
    columns = {f"c{i}": pa.array(range(count), pa.uint32()) for i in range(c.random.randint(1, 3))}
    sink, codec = io.BytesIO(), c.random.choice([None, "zstd", "lz4"])
    batch = pa.record_batch(columns)
    with pa.ipc.new_file(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        for _ in range(c.random.choice([1, 1, 1, 0, 2])):
            writer.write_batch(batch)
    return arrow_file.only_batch(c.damaged(sink.getvalue(), 0.6))


TARGETS: dict[str, Callable[[Chaos], object]] = {"arrow_file.only_batch": only_batch}
