from collections.abc import Sequence

from typing_extensions import Buffer

class LevelUnraveler:
    def __init__(
        self,
        repetition: Buffer | None,
        definition: Buffer | None,
        num_items: int,
        kinds: Sequence[int],
        dimensions: Sequence[int | None] | None = None,
    ) -> None: ...
    @property
    def lengths(self) -> tuple[int, ...]: ...
    @property
    def null_counts(self) -> tuple[int, ...]: ...
    def validity(self, layer: int, out: Buffer, at: int = 0) -> None: ...
    def offsets(self, layer: int, out: Buffer, wide: bool, at: int = 0, base: int = 0) -> int: ...
