"""The libraries and formats that are measured side by side; the first is the one the others are compared to."""

from __future__ import annotations

from contenders.base import Contender, Handle
from contenders.lance import Lance
from contenders.parquet import Parquet
from contenders.vortex import Vortex

__all__ = ["CONTENDERS", "Contender", "Handle"]

CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Lance("lance-dataset", "lance-dataset", "lance_dataset", "2.0"),
        Lance("pylance-2.0", "pylance", "lance", "2.0"),
        Lance("pylance", "pylance", "lance", None),
        Parquet("zstd"),
        Parquet("snappy"),
        Vortex("vortex", memory_map=False),
        Vortex("vortex-mmap", memory_map=True),
    )
}
