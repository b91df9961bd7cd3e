from collections.abc import Sequence

from typing_extensions import Buffer

STORAGES: tuple[str, ...]
EFFORTS: tuple[str, ...]
NOWHERE: int

def distances_to(
    query: Buffer, values: Buffer, n: int, dimension: int, element: int, metric: int, out: Buffer
) -> None: ...
def least_distances(distances: Buffer, k: int, numbers: Buffer) -> int: ...
def rotate(vectors: Buffer, dimension: int, signs: Buffer) -> None: ...
def extra_codes(vectors: Buffer, dimension: int, bits: int, first: float, codes: Buffer) -> None: ...

class Partitions:
    def __init__(
        self,
        storage: int,
        count: int,
        dimension: int,
        element: int,
        metric: int,
        *,
        bits: int = 8,
        parts: int = 1,
        by_column: bool = False,
        raw: bool = False,
        codebook: Buffer | None = None,
        centroids: Buffer | None = None,
        squares: Buffer | None = None,
        start: float = 0,
        step: float = 0,
    ) -> None: ...
    def fill(
        self,
        number: int,
        n: int,
        codes: Buffer,
        ids: Buffer,
        addresses: Buffer,
        extra: Buffer | None = None,
        factors: Sequence[Buffer] = (),
    ) -> None: ...
    def coarsen(self, number: int) -> int: ...
    def is_filled(self, number: int) -> bool: ...
    def search(
        self,
        query: Buffer,
        numbers: Buffer,
        distances: Buffer,
        k: int,
        fragments: Buffer,
        starts: Buffer,
        sizes: Buffer,
        allowed: Buffer | None,
        bits: int,
        effort: int,
        lowest: float | None,
        below: float | None,
        near: Buffer,
        ids: Buffer,
        addresses: Buffer,
        ef: int = 0,
    ) -> int: ...
