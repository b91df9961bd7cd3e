"""Look at the transaction files of all versions and branches. Manifests contain copies of them since release 0.21."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lance_dataset.changes.doctor.survey import BranchTable, OpenVersion
from lance_dataset.errors import LanceError
from lance_dataset.records.diagnosis import (
    DiagnosisCause,
    DiagnosisKind,
    Finding,
    FindingSubject,
    VersionPlace,
    version_names,
)
from lance_dataset.table.paths import TRANSACTIONS_FOLDER
from lance_dataset.table.transaction import Transaction

__all__ = ["TransactionLook"]


@dataclass
class _Files:
    """Transaction files that have the same thing wrong."""

    paths: list[str] = field(default_factory=list)
    versions: list[VersionPlace] = field(default_factory=list)


class TransactionLook:
    """Look at the transaction files of a branch.

    Parameters
    ----------
    table
        The branch.
    """

    def __init__(self, table: BranchTable) -> None:
        self._table = table
        folder = f"{table.root}/{TRANSACTIONS_FOLDER}"
        self._sizes = {info.name: info.size for info in table.store.list(folder)}
        self._damaged: dict[tuple[DiagnosisCause, bool], _Files] = {}
        #: Names of the files that versions refer to.
        self.referenced: set[str] = set()

    @property
    def unreferenced(self) -> list[str]:
        """Names of the files that no version refers to which can be read."""
        return sorted(self._sizes.keys() - self.referenced)

    def visit(self, version: OpenVersion) -> None:
        """Compare the transaction file of a version with its manifest."""
        manifest = version.manifest
        name = manifest.transaction_file
        if not name:
            return
        self.referenced.add(name)
        cause = self._cause(name, manifest.inline_transaction)
        if cause is None:
            return
        files = self._damaged.setdefault((cause, manifest.inline_transaction is not None), _Files())
        files.paths.append(f"{TRANSACTIONS_FOLDER}/{name}")
        files.versions.append(version.place)

    def _cause(self, name: str, inline: bytes | None) -> DiagnosisCause | None:
        size = self._sizes.get(name)
        if size is None:
            return DiagnosisCause.MISSING
        if size == 0:
            return DiagnosisCause.EMPTY
        if inline is not None and size == len(inline):
            return None
        path = f"{self._table.root}/{TRANSACTIONS_FOLDER}/{name}"
        try:
            content = self._table.store.read(path)
            if inline is not None and len(content) < len(inline) and inline.startswith(content):
                return DiagnosisCause.CORRUPT
            Transaction.decode(content, path)
        except (LanceError, OSError):
            return DiagnosisCause.CORRUPT
        return None

    def findings(self) -> Iterator[Finding]:
        """Yield what was found. Versions are read without these files, so it is only an advice."""
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
            yield Finding(DiagnosisKind.TRANSACTION, f"{what}, such as {files.paths[0]}", remedy, False, subject)
