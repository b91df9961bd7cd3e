"""Damage the pages of 2.1 and 2.2 files field by field; anything but right data or a LanceError is a failure.

Every number of every layout message, chunk word, chunk header, index entry, dictionary header and level buffer of a
corpus of small files (ours and the reference's) is replaced by others. The list of damages is finite and numbered::

    python tests/fuzz/fuzz_pages.py --count              how many there are
    python tests/fuzz/fuzz_pages.py --cases 2000         2000 of them, chosen by --seed
    python tests/fuzz/fuzz_pages.py                      all
    python tests/fuzz/fuzz_pages.py --only FILE:NUMBER   one, with its traceback

Reading happens in a child with limited memory and time, so that a crash or a forged length is a result.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarrow as pa
from google.protobuf import any_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from support.files.file_parts import FileParts, problem, take_apart

from lance_dataset._proto import encodings21_pb2 as pb
from lance_dataset.errors import LanceError
from lance_dataset.file import standalone

#: Limit beyond the memory that the process already has; the corpus files are a few KiB.
MEMORY = 512 << 20
SECONDS = 10
VERSIONS = ("2.1", "2.2")
_ROWS = 150
_HUGE = (2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)


# -- corpus ------------------------------------------------------------------------------------------------------


def _column(values: Any, kind: pa.DataType, **options: str) -> tuple[pa.Field, pa.Array]:
    metadata = {f"lance-encoding:{key.replace('_', '-')}": value for key, value in options.items()}
    return pa.field("c", kind, metadata=metadata), pa.array(values, kind)


def corpus_columns(version: str) -> dict[str, tuple[pa.Field, pa.Array]]:
    """Return one column per layout and encoding that a version has."""
    rows = range(_ROWS)
    numbers = [None if i % 7 == 3 else i % 50 for i in rows]
    words = [None if i % 11 == 5 else f"wörd-{i % 7}" for i in rows]
    texts = [None if i % 11 == 5 else f"text é {i}" * (i % 5) for i in rows]
    lists = [None if i % 9 == 4 else [None if j == 3 else j + i for j in range(i % 6)] for i in rows]
    wide = [
        None if i % 9 == 4 else [None if j else bytes([i]) * 256 for j in range(i % 4 if i < 12 else 0)] for i in rows
    ]
    structs = [None if i % 5 == 1 else {"x": i % 3, "y": texts[i]} for i in rows]
    vectors = [None if i % 8 == 1 else [i, None if i % 3 else 7] for i in rows]
    few = pa.dictionary(pa.int8(), pa.string())
    pair = pa.struct([("a", pa.int32()), ("b", pa.int16())])
    nested = pa.large_list(pa.list_(pa.int16()))
    row = pa.struct([("x", pa.int8()), ("y", pa.string())])
    columns = {
        "flat": _column([i * 10**15 for i in rows], pa.int64()),
        "bits": _column([i % 3 == 0 for i in rows], pa.bool_()),
        "packed bits": _column(numbers, pa.int32()),
        "runs": _column([None if i % 50 == 7 else i // 40 for i in rows], pa.int32(), rle_threshold="1.0"),
        "split": _column([i / 7 for i in rows], pa.float64(), bss="on", compression="zstd"),
        "flat lz4": _column([i // 9 for i in range(2000)], pa.int64(), compression="lz4", bss="off"),
        "text": _column(texts, pa.string(), compression="none"),
        "large text": _column(texts, pa.large_string(), compression="none"),
        "fsst": _column([f"the same words {i}" * 30 for i in rows], pa.string(), compression="fsst"),
        "zstd": _column(["abcdefgh" * 20 + str(i) for i in rows], pa.string(), compression="zstd"),
        "words": _column(words, pa.string()),
        "dictionary": _column(words, pa.string()),
        "decimals": _column([i % 5 for i in rows], pa.decimal128(30, 2)),
        "vectors": _column(vectors, pa.list_(pa.float32(), 2)),
        "bit vectors": _column([[True, None, False]] * _ROWS, pa.list_(pa.bool_(), 3)),
        "packed": _column([{"a": i, "b": -i} for i in rows], pair, packed="true"),
        "lists": _column(lists, pa.list_(pa.int16())),
        "lists of lists": _column([[lists[i], []] if i % 4 else None for i in rows], nested),
        "structs": _column(structs, row),
        "list of structs": _column([[s, s] for s in structs], pa.list_(row)),
        "full zip": _column(numbers, pa.int32(), structural_encoding="fullzip"),
        "full zip text": _column(texts, pa.string(), structural_encoding="fullzip"),
        "full zip lists": _column(wide, pa.list_(pa.binary(256))),
        "full zip lists of texts": _column(wide, pa.large_list(pa.large_binary())),
        "full zip zstd": _column([t and t * 300 for t in texts], pa.binary(), compression="zstd"),
        "full zip vectors": _column(vectors, pa.list_(pa.int16(), 2), structural_encoding="fullzip"),
        "null vectors": _column([[None, None], None, [None, None]] * 50, pa.list_(pa.int16(), 2)),
        "null": _column([None] * _ROWS, pa.float32()),
        "null lists": _column([[None], None, []] * 50, pa.list_(pa.int32())),
        "constant": _column([7] * _ROWS, pa.int32()),
        "constant with nulls": _column([None, 7, 7] * 50, pa.int32()),
        "constant text": _column(["hello"] * _ROWS, pa.string()),
        "constant lists": _column([[7], None, [7, 7]] * 50, pa.list_(pa.int32())),
        "blob": _column([None if i % 9 == 2 else b"x" * i for i in rows], pa.large_binary(), blob="true"),
    }
    columns["dictionary"] = (pa.field("c", few), columns["dictionary"][1].dictionary_encode().cast(few))
    if version != "2.1":
        mixed = pa.struct([("a", pa.int32()), ("t", pa.string())])
        columns["packed texts"] = _column([{"a": i, "t": "x" * i} for i in rows], mixed, packed="true")
        entries = [None if i % 5 == 1 else [(str(i), i)] for i in rows]
        columns["maps"] = _column(entries, pa.map_(pa.string(), pa.int32()))
        pairs = pa.list_(pa.struct([("x", pa.int32())]), 2)
        columns["pairs of structs"] = _column([[{"x": i}, None] for i in rows], pairs)
    return columns


def write_corpus(folder: Path) -> None:
    """Write files of one column each with both libraries."""
    from lance.file import LanceFileWriter

    for version in VERSIONS:
        for writer, by in ((standalone.LanceFileWriter, "ours"), (LanceFileWriter, "reference")):
            for name, (field, array) in corpus_columns(version).items():
                path = folder / f"{by} {version} {name}.lance"
                with writer(str(path), pa.schema([field]), version=version) as file:
                    file.write_batch(pa.record_batch([array], schema=pa.schema([field])))


# -- damages -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Damage:
    """One change of a file: its name, and the function that makes it in the parts of the file."""

    name: str
    apply: Callable[[FileParts], None]


def damages(parts: FileParts) -> Iterator[Damage]:
    """Yield every damage of a file."""
    for column, metadata in enumerate(parts.columns):
        for page in range(len(metadata.pages)):
            yield from _layout_damages(parts, column, page)
            yield from _page_damages(parts, column, page)
            yield from _buffer_damages(parts, column, page)


def layout_of(parts: FileParts, column: int, page: int) -> pb.PageLayout:
    """Return a copy of the layout of a page."""
    wrapped = any_pb2.Any.FromString(parts.columns[column].pages[page].encoding.direct.encoding)
    return pb.PageLayout.FromString(wrapped.value)


#: Path to a message: (field, index or None) from the layout down.
_Path = tuple[tuple[str, int | None], ...]


def messages(message: Message, path: _Path = ()) -> Iterator[tuple[_Path, Message]]:
    yield path, message
    for descriptor, value in message.ListFields():
        if descriptor.type != FieldDescriptor.TYPE_MESSAGE:
            continue
        if isinstance(value, Message):
            yield from messages(value, (*path, (descriptor.name, None)))
        else:
            for index, item in enumerate(value):
                yield from messages(item, (*path, (descriptor.name, index)))


def _at(message: Message, path: _Path) -> Message:
    for name, index in path:
        message = getattr(message, name) if index is None else getattr(message, name)[index]
    return message


def _encodings() -> dict[str, pb.CompressiveEncoding]:
    """Return an encoding of every kind, to replace another."""
    flat = {bits: pb.CompressiveEncoding(flat={"bits_per_value": bits}) for bits in (1, 8, 16, 32, 64, 128)}
    variable = pb.CompressiveEncoding(variable={"offsets": flat[32]})
    made: dict[str, dict[str, Any]] = {
        "variable": {"variable": {"offsets": flat[32]}},
        "wide variable": {"variable": {"offsets": flat[64]}},
        "constant": {"constant": {}},
        "constant value": {"constant": {"value": b"\0\0\0\0"}},
        "out of line": {"out_of_line_bitpacking": {"uncompressed_bits_per_value": 16, "values": flat[1]}},
        "inline 16": {"inline_bitpacking": {"uncompressed_bits_per_value": 16}},
        "inline 32": {"inline_bitpacking": {"uncompressed_bits_per_value": 32}},
        "fsst": {"fsst": {"symbol_table": bytes(2312), "values": variable}},
        "short fsst": {"fsst": {"symbol_table": b"", "values": variable}},
        "rle": {"rle": {"values": flat[32], "run_lengths": flat[8]}},
        "rle 16": {"rle": {"values": flat[16], "run_lengths": flat[8]}},
        "split": {"byte_stream_split": {"values": flat[32]}},
        "lz4": {"general": {"compression": {"scheme": 1}, "values": flat[32]}},
        "zstd": {"general": {"compression": {"scheme": 2}, "values": variable}},
        "list": {"fixed_size_list": {"items_per_value": 2, "values": flat[32], "has_validity": True}},
        "long list": {"fixed_size_list": {"items_per_value": 2**40, "values": flat[32]}},
        "packed": {"packed_struct": {"bits_per_value": [32, 16], "values": {"flat": {"bits_per_value": 48}}}},
        "packed texts": {"variable_packed_struct": {"fields": [{"value": variable, "bits_per_length": 32}]}},
        "none": {},
    }
    others = {name: pb.CompressiveEncoding(**parts) for name, parts in made.items()}
    return {**{f"flat {bits}": encoding for bits, encoding in flat.items()}, **others}


def _numbers(old: int, bits: int) -> list[int]:
    values = {0, 1, 2, 7, old + 1, old - 1, old * 2, *_HUGE, 2**bits - 1} - {old}
    return sorted(value for value in values if 0 <= value < 2**bits)


def _layout_damages(parts: FileParts, column: int, page: int) -> Iterator[Damage]:
    where = f"column {column} page {page}"
    layout = layout_of(parts, column, page)

    def change(path: _Path, edit: Callable[[Any], None]) -> Callable[[FileParts], None]:
        def apply(target: FileParts) -> None:
            changed = layout_of(target, column, page)
            edit(_at(changed, path))
            target.set_encoding(column, changed, page)

        return apply

    for path, message in messages(layout):
        label = f"{where} {'.'.join(name for name, _ in path) or 'layout'}"
        for descriptor, value in message.ListFields():
            name = descriptor.name
            yield Damage(f"{label}.{name} dropped", change(path, lambda at, name=name: at.ClearField(name)))
            for what, edit in _field_edits(descriptor, value):
                yield Damage(f"{label}.{name} {what}", change(path, edit))
        if isinstance(message, pb.CompressiveEncoding):
            for kind, other in _encodings().items():
                yield Damage(f"{label} is {kind}", change(path, lambda at, other=other: at.CopyFrom(other)))
            wrapped = pb.CompressiveEncoding(general={"compression": {"scheme": 2}, "values": message})
            yield Damage(f"{label} wrapped", change(path, lambda at, wrapped=wrapped: at.CopyFrom(wrapped)))
    for kind in ("mini_block_layout", "constant_layout", "full_zip_layout", "blob_layout"):
        yield Damage(f"{where} is an empty {kind}", change((), lambda at, kind=kind: _only(at, kind)))


def _only(layout: Message, kind: str) -> None:
    layout.Clear()
    getattr(layout, kind).SetInParent()


def _field_edits(descriptor: FieldDescriptor, value: Any) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yield other values of a field that is not a message."""
    name = descriptor.name
    if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
        return
    if isinstance(value, bool):
        yield "flipped", lambda at: setattr(at, name, not value)
    elif isinstance(value, bytes):
        for new in (b"", value[:-1], value + b"\0", bytes(len(value)), b"\xff" * len(value)):
            yield f"is {len(new)} bytes", lambda at, new=new: setattr(at, name, new)
    elif isinstance(value, int):
        for new in _numbers(value, _WIDE.get(descriptor.type, 3)):
            yield f"is {new}", lambda at, new=new: setattr(at, name, new)
    else:
        items = list(value)
        bits = _WIDE.get(descriptor.type, 3)
        for index, old in enumerate(items):
            for new in _numbers(old, bits):
                changed = [*items[:index], new, *items[index + 1 :]]
                yield f"{index} is {new}", lambda at, changed=changed: _set_items(at, name, changed)
        yield "has one more", lambda at: _set_items(at, name, [*items, items[-1]])
        yield "has one less", lambda at: _set_items(at, name, items[:-1])


