"""Space that a version occupies: sizes of columns with their encodings, fragments, coverage of indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lance_dataset.reports.places import shown_uri

if TYPE_CHECKING:
    from lance_dataset import LanceDataset
    from lance_dataset.file import EncodingReport

__all__ = ["ColumnStorage", "FragmentStorage", "IndexStorage", "Storage", "storage"]

#: Fragments that are described one by one.
_MOST_FRAGMENTS = 10_000
#: Pages whose encodings are read; more of them would take seconds.
_EXPLAINED_FRAGMENTS = 200


@dataclass(frozen=True)
class ColumnStorage:
    """A column, or a nested one.

    Attributes
    ----------
    column, type
        Dotted name, and type.
    stored, plain
        Bytes in the files, and as plain Arrow buffers; None if that is not known.
    pages
        Number of pages.
    encodings
        Its encodings.
    reason
        Why the writer chose the encoding of its first page.
    """

    column: str
    type: str
    stored: int
    plain: int | None
    pages: int
    encodings: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class FragmentStorage:
    """A fragment: its id, rows, deleted rows, files and bytes (None if a file does not say)."""

    id: int
    rows: int
    deleted: int
    files: int
    bytes: int | None


@dataclass(frozen=True)
class IndexStorage:
    """An index: its name, kind, columns, segments, bytes, and how many rows it covers."""

    name: str
    type: str
    columns: tuple[str, ...]
    segments: int
    bytes: int | None
    indexed_rows: int | None


@dataclass(frozen=True)
class Storage:
    """Space that a version occupies, and what is in it.

    Attributes
    ----------
    rows, deleted_rows, num_fragments, small_fragments
        Counts of the version.
    data_bytes
        Bytes of its data files; None if a file does not say.
    explained_fragments
        Number of fragments whose pages `columns` describe.
    columns, fragments, indices
        The parts, columns by size.
    advice
        Commands that would mend what is found.
    """

    rows: int
    deleted_rows: int
    num_fragments: int
    small_fragments: int
    data_bytes: int | None
    explained_fragments: int
    columns: tuple[ColumnStorage, ...]
    fragments: tuple[FragmentStorage, ...]
    indices: tuple[IndexStorage, ...]
    advice: tuple[str, ...]


def storage(dataset: LanceDataset) -> Storage:
    """Return what a version occupies. The metadata of its files are read, not its values."""
    found = [_fragment(each) for each in dataset.get_fragments()]
    sizes = [each.bytes for each in found]
    counts = dataset.stats.dataset_stats(max_rows_per_group=1024 * 1024)
    indices = tuple(_index(each) for each in dataset.describe_indices())
    rows = dataset.count_rows()
    return Storage(
        rows=rows,
        deleted_rows=sum(each.deleted for each in found),
        num_fragments=len(found),
        small_fragments=counts["num_small_files"],
        data_bytes=None if None in sizes else sum(size or 0 for size in sizes),
        explained_fragments=min(len(found), _EXPLAINED_FRAGMENTS),
        columns=_columns(dataset),
        fragments=tuple(found[:_MOST_FRAGMENTS]),
        indices=indices,
        advice=tuple(_advice(shown_uri(dataset.uri), rows, found, counts["num_small_files"], indices)),
    )


def _fragment(fragment: Any) -> FragmentStorage:
    sizes = [file.file_size_bytes for file in fragment.data_files()]
    rows = fragment.physical_rows or 0
    return FragmentStorage(
        fragment.fragment_id, rows, fragment.num_deletions, len(sizes), None if None in sizes else sum(sizes)
    )


def _index(index: Any) -> IndexStorage:
    return IndexStorage(
        index.name,
        index.index_type,
        tuple(index.field_names),
        len(index.segments),
        index.total_size_bytes,
        index.num_rows_indexed,
    )


def _columns(dataset: LanceDataset) -> tuple[ColumnStorage, ...]:
    fragments = dataset.get_fragments()
    if len(fragments) <= _EXPLAINED_FRAGMENTS:
        return _sized(dataset.explain_encodings())
    pages = [page for each in fragments[:_EXPLAINED_FRAGMENTS] for page in each.explain_encodings()]
    return _sized(pages)


def _sized(pages: EncodingReport | list[Any]) -> tuple[ColumnStorage, ...]:
    """Add up the pages of each column, the largest column first."""
    grouped: dict[str, list[Any]] = {}
    for page in pages:
        grouped.setdefault(page.column, []).append(page)
    found = [
        ColumnStorage(
            name,
            group[0].type,
            sum(page.stored_bytes for page in group),
            None if any(page.plain_bytes is None for page in group) else sum(page.plain_bytes for page in group),
            len(group),
            tuple(dict.fromkeys(page.encoding for page in group))[:5],
            group[0].reason,
        )
        for name, group in grouped.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.stored))


def _advice(
    uri: str, rows: int, fragments: list[FragmentStorage], small: int, indices: tuple[IndexStorage, ...]
) -> list[str]:
    found = []
    deleted = sum(each.deleted for each in fragments)
    if small > 1 or deleted > 0.1 * max(rows, 1):
        found.append(f"lance-dataset compact {uri}")
    if any(each.indexed_rows is not None and each.indexed_rows < rows for each in indices):
        found.append("dataset.optimize.optimize_indices()")
    return found
