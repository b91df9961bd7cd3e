"""Default kinds of vector indices."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.index.vector.training.entries import vector_type

__all__ = ["default_kind"]

#: Part of the memory of the machine that plain vectors of an index may take.
_MEMORY_PART = 4
_BITS = 5


def default_kind(kind: pa.DataType, rows: int, memory: int) -> tuple[str, str]:
    """Return a kind of index, and the reason for it.

    Plain vectors give exact distances, and are searched as fast as codes while they are in memory. Above that, RaBitQ
    codes of 5 bits keep most of the order of the distances in a sixth of the bytes, and bytes in a quarter.

    Parameters
    ----------
    kind
        Type of the column.
    rows
        Number of rows.
    memory
        Bytes of memory of the machine.

    Raises
    ------
    TypeError
        The column has no vectors.
    """
    vectors = vector_type(kind)
    if vectors is None:
        raise TypeError(f"a vector index needs a column of vectors, not {kind}")
    if vectors.value_type == pa.uint8():
        return "IVF_FLAT", "vectors of bits are stored as they are"
    size = rows * vectors.list_size * vectors.value_type.bit_width // 8
    plain = f"{rows} vectors of {vectors.list_size} {vectors.value_type}, {_shown(size)},"
    if size <= memory // _MEMORY_PART:
        return "IVF_FLAT", f"{plain} fit in a quarter of the memory, {_shown(memory)}, so their distances are exact"
    too_much = f"{plain} take more than a quarter of the memory, {_shown(memory)}"
    if vectors.list_size % 8:
        return "IVF_SQ", f"{too_much}; {vectors.list_size} is not a multiple of 8, so a value has a byte"
    return "IVF_RQ", f"{too_much}; a value has {_BITS} bits"


def _shown(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
