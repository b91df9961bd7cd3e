"""Rewriting full-text indices with the new addresses of their rows."""

from __future__ import annotations

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.text.documents import move_documents
from lance_dataset.index.text.layout import METADATA_FILE, InvertedLayout, PartitionFiles
from lance_dataset.index.text.postings_file import drop_documents
from lance_dataset.index.text.token_sets import renumber_tokens
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata
from lance_dataset.table.indices.moved_rows import Relocation

__all__ = ["remap"]


def remap(source: IndexFolder, target: NewIndexFolder, moved: Relocation, index: IndexMetadata) -> IndexDetails | None:
    """Write the files of a full-text index with new addresses, without documents whose rows are gone.

    The result is as if these documents had never been indexed, because scores depend on all documents of the index.

    Raises
    ------
    CorruptFileError
        The files contradict the format.
    UnsupportedError
        The index has the layout of releases before 1.0, or an unknown format.
    """
    if METADATA_FILE not in source.names():
        raise UnsupportedError(
            f"the full-text index {index.name!r} has the layout of releases before 1.0, which cannot follow rows that "
            "move; compact with defer_index_remap=True, or drop the index first and create it again"
        )
    layout = InvertedLayout.read(source)
    for files in layout.partitions:
        _remap_partition(source, target, moved, layout, files)
    target.copy(source.open_input(METADATA_FILE), METADATA_FILE)
    return None


def _remap_partition(
    source: IndexFolder, target: NewIndexFolder, moved: Relocation, layout: InvertedLayout, files: PartitionFiles
) -> None:
    documents = source.open(files.documents)
    survivors = move_documents(documents, target, files.documents, moved, layout.ignored_fragments)
    if survivors.complete:
        for name in (files.postings, files.tokens):
            target.copy(source.open_input(name), name)
        return
    numbers = drop_documents(source.open(files.postings), target, files.postings, layout, survivors)
    renumber_tokens(source.open(files.tokens), target, files.tokens, numbers, fst=layout.fst)
