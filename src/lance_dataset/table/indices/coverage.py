"""The list of indices in a manifest, as far as changes of the table must keep it right."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from lance_dataset._proto import table_pb2
from lance_dataset.errors import UnsupportedError
from lance_dataset.table.indices.metadata import IndexMetadata
from lance_dataset.table.manifest import Manifest, WriterVersion
from lance_dataset.table.messages import parse_message
from lance_dataset.table.roaring import decode_bitmap, encode_bitmap

__all__ = [
    "MEMORY_INDEX",
    "REUSE_INDEX",
    "check_coverage",
    "coverage",
    "covering_indices",
    "has_covering_index",
    "has_reliable_coverage",
    "kind_of_details",
    "parse_indices",
    "signature_for_unreliable_coverage",
    "without_fields",
]

_WHERE = "index section"
#: An index that tells what became of rewritten fragments, for other indices.
REUSE_INDEX = "__lance_frag_reuse"
#: An index of rows that are not in fragments yet.
MEMORY_INDEX = "__lance_mem_wal"
#: Bounds what a bitmap of a few bytes can make of itself.
_MAX_FRAGMENTS = 1 << 26
#: Releases before this one noted wrong sets of fragments.
_FIRST_RELIABLE = (0, 8, 15)
_LAST_UNRELIABLE = "0.8.14"


def parse_indices(section: bytes | None) -> list[table_pb2.IndexMetadata]:
    """The indices of `Manifest.index_section`.

    Raises
    ------
    CorruptFileError
        The bytes are no list of indices.
    """
    return list(parse_message(table_pb2.IndexSection, section, _WHERE).indices) if section else []


def encode_indices(indices: Sequence[table_pb2.IndexMetadata]) -> bytes | None:
    """`Manifest.index_section` of indices, None without any."""
    return table_pb2.IndexSection(indices=indices).SerializeToString() if indices else None


def is_system_index(index: table_pb2.IndexMetadata | IndexMetadata) -> bool:
    """Whether the table keeps an index for itself."""
    return index.name in (REUSE_INDEX, MEMORY_INDEX)


def index_kind(index: table_pb2.IndexMetadata) -> str | None:
    """Kind of an index, such as ``btree``; None for those of releases that did not note it."""
    if not index.HasField("index_details"):
        return None
    return kind_of_details(index.index_details.type_url)


def kind_of_details(type_url: str) -> str:
    """Kind of the indices that details of a type belong to, such as ``btree``."""
    name = type_url.rpartition("/")[2].rpartition(".")[2].lower()
    return name.removesuffix("details").removesuffix("index")


def set_coverage(index: table_pb2.IndexMetadata, fragment_ids: Iterable[int]) -> None:
    """Note which fragments an index covers; none is another bitmap than one that does not say."""
    index.fragment_bitmap = encode_bitmap(np.fromiter(fragment_ids, np.uint32))


def has_covering_index(manifest: Manifest) -> bool:
    """Whether some index carries values of columns besides its keys."""
    return any(index.covering_fields for index in parse_indices(manifest.index_section))


def coverage(index: table_pb2.IndexMetadata | IndexMetadata) -> frozenset[int] | None:
    """Ids of the fragments that an index covers, None where it does not say.

    Raises
    ------
    CorruptFileError
        The bytes are no bitmap.
    """
    if not index.fragment_bitmap:
        return None
    return frozenset(decode_bitmap(index.fragment_bitmap, _MAX_FRAGMENTS, f"index {index.name!r}").tolist())


def covering_indices(manifest: Manifest) -> Callable[[int], frozenset[int]]:
    """Function from the id of a fragment to the positions of the indices that cover it, or may."""
    reliable = has_reliable_coverage(manifest)
    indices = [index for index in parse_indices(manifest.index_section) if index.name != MEMORY_INDEX]
    covered = [coverage(index) if reliable else None for index in indices]

    def covering(fragment_id: int) -> frozenset[int]:
        return frozenset(position for position, ids in enumerate(covered) if ids is None or fragment_id in ids)

    return covering


def check_coverage(manifest: Manifest) -> None:
    """Refuse to replace fragments where nobody knows which of them an index covers.

    Raises
    ------
    UnsupportedError
        Naming the index.
    """
    reliable = has_reliable_coverage(manifest)
    for index in parse_indices(manifest.index_section):
        if not is_system_index(index) and (not reliable or coverage(index) is None):
            raise UnsupportedError(
                f"the index {index.name!r} does not say reliably which fragments it covers, so none can be rewritten; "
                "drop the index before and create it again afterwards"
            )


def without_fields(section: bytes | None, field_ids: Collection[int]) -> bytes | None:
    """The list without indices on these fields."""
    return encode_indices([index for index in parse_indices(section) if not set(index.fields) & set(field_ids)])


def has_reliable_coverage(manifest: Manifest) -> bool:
    """Whether the release that wrote a manifest noted correctly which fragments its indices cover, if there are any."""
    if not manifest.index_section:
        return True
    writer = manifest.writer_version
    if writer is None:
        return False
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", writer.version)
    if writer.library != "lance" or numbers is None:
        return True
    return tuple(int(number) for number in numbers.groups()) >= _FIRST_RELIABLE


def signature_for_unreliable_coverage(version: str) -> WriterVersion:
    """How to sign a manifest whose indices are as unreliable as before.

    Under another signature the reference would believe them; like this it looks into the indices at its next commit.

    Parameters
    ----------
    version
        Version of this package.
    """
    return WriterVersion("lance", _LAST_UNRELIABLE, build_metadata=version)
