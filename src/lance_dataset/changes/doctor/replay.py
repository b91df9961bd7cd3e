"""Search for the transactions that made versions whose manifests are lost, so that they can be committed again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lance_dataset.changes.doctor.survey import BranchTable, cause_of
from lance_dataset.errors import CorruptFileError, InvalidInputError, LanceError
from lance_dataset.read.session import Session
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.validation import validate_fragment, validate_index_files
from lance_dataset.records.diagnosis import DiagnosisCause
from lance_dataset.table.apply import next_manifest
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.completion import FragmentCompletion
from lance_dataset.table.operations import Restore
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.transaction import Transaction

__all__ = ["Replay", "find_replays"]


#: Names of transaction files in manifests.
_NAMES = re.compile(rb"\d+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.txn")


class _Unknown(LanceError):
    """Raised if it cannot be told which transaction made a version."""


@dataclass(frozen=True)
class Replay:
    """A transaction to commit again.

    Attributes
    ----------
    version
        Version that it makes.
    transaction
        The transaction.
    is_named
        True if what is left of the manifest names it; False if it is the only one that can have made the version.
    """

    version: int
    transaction: Transaction
    is_named: bool


def find_replays(
    table: BranchTable, base: Manifest, lost: Mapping[int, bytes], names: list[str], known: frozenset[int]
) -> tuple[list[Replay], str]:
    """Find the transactions of lost versions.

    Parameters
    ----------
    table
        The branch.
    base
        Its newest version that can be read.
    lost
        What is left of the manifests of the versions after it.
    names
        Names of transaction files that no version refers to.
    known
        Numbers of the versions that can be read.

    Returns
    -------
    tuple
        The transactions, in their order, and why that of the next lost version cannot be committed again; empty if
        all can.

    Raises
    ------
    StorageError, OSError
        Files cannot be read for another reason than damage, so it is unknown.
    """
    found: list[Replay] = []
    names = _without_older(names, known, base.version)
    for version in sorted(lost):
        if version != base.version + 1:
            return found, f"version {base.version + 1} is lost, too"
        try:
            others = [name for name in names if all(name != each.transaction.file_name for each in found)]
            replay = _find(table, version, lost[version], others)
            base = _built(table, base, replay.transaction)
        except (LanceError, OSError) as error:
            if cause_of(error) is DiagnosisCause.UNREADABLE and not isinstance(error, _Unknown | InvalidInputError):
                raise
            return found, str(error)
        found.append(replay)
    return found, ""


def _without_older(names: list[str], known: frozenset[int], last: int) -> list[str]:
    """Leave out each transaction that alone starts from the version before one that is damaged or gone itself."""
    counts = Counter(map(_read_version, names))
    older = {start for start, count in counts.items() if count == 1 and start < last and start + 1 not in known}
    return [name for name in names if _read_version(name) not in older]


def _find(table: BranchTable, version: int, content: bytes, names: list[str]) -> Replay:
    name, is_named = _chosen(version, content, names)
    store, path = FileLocator(table.store, table.root).transaction_file(name)
    transaction = Transaction.decode(store.read(path), path)
    if transaction.file_name != name:
        raise CorruptFileError(f"{path}: contains the transaction {transaction.file_name}")
    return Replay(version, transaction, is_named)


def _chosen(version: int, content: bytes, names: list[str]) -> tuple[str, bool]:
    """Return the name of the transaction file of a version, and whether what is left of the manifest names it.

    Some writers leave transactions as they are when other versions came before theirs, so a version can have been made
    by a transaction that starts from any earlier one. It may no longer fit, so it is not returned.
    """
    possible = [name for name in names if _read_version(name) < version]
    named = [name for name in possible if name.partition("-")[2].removesuffix(".txn").encode() in content]
    if len(named) != 1:
        told = {match.decode() for match in _NAMES.findall(content)}
        if told and told.isdisjoint(possible):
            raise _Unknown(f"its manifest names {', '.join(sorted(told))}, which is not there or belongs to a version")
        if len(possible) > 1:
            raise _Unknown(f"several transactions can have made version {version}: {', '.join(possible)}")
    chosen = (named or possible or [""])[0]
    if not chosen:
        raise _Unknown(f"there is no transaction file that can have made version {version}")
    if _read_version(chosen) < version - 1:
        raise _Unknown(f"the transaction {chosen} starts from version {_read_version(chosen)}, and others came between")
    return chosen, len(named) == 1


def _read_version(name: str) -> int:
    """Return the version that a transaction starts from; a very large one if the name of its file has another form."""
    number = name.partition("-")[0]
    return int(number) if number.isascii() and number.isdecimal() else 1 << 64


def _built(table: BranchTable, base: Manifest, transaction: Transaction) -> Manifest:
    """Return the version that a transaction makes, after a check of the files that it adds."""
    operation = transaction.operation
    restored = table.location.read_manifest(operation.version) if isinstance(operation, Restore) else None
    complete = FragmentCompletion(table.store, table.root)
    manifest = next_manifest(base, operation, restored, complete=complete)
    # a session of its own: what is built here must not be mistaken for the version itself
    snapshot = Snapshot.of(replace(table.location, session=Session()), manifest)
    old = {fragment.id: fragment for fragment in base.fragment_list}
    for fragment in manifest.fragment_list:
        if old.get(fragment.id) != fragment:
            validate_fragment(snapshot, fragment)
    known = {index.uuid.uuid for index in parse_indices(base.index_section)}
    locator = table.location.locator(manifest)
    for message in parse_indices(manifest.index_section):
        if message.uuid.uuid not in known:
            validate_index_files(IndexMetadata.from_proto(message, manifest.path), locator, manifest.path)
    return manifest
