"""Look at the transaction files of all versions and branches. Manifests contain copies of them since release 1.0."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from lance_dataset.changes.doctor.survey import BranchTable, OpenVersion
from lance_dataset.errors import CorruptFileError, LanceError, MissingFileError
from lance_dataset.records.diagnosis import (
    DiagnosisCause,
    DiagnosisKind,
    Finding,
    FindingSubject,
    VersionPlace,
    version_names,
)
from lance_dataset.table.naming import named_path
from lance_dataset.table.paths import TRANSACTIONS_FOLDER
from lance_dataset.table.references.names import TREE_FOLDER
from lance_dataset.table.transaction import Transaction
from lance_dataset.threads.pools import storage_pool
from lance_dataset.threads.streams import stream

__all__ = ["TransactionLook"]

#: Files that are read at the same time.
_AHEAD = 15


@dataclass
class _Files:
    """Transaction files that have the same thing wrong."""

    paths: list[str] = field(default_factory=list)
    versions: list[VersionPlace] = field(default_factory=list)


@dataclass(frozen=True)
class _Copy:
    """Name of a transaction file, and what the manifest of its version says of its content."""

    name: str
    manifest: str
    place: VersionPlace
    size: int | None
    digest: bytes | None

    @classmethod
    def of(cls, version: OpenVersion) -> _Copy:
        inline = version.manifest.inline_transaction
        path = named_path(version.table.root, version.name)
        size = None if inline is None else len(inline)
        return cls(
            version.manifest.transaction_file, path, version.place, size, None if inline is None else _digest(inline)
        )


class TransactionLook:
    """Look at the transaction files of a branch.

    Parameters
    ----------
    table
        The branch.
    """

    def __init__(self, table: BranchTable) -> None:
        self._table = table
        self._sizes: dict[str, int] = {}
        self._damaged: dict[tuple[DiagnosisCause, bool], _Files] = {}
        self._seen: list[_Copy] = []
        #: Manifest, transaction file and number of versions whose file is missing or torn, and whose manifest has a
        #: copy of it.
        self.to_rewrite: list[tuple[str, str, int]] = []
        #: True if the files could be listed.
        self.is_listed = False
        #: Names of the files that versions refer to.
        self.referenced: set[str] = set()

    @property
    def unreferenced(self) -> list[str]:
        """Names of the files that no version refers to which can be read."""
        return sorted(self._sizes.keys() - self.referenced)

    def visit(self, version: OpenVersion) -> None:
        """Take note of the transaction file of a version."""
        name = version.manifest.transaction_file
        if name:
            self.referenced.add(name)
            self._seen.append(_Copy.of(version))

    def check(self) -> Iterator[Finding]:
        """Compare the files with the copies in the manifests of all versions that were visited; yield what was found.

        It is only an advice, as versions are read without these files.
        """
        folder = f"{self._table.root}/{TRANSACTIONS_FOLDER}"
        self._sizes = {info.name: info.size for info in self._table.store.list(folder)}
        self.is_listed = True
        for copy, cause in stream(self._checked, self._seen, ahead=_AHEAD, pool=storage_pool):
            if cause is None:
                continue
            if copy.size is not None:
                self.to_rewrite.append((copy.manifest, copy.name, copy.place[1]))
            files = self._damaged.setdefault((cause, copy.size is not None), _Files())
            prefix = "" if self._table.branch is None else f"{TREE_FOLDER}/{self._table.branch}/"
            files.paths.append(f"{prefix}{TRANSACTIONS_FOLDER}/{copy.name}")
            files.versions.append(copy.place)
        for (cause, has_copy), files in self._damaged.items():
            count = len(files.paths)
            what = f"{count:,} transaction files of {version_names(tuple(files.versions))} are {cause.value}"
            why = "the manifests have copies" if has_copy else "only the history lacks what these versions changed"
            subject = FindingSubject(
                cause=cause,
                path=files.paths[0] if count == 1 else None,
                versions=tuple(files.versions),
                branch=self._table.branch,
                files=count,
            )
            remedy = f"nothing needs to be done, as {why}"
            if has_copy:
                remedy += "; a repair writes them again"
            yield Finding(DiagnosisKind.TRANSACTION, f"{what}, such as {files.paths[0]}", remedy, False, subject)

    def _checked(self, copy: _Copy) -> tuple[_Copy, DiagnosisCause | None]:
        return copy, self._cause(copy)

    def _cause(self, copy: _Copy) -> DiagnosisCause | None:
        size = self._sizes.get(copy.name)
        if size is None:
            return DiagnosisCause.MISSING
        if size == 0:
            return DiagnosisCause.EMPTY
        path = f"{self._table.root}/{TRANSACTIONS_FOLDER}/{copy.name}"
        try:
            content = self._table.store.read(path)
            if _digest(content) == copy.digest:
                return None
            is_whole = Transaction.decode(content, path).file_name == copy.name
        except MissingFileError:
            return DiagnosisCause.MISSING
        except CorruptFileError:
            return DiagnosisCause.CORRUPT
        except (LanceError, OSError):
            return None  # of an unknown kind, or unreadable now
        is_whole = is_whole and (copy.size is None or len(content) >= copy.size)
        return None if is_whole else DiagnosisCause.CORRUPT


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
