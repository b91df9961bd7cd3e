"""Tests with a short run of fuzz_pages.py, and that its corpus has every layout and encoding."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.files.file_parts import take_apart_file

from lance_dataset._proto import encodings21_pb2 as pb

sys.path.insert(0, str(Path(__file__).parent))
import fuzz_pages

CASES = 3000
#: Never written, neither by this package nor by the reference.
_UNUSED = {"dictionary", "range", "delta"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    fuzz_pages.write_corpus(folder)
    return folder


@pytest.mark.slow
def test_damaged_pages_in_a_child_with_little_memory(corpus: Path) -> None:
    assert fuzz_pages.run(corpus, fuzz_pages.choose(corpus, CASES, 1)) == []


def test_corpus_is_complete(corpus: Path) -> None:
    layouts, encodings = set(), set()
    for path in corpus.iterdir():
        layout = fuzz_pages.layout_of(take_apart_file(path), 0, 0)
        layouts.add(layout.WhichOneof("layout"))
        assert layout.HasField("full_zip_layout") or "full zip" not in path.name
        for _, message in fuzz_pages.messages(layout):
            if isinstance(message, pb.CompressiveEncoding):
                encodings.add(message.WhichOneof("compression"))
    fields = pb.CompressiveEncoding.DESCRIPTOR.oneofs_by_name["compression"].fields
    assert layouts == {"mini_block_layout", "constant_layout", "full_zip_layout", "blob_layout"}
    assert encodings == {field.name for field in fields} - _UNUSED
