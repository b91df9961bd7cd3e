"""Metadata of a dataset, field by field, as text for debugging."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import Any

from lance_dataset.api.fragment.fragment import LanceFragment
from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.shown import Shown
from lance_dataset.records.diagnosis import Diagnosis
from lance_dataset.records.fragment import FragmentMetadata
from lance_dataset.table.fragment import Fragment
from lance_dataset.types.schema import Field, Schema

__all__ = ["diagnose", "format_fragment", "format_manifest", "format_schema", "list_transactions"]

_INDENT = "    "
#: Lists of plain numbers with more characters than this take several lines.
_LINE = 100


def diagnose(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    progress: ProgressOption = None,
) -> Diagnosis:
    """Check a whole dataset with all its branches, also one that cannot be opened. Nothing is changed.

    Parameters
    ----------
    uri
        Path or URI.
    storage_options
        Options of the store.
    progress
        See `LanceDataset.doctor`.

    Returns
    -------
    Diagnosis
        Has ``findings``, each with what is wrong and what mends it; ``str`` makes a text of it.

    Raises
    ------
    DatasetNotFoundError
        There is no dataset, not even a damaged one.
    """
    from lance_dataset.changes.doctor.diagnosing import diagnose as check
    from lance_dataset.read.location import TableLocation

    with reported_progress(progress, lambda: None, "doctor", "unit") as told:
        return check(TableLocation.resolve(uri, storage_options), told)


def format_schema(dataset: Shown) -> str:
    """Format the schema of a dataset: fields with their ids, types and metadata."""
    return _text(dataset.snapshot.manifest.schema)


def format_manifest(dataset: Shown) -> str:
    """Format the whole manifest of a version."""
    return _text(dataset.snapshot.manifest)


def format_fragment(fragment: FragmentMetadata | LanceFragment, dataset: Shown) -> str:
    """Format a fragment, with the fields that each of its data files holds.

    Parameters
    ----------
    fragment
        Metadata of the fragment, or a handle on it.
    dataset
        The dataset that it belongs to.
    """
    found = getattr(fragment, "metadata", fragment)
    if not hasattr(found, "to_fragment"):
        raise InvalidInputError(
            f"fragment must be a FragmentMetadata or a LanceFragment, not {type(fragment).__name__}"
        )
    stored: Fragment = found.to_fragment()
    fields = {node.id: node for node in dataset.snapshot.manifest.schema.walk()}
    lines = [_text(stored)]
    for file in stored.files:
        lines.append(f"{file.path} holds:")
        for field_id, column in file.columns:
            node = fields.get(field_id)
            what = "a field that the schema does not have" if node is None else f"{node.name}: {node.storage_type}"
            lines.append(f"{_INDENT}field {field_id} in column {column}: {what}")
    return "\n".join(lines)


def list_transactions(dataset: Shown, /, max_transactions: int = 10) -> list[str]:
    """Format the newest transactions of a dataset, newest first; ``None`` if the transaction of a version is unknown.

    Parameters
    ----------
    dataset
        The dataset.
    max_transactions
        Maximum number of transactions to list.
    """
    from lance_dataset.records.history import transactions_until

    check_count("max_transactions", max_transactions)
    return [_text(transaction) for transaction in islice(transactions_until(dataset.snapshot), max_transactions)]


def _text(value: Any) -> str:
    return "\n".join(_lines(value))


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of a value. Nested values are indented."""
    if isinstance(value, Schema):
        yield from _block("Schema {", [("fields", list(value.fields)), ("metadata", value.metadata)], "}")
    elif isinstance(value, Field):
        yield from _block("Field {", _attributes(value), "}")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _block(f"{type(value).__name__} {{", _attributes(value), "}")
    elif isinstance(value, Mapping):
        yield from _block("{", [(_plain(key), item) for key, item in value.items()], "}")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        yield from _list(value)
    else:
        yield _plain(value)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    return [(item.name, getattr(value, item.name)) for item in dataclasses.fields(value) if item.name[0] != "_"]


def _list(values: Sequence[Any]) -> Iterator[str]:
    items = list(values)
    if all(isinstance(item, int | float | str) for item in items):
        line = f"[{', '.join(map(_plain, items))}]"
        if len(line) <= _LINE:
            yield line
            return
    yield from _block("[", [("", item) for item in items], "]")


def _block(opening: str, items: Sequence[tuple[str, Any]], closing: str) -> Iterator[str]:
    if not items:
        yield opening + closing
        return
    yield opening
    for name, item in items:
        lines = list(_lines(item))
        lines[0] = f"{name}: {lines[0]}" if name else lines[0]
        lines[-1] += ","
        yield from (_INDENT + line for line in lines)
    yield closing


def _plain(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
