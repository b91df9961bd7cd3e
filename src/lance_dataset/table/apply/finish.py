"""Steps common to all operations: fragment order, high-water marks, feature flags, signature, and a final check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lance_dataset._version import __version__
from lance_dataset.errors import UnsupportedError
from lance_dataset.file.legacy import with_dictionaries, write_dictionaries
from lance_dataset.table.apply.numbering import highest_id
from lance_dataset.table.checks import check_manifest, is_mixture
from lance_dataset.table.flags import STICKY, Feature, check_readable
from lance_dataset.table.fragment import LEGACY_VERSION
from lance_dataset.table.fragment_list import FragmentList, edited
from lance_dataset.table.indices.changes import pruned
from lance_dataset.table.indices.coverage import (
    has_covering_index,
    has_reliable_coverage,
    signature_for_unreliable_coverage,
)
from lance_dataset.table.manifest import Manifest, WriterVersion
from lance_dataset.table.old_tables.completion import Completion
from lance_dataset.table.old_tables.field_repair import with_unique_fields
from lance_dataset.types.schema import Field

__all__ = ["finished", "with_section"]


def finished(changed: Manifest, base: Manifest, complete: Completion | None = None) -> Manifest:
    """Return a changed manifest as the version after `base`.

    Parameters
    ----------
    changed
        `base` with the changes of an operation.
    base
        The version that was changed.
    complete
        Fills in row counts and file sizes that fragments lack.

    Raises
    ------
    InvalidInputError, CorruptFileError, UnsupportedError
        A reader would reject the result.
    """
    fragments = _without_clustering(changed.fragment_list.ordered())
    if complete is not None:
        fragments = complete(fragments, changed.base_paths)
    manifest = replace(
        changed,
        version=base.version + 1,
        fragments=fragments,
        max_fragment_id=highest_id(base, changed),
        path="",
        file_size=0,
        tag="",
        transaction_file="",  # named, and the name checked, when the version is published
        inline_transaction=None,
        writer_version=_signature(changed),
    )
    manifest = with_unique_fields(_with_storage_version(manifest))
    manifest = with_section(manifest, pruned(manifest, reliable=has_reliable_coverage(changed)))
    manifest = _with_flags(_with_dictionaries(manifest), base)
    where = f"new version {manifest.version}"
    check_readable(manifest.reader_flags, manifest.writer_flags, manifest.max_allocated_field_id, where)
    base_ids = {path.id for path in manifest.base_paths}
    flags, version = manifest.reader_flags, manifest.storage_version
    checked = check_manifest(manifest.fragment_list, base_ids, flags, version, "", where, from_storage=False)
    return replace(manifest, fragments=checked)


def with_section(manifest: Manifest, section: bytes | None) -> Manifest:
    """Return the manifest with another list of indices, or the manifest itself if it is the same list."""
    return manifest if section is manifest.index_section else replace(manifest, index_section=section)


def _without_clustering(fragments: FragmentList) -> FragmentList:
    """Return the fragments without the clustering field, which the format reserves and which would be outdated."""
    marked = (fragments[position] for position in np.flatnonzero(fragments.columns.has_clustering).tolist())
    return edited(fragments, updated={each.id: replace(each, clustering_id=None) for each in marked})


def _signature(changed: Manifest) -> WriterVersion | None:
    """Return a signature that differs from the usual one, or None if the index coverage is reliable.

    `changed` still has the signature of the version that its indices come from.
    """
    if has_reliable_coverage(changed):
        return None
    return signature_for_unreliable_coverage(__version__)


def _with_storage_version(manifest: Manifest) -> Manifest:
    """Return the manifest with the storage version of its files if it claims 0.1.

    Raises UnsupportedError if files of 0.1 and of later versions are mixed.
    """
    found = manifest.fragment_list.columns.storage_versions
    if is_mixture(found):
        raise UnsupportedError(
            f"the dataset would keep files of storage version 0.1 beside {sorted(found - {LEGACY_VERSION})}, which "
            "old releases (0.15, 0.16) mixed by mistake; it can be read, but not changed like this: overwrite it, "
            "restore an earlier version, or compact it into one version with "
            "optimize.compact_files(data_storage_version=...)"
        )
    if manifest.storage_version != LEGACY_VERSION or not found or LEGACY_VERSION in found:
        return manifest
    return replace(manifest, storage_version=max(found))


def _with_dictionaries(manifest: Manifest) -> Manifest:
    """Return the manifest with the dictionary values of a 0.1 table at its head, as they will be read back."""
    if manifest.storage_version == LEGACY_VERSION:
        blocks, schema = write_dictionaries(manifest.schema, 0)
        if not blocks:
            return replace(manifest, legacy_head=b"")
        head = b"".join(blocks)
        return replace(manifest, schema=with_dictionaries(schema, head, "new manifest"), legacy_head=head)
    if any(node.dictionary_values is not None for node in manifest.schema.walk()):
        # Files of later versions store their own dictionaries.
        fields = tuple(_without_dictionary(top) for top in manifest.schema.fields)
        return replace(manifest, schema=replace(manifest.schema, fields=fields), legacy_head=b"")
    return manifest


def _without_dictionary(node: Field) -> Field:
    children = tuple(_without_dictionary(child) for child in node.children)
    return replace(node, children=children, dictionary=None, dictionary_values=None)


def _with_flags(manifest: Manifest, base: Manifest) -> Manifest:
    """Set the feature flags that the content needs, and keep those that are never cleared."""
    both = Feature(0)
    columns = manifest.fragment_list.columns
    if columns.has_deletions.any():
        both |= Feature.DELETION_FILES
    if manifest.uses_stable_row_ids:
        both |= Feature.STABLE_ROW_IDS
    if manifest.base_paths:
        both |= Feature.BASE_PATHS
    if has_covering_index(manifest):
        both |= Feature.COVERED_INDEX
    if len((columns.storage_versions | {manifest.storage_version}) - {LEGACY_VERSION}) > 1:
        both |= Feature.MIXED_FILE_VERSIONS
    if columns.has_spilled_lineage.any():
        both |= Feature.SPILLED_LINEAGE
    kept = (base.writer_flags | manifest.writer_flags) & int(STICKY)
    readers = int(both) | kept & ~int(Feature.NON_REUSABLE_FIELD_IDS)
    writers = int(both) | kept | manifest.writer_flags & int(Feature.V2_FORMAT)
    if manifest.config:
        writers |= int(Feature.TABLE_CONFIG)
    if (readers, writers) == (manifest.reader_flags, manifest.writer_flags):
        return manifest
    return replace(manifest, reader_flags=readers, writer_flags=writers)
