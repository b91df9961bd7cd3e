"""Tests of names of tags and branches, and of their files: round trips and hostile content."""

from __future__ import annotations

import datetime as dt
import json
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables.bare_tables import SCHEMA, create

from lance_dataset.errors import (
    CorruptFileError,
    InvalidInputError,
    LanceError,
    ReferenceExistsError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.references import catalog as references
from lance_dataset.table.references.catalog import Place
from lance_dataset.table.references.files import (
    Branch,
    Tag,
    decode_branch,
    decode_tag,
    encode_branch,
    encode_tag,
)
from lance_dataset.table.references.names import (
    branch_of,
    branch_root,
    check_branch_name,
    check_new_branch_name,
    check_new_tag_name,
    check_tag_name,
    main_root,
    reference_file_name,
    reference_name,
)

ROOT = "/t"
NUMBERS = st.integers(0, 2**64 - 1)
TIMES = st.none() | st.datetimes(timezones=st.just(dt.timezone.utc), min_value=dt.datetime(1970, 1, 1))
TEXTS = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), st.text(st.characters(codec="utf-8")))
SEGMENTS = st.text(string.ascii_letters + "0123456789-_ä", min_size=1, max_size=6)
BRANCH_NAMES = st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join).filter(lambda name: name != "main")


@given(st.none() | BRANCH_NAMES, NUMBERS, NUMBERS, TIMES, TIMES, TEXTS)
def test_tags_come_back(branch, version, size, created, updated, metadata) -> None:  # type: ignore[no-untyped-def]
    tag = Tag("v1", branch, version, size, created, updated, metadata)
    assert decode_tag(encode_tag(tag), "v1", "file") == tag


@given(BRANCH_NAMES, st.none() | BRANCH_NAMES, NUMBERS, NUMBERS, TEXTS, st.lists(st.tuples(NUMBERS, st.text())))
def test_branches_come_back(name, parent, version, size, metadata, steps) -> None:  # type: ignore[no-untyped-def]
    branch = Branch(name, parent, version, 1, size, tuple(steps), metadata=metadata)
    encoded = encode_branch(replace_surrogates(branch))
    assert decode_branch(encoded, name, "file") == replace_surrogates(branch)
    assert reference_name(reference_file_name(name)) == name
    assert check_branch_name(name) == name


def replace_surrogates(branch: Branch) -> Branch:
    steps = tuple((version, text.encode(errors="replace").decode()) for version, text in branch.identifier)
    return Branch(
        branch.name,
        branch.parent_branch,
        branch.parent_version,
        branch.created_at,
        branch.manifest_size,
        steps,
        metadata=branch.metadata,
    )


BAD_TAGS = ["", ".a", "a.", "a..b", "a.lock", "a b", "a/b", "a\\b", "..", "a\0", "a:b", "a%2Fb", "../x"]
BAD_BRANCHES = [
    "",
    "main",
    "/a",
    "a/",
    "a//b",
    "a/../b",
    "..",
    ".",
    "a/.",
    "a\\b",
    "a.lock",
    "a/b.lock",
    "a b",
    "a%2Fb",
]


@pytest.mark.parametrize("name", BAD_TAGS)
def test_bad_tag_names(name: str) -> None:
    with pytest.raises(InvalidInputError, match="Ref is invalid"):
        check_tag_name(name)


@pytest.mark.parametrize("name", BAD_BRANCHES)
def test_bad_branch_names(name: str) -> None:
    with pytest.raises(InvalidInputError, match="Ref is invalid"):
        check_branch_name(name)


@pytest.mark.parametrize("name", ["x" * 300, "ä" * 50, "dev/data", "dev/_versions/x"])
def test_names_that_new_branches_may_not_have(name: str) -> None:
    assert check_branch_name(name) == name
    with pytest.raises(InvalidInputError, match="Ref is invalid"):
        check_new_branch_name(name)


def test_new_tags_are_ascii() -> None:
    assert check_tag_name("ü") == "ü"
    with pytest.raises(InvalidInputError, match="pylance cannot list"):
        check_new_tag_name("ü")


@pytest.mark.parametrize("name", [5, None, b"a"])
def test_names_are_text(name: object) -> None:
    with pytest.raises(TypeError):
        check_tag_name(name)
    with pytest.raises(TypeError):
        check_branch_name(name)


