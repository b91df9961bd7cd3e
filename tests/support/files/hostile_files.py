"""Small files to be damaged, and checks of the errors of reading them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter
from support.files.file_parts import FileParts, take_apart_file

HUGE = [2**31, 2**32, 2**56, 2**60, 2**63, 2**64 - 1]
Edit = Callable[[FileParts], Any]


def write(folder: Path, table: pa.Table) -> FileParts:
    path = folder / "good.lance"
    with LanceFileWriter(path, table.schema, version="2.0") as writer:
        writer.write_batch(table)
    return take_apart_file(path)


def read_everything(path: Path) -> pa.Table:
    """Read in every way; all must agree that the file is bad."""
    reader = LanceFileReader(path)
    outcomes: list[Any] = []
    for read in (
        lambda: reader.read_all().to_table(),
        lambda: list(reader.read_all(batch_size=2).to_batches()),
        lambda: LanceFileReader(path).take_rows(range(min(reader.num_rows(), 200))).to_table(),
    ):
        try:
            outcomes.append(read())
        except LanceError as error:
            outcomes.append(error)
    errors = [outcome for outcome in outcomes if isinstance(outcome, LanceError)]
    if errors:
        assert len(errors) == 3, outcomes
        raise errors[0]
    outcomes[0].validate(full=True)
    return outcomes[0]


def refused(
    folder: Path, parts: FileParts, *said: str, error: type[LanceError] = CorruptFileError, where: str = "bad.lance"
) -> None:
    path = folder / "bad.lance"
    path.write_bytes(parts.assemble())
    with pytest.raises(error) as caught:
        read_everything(path)
    text = str(caught.value)
    for word in (where, *said):
        assert word in text, text


def refused_after(folder: Path, table: pa.Table, edit: Edit, *said: str, **how: Any) -> None:
    parts = write(folder, table)
    edit(parts)
    refused(folder, parts, *said, **how)


NUMBERS = pa.table({"a": pa.array([1, 2, 3], pa.int64())})
TEXT = pa.table({"t": ["x", None, "yé"]})
WORDS = pa.table({"t": ["a", "b", None, "b"] * 40})
LISTS = pa.table({"l": pa.array([[1, 2], None, [3]], pa.list_(pa.int32()))})
VECTORS = pa.table({"v": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2))})
STRUCTS = pa.table({"s": [{"x": 1}, {"x": 2}, {"x": 3}]})
DICTIONARY = pa.table({"d": pa.array(["a", "b", "a", None]).dictionary_encode()})


def reads(folder: Path, parts: FileParts, expected: pa.Table) -> None:
    path = folder / "odd.lance"
    path.write_bytes(parts.assemble())
    actual = read_everything(path)
    assert actual.to_pylist() == expected.to_pylist()
