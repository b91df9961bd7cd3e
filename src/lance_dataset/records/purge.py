"""Report of a purge."""

from __future__ import annotations

from lance_dataset.late_dataclass import dataclass

__all__ = ["PurgeReport", "RemainingCopy"]

_ELSEWHERE = (
    "note: the dataset does not know its clones, exports, backups and object versions\n"
    "of the store; erase the rows there too"
)


@dataclass(frozen=True)
class RemainingCopy:
    """Something that still holds the purged rows, or may hold them.

    Attributes
    ----------
    kind
        ``tag``, ``version``, ``branch``, ``dictionary``, ``base path`` or ``files``.
    name
        Name of the tag or branch, branch and number of the version, column, path of the base, or number of files.
    detail
        Why it stays, and what removes it.
    """

    kind: str
    name: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.detail}"


@dataclass(frozen=True)
class PurgeReport:
    """Report of what a purge removed, and what still holds copies. ``str`` makes a text of it.

    Attributes
    ----------
    branches
        Branches that were purged; ``main`` for the main one.
    rows_deleted
        Number of rows that were visible and matched.
    rows_erased
        Number of rows that were removed from the data files of the newest versions, including deleted ones.
    fragments_rewritten
        Number of fragments whose data files were written again without the rows.
    indices_dropped
        Names of indices that may have held values of the rows. Build them again.
    versions_removed, files_removed, bytes_removed
        Old versions, and all files that were removed with them.
    failed_deletes
        Number of files that could not be removed. Purge again.
    remaining
        What still holds the rows, or may hold them, inside the dataset. Clones, exports and backups are not known.
    """

    branches: tuple[str, ...]
    rows_deleted: int = 0
    rows_erased: int = 0
    fragments_rewritten: int = 0
    indices_dropped: tuple[str, ...] = ()
    versions_removed: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    failed_deletes: int = 0
    remaining: tuple[RemainingCopy, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"erased {self.rows_erased:,} rows on {', '.join(self.branches)}; "
            f"{self.rows_deleted:,} of them were not deleted before",
            f"rewrote {self.fragments_rewritten:,} fragments",
            f"removed {self.versions_removed:,} old versions with {self.files_removed:,} files "
            f"({self.bytes_removed:,} bytes)",
        ]
        if self.indices_dropped:
            lines.append(f"dropped the indices {', '.join(self.indices_dropped)}; build them again")
        if self.failed_deletes:
            lines.append(f"{self.failed_deletes:,} files could not be removed; purge again")
        if self.remaining:
            lines += ["still there:", *(f"  {copy}" for copy in self.remaining)]
        return "\n".join([*lines, _ELSEWHERE])
