"""Libraries and formats that are compared."""

from __future__ import annotations

from contenders.base import Contender, Handle
from contenders.lance import OURS, REFERENCE, VERSIONS, lance_contenders
from contenders.parquet import Parquet
from contenders.vortex import Vortex

__all__ = ["CONTENDERS", "OURS", "REFERENCE", "VERSIONS", "Contender", "Handle"]

CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        *(contender for version in VERSIONS for contender in lance_contenders(version)),
        Parquet("zstd"),
        Parquet("snappy"),
        Vortex("vortex", memory_map=False),
        Vortex("vortex-mmap", memory_map=True, stored_by="vortex"),
    )
}
