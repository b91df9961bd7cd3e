from typing_extensions import Buffer

ELEMENTS: tuple[str, ...]
METRICS: tuple[str, ...]
COARSE: tuple[int, ...]
MAX_DIMENSION: int
MAX_QUERIES: int

def query_size(dimension: int, element: int, metric: int) -> int: ...

class Coarse:
    def __init__(self, values: Buffer, n: int, dimension: int, element: int) -> None: ...
    @property
    def nbytes(self) -> int: ...

class Nearest:
    def __init__(
        self,
        queries: Buffer,
        dimension: int,
        element: int,
        metric: int,
        k: int,
        lists: bool = False,
        lowest: float | None = None,
        below: float | None = None,
    ) -> None: ...
    def add(
        self,
        values: Buffer,
        n: int,
        rows: Buffer | None,
        valid: Buffer | None,
        skip: int,
        addresses: Buffer | None,
        base: int,
        ids: Buffer | None,
    ) -> None: ...
    def add_coarse(self, values: Buffer, coarse: Coarse, base: int) -> None: ...
    def add_lists(
        self,
        values: Buffer,
        vectors: int,
        vector_valid: Buffer | None,
        vector_skip: int,
        offsets: Buffer,
        wide: bool,
        rows: Buffer | None,
        valid: Buffer | None,
        skip: int,
        addresses: Buffer | None,
        base: int,
        ids: Buffer | None,
    ) -> None: ...
    def merge(self, other: Nearest) -> None: ...
    def count(self, query: int) -> int: ...
    def drain(self, query: int, distances: Buffer, ids: Buffer, addresses: Buffer) -> None: ...
