"""Damage data files and read them in every way; anything but right data or a LanceError is a failure.

The tests run a few cases; run it by hand for longer::

    python tests/fuzz/fuzz_file.py --cases 20000 --seed 7

``--version 2.1`` damages files of that version instead of 2.0. Each case is reproducible from its number:
``--only NUMBER`` with the same seed. The work is done in a child with
limited memory, so that a crash or a forged length is a result and not the end of the run.
"""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import fuzz_runner
import pyarrow as pa
from fuzz_damage import INTERESTING, damage_bytes, mutate, number
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError
from support.files.file_parts import FOOTER, FileParts, problem, take_apart
from support.pages.array_page_cases import CASES

import lance_dataset as lance
from lance_dataset._proto import encodings21_pb2, encodings_pb2
from lance_dataset.file.standalone import LanceFileReader


def corpus_tables() -> dict[str, pa.Table]:
    """Return one small table per encoding."""
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
    """Write datasets with the reference, one fragment each; and for 2.0 files of every encoding made by hand."""
    import lance as reference

    for name, table in corpus_tables().items():
        reference.write_dataset(table, str(folder / name), data_storage_version=version)
    if version == "2.0":
        for name, page in CASES.items():
            data = folder / name.replace("/", " ") / "data"
            data.mkdir(parents=True)
            page.write(data / "a.lance")


# -- damage ------------------------------------------------------------------------------------------------------


def damage(content: bytes, chance: random.Random) -> bytes:
    """Return one damaged variant of a file."""
    ways = (damage_bytes, damage_bytes, _footer, _message, _message, _message, _buffer, _buffer)
    return chance.choice(ways)(content, chance)


def _footer(content: bytes, chance: random.Random) -> bytes:
    values = list(FOOTER.unpack(content[-FOOTER.size :]))
    index = chance.randrange(7)
    bits = (64, 64, 64, 32, 32, 16, 16)[index]
    values[index] = chance.choice((*INTERESTING, values[index] + 1, max(values[index] - 16, 0))) % 2**bits
    return content[: -FOOTER.size] + FOOTER.pack(*values)


def _message(content: bytes, chance: random.Random) -> bytes:
    """Change one or two numbers, names or branches in the metadata of a valid container."""
    parts = take_apart(content)
    for _ in range(chance.choice((1, 1, 2))):
        column = chance.randrange(len(parts.columns))
        pages = parts.columns[column].pages
        kind = chance.randrange(4)
        if kind == 0:
            mutate(parts.descriptor, chance)
        elif kind == 1:
            mutate(parts.columns[column], chance)
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
        mutate(encoding, chance)
    parts.set_encoding(column, encoding, page)


def _mutate_layout(parts: FileParts, column: int, page: int, chance: random.Random) -> None:
    """Set a wrong number in the descriptor of a page of 2.1 or 2.2."""
    try:
        wrapped = any_pb2.Any.FromString(parts.columns[column].pages[page].encoding.direct.encoding)
        layout = encodings21_pb2.PageLayout.FromString(wrapped.value)
    except DecodeError:  # an earlier step broke it
        return
    mutate(layout, chance)
    parts.set_encoding(column, layout, page)


def _buffer(content: bytes, chance: random.Random) -> bytes:
    """Change a number in a buffer of a page, or truncate the buffer."""
    parts = take_apart(content)
    stored = [
        (column, page, index)
        for column, metadata in enumerate(parts.columns)
        for page, description in enumerate(metadata.pages)
        for index in range(len(description.buffer_sizes))
    ]
    if not stored:
        return content
    column, page, index = chance.choice(stored)
    description = parts.columns[column].pages[page]
    start, size = description.buffer_offsets[index], description.buffer_sizes[index]
    held = content[start : start + size]
    width = chance.choice([width for width in (0, 1, 2, 4, 8) if width <= size])
    at = chance.randrange(size // width) * width if width else chance.randrange(size + 1)
    changed = number(int.from_bytes(held[at : at + width], "little"), 8 * width, chance).to_bytes(width, "little")
    parts.replace_buffer(column, index, held[:at] + changed + held[at + width :] if width else held[:at], page)
    return parts.assemble()


# -- reading -----------------------------------------------------------------------------------------------------


def read_file(path: Path) -> None:
    """Read a file in every way; results must be valid Arrow data."""
    options = {"mmap": "false"}
    for read in (
        lambda reader: check(reader.read_all().to_table()),
        lambda reader: [check(batch) for batch in reader.read_all(batch_size=32).to_batches()],
        lambda reader: check(reader.take_rows(_some_rows(reader.num_rows())).to_table()),
        lambda reader: (reader.metadata(), reader.file_statistics()),
        lambda reader: str(reader.explain_encodings(deep=True)),
    ):
        for arguments in ((), (options,)):
            said = problem(lambda read=read, arguments=arguments: read(LanceFileReader(str(path), *arguments)))
            assert said is None or path.name in said or " row" in said, f"an error that does not name the file: {said}"


def check(data: pa.Table | pa.RecordBatch) -> None:
    """Raise `ArrowInvalid` unless the data is valid Arrow data; values out of the range of their type are allowed."""
    try:
        data.validate(full=True)
    except pa.ArrowInvalid as error:
        if not any(words in str(error) for words in _OUT_OF_RANGE):
            raise


_OUT_OF_RANGE = ("does not fit in precision", "is not within the acceptable range", "whole number of days")


def _some_rows(count: int) -> list[int]:
    return [0, count - 1, count // 50, count // 50, count // 2] if count else []


def read_dataset(path: Path) -> None:
    """Read a dataset with the damaged data file in every way."""
    for read in (
        lambda dataset: check(dataset.to_table()),
        lambda dataset: [check(batch) for batch in dataset.to_batches(batch_size=40)],
        lambda dataset: check(dataset.take([0, 149, 3, 3, 77])),
        lambda dataset: check(dataset.to_table(filter=f"{dataset.schema.names[0]} is not null")),
        lambda dataset: dataset.count_rows(f"{dataset.schema.names[0]} is null"),
    ):
        said = problem(lambda read=read: read(lance.dataset(str(path))))
        assert said is None or ".lance" in said or " row" in said, f"an error that does not name the file: {said}"


def case(entry: Path, chance: random.Random, scratch: Path) -> None:
    """Damage a file of the corpus and read it."""
    folder = scratch / "t.lance"
    shutil.copytree(entry, folder)
    [file] = (folder / "data").iterdir()
    content = file.read_bytes()
    changed = damage(content, chance)
    file.write_bytes(changed)
    read_file(file)
    if len(changed) == len(content) and (folder / "_versions").exists():
        read_dataset(folder)


def run(seed: int, first: int, last: int, corpus: Path) -> list[str]:
    """Run cases in children and return the failures."""
    return fuzz_runner.run(__file__, corpus, seed, first, last)


if __name__ == "__main__":
    raise SystemExit(fuzz_runner.main(__file__, __doc__, write_corpus, case, ("2.0", "2.1", "2.2", "2.3")))
