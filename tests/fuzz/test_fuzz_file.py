"""Tests with damaged data files of every encoding: a short run of fuzz_file.py, and small damage by hypothesis."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.files.file_parts import problem

from lance_dataset.file.standalone import LanceFileReader

sys.path.insert(0, str(Path(__file__).parent))
import fuzz_file

CASES = 600


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    fuzz_file.write_corpus(folder)
    return folder


@pytest.mark.slow
def test_damaged_files_in_a_child_with_little_memory(corpus: Path) -> None:
    assert fuzz_file.run(1, 0, CASES, corpus) == []


@given(
    name=st.sampled_from(sorted(fuzz_file.corpus_tables())),
    place=st.floats(0, 1, exclude_max=True),
    remove=st.integers(0, 80),
    insert=st.binary(max_size=80),
)
def test_small_damage(corpus: Path, name: str, place: float, remove: int, insert: bytes) -> None:
    [file] = (corpus / name / "data").iterdir()
    content = file.read_bytes()
    at = int(place * len(content))
    damaged = corpus.parent / "damaged.lance"
    damaged.write_bytes(content[:at] + insert + content[at + remove :])
    for read in (
        lambda reader: reader.read_all().to_table().validate(full=True),
        lambda reader: [batch.validate(full=True) for batch in reader.read_all(batch_size=32).to_batches()],
        lambda reader: reader.take_rows([0, 149, 3, 3, 77]).to_table().validate(full=True),
    ):
        said = problem(lambda read=read: read(LanceFileReader(damaged)))
        assert said is None or "damaged.lance" in said or " row" in said