#: Bits of the numbers of a field; those of enums are few.
_WIDE = {FieldDescriptor.TYPE_UINT64: 64, FieldDescriptor.TYPE_UINT32: 32, FieldDescriptor.TYPE_INT32: 31}


def _set_items(message: Message, name: str, items: list[int]) -> None:
    message.ClearField(name)
    getattr(message, name).extend(items)


def _page_damages(parts: FileParts, column: int, page: int) -> Iterator[Damage]:
    """Yield changes of lengths, positions, sizes and number of buffers."""
    where = f"column {column} page {page}"
    stored = parts.columns[column].pages[page]

    def change(edit: Callable[[Any], None]) -> Callable[[FileParts], None]:
        return lambda target: edit(target.columns[column].pages[page])

    for new in _numbers(stored.length, 64):
        yield Damage(f"{where} length {new}", change(lambda at, new=new: setattr(at, "length", new)))
    for name in ("buffer_offsets", "buffer_sizes"):
        for index, old in enumerate(getattr(stored, name)):
            for new in _numbers(old, 64):
                edit = change(lambda at, name=name, index=index, new=new: _set_item(getattr(at, name), index, new))
                yield Damage(f"{where} {name} {index} is {new}", edit)
    if stored.buffer_sizes:
        yield Damage(f"{where} last buffer gone", change(_drop_buffer))
        yield Damage(f"{where} one more buffer", change(_add_buffer))


