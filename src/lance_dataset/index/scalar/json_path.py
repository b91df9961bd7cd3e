"""Indices of the values at a path of JSON documents; the files are those of an index of another kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lance_dataset._proto import scalar_index_pb2
from lance_dataset.errors import UnsupportedError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.scalar import bitmap, btree, minhash, ngram
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import kind_of_details
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.messages import parse_message

__all__ = ["remap", "target_kind"]

_REMAPS: Final[Mapping[str, Callable[[IndexFolder, NewIndexFolder, Relocation, IndexMetadata], None]]] = {
    "btree": btree.remap,
    "bitmap": bitmap.remap,
    "labellist": bitmap.remap,
    "minhashlsh": minhash.remap,
    "ngram": ngram.remap,
}


def target_kind(details: bytes, name: str) -> str:
    """Return the kind of the index that holds the values.

    Parameters
    ----------
    details
        Serialized details of the JSON index.
    name
        Name of the JSON index, for error messages.

    Raises
    ------
    CorruptFileError
        The bytes are not the details of a JSON index.
    """
    message = parse_message(scalar_index_pb2.JsonIndexDetails, details, f"details of the index {name!r}")
    return kind_of_details(message.target_details.type_url)


def remap(source: IndexFolder, target: NewIndexFolder, moved: Relocation, index: IndexMetadata) -> None:
    """Write the index with the new addresses of its rows, using the rewrite of its target kind.

    Raises
    ------
    UnsupportedError
        The target is of an unknown kind.
    """
    kind = target_kind(index.details.value if index.details is not None else b"", index.name)
    if kind not in _REMAPS:
        raise UnsupportedError(
            f"the index {index.name!r} keeps JSON values in an index of the unknown kind {kind!r}, whose rows "
            "cannot be followed; compact with defer_index_remap=True, or drop the index first"
        )
    _REMAPS[kind](source, target, moved, index)
