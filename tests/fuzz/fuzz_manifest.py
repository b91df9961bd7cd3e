"""Damage manifests, transactions and deletion files of the tables in tests/fixtures/datasets, and read these tables.

Anything but data or a LanceError is a failure. If the newest version of a table does not need the damaged file (older
manifests, transactions), that version must read as before::

    python tests/fuzz/fuzz_manifest.py --cases 5000 --seed 7
"""

from __future__ import annotations

import random
import shutil
import struct
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import fuzz_runner
import pyarrow as pa
from fuzz_damage import LOGICAL_TYPES, damage_bytes, mutate, number
from fuzz_file import check
from support.files.file_parts import problem
from support.tables.equality import assert_same

import lance_dataset as lance
from lance_dataset._proto import table_pb2

_FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "datasets"
_FOOTER = struct.Struct("<Qhh4s")
_WORDS = (*LOGICAL_TYPES, "../x.lance", "/", "0.1", "2.0", "2.1", "99.0", "next", "0.4.21", "lance")


def write_corpus(folder: Path) -> None:
    """Link the tables into the corpus."""
    for path in sorted(_FIXTURES.glob("*/*.lance")):
        (folder / f"{path.parent.name} {path.stem}").symlink_to(path, target_is_directory=True)


def _version(path: Path) -> int:
    """Return the version of a manifest by its name, in either naming scheme."""
    given = int(path.stem)
    return 2**64 - 1 - given if given > 2**63 else given


def manifests(folder: Path) -> list[Path]:
    """Return the manifests of a table, newest last."""
    return sorted((path for path in (folder / "_versions").glob("*.manifest") if path.stem.isdigit()), key=_version)


@cache
def newest(entry: Path) -> pa.Table:
    """Return a table without damage."""
    return lance.dataset(entry.resolve()).to_table()


# -- damages -----------------------------------------------------------------------------------------------------


def damage_manifest(content: bytes, chance: random.Random) -> bytes:
    """Damage a manifest: other bytes, another footer, or other values in its message."""
    kind = chance.randrange(10)
    if kind < 3:
        return damage_bytes(content, chance)
    position, major, minor, magic = _FOOTER.unpack(content[-_FOOTER.size :])
    if kind == 3:
        return content[: -_FOOTER.size] + _FOOTER.pack(number(position, 64, chance), major, minor, magic)
    if kind == 4:  # the bytes in front of the message: dictionaries, indices
        return damage_bytes(content[: max(position, 1)], chance)[:position].ljust(position, b"\0") + content[position:]
    message = table_pb2.Manifest.FromString(content[position + 4 : -_FOOTER.size])
    for _ in range(chance.choice((1, 1, 2, 3))):
        _mutate_part(message, chance)
    encoded = message.SerializeToString()
    footer = _FOOTER.pack(position, major, minor, magic)
    return content[:position] + struct.pack("<I", len(encoded)) + encoded + footer


def _mutate_part(message: table_pb2.Manifest, chance: random.Random) -> None:
    """Change, add or remove a part of the message, mostly a field or a fragment, which have the most content."""
    parts: list[Any] = [part for part in (message.fields, message.fragments) if part]
    if not parts or chance.random() < 0.3:
        mutate(message, chance, _WORDS)
        return
    repeated = chance.choice(parts)
    kind = chance.random()
    if kind < 0.1:
        del repeated[chance.randrange(len(repeated))]
    elif kind < 0.2:
        repeated.add().CopyFrom(chance.choice(repeated))
    else:
        mutate(chance.choice(repeated), chance, _WORDS)


def harm(folder: Path, chance: random.Random) -> bool:
    """Damage a file of a table, and return True if its newest version needs the file."""
    paths = manifests(folder)
    others = [path for name in ("_transactions", "_deletions") for path in sorted((folder / name).glob("*"))]
    latest = folder / "_latest.manifest"
    kind = chance.random()
    if kind < 0.15 and others:
        path = chance.choice(others)
        path.write_bytes(damage_bytes(path.read_bytes(), chance))
        return path.parent.name == "_deletions"
    if kind < 0.25 and (len(paths) > 1 or latest.exists()):
        path = chance.choice([*paths[:-1], *([latest] if latest.exists() else [])])
        path.write_bytes(damage_manifest(path.read_bytes(), chance))
        return False
    paths[-1].write_bytes(damage_manifest(paths[-1].read_bytes(), chance))
    return True


# -- reading -----------------------------------------------------------------------------------------------------


def read(folder: Path, chance: random.Random) -> None:
    """Read a table in every way."""
    options = chance.choice(({}, {"mmap": "false"}))
    rows = [0, 3, 3, chance.randrange(120)]

    def name(table: lance.LanceDataset) -> str:
        return chance.choice(table.schema.names or ["a"])

    ways: list[Callable[[lance.LanceDataset], object]] = [
        lambda table: check(table.to_table()),
        lambda table: [check(batch) for batch in table.to_batches(batch_size=30)],
        lambda table: check(table.take(rows)),
        lambda table: check(table.to_table(filter=f"`{name(table)}` is not null", with_row_id=True)),
        lambda table: table.count_rows(),
        lambda table: table.count_rows(f"`{name(table)}` is null"),
        lambda table: table.scanner(filter=f"`{name(table)}` is null").explain_plan(),
        lambda table: str(table.explain_encodings()),
        lambda table: (table.schema, table.version, repr(table)),
        lambda table: table.validate(),
        lambda table: table.versions(),
        lambda table: check(table.checkout_version(1).to_table()),
        lambda table: [check(fragment.to_table()) for fragment in table.get_fragments()],
    ]
    for way in ways:
        problem(lambda way=way: way(lance.dataset(folder, storage_options=options)))


def case(entry: Path, chance: random.Random, scratch: Path) -> None:
    """Damage a table and read it."""
    folder = scratch / "t.lance"
    folder.mkdir()
    for path in sorted(entry.resolve().iterdir()):
        if path.name == "data":
            (folder / path.name).symlink_to(path, target_is_directory=True)
        else:
            (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / path.name)
    if harm(folder, chance):
        read(folder, chance)
        return
    assert_same(lance.dataset(folder).to_table(), newest(entry))
    read(folder, chance)


if __name__ == "__main__":
    raise SystemExit(fuzz_runner.main(__file__, __doc__, write_corpus, case))
