"""Results of a cleanup of old versions."""

from __future__ import annotations

from lance_dataset.late_dataclass import dataclass

__all__ = ["CleanupCandidateFile", "CleanupExplanation", "CleanupReferencedBranch", "CleanupStats"]


@dataclass(frozen=True)
class CleanupStats:
    """Statistics of what a cleanup removed or would remove.

    Attributes
    ----------
    bytes_removed
        Size of all files in bytes, including manifests.
    old_versions
        Number of versions.
    data_files_removed, transaction_files_removed, index_files_removed, deletion_files_removed
        Number of files by kind; blob files are data files.
    failed_deletes
        Number of files that could not be removed.
    """

    bytes_removed: int
    old_versions: int
    data_files_removed: int
    transaction_files_removed: int
    index_files_removed: int
    deletion_files_removed: int
    failed_deletes: int


@dataclass(frozen=True)
class CleanupCandidateFile:
    """File that a cleanup would remove.

    Attributes
    ----------
    path
        Path in the store, without a leading slash.
    kind
        ``manifest``, ``data``, ``deletion``, ``transaction``, ``index`` or ``temporary_manifest``.
    unverified
        True if it is not known that any version ever referred to the file.
    size_bytes
        Size in bytes.
    """

    path: str
    kind: str
    unverified: bool
    size_bytes: int


@dataclass(frozen=True)
class CleanupReferencedBranch:
    """Branch that uses files of the dataset.

    Attributes
    ----------
    name
        Name of the branch.
    referenced_version
        Version of the dataset that the branch began with.
    cleanup_candidate
        True if the branch would be cleaned up too, which is never the case.
    """

    name: str
    referenced_version: int
    cleanup_candidate: bool = False


@dataclass(frozen=True)
class CleanupExplanation:
    """Explanation of what a cleanup would do.

    Attributes
    ----------
    read_version
        Version that the cleanup starts from.
    stats
        Statistics of what it would remove.
    candidate_files
        The files, if requested.
    candidate_files_truncated, candidate_file_limit
        True if there are more files than the limit; the rest is omitted.
    referenced_branches
        Branches whose files are kept.
    warnings
        Further remarks.
    """

    read_version: int
    stats: CleanupStats
    candidate_files: list[CleanupCandidateFile]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: list[CleanupReferencedBranch]
    warnings: list[str]
