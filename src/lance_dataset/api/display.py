"""Text and HTML representations of datasets and fragments, made of facts that are in memory already."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pyarrow as pa

from lance_dataset.errors import LanceError
from lance_dataset.io.secrets import redacted
from lance_dataset.read.session import byte_count
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import deletion_name

__all__ = ["dataset_html", "dataset_text", "fragment_html", "fragment_text"]

_MOST_COLUMNS = 100
_MOST_INDICES = 5
_CELL = "text-align: left; padding: 0 1em 0 0"


def dataset_text(uri: str, manifest: Manifest) -> str:
    """Return one line that describes a version of a dataset."""
    facts = ", ".join(f"{name}={value!r}" for name, value in _dataset_facts(manifest))
    return f"LanceDataset({redacted(uri)!r}, {facts})"


def dataset_html(uri: str, manifest: Manifest) -> str:
    """Return an HTML table that describes a version of a dataset, with its columns."""
    return _table(f"LanceDataset {redacted(uri)}", _dataset_facts(manifest), manifest.schema.arrow)


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


def _table(title: str, facts: Sequence[tuple[str, object]], schema: pa.Schema) -> str:
    """Return an HTML table. All names are escaped, since others choose the names of columns, paths and branches."""
    rows = [
        f"<tr><th style='{_CELL}'>{escape(name)}</th><td>{escape('?' if value is None else str(value))}</td></tr>"
        for name, value in facts
    ]
    columns = [
        f"<tr><td style='{_CELL}'>{escape(field.name)}</td><td style='{_CELL}'>{escape(str(field.type))}</td>"
        f"<td>{'' if field.nullable else 'not null'}</td></tr>"
        for field in list(schema)[:_MOST_COLUMNS]
    ]
    more = len(schema) - len(columns)
    if more > 0:
        columns.append(f"<tr><td colspan='3'>and {more} more</td></tr>")
    return (
        f"<div><b>{escape(title)}</b><table>{''.join(rows)}</table>"
        f"<details><summary>{len(schema)} columns</summary><table>{''.join(columns)}</table></details></div>"
    )
