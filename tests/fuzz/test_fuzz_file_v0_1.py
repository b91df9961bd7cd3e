"""Tests with short runs of fuzz_file_v0_1.py and fuzz_manifest.py, and the cases they found."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.files.legacy_model import LegacyOptions, encode_legacy

from lance_dataset.errors import CorruptFileError
from lance_dataset.file import LanceFileReader
from lance_dataset.file.v0_1.dictionaries import read_dictionary
from lance_dataset.types.schema import Schema

sys.path.insert(0, str(Path(__file__).parent))
import fuzz_file_v0_1
import fuzz_manifest
import fuzz_runner
from legacy_parts import take_apart_legacy

CASES = 120


@pytest.mark.slow
@pytest.mark.parametrize("fuzzer", [fuzz_file_v0_1, fuzz_manifest])
def test_damaged_files_in_a_child_with_little_memory(tmp_path: Path, fuzzer: object) -> None:
    fuzzer.write_corpus(tmp_path)
    assert fuzz_runner.run(fuzzer.__file__, tmp_path, 1, 0, CASES) == []


def test_every_damage_is_possible(tmp_path: Path) -> None:
    """Every kind of damage is possible, and the checks of the fuzzer pass on files without damage."""
    fuzz_file_v0_1.write_corpus(tmp_path)
    chance = fuzz_file_v0_1.random.Random(1)
    possible = set()
    for entry in sorted(tmp_path.iterdir()):
        given = fuzz_file_v0_1.original(entry)
        assert given.parts().assemble() == given.content
        possible |= {damage.__name__ for damage in fuzz_file_v0_1.DAMAGES if damage(given, chance)}
        [file] = (entry / "data").iterdir()
        unharmed = fuzz_file_v0_1.Harm(given.content, frozenset(), frozenset(), False, False)
        fuzz_file_v0_1.Reading(entry, given, unharmed, chance, {}).read()
        fuzz_file_v0_1.read_alone(file, given, unharmed, chance)
    assert possible == {damage.__name__ for damage in fuzz_file_v0_1.DAMAGES}


def test_a_wrong_cell_does_not_move_the_page_table(tmp_path: Path) -> None:
    """A wrong cell of one column does not make other columns read their neighbour's page.

    Page tables of old releases start at field 0.
    """
    table = pa.table({name: pa.array([number] * 3) for number, name in enumerate("abcd")})
    schema = Schema.from_arrow(table.schema, max_field_id=0)
    parts = take_apart_legacy(encode_legacy(schema, table.to_batches(), LegacyOptions(from_zero=True)), 0)
    struct.pack_into("<q", parts.body, parts.cell_at(2, 0) + 8, 2)
    path = tmp_path / "a.lance"
    path.write_bytes(parts.assemble())
    for name in "acd":
        assert LanceFileReader(path, columns=[name]).read_all().to_table().equals(table.select([name]))
    with pytest.raises(CorruptFileError, match="column 'b', batch 0: the page has 2 values, but 3 are needed"):
        LanceFileReader(path, columns=["b"]).read_all().to_table()


def test_a_page_of_nulls_costs_nothing(tmp_path: Path) -> None:
    table = pa.table({"n": pa.nulls(3), "i": [1, 2, 3]})
    schema = Schema.from_arrow(table.schema)
    parts = take_apart_legacy(encode_legacy(schema, table.to_batches()), 0)
    struct.pack_into("<q", parts.body, parts.cell_at(0, 0) + 8, 2**60)
    path = tmp_path / "a.lance"
    path.write_bytes(parts.assemble())
    reader = LanceFileReader(path)
    assert reader.read_all().to_table().equals(table)
    assert str(reader.explain_encodings(deep=True))


@pytest.mark.parametrize("options", [None, {"mmap": "false"}])
def test_offsets_that_pass_32_bits_and_descend(tmp_path: Path, options: dict[str, str] | None) -> None:
    table = pa.table({"s": ["a", "b", "c", "d"]})
    parts = take_apart_legacy(encode_legacy(Schema.from_arrow(table.schema), table.to_batches()), 0)
    position, _ = parts.cell(0, 0)
    struct.pack_into("<q", parts.body, position + 8, 2**40)
    path = tmp_path / "a.lance"
    path.write_bytes(parts.assemble())
    for rows in (range(4), [0], [1], [0, 3, 1, 2]):
        with pytest.raises(CorruptFileError, match=r"a\.lance, column 's'"):
            LanceFileReader(path, options).take_rows(list(rows)).to_table()
    with pytest.raises(CorruptFileError, match=r"a\.lance, column 's'"):
        LanceFileReader(path, options).read_all().to_table()
    assert LanceFileReader(path, options).take_rows([2, 3]).to_table()["s"].to_pylist() == ["c", "d"]


@pytest.mark.parametrize("last", [-1, -(2**63), 2**62, 3])
def test_dictionary_offsets_whose_differences_overflow(last: int) -> None:
    data = b"abcd" + np.array([2, 4, last], "<i8").tobytes()
    with pytest.raises(CorruptFileError, match="x: the offsets of its values"):
        read_dictionary(data, 4, 2, pa.string(), "x")
