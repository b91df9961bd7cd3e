"""Rows that differ between two versions: inserted, deleted and, with stable row ids, updated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.reports.cells import cell_texts
from lance_dataset.reports.columns import quoted

if TYPE_CHECKING:
    from lance_dataset import LanceDataset, LanceFragment

__all__ = ["changed_rows"]

#: Rows of the fragments that differ; more of them would take too long and too much memory.
_MOST_COMPARED = 20_000_000
_MOST_SHOWN = 50
_MOST_COLUMNS = 20
_LONGEST_CELL = 80
_ROW_ID = "_rowid"


def changed_rows(before: LanceDataset, after: LanceDataset) -> dict[str, Any]:
    """Return how many rows were inserted, deleted and updated between two versions, and the first of them as text.

    Fragments that both versions have are not read. Rows without stable row ids are compared by their place, so rows
    that an update or a compaction has moved are both deleted and inserted.

    Returns
    -------
    dict
        ``note``, and by the kind of change the ``count``, ``columns`` and ``rows``: lists of row id and texts.
    """
    old, new = _differing(before, after)
    if max(_rows(old), _rows(new)) > _MOST_COMPARED:
        return {"note": f"the fragments that differ have more than {_MOST_COMPARED:,} rows, which are not compared"}
    stable = before.has_stable_row_ids and after.has_stable_row_ids
    old_ids, new_ids = _ids(before, old), _ids(after, new)
    found: dict[str, Any] = {
        "note": "" if stable else "compared by place: rows that an update or a compaction has moved count as both",
        "deleted": _shown(before, old, np.setdiff1d(old_ids, new_ids, assume_unique=True)),
        "inserted": _shown(after, new, np.setdiff1d(new_ids, old_ids, assume_unique=True)),
    }
    if stable:
        changed = after.scanner(
            [],
            filter=f"_row_last_updated_at_version > {before.version}",
            with_row_id=True,
            fragments=new,
        ).to_table()[_ROW_ID]
        both = np.intersect1d(changed.to_numpy(), old_ids, assume_unique=True) if new else np.zeros(0, np.uint64)
        found["updated"] = _shown(after, new, both)
    return found


def _differing(before: LanceDataset, after: LanceDataset) -> tuple[list[LanceFragment], list[LanceFragment]]:
    old, new = ({each.fragment_id: each for each in version.get_fragments()} for version in (before, after))
    same = {
        number
        for number in old.keys() & new.keys()
        if old[number].metadata.files == new[number].metadata.files
        and old[number].metadata.deletion_file == new[number].metadata.deletion_file
    }
    kept = [[each for number, each in part.items() if number not in same] for part in (old, new)]
    return kept[0], kept[1]


def _rows(fragments: list[LanceFragment]) -> int:
    return sum(fragment.physical_rows or 0 for fragment in fragments)


def _ids(dataset: LanceDataset, fragments: list[LanceFragment]) -> np.ndarray:
    if not fragments:
        return np.zeros(0, np.uint64)
    return dataset.scanner([], with_row_id=True, fragments=fragments).to_table()[_ROW_ID].to_numpy()


def _shown(dataset: LanceDataset, fragments: list[LanceFragment], ids: np.ndarray) -> dict[str, Any]:
    """Return the number of rows, and the first of them as text."""
    names = dataset.schema.names[:_MOST_COLUMNS]
    facts: dict[str, Any] = {"count": len(ids), "columns": names, "rows": []}
    if not len(ids):
        return facts
    chosen = ", ".join(map(str, np.sort(ids)[:_MOST_SHOWN].tolist()))
    table = dataset.scanner(
        [quoted(name) for name in names], filter=f"{_ROW_ID} in ({chosen})", with_row_id=True, fragments=fragments
    ).to_table()
    texts = [_texts(table[name]) for name in names]
    facts["rows"] = [list(row) for row in zip(table[_ROW_ID].to_pylist(), *texts, strict=True)]
    return facts


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    found: list[str | None] = []
    for chunk in column.chunks:
        values = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        texts = cell_texts(values, _LONGEST_CELL)
        found += pc.if_else(values.is_valid(), texts, pa.scalar(None, texts.type)).to_pylist()
    return found
