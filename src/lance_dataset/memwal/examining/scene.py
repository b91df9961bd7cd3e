"""The shard that is looked at, and findings about its files."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lance_dataset.changes.doctor.survey import cause_of
from lance_dataset.memwal.details import MemWalDetails
from lance_dataset.memwal.places import ShardPlace
from lance_dataset.properties import cached_property
from lance_dataset.read.location import TableLocation
from lance_dataset.read.session import Session
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.diagnosis import DiagnosisCause, DiagnosisKind, Finding, FindingSubject
from lance_dataset.table.references.names import branch_of, main_root

__all__ = ["RESTORE", "ShardScene"]

#: Remedy for a file that cannot be made again.
RESTORE = "put a copy of the file back"


@dataclass(frozen=True)
class ShardScene:
    """A shard that is looked at.

    Attributes
    ----------
    snapshot
        Version of the table that the shard belongs to.
    details
        Its MemWAL.
    shard_id
        Id of the shard.
    """

    snapshot: Snapshot
    details: MemWalDetails
    shard_id: str

    @cached_property
    def place(self) -> ShardPlace:
        """Place of its files."""
        return ShardPlace(self.snapshot.store, self.snapshot.root, self.shard_id)

    @cached_property
    def location(self) -> TableLocation:
        """Location of the table, without the files of its session, which may have been read before their damage."""
        return replace(self.snapshot.location, session=Session())

    @cached_property
    def branch(self) -> str | None:
        """Branch of the table, None for the main one."""
        return branch_of(self.snapshot.manifest, self.snapshot.root)

    @property
    def name(self) -> str:
        """Description of the shard."""
        branch = self.branch
        return f"shard {self.shard_id}" + ("" if branch is None else f" of the branch {branch!r}")

    @property
    def merged(self) -> int:
        """Highest generation that is in the table, 0 for none."""
        return self.details.compacted.get(self.shard_id, 0)

    def relative(self, path: str) -> str:
        """Return a path of the store as one below the root of the main branch."""
        start = f"{main_root(self.snapshot.manifest, self.snapshot.root)}/"
        return path[len(start) :] if path.startswith(start) else path

    def damage(self, what: str, remedy: str, cause: DiagnosisCause, path: str) -> Finding:
        """Return a finding of damage.

        Parameters
        ----------
        what, remedy
            See `Finding`. The name of the shard is put before the former.
        cause
            What is wrong with the file.
        path
            The file.
        """
        return self._finding(what, remedy, cause, path, is_damage=True)

    def unread(self, error: Exception, path: str, remedy: str = RESTORE, size: int | None = None) -> Finding:
        """Return a finding of damage for a file that could not be read."""
        where = "" if path in str(error) else f"{self.place.store.uri(path)}: "
        return self.damage(f"{where}{error}", remedy, cause_of(error, size), path)

    def advice(
        self,
        what: str,
        remedy: str,
        path: str,
        cause: DiagnosisCause | None = None,
        files: int | None = None,
        size: int | None = None,
    ) -> Finding:
        """Return a finding of something that only costs space, or that nobody reads."""
        return self._finding(what, remedy, cause, path, files, size, is_damage=False)

    def _finding(
        self,
        what: str,
        remedy: str,
        cause: DiagnosisCause | None,
        path: str,
        files: int | None = None,
        size: int | None = None,
        *,
        is_damage: bool,
    ) -> Finding:
        subject = FindingSubject(
            cause, self.relative(path), branch=self.branch, shard=self.shard_id, files=files, size=size
        )
        return Finding(DiagnosisKind.SHARD, f"{self.name}: {what}", remedy, is_damage, subject)