@given(st.text())
def test_no_branch_leaves_its_folder(name: str) -> None:
    try:
        check_branch_name(name)
    except InvalidInputError:
        return
    parts = branch_root("/t", name).split("/")
    assert parts[:3] == ["", "t", "tree"]
    assert not {"", ".", ".."} & set(parts[3:])


def test_roots() -> None:
    manifest = Manifest(1, SCHEMA, branch="dev/x")
    assert branch_of(manifest, "/t/tree/dev/x") == "dev/x"
    assert main_root(manifest, "/t/tree/dev/x") == "/t"
    assert branch_of(manifest, "/moved") is None  # another program copied the folder of the branch
    assert main_root(manifest, "/moved") == "/moved"
    assert branch_root("/t", None) == branch_root("/t", "main") == "/t"


BAD_TAG_FILES = {
    "no JSON": "{",
    "list": "[]",
    "deep": "[" * 100_000,
    "no version": '{"manifestSize": 3}',
    "no size": '{"version": 1}',
    "version is text": '{"version": "1", "manifestSize": 3}',
    "version is a float": '{"version": 1.0, "manifestSize": 3}',
    "version is true": '{"version": true, "manifestSize": 3}',
    "version is NaN": '{"version": NaN, "manifestSize": 3}',
    "negative": '{"version": -1, "manifestSize": 3}',
    "huge": '{"version": 18446744073709551616, "manifestSize": 3}',
    "very huge": '{"version": ' + "9" * 10_000 + ', "manifestSize": 3}',
    "size is null": '{"version": 1, "manifestSize": null}',
    "branch outside": '{"branch": "../../etc", "version": 1, "manifestSize": 3}',
    "branch is absolute": '{"branch": "/etc", "version": 1, "manifestSize": 3}',
    "branch is a number": '{"branch": 1, "version": 1, "manifestSize": 3}',
    "time": '{"version": 1, "manifestSize": 3, "createdAt": "yesterday"}',
    "time is a number": '{"version": 1, "manifestSize": 3, "createdAt": 5}',
    "no such day": '{"version": 1, "manifestSize": 3, "createdAt": "2024-02-31T00:00:00Z"}',
    "time out of range": '{"version": 1, "manifestSize": 3, "createdAt": "0001-01-01T00:00:00+23:00"}',
    "metadata": '{"version": 1, "manifestSize": 3, "metadata": {"a": 1}}',
    "metadata is null": '{"version": 1, "manifestSize": 3, "metadata": null}',
    "too large": '{"version": 1, "manifestSize": 3, "metadata": {"a": "' + "x" * (1 << 20) + '"}}',
}
BAD_BRANCH_FILES = {
    "no version": '{"createAt": 1, "manifestSize": 3}',
    "no time": '{"parentVersion": 1, "manifestSize": 3}',
    "parent outside": '{"parentBranch": "../..", "parentVersion": 1, "createAt": 1, "manifestSize": 3}',
    "identifier": '{"parentVersion": 1, "createAt": 1, "manifestSize": 3, "identifier": []}',
    "no steps": '{"parentVersion": 1, "createAt": 1, "manifestSize": 3, "identifier": {}}',
    "steps": '{"parentVersion": 1, "createAt": 1, "manifestSize": 3, "identifier": {"version_mapping": [[1]]}}',
    "step": '{"parentVersion": 1, "createAt": 1, "manifestSize": 3, "identifier": {"version_mapping": [[-1, "a"]]}}',
}


@pytest.mark.parametrize("case", BAD_TAG_FILES)
def test_bad_tag_files(case: str) -> None:
    store = MemoryStore()
    create(store, ROOT, 5)
    store.put(f"{ROOT}/_refs/tags/bad.json", BAD_TAG_FILES[case].encode())
    for call in (references.list_tags, lambda store, root: references.find_tag(store, root, "bad")):
        with pytest.raises(CorruptFileError, match=r"bad\.json"):
            call(store, ROOT)
    references.delete_tag(store, ROOT, "bad")
    assert references.list_tags(store, ROOT) == {}


@pytest.mark.parametrize("case", BAD_BRANCH_FILES)
def test_bad_branch_files(case: str) -> None:
    store = MemoryStore()
    store.put(f"{ROOT}/_refs/branches/bad.json", BAD_BRANCH_FILES[case].encode())
    with pytest.raises(CorruptFileError, match=r"bad\.json"):
        references.list_branches(store, ROOT)


