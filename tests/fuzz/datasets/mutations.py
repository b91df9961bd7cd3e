"""Changes to the folder of a dataset, as an attacker could make them: to bytes, messages, names, links, file types."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarrow as pa
from fuzz_damage import INTERESTING, damage_bytes, mutate
from fuzz_file import damage as damage_data_file
from fuzz_manifest import damage_manifest
from google.protobuf.message import DecodeError

from lance_dataset._proto import table_pb2, transaction_pb2

__all__ = ["mutate_dataset"]

_WORDS = ("../canary", "/etc/passwd", "..", "", "a/../../canary/secret", "data", "\0", "x" * 5000, "file:///etc", "é")
_FOOTER = struct.Struct("<Qhh4s")


def mutate_dataset(root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> list[str]:
    """Change a dataset at one to four places.

    Parameters
    ----------
    root
        The dataset.
    chance
        Source of all choices.
    others
        Other datasets, to take files from.
    canary
        Folder outside of the dataset, to lead to.

    Returns
    -------
    list of str
        What was changed.
    """
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        files = _by_kind(root)
        if not files:
            break
        path = chance.choice(files[chance.choice(list(files))])
        kind = chance.random()
        name = path.relative_to(root).as_posix()
        if kind < 0.7 and path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 26:
            content = path.read_bytes()
            change = _way(path, chance)
            try:
                changed = change(content, chance)
            except (DecodeError, struct.error, ValueError, IndexError, AssertionError, RecursionError):
                continue  # damaged before, so that its parts cannot be found any more
            path.write_bytes(changed)
            done.append(f"{change.__name__} {name}")
        else:
            way = chance.choice(_WAYS)
            way(path, root, chance, others, canary)
            done.append(f"{way.__name__} {name}")
    return done


def _by_kind(root: Path) -> dict[str, list[Path]]:
    """Return the files by their folder, so that every kind is as likely as any other."""
    found: dict[str, list[Path]] = {}
    for folder, names, files in os.walk(root):
        for name in [*files, *(each for each in names if os.path.islink(os.path.join(folder, each)))]:
            path = Path(folder, name)
            parts = path.relative_to(root).parts
            found.setdefault(parts[0] if len(parts) > 1 else "root", []).append(path)
    # the newest manifests matter most
    if "_versions" in found:
        versions = sorted(found["_versions"])
        found["oldest"], found["newest"] = versions[:1], versions[-1:]
    return {kind: sorted(paths) for kind, paths in sorted(found.items())}


Change = Callable[[bytes, random.Random], bytes]


def _way(path: Path, chance: random.Random) -> Change:
    """Choose a change that reaches the content of a kind of file."""
    if chance.random() < 0.25:
        return chance.choice((bytes_of, integers, bomb))
    if path.suffix == ".manifest":
        return chance.choice((damage_manifest, damage_manifest, many_entries, paths_of_manifest, numbers_of_manifest))
    if path.suffix == ".lance":
        return damage_data_file
    if path.suffix == ".txn":
        return transaction
    if path.suffix == ".arrow":
        return deletions
    if path.suffix == ".json":
        return document
    return chance.choice((bytes_of, integers))


# -- content -----------------------------------------------------------------------------------------------------------


def bytes_of(content: bytes, chance: random.Random) -> bytes:
    return damage_bytes(content, chance) if content else chance.randbytes(16)


def integers(content: bytes, chance: random.Random) -> bytes:
    """Overwrite integers of 1 to 8 bytes."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 2, 5))):
        width = chance.choice((1, 2, 4, 8))
        if len(changed) > width:
            at = chance.randrange(len(changed) - width)
            changed[at : at + width] = (chance.choice(INTERESTING) % 2 ** (8 * width)).to_bytes(width, "little")
    return bytes(changed)


def bomb(content: bytes, chance: random.Random) -> bytes:
    """Repeat a part of the file many times."""
    at, length = chance.randrange(len(content) + 1), chance.choice((1, 2, 16, 256))
    return content[:at] + content[at : at + length] * chance.choice((1000, 100_000)) + content[at:]


def _manifest(content: bytes, edit: Callable[[Any], None]) -> bytes:
    position, major, minor, magic = _FOOTER.unpack(content[-_FOOTER.size :])
    message = table_pb2.Manifest.FromString(content[position + 4 : -_FOOTER.size])
    edit(message)
    encoded = message.SerializeToString()
    end = _FOOTER.pack(position, major, minor, magic)
    return content[:position] + struct.pack("<I", len(encoded)) + encoded + end


def many_entries(content: bytes, chance: random.Random) -> bytes:
    """Repeat entries of a manifest thousands of times, or nest them."""

    def edit(message: Any) -> None:
        lists = [value for field, value in message.ListFields() if isinstance(value, Sequence) and len(value)]
        lists = [value for value in lists if not isinstance(value, (str, bytes))]
        if lists:
            entries = chance.choice(lists)
            entry = chance.choice(list(entries))
            entries.extend([entry] * chance.choice((10, 1000, 20_000)))

    return _manifest(content, edit)


def paths_of_manifest(content: bytes, chance: random.Random) -> bytes:
    """Change paths and names in a manifest."""
    return _manifest(content, lambda message: [mutate(message, chance, _WORDS) for _ in range(8)])


