"""Damages data files and reads them in every way; anything but right data or a LanceError is a failure.

Run by the tests for a moment, by hand for as long as you like::

    python tests/fuzz/fuzz_file.py --cases 20000 --seed 7

``--version 2.1`` damages files of that version instead of 2.0. Each case is reproducible from its number:
``--only NUMBER`` with the same seed. The work is done in a child with
limited memory, so that a crash or a forged length is a result and not the end of the run.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import pyarrow as pa
from file_surgery import FOOTER, FileParts, problem, take_apart
from google.protobuf import any_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

import lance_dataset as lance
from lance_dataset._proto import encodings21_pb2, encodings_pb2
from lance_dataset.file.standalone import LanceFileReader

#: Beyond what the process has already; the corpus files are a few KiB.
MEMORY = 512 << 20
SECONDS = 10
INTERESTING = (0, 1, 2, 7, 8, 63, 64, 127, 128, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**56, 2**63, 2**64 - 1)


def corpus_tables() -> dict[str, pa.Table]:
    """One small table per encoding."""
    rows = 150
    numbers = [None if i % 7 == 3 else i for i in range(rows)]
    words = [None if i % 11 == 5 else f"wörd-{i % 17}" for i in range(rows)]
    texts = [None if i % 11 == 5 else f"text é {i}" * (i % 5) for i in range(rows)]
    lists = [None if i % 9 == 4 else list(range(i % 6)) for i in range(rows)]
    compressed = pa.field("c", pa.string(), metadata={"lance-encoding:compression": "zstd"})
    quick = pa.field("l", pa.binary(), metadata={"lance-encoding:compression": "lz4"})
    return {
        "flat": pa.table({"a": pa.array(range(rows)), "b": pa.array([i % 3 == 0 for i in range(rows)])}),
        "nullable": pa.table({"a": pa.array(numbers, pa.int32()), "n": pa.nulls(rows, pa.float64())}),
        "null": pa.table({"a": pa.nulls(rows)}),
        "text": pa.table({"t": texts, "b": pa.array([str(i).encode() * 3 for i in range(rows)])}),
        "words": pa.table({"w": words}),
        "list": pa.table({"l": pa.array(lists, pa.list_(pa.int16())), "s": [[t] if t else [] for t in texts]}),
        "nested": pa.table({"l": pa.array([[[i % 100], []] for i in range(rows)], pa.large_list(pa.list_(pa.int8())))}),
        "struct": pa.table({"s": [{"x": i, "y": {"z": texts[i], "l": [i]}} for i in range(rows)]}),
        "fixed": pa.table(
            {
                "v": pa.array([None if i % 8 == 1 else [i, None] for i in range(rows)], pa.list_(pa.float32(), 2)),
                "b": pa.array([[True, False, True]] * rows, pa.list_(pa.bool_(), 3)),
                "w": pa.array([b"12345"] * rows, pa.binary(5)),
                "d": pa.array(range(rows)).cast(pa.timestamp("us")),
            }
        ),
        "dictionary": pa.table({"d": pa.array(words).dictionary_encode()}),
        "zstd": pa.table([pa.array(texts)], schema=pa.schema([compressed])),
        "lz4": pa.table([pa.array([(t or "").encode() * 9 for t in texts])], schema=pa.schema([quick])),
    }


def write_corpus(folder: Path, version: str = "2.0") -> None:
    """Datasets written by the reference, one fragment each."""
    import lance as reference

    for name, table in corpus_tables().items():
        reference.write_dataset(table, str(folder / name), data_storage_version=version)


# -- damage ------------------------------------------------------------------------------------------------------


def damage(content: bytes, chance: random.Random) -> bytes:
    """One damaged variant of a file."""
    return chance.choice((_flip, _flip, _truncate, _insert, _remove, _footer, _message, _message, _message, _message))(
        content, chance
    )


def _place(content: bytes, chance: random.Random) -> int:
    """A position; half of them in the last KiB, where the metadata is."""
    low = max(len(content) - 1024, 0) if chance.random() < 0.5 else 0
    return chance.randrange(low, len(content))


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        changed[_place(content, chance)] = chance.choice((0, 0xFF, 0x80, chance.randrange(256)))
    return bytes(changed)


def _truncate(content: bytes, chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _insert(content: bytes, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return content[:at] + chance.randbytes(chance.choice((1, 8, 64))) + content[at:]


def _remove(content: bytes, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return content[:at] + content[at + chance.choice((1, 8, 64)) :]


def _footer(content: bytes, chance: random.Random) -> bytes:
    values = list(FOOTER.unpack(content[-FOOTER.size :]))
    index = chance.randrange(7)
    bits = (64, 64, 64, 32, 32, 16, 16)[index]
    values[index] = chance.choice((*INTERESTING, values[index] + 1, max(values[index] - 16, 0))) % 2**bits
    return content[: -FOOTER.size] + FOOTER.pack(*values)


def _message(content: bytes, chance: random.Random) -> bytes:
    """Valid containers with one or two wrong numbers, names or branches in the metadata."""
    parts = take_apart(content)
    for _ in range(chance.choice((1, 1, 2))):
        column = chance.randrange(len(parts.columns))
        pages = parts.columns[column].pages
        kind = chance.randrange(4)
        if kind == 0:
            _mutate(parts.descriptor, chance)
        elif kind == 1:
            _mutate(parts.columns[column], chance)
        elif kind == 2 and len(parts.columns) > 1:
            parts.columns[column].CopyFrom(chance.choice(parts.columns))
        elif pages:
            _mutate_encoding(parts, column, chance.randrange(len(pages)), chance)
    return parts.assemble()


def _mutate_encoding(parts: FileParts, column: int, page: int, chance: random.Random) -> None:
    if parts.version != (0, 3):
        _mutate_layout(parts, column, page, chance)
        return
    try:
        encoding = parts.encoding(column, page)
    except Exception:  # an earlier step broke it
        return
    if chance.random() < 0.2:
        inner = encodings_pb2.ArrayEncoding()
        inner.CopyFrom(encoding)
        encoding = encodings_pb2.ArrayEncoding()
        kind = chance.randrange(4)
        if kind == 0:
            encoding.nullable.no_nulls.values.CopyFrom(inner)
        elif kind == 1:
            encoding.nullable.all_nulls.SetInParent()
        elif kind == 2:
            encoding.fixed_size_list.dimension = chance.choice((0, 1, 2, 2**31))
            encoding.fixed_size_list.items.CopyFrom(inner)
        else:
            encoding.dictionary.items.CopyFrom(inner)
            encoding.dictionary.indices.CopyFrom(inner)
            encoding.dictionary.num_dictionary_items = chance.choice((0, 1, 5, 2**32 - 1))
    else:
        _mutate(encoding, chance)
    parts.set_encoding(column, encoding, page)


def _mutate_layout(parts: FileParts, column: int, page: int, chance: random.Random) -> None:
    """A wrong number in the descriptor of a page of 2.1 or 2.2."""
    try:
        wrapped = any_pb2.Any.FromString(parts.columns[column].pages[page].encoding.direct.encoding)
        layout = encodings21_pb2.PageLayout.FromString(wrapped.value)
    except DecodeError:  # an earlier step broke it
        return
    _mutate(layout, chance)
    parts.set_encoding(column, layout, page)


def _leaves(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    for descriptor, value in message.ListFields():
        if descriptor.type != FieldDescriptor.TYPE_MESSAGE:
            yield message, descriptor
        elif descriptor.message_type.GetOptions().map_entry:
            continue
        elif isinstance(value, Message):
            yield from _leaves(value)
        else:
            for item in value:
                yield from _leaves(item)


def _mutate(message: Message, chance: random.Random) -> None:
    leaves = list(_leaves(message))
    if not leaves:
        return
    owner, descriptor = chance.choice(leaves)
    if chance.random() < 0.1:
        owner.ClearField(descriptor.name)
        return
    value = getattr(owner, descriptor.name)
    many = not isinstance(value, (int, str, bytes, float, bool))
    old = value[0] if many else value
    if isinstance(old, str):
        new: object = chance.choice((*_LOGICAL_TYPES, old[:-1], ""))
    elif isinstance(old, bytes):
        new = _flip(old, chance) if old else b"\xff"
    elif isinstance(old, bool):
        new = not old
    else:
        new = chance.choice((*INTERESTING, old + 1, old - 1, -1))
    try:
        if many:
            value[chance.randrange(len(value))] = new
        else:
            setattr(owner, descriptor.name, new)
    except (ValueError, TypeError):  # out of the range of the field
        owner.ClearField(descriptor.name)


_LOGICAL_TYPES = (
    "int8",
    "int64",
    "bool",
    "string",
    "large_binary",
    "null",
    "struct",
    "list",
    "large_list.struct",
    "map",
    "json",
    "blob",
    "fixed_size_list:int32:2",
    "fixed_size_list:int8:0",
    "fixed_size_list:struct:2",
    "fixed_size_list:int64:2147483647",
    "fixed_size_binary:0",
    "fixed_size_binary:2147483647",
    "dict:string:int8:false",
    "dict:int8:string:false",
    "decimal:128:99:2",
    "timestamp:us:Nowhere/Zone",
)


# -- reading -----------------------------------------------------------------------------------------------------


def read_file(path: Path) -> None:
    """Read a file in every way; results must be valid Arrow data."""
    rows = [0, 149, 3, 3, 77]
    for read in (
        lambda reader: reader.read_all().to_table().validate(full=True),
        lambda reader: [batch.validate(full=True) for batch in reader.read_all(batch_size=32).to_batches()],
        lambda reader: reader.take_rows(rows).to_table().validate(full=True),
        lambda reader: (reader.metadata(), reader.file_statistics()),
    ):
        said = problem(lambda read=read: read(LanceFileReader(str(path))))
        assert said is None or path.name in said or " row" in said, f"an error that does not name the file: {said}"


def read_dataset(path: Path) -> None:
    """The same through a dataset whose data file is damaged."""
    for read in (
        lambda dataset: dataset.to_table().validate(full=True),
        lambda dataset: [batch.validate(full=True) for batch in dataset.to_batches(batch_size=40)],
        lambda dataset: dataset.take([0, 149, 3, 3, 77]).validate(full=True),
        lambda dataset: dataset.to_table(filter=f"{dataset.schema.names[0]} is not null").validate(full=True),
        lambda dataset: dataset.count_rows(f"{dataset.schema.names[0]} is null"),
    ):
        said = problem(lambda read=read: read(lance.dataset(str(path))))
        assert said is None or ".lance" in said or " row" in said, f"an error that does not name the file: {said}"


def run_child(corpus: Path, seed: int, first: int, last: int) -> None:
    """Cases ``[first, last)``; the number of each is printed before it runs."""
    faulthandler.enable()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    names = sorted(path.name for path in corpus.iterdir())
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(first, last):
            chance = random.Random(f"{seed}/{number}")
            name = names[number % len(names)]
            os.write(1, b"case %d %s\n" % (number, name.encode()))
            folder = Path(scratch, str(number))
            shutil.copytree(corpus / name, folder)
            [file] = (folder / "data").iterdir()
            content = file.read_bytes()
            changed = damage(content, chance)
            file.write_bytes(changed)
            signal.alarm(SECONDS)
            try:
                read_file(file)
                if len(changed) == len(content):
                    read_dataset(folder)
            except BaseException as error:
                trace = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]]
                os.write(1, f"failed {number} {error!r} at {' '.join(trace)}\n".encode(errors="replace"))
                if isinstance(error, KeyboardInterrupt):
                    raise
            finally:
                signal.alarm(0)
            shutil.rmtree(folder)


def run(seed: int, first: int, last: int, corpus: Path) -> list[str]:
    """Run cases in children; the failures."""
    failures: list[str] = []
    number = first
    while number < last:
        command = [sys.executable, __file__, "--child", str(corpus), "--seed", str(seed)]
        command += ["--first", str(number), "--cases", str(last - number)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
        lines = done.stdout.splitlines()
        failures += [line for line in lines if line.startswith("failed")]
        started = [line for line in lines if line.startswith("case")]
        reached = int(started[-1].split()[1]) if started else number
        if done.returncode:
            failures.append(f"crashed ({done.returncode}) {started[-1] if started else '-'}\n{done.stderr[-3000:]}")
        number = reached + 1
    return failures


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--only", type=int)
    parser.add_argument("--version", default="2.0")
    parser.add_argument("--child", type=Path)
    given = parser.parse_args()
    if given.only is not None:
        given.first, given.cases = given.only, 1
    if given.child:
        run_child(given.child, given.seed, given.first, given.first + given.cases)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder), given.version)
        failures = run(given.seed, given.first, given.first + given.cases, Path(folder))
    kinds = Counter(failure.splitlines()[0].partition(" ")[2].partition(" ")[2][:90] for failure in failures)
    for failure in failures[:10]:
        print(failure)
    for kind, times in kinds.most_common():
        print(times, kind)
    print(f"{given.cases} cases, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
