from typing_extensions import Buffer

PANEL: int
MAX_DIMENSION: int
MAX_CENTROIDS: int

def nearest(
    vectors: Buffer, dimension: int, panels: Buffer, biases: Buffer, clusters: Buffer, scores: Buffer
) -> None: ...
def add_up(vectors: Buffer, dimension: int, clusters: Buffer, count: int, sums: Buffer, sizes: Buffer) -> None: ...