def numbers_of_manifest(content: bytes, chance: random.Random) -> bytes:
    """Change ids, counts and versions of a manifest and its fragments."""

    def edit(message: Any) -> None:
        for fragment in chance.sample(list(message.fragments), min(2, len(message.fragments))):
            mutate(fragment, chance, _WORDS)
        for name in ("version", "max_fragment_id", "next_row_id", "reader_feature_flags", "writer_feature_flags"):
            if chance.random() < 0.2:
                try:
                    setattr(message, name, chance.choice(INTERESTING))
                except ValueError:
                    setattr(message, name, 2**31)

    return _manifest(content, edit)


def transaction(content: bytes, chance: random.Random) -> bytes:
    message = transaction_pb2.Transaction.FromString(content)
    for _ in range(chance.choice((1, 2, 4))):
        mutate(message, chance, _WORDS)
    return message.SerializeToString()


def deletions(content: bytes, chance: random.Random) -> bytes:
    """Write another deletion file: rows that do not exist, twice, null, of another type, compressed, in batches."""
    rows: Any = chance.choice(
        (
            pa.array([0, 0, 1, 1], pa.uint32()),
            pa.array([2**32 - 1], pa.uint32()),
            pa.array([None, 1], pa.uint32()),
            pa.array([-1, 3], pa.int32()),
            pa.array(["a"]),
            pa.array(range(100_000), pa.uint32()),
            pa.array([0] * 5_000_000, pa.uint32()),
            pa.array([], pa.uint32()),
        )
    )
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=chance.choice((None, "zstd", "lz4")))
    name = chance.choice(("row_id", "row_id", "x"))
    with pa.ipc.new_file(sink, pa.schema([(name, rows.type)]), options=options) as writer:
        for _ in range(chance.choice((1, 1, 3))):
            writer.write_batch(pa.record_batch([rows], names=[name]))
    return sink.getvalue().to_pybytes()


def document(content: bytes, chance: random.Random) -> bytes:
    """Change the values of a JSON file."""
    odd = (None, True, -1, 2**63, 2**64, 1e400, 1.5, "", "../canary", "x" * 10_000, [], {}, "\ud800")
    kind = chance.random()
    if kind < 0.1:
        return b"[" * 100_000
    if kind < 0.2:
        return b'{"a":' * 100_000
    value = json.loads(content)
    if not isinstance(value, dict) or kind < 0.3:
        return json.dumps(chance.choice(odd)).encode()
    for key in chance.sample(list(value), min(len(value), chance.choice((1, 1, 2)))):
        if chance.random() < 0.2:
            del value[key]
        else:
            value[key] = chance.choice(odd)
    return json.dumps(value).encode()


# -- files -------------------------------------------------------------------------------------------------------------


def empty(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    _remove(path)
    path.write_bytes(b"")


def missing(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    _remove(path)


def sparse(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    """Make the file huge, with zeros at its end or its begin."""
    if path.is_symlink() or not path.is_file() or path.stat().st_nlink > 1:
        return
    size = path.stat().st_size
    if chance.random() < 0.5:
        os.truncate(path, chance.choice((size + 4096, 1 << 32, 1 << 40)))
    else:
        content, at = path.read_bytes(), chance.choice((1 << 20, 1 << 32, 1 << 40))
        with open(path, "wb") as handle:
            handle.seek(at)
            handle.write(content)


def folder_instead(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    _remove(path)
    path.mkdir()
    (path / "inside").write_bytes(b"x")


def file_instead_of_folder(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    if path.parent != root:
        _remove(path.parent)
        path.parent.write_bytes(b"x")


def pipe(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    _remove(path)
    os.mkfifo(path)


def link(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    _remove(path)
    targets = (canary / "secret", canary, Path("/dev/zero"), Path("/nowhere"), path, root, chance.choice(others))
    path.symlink_to(chance.choice(targets))


def folder_link(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    if path.parent != root:
        _remove(path.parent)
        path.parent.symlink_to(chance.choice((canary, root, chance.choice(others), path.parent)))


def hard_link(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    _remove(path)
    os.link(canary / "secret", path)


def rename(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    """Give the file another name of the kind that its neighbours have, or an odd one."""
    number = str(chance.choice((0, 1, 2, 2**63, 2**64 - 1, 2**64 - 2, 10**30, chance.randrange(100))))
    numbers = (number + path.suffix, number.zfill(20) + path.suffix, f"d{number}{path.suffix}")
    path.rename(path.with_name(chance.choice((*numbers, "x" * 200, "é\n", "-rf", path.stem))))


def copy_within(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    """Replace the file by a copy of another one of the dataset."""
    files = [each for each in root.rglob("*") if each.is_file() and not each.is_symlink() and each != path]
    if files:
        source = chance.choice(sorted(files))
        if source.stat().st_size < 1 << 26:
            _remove(path)
            shutil.copyfile(source, path)


def from_another(path: Path, root: Path, chance: random.Random, others: Sequence[Path], canary: Path) -> None:
    """Replace the file by one of the same kind of another dataset."""
    files = [each for each in chance.choice(others).rglob(f"*{path.suffix}") if each.is_file()]
    if files:
        source = chance.choice(sorted(files))
        _remove(path)
        shutil.copyfile(source, path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


_WAYS = (
    empty,
    missing,
    sparse,
    folder_instead,
    file_instead_of_folder,
    pipe,
    link,
    folder_link,
    hard_link,
    rename,
    copy_within,
    copy_within,
    from_another,
    from_another,
)
