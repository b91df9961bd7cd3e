"""Names and places of the files of shards."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass

from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectStore, safe_join

__all__ = ["MEM_WAL_FOLDER", "ShardPlace", "bits_name", "checked_shard_id", "list_shards", "number_of"]

#: Folder of all shards, below that of the table or of a branch.
MEM_WAL_FOLDER = "_mem_wal"
_BITS = 64


def bits_name(number: int) -> str:
    """Return the name of a numbered file: the 64 bits of the number, the lowest first."""
    return f"{number:0{_BITS}b}"[::-1]


def number_of(name: str, suffix: str) -> int | None:
    """Return the number in a name that `bits_name` made, None for another name."""
    stem = name.removesuffix(suffix)
    if len(stem) != _BITS or not name.endswith(suffix) or set(stem) - {"0", "1"}:
        return None
    return int(stem[::-1], 2)


def checked_shard_id(shard_id: object) -> str:
    """Return a shard id in the form that folders have.

    Raises
    ------
    TypeError
        It is not text.
    InvalidInputError
        It is not a UUID.
    """
    if not isinstance(shard_id, str):
        raise TypeError(f"shard_id must be the text of a UUID, not {type(shard_id).__name__}")
    try:
        return str(uuid.UUID(shard_id))
    except ValueError as error:
        raise InvalidInputError(f"invalid shard id {shard_id!r}: it must be a UUID, as str(uuid.uuid4())") from error


@dataclass(frozen=True)
class ShardPlace:
    """Place of the files of one shard.

    Attributes
    ----------
    store
        Store of the table.
    table
        Folder of the table, or of a branch.
    shard_id
        Id of the shard.
    """

    store: ObjectStore
    table: str
    shard_id: str

    @property
    def root(self) -> str:
        """Folder of the shard."""
        return f"{self.table}/{MEM_WAL_FOLDER}/{self.shard_id}"

    @property
    def uri(self) -> str:
        """URI of the folder of the shard."""
        return self.store.uri(self.root)

    @property
    def manifests(self) -> str:
        """Folder of the manifests of the shard."""
        return f"{self.root}/manifest"

    @property
    def hint(self) -> str:
        """File with the number of a recent manifest."""
        return f"{self.manifests}/version_hint.json"

    @property
    def log(self) -> str:
        """Folder of the log."""
        return f"{self.root}/wal"

    def manifest(self, version: int) -> str:
        """Return the path of a manifest."""
        return f"{self.manifests}/{bits_name(version)}.binpb"

    def entry(self, position: int) -> str:
        """Return the path of an entry of the log."""
        return f"{self.log}/{bits_name(position)}.arrow"

    def sstable(self, name: str) -> str:
        """Return the folder of an SSTable.

        Raises
        ------
        CorruptFileError
            The name leads to another folder.
        """
        return safe_join(self.root, name.replace("/", "\\"), what="SSTable")

    def new_sstable(self, generation: int) -> str:
        """Make the name of a new SSTable."""
        return f"{os.urandom(4).hex()}_gen_{generation}"


def list_shards(store: ObjectStore, table: str) -> list[str]:
    """Return the ids of all shards of a table or branch, in order."""
    folder = f"{table}/{MEM_WAL_FOLDER}"
    names = {info.path[len(folder) + 1 :].partition("/")[0] for info in store.list_tree(folder)}
    return sorted(name for name in names if _is_shard_id(name))


def _is_shard_id(name: str) -> bool:
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False
