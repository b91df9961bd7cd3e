"""Rewriting the indices of rewritten fragments with the new addresses of their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from lance_dataset._proto import table_pb2
from lance_dataset.errors import UnsupportedError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.kinds import KINDS
from lance_dataset.index.scalar import bitmap, btree, json_path, minhash, ngram
from lance_dataset.index.text.remap import remap as remap_inverted
from lance_dataset.index.unnoted import unnoted_kind
from lance_dataset.index.vector.remap import remap as remap_vector
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata
from lance_dataset.table.indices.changes import stores_addresses
from lance_dataset.table.indices.coverage import coverage, index_kind, is_system_index, parse_indices
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import RewrittenIndex
from lance_dataset.table.paths import FileLocator
from lance_dataset.types.schema import Schema

__all__ = ["Remap", "indices_to_remap", "remap_index"]

#: Writes the files of an index with new addresses. Returns the details of the index if they change.
Remap = Callable[[IndexFolder, NewIndexFolder, Relocation, IndexMetadata], IndexDetails | None]

#: Indices that stay as they are: their entries for fragments that are gone are not used, and new fragments are scanned.
_NEVER_REMAPPED = frozenset({"zonemap", "bloomfilter", "fm", "rtree"})

_REMAPS: Mapping[str, Remap] = {
    "bitmap": bitmap.remap,
    "btree": btree.remap,
    "json": json_path.remap,
    "labellist": bitmap.remap,
    "minhashlsh": minhash.remap,
    "ngram": ngram.remap,
    "inverted": remap_inverted,
    "vector": remap_vector,
}


#: Types of the details of the kinds that existed before indices recorded their details.
_UNNOTED_DETAILS: Mapping[str, str] = {
    "bitmap": "/lance.table.BitmapIndexDetails",
    "btree": "/lance.table.BTreeIndexDetails",
    "inverted": "/lance.table.InvertedIndexDetails",
    "labellist": "/lance.table.LabelListIndexDetails",
    "vector": "/lance.table.VectorIndexDetails",
}


def indices_to_remap(manifest: Manifest, fragment_ids: Collection[int] | None = None) -> list[table_pb2.IndexMetadata]:
    """Return the indices that hold row addresses and must be rewritten when these rows move.

    Parameters
    ----------
    manifest
        The version. Its indices have their current coverage.
    fragment_ids
        Return only indices that cover some of these fragments; None for all.

    Raises
    ------
    UnsupportedError
        An index has a kind or a format version that this release does not know.
    """
    stable = manifest.uses_stable_row_ids
    found = []
    for index in parse_indices(manifest.index_section):
        kind = index_kind(index)
        if is_system_index(index) or _files_kind(index, kind) in _NEVER_REMAPPED:
            continue
        covered = coverage(index) if fragment_ids is not None else None
        if fragment_ids is not None and (covered is None or covered.isdisjoint(fragment_ids)):
            continue
        known = kind is None or (kind in _REMAPS and index.index_version <= KINDS[kind].latest)
        if stable and not (known and stores_addresses(index)):
            continue  # it holds row ids, or it no longer covers the rewritten fragments
        if not known:
            raise _cannot_follow(
                index.name, f"this release does not know indices of the kind {kind!r}, version {index.index_version}"
            )
        found.append(index)
    return found


def remap_index(
    store: ObjectStore,
    root: str,
    locator: FileLocator,
    index: table_pb2.IndexMetadata,
    schema: Schema,
    moved: Relocation,
    new_id: str,
) -> RewrittenIndex:
    """Write the files of an index again, into a new folder. If this fails, the caller removes them.

    Parameters
    ----------
    store, root
        The table that gets the new files.
    locator
        Finds the old files.
    index
        The index.
    schema
        Schema of the table.
    moved
        New addresses of the rows.
    new_id
        Id of the new index, which names the folder.

    Returns
    -------
    RewrittenIndex
        Description of the new index for the commit. Its files are durable.

    Raises
    ------
    UnsupportedError
        The kind or the format version of the index is not known.
    CorruptFileError
        The files contradict the format.
    """
    metadata = IndexMetadata.from_proto(index, "index section")
    source_store, source_path = locator.index_folder(metadata.uuid, metadata.base_id)
    source = IndexFolder(source_store, source_path, {file.path: file.size_bytes for file in metadata.files})
    target_store, target_path = FileLocator(store, root).index_folder(new_id, None)
    target = NewIndexFolder(target_store, target_path)
    kind = _kind(index, schema, source)
    remap = _REMAPS.get(kind)
    if remap is None:
        raise _cannot_follow(index.name, f"this release does not know indices of the kind {kind!r}")
    details = remap(source, target, moved, metadata)
    # The reference does not read a rewrite without details, even of an index whose manifest entry has none.
    details = details or metadata.details or IndexDetails(_UNNOTED_DETAILS[kind], b"")
    return RewrittenIndex(metadata.uuid, new_id, details, index.index_version, target.files)


def _files_kind(index: table_pb2.IndexMetadata, kind: str | None) -> str | None:
    """Return the kind of the files of an index."""
    return json_path.target_kind(index.index_details.value, index.name) if kind == "json" else kind


def _kind(index: table_pb2.IndexMetadata, schema: Schema, folder: IndexFolder) -> str:
    """Return the kind of an index. If old releases did not record it, derive it from its column and its files."""
    kind = index_kind(index)
    if kind is not None:
        return kind
    return unnoted_kind(index.fields, schema, folder)


def _cannot_follow(name: str, reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"the index {name!r} covers fragments that would be rewritten, and cannot follow their rows: {reason}; compact "
        "with defer_index_remap=True, which keeps the index and records where rows went, exclude the fragments of the "
        "index, or drop it first"
    )
