"""List of indices in a manifest, as far as changes of the table must keep it correct."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from lance_dataset._proto import scalar_index_pb2, table_pb2
from lance_dataset.errors import UnsupportedError
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.manifest import Manifest, WriterVersion
from lance_dataset.table.messages import parse_message
from lance_dataset.table.roaring import decode_bitmap, encode_bitmap

__all__ = [
    "MAX_FRAGMENTS",
    "MEMORY_INDEX",
    "REUSE_INDEX",
    "check_coverage",
    "coverage",
    "covering_indices",
    "files_kind",
    "has_covering_index",
    "has_reliable_coverage",
    "kind_of_details",
    "parse_indices",
    "signature_for_unreliable_coverage",
    "without_fields",
]

_WHERE = "index section"
#: Index that maps rows of rewritten fragments to their new place, for other indices.
REUSE_INDEX = "__lance_frag_reuse"
#: Index of rows that are not in fragments yet.
MEMORY_INDEX = "__lance_mem_wal"
#: Maximum number of fragments, and highest id. Limits the memory that a small bitmap can expand to.
MAX_FRAGMENTS = 1 << 26
#: Bytes of memory of the id of a fragment in a set. A table of a million fragments fits the limit.
_ID_BYTES = 64
#: Releases before this one recorded wrong sets of fragments.
_FIRST_RELIABLE = (0, 8, 15)
_LAST_UNRELIABLE = "0.8.14"


def parse_indices(section: bytes | None) -> list[table_pb2.IndexMetadata]:
    """Return the indices in `Manifest.index_section`.

    Raises
    ------
    CorruptFileError
        The bytes are not a list of indices.
    """
    return list(parse_message(table_pb2.IndexSection, section, _WHERE).indices) if section else []


def encode_indices(indices: Sequence[table_pb2.IndexMetadata]) -> bytes | None:
    """Encode indices as `Manifest.index_section`, None without indices."""
    return table_pb2.IndexSection(indices=indices).SerializeToString() if indices else None


def is_system_index(index: table_pb2.IndexMetadata | IndexMetadata) -> bool:
    """Return True if an index is internal to the table."""
    return index.name in (REUSE_INDEX, MEMORY_INDEX)


def index_kind(index: table_pb2.IndexMetadata) -> str | None:
    """Return the kind of an index, such as ``btree``, or None if an old release did not record it."""
    if not index.HasField("index_details"):
        return None
    return kind_of_details(index.index_details.type_url)


def files_kind(index: table_pb2.IndexMetadata) -> str | None:
    """Return the kind of the files of an index; those of a JSON index are of the kind of its values.

    Raises
    ------
    CorruptFileError
        The details of a JSON index are damaged.
    """
    kind = index_kind(index)
    if kind != "json":
        return kind
    message = parse_message(scalar_index_pb2.JsonIndexDetails, index.index_details.value, f"index {index.name!r}")
    return kind_of_details(message.target_details.type_url)


def kind_of_details(type_url: str) -> str:
    """Return the kind of the indices to which details of a type belong, such as ``btree``."""
    name = type_url.rpartition("/")[2].rpartition(".")[2].lower()
    return name.removesuffix("details").removesuffix("index")


def set_coverage(index: table_pb2.IndexMetadata, fragment_ids: Iterable[int]) -> None:
    """Record the fragments that an index covers. An empty set differs from an unknown one."""
    index.fragment_bitmap = encode_bitmap(np.fromiter(fragment_ids, np.uint32))


def has_covering_index(manifest: Manifest) -> bool:
    """Return True if an index stores values of columns besides its keys."""
    return any(index.covering_fields for index in parse_indices(manifest.index_section))


def coverage(index: table_pb2.IndexMetadata | IndexMetadata) -> frozenset[int] | None:
    """Return the ids of the fragments that an index covers, or None if it does not state them.

    Raises
    ------
    CorruptFileError
        The bytes are not a bitmap.
    MemoryLimitError
        It has too many fragments.
    """
    if not index.fragment_bitmap:
        return None
    return frozenset(
        decode_bitmap(index.fragment_bitmap, MAX_FRAGMENTS, f"index {index.name!r}", per_value=_ID_BYTES).tolist()
    )


def covering_indices(manifest: Manifest) -> Callable[[int], frozenset[int]]:
    """Return a function from a fragment id to the positions of the indices that cover it or may cover it."""
    reliable = has_reliable_coverage(manifest)
    indices = [index for index in parse_indices(manifest.index_section) if index.name != MEMORY_INDEX]
    covered = [coverage(index) if reliable else None for index in indices]

    def covering(fragment_id: int) -> frozenset[int]:
        return frozenset(position for position, ids in enumerate(covered) if ids is None or fragment_id in ids)

    return covering


def check_coverage(manifest: Manifest) -> None:
    """Raise an error if fragments are to be replaced and the coverage of an index is unknown.

    Raises
    ------
    UnsupportedError
        The coverage of an index is unknown. The message names the index.
    """
    reliable = has_reliable_coverage(manifest)
    for index in parse_indices(manifest.index_section):
        if not is_system_index(index) and (not reliable or coverage(index) is None):
            raise UnsupportedError(
                f"the index {index.name!r} does not reliably state which fragments it covers, so none can be "
                "rewritten; drop the index first and create it again afterwards"
            )


def without_fields(section: bytes | None, field_ids: Collection[int]) -> bytes | None:
    """Return the list without indices on these fields."""
    return encode_indices([index for index in parse_indices(section) if not set(index.fields) & set(field_ids)])


def has_reliable_coverage(manifest: Manifest) -> bool:
    """Return True if the coverage recorded in a manifest is reliable, judged by the release that wrote it."""
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
    """Return a signature for a manifest whose indices are as unreliable as before.

    With any other signature the reference would trust them. With this one, it checks the indices at its next commit.

    Parameters
    ----------
    version
        Version of this package.
    """
    return WriterVersion("lance", _LAST_UNRELIABLE, build_metadata=version)
