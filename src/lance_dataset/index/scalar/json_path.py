"""Indices of the values at a path of JSON documents; the files are those of an index of another kind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from lance_dataset._proto import scalar_index_pb2
from lance_dataset.errors import UnsupportedError
from lance_dataset.expr.functions.json_path import parse_path, plain_steps
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.scalar import bitmap, btree, minhash, ngram
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import kind_of_details
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.messages import parse_message

__all__ = ["keys_of_path", "parse_details", "path_of_keys", "remap", "target_kind"]

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
    return kind_of_details(parse_details(details, f"details of the index {name!r}").target_details.type_url)


def parse_details(details: bytes, where: str) -> scalar_index_pb2.JsonIndexDetails:
    """Return the details of a JSON index.

    Raises
    ------
    CorruptFileError
        The bytes are not the details of a JSON index.
    """
    return parse_message(scalar_index_pb2.JsonIndexDetails, details, where)


#: Paths without quoted names that mean the same to everyone who accepts them.
_SIMPLE: Final = re.compile(r"[\w.:$\[\]]*")
_QUOTED: Final = re.compile(r'"[^"\\]*"')


def keys_of_path(path: str) -> tuple[str, ...] | None:
    """Return the keys that the path of an index consists of; None if it is not certain that it consists of keys only.

    The functions ``json_get...`` take keys, and indices take paths.
    """
    try:
        steps = plain_steps(parse_path(path)) if _SIMPLE.fullmatch(_QUOTED.sub("", path)) else None
    except pa.ArrowInvalid:
        return None
    keys = tuple(step for step in steps or () if isinstance(step, str))
    return keys if keys and len(keys) == len(steps or ()) else None


def path_of_keys(keys: Sequence[str]) -> str | None:
    """Return the one path that stands for keys, from the outside to the inside.

    None if a key is a number: the functions ``json_get...`` use it as a place in an array, too, and paths do not.
    """
    if any(not key.strip("+0123456789") for key in keys):
        return None
    return "$" + "".join(f"[{json.dumps(key)}]" for key in keys)


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
