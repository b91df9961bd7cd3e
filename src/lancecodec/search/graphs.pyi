from typing_extensions import Buffer

from lancecodec.search.quantized import Partitions

MAX_LEVELS: int
MAX_NODES: int
MAX_NEIGHBORS: int
MAX_CANDIDATES: int

class GraphPartitions(Partitions):
    def link(
        self, number: int, rows: int, entry: int, bounds: Buffer, nodes: Buffer, ends: Buffer, neighbors: Buffer
    ) -> None: ...

class GraphBuilder:
    def __init__(
        self,
        vectors: Buffer,
        n: int,
        dimension: int,
        element: int,
        metric: int,
        heights: Buffer,
        order: Buffer,
        m: int,
        ef: int,
        scale: float = 0,
    ) -> None: ...
    def batch(self) -> tuple[int, int]: ...
    def find(self, first: int, stop: int) -> None: ...
    def link(self, part: int, parts: int) -> None: ...
    def advance(self) -> None: ...
    def run(self, stop: int) -> None: ...
    def finish(self) -> tuple[int, int, int]: ...
    def write(self, bounds: Buffer, nodes: Buffer, ends: Buffer, neighbors: Buffer, distances: Buffer) -> None: ...