@given(st.binary(max_size=40) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(str).map(str.encode))
def test_any_bytes_are_a_reference_or_refused(data: bytes) -> None:
    for decode in (decode_tag, decode_branch):
        with pytest.raises(CorruptFileError):
            decode(data, "x", "file")


@pytest.mark.parametrize("name", ["..%2F..%2Fx.json", "a b.json", ".json", "%00.json"])
def test_files_with_impossible_names(tmp_path: Path, name: str) -> None:
    for folder, listed in (("tags", references.list_tags), ("branches", references.list_branches)):
        (tmp_path / "_refs" / folder).mkdir(parents=True)
        (tmp_path / "_refs" / folder / name).write_text('{"version": 1, "parentVersion": 1, "manifestSize": 1}')
        with pytest.raises(CorruptFileError, match="move the file away"):
            listed(LocalStore(), str(tmp_path))


def test_other_files_are_ignored(tmp_path: Path) -> None:
    folder = tmp_path / "_refs" / "tags"
    (folder / "sub").mkdir(parents=True)
    for name in (".tmp_1", "notes.txt", "sub/x.json"):
        (folder / name).write_text("{")
    assert references.list_tags(LocalStore(), str(tmp_path)) == {}


def test_files_of_old_releases() -> None:
    tag = decode_tag(b'{"version": 1, "manifestSize": 205}', "t", "file")  # 0.20
    assert tag == Tag("t", None, 1, 205)
    content = {"parentBranch": None, "parentVersion": 1, "createAt": 1795304226, "manifestSize": 364}
    branch = decode_branch(json.dumps(content).encode(), "dev/x", "file")  # 1.0
    assert not branch.identifier_is_known
    assert branch == decode_branch(json.dumps(content).encode(), "dev/x", "file")
    assert len(branch.identifier) == 1


def test_times_of_any_zone() -> None:
    text = b'{"version": 1, "manifestSize": 3, "createdAt": "2024-01-01T00:00:00.123456789+02:00", "updatedAt": null}'
    tag = decode_tag(text, "t", "file")
    assert tag.created_at == dt.datetime(2023, 12, 31, 22, 0, 0, 123456, tzinfo=dt.timezone.utc)
    assert tag.updated_at is None


def test_tags_change() -> None:
    store = MemoryStore()
    create(store, ROOT, 5)
    made = references.create_tag(store, ROOT, "v", Place(None, 1))
    assert references.find_tag(store, ROOT, "v") == made
    assert made.manifest_size > 0
    with pytest.raises(ReferenceExistsError):
        references.create_tag(store, ROOT, "v", Place(None, 1))
    with pytest.raises(VersionNotFoundError, match="main:9"):
        references.create_tag(store, ROOT, "w", Place(None, 9))
    with pytest.raises(VersionNotFoundError, match="dev:1"):
        references.create_tag(store, ROOT, "w", Place("dev", 1))
    references.replace_tag_metadata(store, ROOT, "v", {"a": "b"})
    moved = references.update_tag(store, ROOT, "v", Place(None, 1))
    assert moved.metadata == {"a": "b"}
    assert moved.created_at == made.created_at
    assert moved.updated_at is not None
    assert made.updated_at is not None
    assert moved.updated_at > made.updated_at
    references.delete_tag(store, ROOT, "v")
    with pytest.raises(VersionNotFoundError):
        references.delete_tag(store, ROOT, "v")


@pytest.mark.parametrize("local", [False, True])
def test_one_of_many_creates_a_tag(tmp_path: Path, local: bool) -> None:
    store: ObjectStore = LocalStore(fsync=False) if local else MemoryStore()
    root = str(tmp_path / "t") if local else ROOT
    create(store, root, 5)

    def attempt(_: int) -> bool:
        try:
            references.create_tag(store, root, "v", Place(None, 1))
        except ReferenceExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(24))) == 1


@pytest.mark.parametrize("reference", [1.5, True, (1,), ("a", 1, 2), [None, 1], b"x", ("dev", "1"), (None, 1.5)])
def test_impossible_references(reference: object) -> None:
    store = MemoryStore()
    create(store, ROOT, 5)
    with pytest.raises(LanceError):
        references.find_place(store, ROOT, reference, Place(None, 1))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        references.find_place(store, ROOT, (1, 2), Place(None, 1))  # type: ignore[arg-type]
