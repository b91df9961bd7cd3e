"""Kinds of indices: the names that users see, and the format versions that this release knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import kind_of_details

__all__ = ["KINDS", "UNKNOWN", "IndexKind", "known_kind"]


@dataclass(frozen=True)
class IndexKind:
    """One kind of index.

    Attributes
    ----------
    shown
        Name that users see.
    latest
        Latest format version that this release knows.
    """

    shown: str
    latest: int = 0


#: Kinds by the name of the message of their details, in lower case and without ``IndexDetails``.
KINDS: Mapping[str, IndexKind] = {
    "btree": IndexKind("BTree", 1),
    "bitmap": IndexKind("Bitmap"),
    "labellist": IndexKind("LabelList", 1),
    "ngram": IndexKind("NGram"),
    "zonemap": IndexKind("ZoneMap"),
    "bloomfilter": IndexKind("BloomFilter"),
    "inverted": IndexKind("Inverted", 3),
    "json": IndexKind("Json", 1),
    "rtree": IndexKind("RTree"),
    "minhashlsh": IndexKind("MinHashLsh"),
    "fm": IndexKind("Fm", 10),
    "vector": IndexKind("Vector", 2),
    "fragmentreuse": IndexKind("FragmentReuse"),
    "memwal": IndexKind("MemWal"),
}
#: Shown for indices of releases that did not record the kind.
UNKNOWN = "Unknown"


def known_kind(index: IndexMetadata) -> str | None:
    """Return the kind of an index; None if it is not recorded, unknown, or of a later format version."""
    if index.details is None or "/" not in index.details.type_url:
        return None
    kind = kind_of_details(index.details.type_url)
    known = KINDS.get(kind)
    return kind if known is not None and (index.index_version or 0) <= known.latest else None