def _set_item(items: Any, index: int, value: int) -> None:
    items[index] = value


def _drop_buffer(page: Any) -> None:
    del page.buffer_offsets[-1], page.buffer_sizes[-1]


def _add_buffer(page: Any) -> None:
    page.buffer_offsets.append(page.buffer_offsets[-1])
    page.buffer_sizes.append(page.buffer_sizes[-1])


def _buffer_damages(parts: FileParts, column: int, page: int) -> Iterator[Damage]:
    """Yield changed numbers in the buffers: all of short ones; the start, the end and some others of long ones."""
    where = f"column {column} page {page}"
    stored = parts.columns[column].pages[page]
    for index, (start, size) in enumerate(zip(stored.buffer_offsets, stored.buffer_sizes, strict=True)):
        content = parts.data[start : start + size]
        for keep in {size // 2, max(size - 1, 0), max(size - 8, 0)} - {size}:
            new = content[:keep]
            yield Damage(f"{where} buffer {index} cut to {keep}", _replace(column, page, index, new))
        yield Damage(f"{where} buffer {index} repeated", _replace(column, page, index, content * 2))
        places = {*range(min(size, 96)), *range(max(size - 24, 0), size), *range(96, size, max(size // 40, 1))}
        for at in sorted(places):
            for width in (1, 2, 4, 8):
                if at % width or at + width > size or (width > 1 and at > 128):
                    continue
                old = int.from_bytes(content[at : at + width], "little")
                for value in {0, old + 1, old - 1, old + 16, 2 ** (8 * width) - 1, 2 ** (8 * width - 1)} - {old}:
                    if not 0 <= value < 2 ** (8 * width):
                        continue
                    new = content[:at] + value.to_bytes(width, "little") + content[at + width :]
                    yield Damage(f"{where} buffer {index} byte {at}: {value:#x}", _replace(column, page, index, new))


def _replace(column: int, page: int, index: int, content: bytes) -> Callable[[FileParts], None]:
    return lambda parts: parts.replace_buffer(column, index, content, page)


# -- reading -----------------------------------------------------------------------------------------------------


def _check(data: pa.Table | pa.RecordBatch) -> None:
    """Raise `ArrowInvalid` unless the data is valid Arrow data; decimals of more digits than declared are allowed."""
    try:
        data.validate(full=True)
    except pa.ArrowInvalid as error:
        if "does not fit in precision" not in str(error):
            raise


def read_file(path: Path) -> None:
    """Read a file in every way; results must be valid Arrow data, and errors must name the place."""
    rows = [0, _ROWS - 1, 3, 3, 77]
    for read in (
        lambda reader: _check(reader.read_all(batch_size=2000).to_table()),
        lambda reader: [_check(batch) for batch in reader.read_all(batch_size=32).to_batches()],
        lambda reader: _check(reader.take_rows(rows).to_table()),
        lambda reader: _check(reader.read_range(100, 30).to_table()),
        lambda reader: (reader.metadata(), reader.file_statistics()),
    ):
        said = problem(lambda read=read: read(standalone.LanceFileReader(str(path))))
        assert said is None or path.name in said or " row" in said, f"an error that does not name the file: {said}"


def damaged(path: Path, number: int) -> tuple[str, bytes]:
    """Return name and content of a damaged variant of a file."""
    content = path.read_bytes()
    damage = list(damages(take_apart(content)))[number]
    parts = take_apart(content)
    damage.apply(parts)
    return damage.name, parts.assemble()


def run_child(corpus: Path, cases: list[tuple[str, list[int]]]) -> None:
    """Run cases by file, and print the number of each before it runs."""
    faulthandler.enable()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    with tempfile.TemporaryDirectory() as scratch:
        bad = Path(scratch, "damaged.lance")
        for name, numbers in cases:
            content = (corpus / name).read_bytes()
            every = list(damages(take_apart(content)))
            for number in numbers:
                parts = take_apart(content)
                every[number].apply(parts)
                bad.write_bytes(parts.assemble())
                os.write(1, f"case {name}:{number}\n".encode())
                signal.alarm(SECONDS)
                try:
                    read_file(bad)
                except BaseException as error:
                    _report(f"{name}:{number}", every[number].name, error)
                    if isinstance(error, KeyboardInterrupt):
                        raise
                finally:
                    signal.alarm(0)


def _report(case: str, name: str, error: BaseException) -> None:
    trace = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]]
    os.write(1, f"failed {case} [{name}] {error!r} at {' '.join(trace)}\n".encode(errors="replace"))


def choose(corpus: Path, cases: int | None, seed: int) -> list[tuple[str, list[int]]]:
    """Return the numbers of damages by file: all, or a sample."""
    counts = {path.name: sum(1 for _ in damages(take_apart(path.read_bytes()))) for path in sorted(corpus.iterdir())}
    every = [(name, number) for name, count in counts.items() for number in range(count)]
    if cases is not None and cases < len(every):
        every = sorted(random.Random(seed).sample(every, cases))
    return [(name, [number for other, number in every if other == name]) for name in counts]


def run(corpus: Path, cases: list[tuple[str, list[int]]]) -> list[str]:
    """Run cases in children, a new one after each crash, and return the failures."""
    failures: list[str] = []
    left = cases
    while left:
        command = [sys.executable, __file__, "--child", str(corpus)]
        done = subprocess.run(
            command, input=json.dumps(left), capture_output=True, text=True, check=False, errors="replace"
        )
        lines = done.stdout.splitlines()
        failures += [line for line in lines if line.startswith("failed")]
        if not done.returncode:
            break
        started = [line for line in lines if line.startswith("case")]
        failures.append(f"crashed ({done.returncode}) {started[-1] if started else '-'}\n{done.stderr[-3000:]}")
        if not started:
            break
        left = _after(left, started[-1].removeprefix("case "))
    return failures


def _after(cases: list[tuple[str, list[int]]], last: str) -> list[tuple[str, list[int]]]:
    """Return the cases after the given one."""
    name, _, number = last.rpartition(":")
    at = next(index for index, (file, _) in enumerate(cases) if file == name)
    rest = cases[at][1][cases[at][1].index(int(number)) + 1 :]
    return [(name, rest), *cases[at + 1 :]] if rest else list(cases[at + 1 :])


def show(corpus: Path, case: str) -> None:
    """Run one case in this process."""
    name, _, number = case.rpartition(":")
    label, content = damaged(corpus / name, int(number))
    print(label)
    with tempfile.TemporaryDirectory() as scratch:
        bad = Path(scratch, "damaged.lance")
        bad.write_bytes(content)
        read_file(bad)
        try:
            print(standalone.LanceFileReader(str(bad)).read_all().to_table())
        except LanceError as error:
            print(repr(error))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--child", type=Path)
    given = parser.parse_args()
    if given.child:
        run_child(given.child, json.load(sys.stdin))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder))
        if given.only:
            show(Path(folder), given.only)
            return 0
        cases = choose(Path(folder), given.cases, given.seed)
        total = sum(len(numbers) for _, numbers in cases)
        if given.count:
            print(f"{total} damages of {len(cases)} files")
            return 0
        failures = run(Path(folder), cases)
    kinds = Counter(failure.splitlines()[0].partition("] ")[2][:120] for failure in failures)
    for failure in failures[:10]:
        print(failure)
    for kind, times in kinds.most_common():
        print(times, kind)
    print(f"{total} cases, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
