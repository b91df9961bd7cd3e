"""Tests of tags: the same calls on two copies of a dataset give the same result in both implementations."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.reference.outcomes import Call, check_call

import lance_dataset
from lance_dataset.errors import InvalidInputError


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return versions 1 to 3, a branch ``dev`` from version 2 with versions 2 and 3, and tags on both."""
    path = tmp_path_factory.mktemp("tags") / "t.lance"
    written = lance.write_dataset(pa.table({"a": range(10)}), path)
    written = lance.write_dataset(pa.table({"a": range(10, 20)}), path, mode="append")
    written.delete("a = 3")
    branch = written.create_branch("dev", 2)
    lance.write_dataset(pa.table({"a": [100]}), branch, mode="append")
    written.tags.create("first", 1)
    written.tags.create("old", 2)
    written.tags.create("other", ("dev", 3))
    return path


@pytest.fixture
def pair(template: Path, tmp_path: Path) -> tuple[Any, Any]:
    """Return one copy per implementation."""
    for name in ("ours", "theirs"):
        shutil.copytree(template, tmp_path / name / "t.lance")
    return lance_dataset.dataset(tmp_path / "ours/t.lance"), lance.dataset(tmp_path / "theirs/t.lance")


def without_times(tags: Any) -> Any:
    items = tags if isinstance(tags, list) else sorted(tags.items())
    return [(name, {key: tag[key] for key in ("branch", "version", "metadata")}) for name, tag in items]


def after(*steps: str) -> Call:
    """Return a call that runs steps on the tag manager and returns all tags."""

    def call(lib: Any, ds: Any) -> Any:
        for step in steps:
            eval(step, {"tags": ds.tags})
        return without_times(ds.tags.list()), without_times(ds.tags.list_ordered())

    return call


CALLS: dict[str, Call] = {
    "list": lambda lib, ds: sorted(ds.tags.list().items()),
    "keys": lambda lib, ds: list(ds.tags.list()["old"]),
    "ordered": lambda lib, ds: ds.tags.list_ordered(),
    "ordered_asc": lambda lib, ds: ds.tags.list_ordered("asc"),
    "ordered_desc": lambda lib, ds: ds.tags.list_ordered(order="desc"),
    "ordered_bad": lambda lib, ds: ds.tags.list_ordered("ASC"),
    "create": after("tags.create('x', 2)"),
    "create_current": after("tags.create('x')"),
    "create_tag": after("tags.create('x', 'old')"),
    "create_tag_of_branch": after("tags.create('x', 'other')"),
    "create_pair": after("tags.create('x', ('dev', 2))"),
    "create_newest_of_branch": after("tags.create('x', ('dev', None))"),
    "create_main": after(
        "tags.create('x', ('main', None))", "tags.create('y', (None, 1))", "tags.create('z', (None, None))"
    ),
    "create_same": after("tags.create('old', 2)"),
    "create_no_version": after("tags.create('x', 9)"),
    "create_no_version_0": after("tags.create('x', 0)"),
    "create_no_tag": after("tags.create('x', 'nope')"),
    "create_no_branch": after("tags.create('x', ('nope', 1))"),
    "create_no_version_of_branch": after("tags.create('x', ('dev', 1))"),
    "create_numbers": after("tags.create('x', (1, 2))"),
    "create_one": after("tags.create('x', ('dev',))"),
    "create_float": after("tags.create('x', 1.5)"),
    "create_name_5": after("tags.create(5, 1)"),
    "create_numeric_name": after("tags.create('1', 1)", "tags.create('main', 1)"),
    **{
        f"create_name_{name!r}": after(f"tags.create({name!r}, 1)")
        for name in ("", ".a", "a.", "a..b", "a.lock", "a b", "a/b")
    },
    "update": after("tags.update('old', 1)"),
    "update_current": after("tags.update('old')"),
    "update_to_branch": after("tags.update('old', ('dev', 3))"),
    "update_unknown": after("tags.update('nope', 1)"),
    "update_no_version": after("tags.update('old', 9)"),
    "metadata": after("tags.replace_metadata('old', {'k': 'v'})", "tags.update('old', 1)"),
    "metadata_unknown": after("tags.replace_metadata('nope', {'k': 'v'})"),
    "metadata_number": after("tags.replace_metadata('old', {'k': 1})"),
    "metadata_none": after("tags.replace_metadata('old', None)"),
    "delete": after("tags.delete('old')"),
    "delete_unknown": after("tags.delete('nope')"),
    "delete_bad": after("tags.delete('a b')"),
    "get_version": lambda lib, ds: [ds.tags.get_version(name) for name in ("first", "old", "other")],
    "get_version_unknown": lambda lib, ds: ds.tags.get_version("nope"),
    "get_version_bad": lambda lib, ds: ds.tags.get_version("../x"),
    "checkout": lambda lib, ds: ds.checkout_version("first").to_table(),
    "checkout_of_branch": lambda lib, ds: ds.checkout_version("other").to_table(),
    "checkout_unknown": lambda lib, ds: ds.checkout_version("nope"),
    "checkout_none": lambda lib, ds: ds.checkout_version(None),
    "checkout_float": lambda lib, ds: ds.checkout_version(1.5),
    "checkout_main": lambda lib, ds: [ds.checkout_version(v).version for v in ((None, 1), ("main", 2), (None, None))],
    "open": lambda lib, ds: lib.dataset(ds.uri, version="old").to_table(),
    "open_of_branch": lambda lib, ds: lib.dataset(ds.uri, version="other").to_table(),
    "open_unknown": lambda lib, ds: lib.dataset(ds.uri, version="nope"),
    "open_nothing": lambda lib, ds: lib.dataset(ds.uri + "x", version="old"),
}


