"""Tests of text forms of datasets, fragments and sessions, and of `lance_dataset.debug` and `lance_dataset.log`."""

from __future__ import annotations

import io
import logging
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_dataset
from lance_dataset import debug
from lance_dataset.api.display import byte_count


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    table = pa.table({"id": range(30), "s": [{"a": 1, "b": "x"}] * 30})
    made = lance_dataset.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=10)
    made.delete("id IN (1, 2, 25)")
    return made


def test_a_dataset(dataset: Any) -> None:
    shown = repr(lance_dataset.dataset(dataset.uri))
    assert shown.startswith(f"LanceDataset({dataset.uri!r}, version=2, rows=27, columns=2, fragments=3, size=")
    assert shown.endswith("storage_version='2.2', deleted_rows=3)")
    assert "branch='b'" in repr(dataset.create_branch("b"))


def test_indices_are_named(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"id": range(300)}), tmp_path / "t.lance")
    made.create_scalar_index("id", "BTREE", name="by_id")
    assert repr(lance_dataset.dataset(tmp_path / "t.lance")).endswith("indices=['by_id'])")


def test_showing_as_text_reads_nothing(dataset: Any) -> None:
    fresh = lance_dataset.dataset(dataset.uri)
    before = fresh.io_stats_snapshot()
    assert repr(fresh)
    for each in fresh.get_fragments():
        assert repr(each)
        assert each._repr_html_()
    assert repr(fresh.session())
    assert fresh.io_stats_snapshot() == before


def test_a_fragment(dataset: Any) -> None:
    first, second, _ = dataset.get_fragments()
    name = first.data_files()[0].path
    expected = f"LanceFragment(id=0, physical_rows=10, data_files=[{name!r}], deleted_rows=2, deletion_file="
    assert repr(first) == f"{expected}{first.deletion_file()!r})"
    assert repr(second) == f"LanceFragment(id=1, physical_rows=10, data_files=[{second.data_files()[0].path!r}])"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


HOSTILE = "<script>alert('x')</script>&\"<b>"


def test_html_is_escaped(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([[{HOSTILE: 1}]])], names=[HOSTILE, "plain"])
    made = lance_dataset.write_dataset(table, tmp_path / "<i>&.lance")
    for each in (made, made.get_fragments()[0]):
        parser = _Tags()
        parser.feed(each._repr_html_())
        parser.close()
        assert parser.open == []
        assert parser.seen - {"svg", "title", "rect"} == {"div", "b", "table", "tr", "th", "td", "details", "summary"}
        assert HOSTILE in parser.text
    assert "<i>&.lance" in parser.text or "<i>&.lance" in made.uri


def test_many_columns_are_cut(tmp_path: Path) -> None:
    made = lance_dataset.write_dataset(pa.table({f"c{n}": [1] for n in range(150)}), tmp_path / "t.lance")
    assert "and 50 more" in made._repr_html_()
    assert "columns=150" in repr(made)


def test_empty_datasets(tmp_path: Path) -> None:
    made = lance_dataset.write_dataset(pa.table({"id": pa.array([], pa.int8())}), tmp_path / "t.lance")
    assert "rows=0, columns=1, fragments=0, size='0 B'" in repr(made)
    assert "<td>0</td>" in made._repr_html_()


@given(st.integers(0, 1 << 70))
def test_byte_counts(number: int) -> None:
    value, unit = byte_count(number).split()
    scale = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].index(unit)
    assert abs(float(value) * scale - number) <= 0.051 * scale
    assert float(value) < 1024 or unit == "EiB"


def test_debug_of_a_fragment(dataset: Any) -> None:
    fragment = dataset.get_fragments()[0]
    text = debug.format_fragment(fragment.metadata, dataset)
    assert text == debug.format_fragment(fragment, dataset)
    assert text.startswith("PrettyPrintableFragment {")
    with pytest.raises(ValueError, match="FragmentMetadata"):
        debug.format_fragment("x", dataset)  # type: ignore[arg-type]


def test_debug_of_transactions(dataset: Any) -> None:
    newest, first = debug.list_transactions(dataset)
    assert "read_version: 1" in newest
    assert "Delete {" in newest
    assert "id IN (1, 2, 25)" in newest
    assert "Overwrite {" in first
    assert debug.list_transactions(dataset, 1) == [newest]
    with pytest.raises(ValueError):
        debug.list_transactions(dataset, -1)


@pytest.fixture
def restored_loggers() -> Any:
    yield
    for name in ("lance_dataset", "other"):
        lance_dataset.set_logger(name=name, log_handler=logging.NullHandler(), level=logging.WARNING)


def test_the_log_goes_to_a_file(tmp_path: Path, restored_loggers: Any) -> None:
    logger = logging.getLogger("lance_dataset.some.module")
    lance_dataset.set_logger(tmp_path / "a.log", level=logging.INFO)
    assert not (tmp_path / "a.log").exists()
    logger.info("first")
    lance_dataset.set_logger(tmp_path / "b.log", level=logging.WARNING, format_string="%(levelname)s|%(message)s")
    logger.info("second")
    logger.warning("third")
    assert "first" in (tmp_path / "a.log").read_text()
    assert "third" not in (tmp_path / "a.log").read_text()
    assert (tmp_path / "b.log").read_text() == "WARNING|third\n"


def test_the_log_goes_to_a_handler(restored_loggers: Any) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    for _ in range(2):
        lance_dataset.set_logger(name="other", log_handler=handler, format_string="%(message)s")
    logging.getLogger("other").info("hello")
    assert stream.getvalue() == "hello\n"
