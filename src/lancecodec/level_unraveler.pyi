"""Repetition and definition levels of one page -> offsets and validity of every layer."""

from collections.abc import Sequence

from typing_extensions import Buffer

class LevelUnraveler:
    """Layers of a page, or of whole rows of a page, as they come out of its levels.

    Construction checks the levels and counts; `validity` and `offsets` then write into buffers of the caller, at any
    position, so that pages follow one another in one Arrow array. Layer 0 is the leaf.

    Parameters
    ----------
    repetition, definition
        16-bit little-endian levels of exactly `num_items` items; None (or no items): a stream of zeros. They are read
        as long as this object lives.
    num_items
        Items, also of a page without any stream.
    kinds
        Layer kinds (1 to 6, as page descriptors number them), inner-most first.
    dimensions
        For each layer the dimension of a structural fixed-size list, or 0 or None. None: there are none.

    Raises
    ------
    CodecError
        A stream of another length, a level that the layers do not have, levels that contradict each other, or items
        that do not begin with a row.
    """

    def __init__(
        self,
        repetition: Buffer | None,
        definition: Buffer | None,
        num_items: int,
        kinds: Sequence[int],
        dimensions: Sequence[int | None] | None = None,
    ) -> None: ...
    @property
    def lengths(self) -> tuple[int, ...]:
        """Entries of each layer: values of the leaf first, rows last."""

    @property
    def null_counts(self) -> tuple[int, ...]:
        """Nulls of each layer; a list that a null struct masks is null too, a leaf or struct of kind 1 never."""

    def validity(self, layer: int, out: Buffer, at: int = 0) -> None:
        """Write the validity of the entries of `layer` from bit `at` of `out` on; other bits stay as they are."""

    def offsets(self, layer: int, out: Buffer, wide: bool, at: int = 0, base: int = 0) -> int:
        """Write the Arrow offsets of a list layer; null lists have no elements.

        Parameters
        ----------
        layer
            A layer of kind 2, 4, 5 or 6.
        out
            Room for ``at + lengths[layer] + 1`` offsets of 64 (`wide`) or 32 bits.
        at
            Entry of `out` that gets `base`, the begin of the first list.
        base
            Elements before those of this page.

        Returns
        -------
        int
            The last offset: `base` of the next page.

        Raises
        ------
        CodecError
            `out` is too small, or the offsets pass 31 (63) bits.
        """
