"""Fragment-reuse index: maps rows of rewritten fragments to their new place, while other indices stay unchanged.

Every rewrite adds a version to it. A version contains groups of old fragments, the addresses of their surviving rows,
and the new fragments. The surviving rows, in the order of the old fragments, are the rows of the new ones, in their
order.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence

from lance_dataset._proto import system_indices_pb2, table_pb2
from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.io.base import ObjectStore, safe_join
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata, uuid_from_proto
from lance_dataset.table.indices.coverage import REUSE_INDEX, parse_indices
from lance_dataset.table.indices.moved_rows import MovedRows, Relocation, RewrittenGroup
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.messages import parse_message
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.roaring import encode_bitmap

__all__ = [
    "RewrittenRows",
    "find_reuse_index",
    "read_reuse_content",
    "relocation",
    "with_rewritten_rows",
]

_Content = system_indices_pb2.FragmentReuseIndexDetails.InlineContent
_DETAILS_URL = "/lance.table.FragmentReuseIndexDetails"
#: Contents of this size or larger are stored in a file.
_MAX_INLINE = 204_800
_FILE = "details.binpb"


@dataclass(frozen=True)
class RewrittenRows:
    """A group of a rewrite.

    Attributes
    ----------
    surviving
        Addresses of the live rows of the old fragments: a serialized 64-bit roaring bitmap.
    old_fragments, new_fragments
        The fragments, with their ids.
    """

    surviving: bytes
    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]

    @property
    def group(self) -> RewrittenGroup:
        """The group reduced to ids and rows."""
        old = tuple((each.id, each.physical_rows) for each in self.old_fragments)
        return RewrittenGroup(self.surviving, old, tuple((each.id, each.physical_rows) for each in self.new_fragments))


def find_reuse_index(manifest: Manifest) -> table_pb2.IndexMetadata | None:
    """Return the fragment-reuse index of a version, None if it has none."""
    return next((index for index in parse_indices(manifest.index_section) if index.name == REUSE_INDEX), None)


def read_reuse_content(index: table_pb2.IndexMetadata, locator: FileLocator | None) -> _Content:
    """Read the content of a fragment-reuse index.

    Parameters
    ----------
    index
        The index.
    locator
        Finds its file if it has one. Without it, the content of such an index is empty.

    Raises
    ------
    CorruptFileError
        The content contradicts the format.
    """
    where = f"index {index.name!r}"
    details = parse_message(system_indices_pb2.FragmentReuseIndexDetails, index.index_details.value, where)
    if not details.HasField("external") or locator is None:
        return details.inline
    base_id = index.base_id if index.HasField("base_id") else None
    store, folder = locator.index_folder(uuid_from_proto(index.uuid, where), base_id)
    path = safe_join(folder, details.external.path, what="file of the fragment-reuse index")
    start, stop = details.external.offset, details.external.offset + details.external.size
    data = store.read(path)
    if stop > len(data):
        raise CorruptFileError(f"{store.uri(path)}: has {len(data)} bytes, but its index expects {stop}")
    return parse_message(_Content, data[start:stop], store.uri(path))


# -- reading ---------------------------------------------------------------------------------------------------------


def relocation(index: table_pb2.IndexMetadata, locator: FileLocator) -> Relocation:
    """Return the mapping of rows from any version since the first rewrite in the index to their current addresses.

    Parameters
    ----------
    index
        The fragment-reuse index.
    locator
        Finds its file.

    Raises
    ------
    CorruptFileError
        The index contradicts the format.
    UnsupportedError
        It has a newer format.
    """
    if index.index_version > 0:
        raise UnsupportedError(
            f"the fragment-reuse index has format version {index.index_version}, which this release does not read"
        )
    return Relocation(
        tuple(
            MovedRows(
                [
                    RewrittenGroup(group.changed_row_addrs, _sizes(group.old_fragments), _sizes(group.new_fragments))
                    for group in version.groups
                ],
                f"index {REUSE_INDEX!r}",
            )
            for version in read_reuse_content(index, locator).versions
        )
    )


def _sizes(digests: Iterable[system_indices_pb2.FragmentDigest]) -> tuple[tuple[int, int], ...]:
    """Return the ids and rows of fragments."""
    return tuple((each.id, each.physical_rows) for each in digests)


# -- writing ---------------------------------------------------------------------------------------------------------


def with_rewritten_rows(
    store: ObjectStore, root: str, manifest: Manifest, version: int, groups: Sequence[RewrittenRows]
) -> IndexMetadata:
    """Return the fragment-reuse index of a version with one more rewrite, under another id.

    Large content is written to a file.

    Parameters
    ----------
    store, root
        The table.
    manifest
        The version with the current index.
    version
        Version that the rewrite is based on.
    groups
        The groups of the rewrite.
    """
    known = find_reuse_index(manifest)
    content = _Content()
    if known is not None:
        if known.index_version > 0:
            raise UnsupportedError("the fragment-reuse index is of a newer format, which this release does not write")
        content.CopyFrom(read_reuse_content(known, FileLocator(store, root, manifest.base_paths)))
    added = content.versions.add(dataset_version=version)
    for group in groups:
        added.groups.add(
            changed_row_addrs=group.surviving,
            old_fragments=[_digest(each) for each in group.old_fragments],
            new_fragments=[_digest(each) for each in group.new_fragments],
        )
    own_id = str(uuid.uuid4())
    covered = {each.id for entry in content.versions for group in entry.groups for each in group.new_fragments}
    return IndexMetadata(
        uuid=own_id,
        name=REUSE_INDEX,
        dataset_version=version,
        fragment_bitmap=encode_bitmap(sorted(covered)),
        details=IndexDetails(_DETAILS_URL, _stored(store, root, own_id, content.SerializeToString())),
        index_version=0,
        created_at=time.time_ns() // 1_000_000,
    )


def _stored(store: ObjectStore, root: str, own_id: str, data: bytes) -> bytes:
    """Return details of the index, with the content inline or in a file."""
    details = system_indices_pb2.FragmentReuseIndexDetails()
    if len(data) < _MAX_INLINE:
        details.inline.ParseFromString(data)
    else:
        _, folder = FileLocator(store, root).index_folder(own_id, None)
        store.put(f"{folder}/{_FILE}", data)
        details.external.path, details.external.size = _FILE, len(data)
    return details.SerializeToString()


def _digest(fragment: Fragment) -> system_indices_pb2.FragmentDigest:
    deleted = 0 if fragment.deletion_file is None else fragment.deletion_file.num_deleted_rows
    if fragment.deletion_file is not None and deleted == 0:
        raise InvalidInputError(
            f"fragment {fragment.id} does not state how many of its rows are deleted; first commit any change with "
            "this package, which counts them"
        )
    return system_indices_pb2.FragmentDigest(
        id=fragment.id, physical_rows=fragment.physical_rows, num_deleted_rows=deleted
    )
