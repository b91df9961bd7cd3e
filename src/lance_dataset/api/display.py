"""Text and HTML representations of datasets and fragments. Text is made of facts that are in memory already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType

import pyarrow as pa

from lance_dataset.api.histograms import histograms
from lance_dataset.errors import LanceError
from lance_dataset.io.secrets import redacted
from lance_dataset.read.session import byte_count
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import deletion_name

__all__ = ["dataset_html", "dataset_text", "fragment_html", "fragment_text"]

_MOST_COLUMNS = 100
_MOST_INDICES = 5
_MOST_VERSIONS = 5
_CELL = "text-align: left; padding: 0 1em 0 0"


def dataset_text(uri: str, manifest: Manifest) -> str:
    """Return one line that describes a version of a dataset."""
    facts = ", ".join(f"{name}={value!r}" for name, value in _dataset_facts(manifest))
    return f"LanceDataset({redacted(uri)!r}, {facts})"


def dataset_html(snapshot: Snapshot) -> str:
    """Return an HTML table that describes a version of a dataset, with its columns, their histograms and its history.

    Histograms and history read a few blocks of local files; those of remote stores are left out.
    """
    manifest = snapshot.manifest
    facts = _dataset_facts(manifest)
    if line := _version_line(snapshot):
        facts.append(("history", line))
    return _table(f"LanceDataset {redacted(snapshot.uri)}", facts, manifest.schema.arrow, histograms(snapshot))


def _version_line(snapshot: Snapshot) -> str:
    """Return the last operations, the newest first, such as ``3 Append, 2 Delete, 1 Overwrite``."""
    from lance_dataset.records.history import transaction_of

    if snapshot.store.is_remote:
        return ""
    place, shown = snapshot.location, list[str]()
    for version in range(snapshot.version, max(snapshot.version - _MOST_VERSIONS, 0), -1):
        try:
            manifest = snapshot.manifest if version == snapshot.version else place.read_manifest(version)
            made = transaction_of(place, manifest)
        except (LanceError, OSError):  # cleaned up; a repr must not raise
            break
        shown.append(f"{version} {'?' if made is None else type(made.operation).__name__}")
    return ", ".join([*shown, *(["..."] if len(shown) < snapshot.version else [])])


def fragment_text(fragment: Fragment, physical_rows: int | None) -> str:
    """Return one line that describes a fragment."""
    facts = ", ".join(f"{name}={value!r}" for name, value in _fragment_facts(fragment, physical_rows))
    return f"LanceFragment({facts})"


def fragment_html(fragment: Fragment, physical_rows: int | None, schema: pa.Schema) -> str:
    """Return an HTML table that describes a fragment, with the columns of the dataset."""
    facts = _fragment_facts(fragment, physical_rows)
    return _table(f"LanceFragment {fragment.id}", facts[1:], schema)


def _dataset_facts(manifest: Manifest) -> list[tuple[str, object]]:
    """Return names and values to show. A value is None if only the files would tell it."""
    numbers = manifest.fragment_list.columns
    sizes = numbers.file_sizes.tolist()
    deleted = sum(numbers.num_deleted_rows.tolist())
    facts: list[tuple[str, object]] = [
        ("version", manifest.version),
        ("rows", manifest.num_rows),
        ("columns", len(manifest.schema.fields)),
        ("fragments", len(numbers.ids)),
        ("size", byte_count(sum(sizes)) if all(sizes) else None),
        ("storage_version", manifest.storage_version),
    ]
    if manifest.branch is not None:
        facts.insert(0, ("branch", manifest.branch))
    if deleted:
        facts.append(("deleted_rows", deleted))
    names = _index_names(manifest)
    if names:
        shown = [*names[:_MOST_INDICES], *(["..."] if len(names) > _MOST_INDICES else [])]
        facts.append(("indices", shown))
    return facts


def _index_names(manifest: Manifest) -> list[str]:
    try:
        found = parse_indices(manifest.index_section)
    except LanceError:  # a repr must not raise
        return ["?"]
    return sorted({index.name for index in found})


def _fragment_facts(fragment: Fragment, physical_rows: int | None) -> list[tuple[str, object]]:
    deletions = fragment.deletion_file
    known = physical_rows or fragment.physical_rows or None
    facts: list[tuple[str, object]] = [
        ("id", fragment.id),
        ("physical_rows", known),
        ("data_files", [file.path for file in fragment.files]),
    ]
    if deletions is not None:
        facts.append(("deleted_rows", deletions.num_deleted_rows or None))
        facts.append(("deletion_file", f"_deletions/{deletion_name(fragment.id, deletions)}"))
    return facts


def _table(
    title: str, facts: Sequence[tuple[str, object]], schema: pa.Schema, drawn: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return an HTML table. All names are escaped, since others choose the names of columns, paths and branches."""
    rows = [
        f"<tr><th style='{_CELL}'>{escape(name)}</th><td>{escape('?' if value is None else str(value))}</td></tr>"
        for name, value in facts
    ]
    columns = [_column_row(field, drawn) for field in list(schema)[:_MOST_COLUMNS]]
    more = len(schema) - len(columns)
    if more > 0:
        columns.append(f"<tr><td colspan='3'>and {more} more</td></tr>")
    return (
        f"<div><b>{escape(title)}</b><table>{''.join(rows)}</table>"
        f"<details><summary>{len(schema)} columns</summary><table>{''.join(columns)}</table></details></div>"
    )


def _column_row(field: pa.Field, drawn: Mapping[str, str]) -> str:
    cells = [escape(field.name), escape(str(field.type)), "" if field.nullable else "not null"]
    if drawn:
        cells.append(drawn.get(field.name, ""))
    shown = "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in cells)
    return f"<tr>{shown}</tr>"
