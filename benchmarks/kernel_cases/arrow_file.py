"""Deletion file of a few hundred rows."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa

from kernel_cases.case import Case
from lancecodec import arrow_file


def only_batch() -> Case:
    sink, batch = io.BytesIO(), pa.record_batch({"row_id": pa.array(range(500), pa.uint32())})
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue()
    return Case(lambda: arrow_file.only_batch(data), len(data))


CASES: dict[str, Callable[[], Case]] = {"arrow_file.only_batch": only_batch}
