"""Conflict matrix: a verdict, or the conditions that determine it, for every pair of operations.

Rows are the operation to commit, columns the one committed since the version it was computed against. ``.`` is
compatible, ``R`` must be computed again, ``X`` is incompatible. A letter names a condition in `CONDITIONS`. If a cell
has several entries, the worst verdict wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lance_dataset.table.conflicts.columns import (
    replaces_dropped_columns,
    requires_values,
    updates_dropped_columns,
)
from lance_dataset.table.conflicts.fragments import (
    adds_files,
    inserts_same_keys,
    masked_rows,
    moved_overlaid_rows,
    overlaid_rows,
    replaced_columns,
    replaces_same_columns,
    same_fragments,
)
from lance_dataset.table.conflicts.indices import (
    changes_log_index,
    indexes_rewritten_fragments,
    indexes_same_name,
    merges_with_log_index,
    replaces_indexed_columns,
    rewrites_indexed_fragments,
)
from lance_dataset.table.conflicts.log import progresses_without_log_index, takes_over_same_log
from lance_dataset.table.conflicts.settings import (
    adds_same_base,
    changes_metadata_beside_schema,
    changes_metadata_of_restore,
    changes_overwritten_settings,
    changes_same_settings,
    overwrites_changed_config,
    overwrites_same_config,
)
from lance_dataset.table.conflicts.verdict import AffectedRows, Condition, Verdict
from lance_dataset.table.operations import Operation, Unknown

__all__ = ["CONDITIONS", "MATRIX", "find_verdict"]

# Differences from the reference: u (a rewrite into another storage version), w for two updates (both would add the same
# generations of the log), r (a rewrite rejects an index that does not state its coverage), y (also if
# preserves_nullability is not set, because writing again does not help), s for a projection (its schema lacks the
# metadata that was set).
_TABLE = """
                   App  Del  Upd    Ovr   Idx  Rew  Mer  Prj  Res  Rsv  Cfg  DRp  DOv  MWS  Bas  Cln
Append             .    .    .      X     .    .    n    n    X    .    .    .    .    X    .    .
Delete             .    d    d      X     .    f    R    .    X    .    .    f    .    X    .    .
Update             k    d    d,k,w  X     .    f    R    n,z  X    .    .    f    v    w    .    .
Overwrite          .    .    .      R,co  .    .    .    .    .    .    c    .    .    X    .    .
CreateIndex        .    .    .      X     i    r    m    .    X    .    .    i2   .    mw   .    .
Rewrite            u    f    f,u    X     r2   f,u  R    .    X    .    .    f    f    .    .    .
Merge              R    R    R      X     m2   R    R    X    X    .    s    R    R    X    .    .
Project            n    .    n      X     .    .    R    R    X    .    s    n    n    X    .    .
Restore            .    .    .      .     .    .    .    .    .    .    s2   .    .    X    .    .
ReserveFragments   .    .    .      X     .    .    .    .    X    .    .    .    .    .    .    .
UpdateConfig       .    .    .      c2    .    .    s    .    s2   .    c3   .    .    .    .    .
DataReplacement    .    x    x      X     i2   f    R    n,y  X    .    .    q    .    X    .    .
DataOverlay        .    x2   x2     X     .    f    R    n    X    .    .    .    .    X    .    .
UpdateMemWalState  X    X    w      X     w    .    X    X    X    .    .    X    X    w    .    X
UpdateBases        .    .    .      .     .    .    .    .    .    .    .    .    .    .    b    .
Clone              .    .    .      .     .    .    .    .    .    .    .    .    .    X    .    .
"""

_NAMES = {
    "App": "Append",
    "Del": "Delete",
    "Upd": "Update",
    "Ovr": "Overwrite",
    "Idx": "CreateIndex",
    "Rew": "Rewrite",
    "Mer": "Merge",
    "Prj": "Project",
    "Res": "Restore",
    "Rsv": "ReserveFragments",
    "Cfg": "UpdateConfig",
    "DRp": "DataReplacement",
    "DOv": "DataOverlay",
    "MWS": "UpdateMemWalState",
    "Bas": "UpdateBases",
    "Cln": "Clone",
}

_VERDICTS = {".": Verdict.COMPATIBLE, "R": Verdict.RETRYABLE, "X": Verdict.INCOMPATIBLE}

#: Conditions by their letters in the matrix.
CONDITIONS: Mapping[str, Condition] = MappingProxyType(
    {
        "b": adds_same_base,
        "c": overwrites_changed_config,
        "co": overwrites_same_config,
        "c2": changes_overwritten_settings,
        "c3": changes_same_settings,
        "d": masked_rows,
        "f": same_fragments,
        "i": indexes_same_name,
        "i2": replaces_indexed_columns,
        "k": inserts_same_keys,
        "m": changes_log_index,
        "m2": merges_with_log_index,
        "mw": progresses_without_log_index,
        "n": requires_values,
        "q": replaces_same_columns,
        "r": indexes_rewritten_fragments,
        "r2": rewrites_indexed_fragments,
        "s": changes_metadata_beside_schema,
        "s2": changes_metadata_of_restore,
        "u": adds_files,
        "v": moved_overlaid_rows,
        "w": takes_over_same_log,
        "x": replaced_columns,
        "x2": overlaid_rows,
        "y": replaces_dropped_columns,
        "z": updates_dropped_columns,
    }
)


def _parsed(table: str) -> Mapping[str, Mapping[str, tuple[Verdict | Condition, ...]]]:
    header, *rows = (line.split() for line in table.strip().splitlines())
    columns = [_NAMES[short] for short in header]

    def cell(text: str) -> tuple[Verdict | Condition, ...]:
        return tuple(_VERDICTS[entry] if entry in _VERDICTS else CONDITIONS[entry] for entry in text.split(","))

    return {name: dict(zip(columns, map(cell, cells), strict=True)) for name, *cells in rows}


#: Name of our operation, then of theirs, to the entries of their cell.
MATRIX = _parsed(_TABLE)


def find_verdict(ours: Operation, theirs: Operation, rows: AffectedRows | None = None) -> Verdict:
    """Return the verdict on our operation, given one that is committed.

    Parameters
    ----------
    ours
        The operation to commit.
    theirs
        The operation that was committed in between.
    rows
        Rows that `ours` deletes. None if they are not known.
    """
    if isinstance(theirs, Unknown) or isinstance(ours, Unknown):
        return Verdict.INCOMPATIBLE
    entries = MATRIX[ours.name][theirs.name]
    return max(entry if isinstance(entry, Verdict) else entry(ours, theirs, rows) for entry in entries)
