"""How datasets, fragments and scanners show themselves: facts that are in memory already, on one line or as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pyarrow as pa

from lance_dataset.errors import LanceError
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import deletion_name

__all__ = ["byte_count", "dataset_html", "dataset_text", "fragment_html", "fragment_text"]

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MOST_COLUMNS = 100
_MOST_INDICES = 5
_CELL = "text-align: left; padding: 0 1em 0 0"


def byte_count(number: int) -> str:
    """A number of bytes for people: ``"512 B"``, ``"1.5 MiB"``."""
    if number < 1024:
        return f"{number} B"
    value = float(number)
    for unit in _UNITS:
        value /= 1024
        if value < 1023.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}"


def dataset_text(uri: str, manifest: Manifest) -> str:
    """One line on a version of a dataset."""
    facts = ", ".join(f"{name}={value!r}" for name, value in _dataset_facts(manifest))
    return f"LanceDataset({uri!r}, {facts})"


def dataset_html(uri: str, manifest: Manifest) -> str:
    """A version of a dataset as an HTML table, with its columns."""
    return _table(f"LanceDataset {uri}", _dataset_facts(manifest), manifest.schema.arrow)


def fragment_text(fragment: Fragment, physical_rows: int | None) -> str:
    """One line on a fragment."""
    facts = ", ".join(f"{name}={value!r}" for name, value in _fragment_facts(fragment, physical_rows))
    return f"LanceFragment({facts})"


def fragment_html(fragment: Fragment, physical_rows: int | None, schema: pa.Schema) -> str:
    """A fragment as an HTML table, with the columns of the dataset."""
    facts = _fragment_facts(fragment, physical_rows)
    return _table(f"LanceFragment {fragment.id}", facts[1:], schema)


def _dataset_facts(manifest: Manifest) -> list[tuple[str, object]]:
    """What to show; None for what only a look into the files would tell."""
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
    except LanceError:  # a repr is no place to complain
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
    """Everything that comes from outside is escaped: names of columns, paths and branches are chosen by others."""
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