@pytest.mark.parametrize("name", CALLS)
def test_like_the_reference(pair: tuple[Any, Any], name: str) -> None:
    check_call(CALLS[name], pair)


def test_tags_of_a_branch(pair: tuple[Any, Any]) -> None:
    for ds in pair:
        branch = ds.checkout_version(("dev", None))
        branch.tags.create("here")
        branch.tags.create("two", 2)
        branch.tags.create("main2", (None, 2))
        with pytest.raises(ValueError, match="dev:1"):
            branch.tags.create("one", 1)
    assert without_times(pair[0].tags.list()) == without_times(pair[1].tags.list())
    assert pair[0].checkout_version("here").count_rows() == 21


def test_times(pair: tuple[Any, Any]) -> None:
    ours, _ = pair
    before = dt.datetime.now(dt.timezone.utc)
    ours.tags.create("x")
    tag = ours.tags.list()["x"]
    assert before <= tag["created_at"] == tag["updated_at"] <= dt.datetime.now(dt.timezone.utc)
    ours.tags.replace_metadata("x", {"a": "b"})
    assert ours.tags.list()["x"]["updated_at"] == tag["updated_at"]  # as in the reference
    ours.tags.update("x", 1)
    assert ours.tags.list()["x"]["updated_at"] > tag["updated_at"]
    assert ours.tags.list()["x"]["created_at"] == tag["created_at"]


def test_letters_outside_ascii(pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    with pytest.raises(InvalidInputError, match="pylance cannot list"):
        ours.tags.create("ü")
    theirs.tags.create("ü")
    there = lance_dataset.dataset(theirs.uri)
    assert there.tags.get_version("ü") == 3
    assert "ü" in there.tags.list()
    there.tags.delete("ü")
    assert "ü" not in theirs.tags.list()


def test_in_memory() -> None:
    session = lance_dataset.Session()
    ds = lance_dataset.write_dataset(pa.table({"a": [1]}), "memory://t", session=session)
    ds.tags.create("x")
    assert lance_dataset.dataset("memory://t", version="x", session=session).to_table() == ds.to_table()
