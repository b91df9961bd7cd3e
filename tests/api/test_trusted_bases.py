"""Base paths that a manifest names: where they may lead, and which credentials go there."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_dataset as ours
from lance_dataset.errors import CorruptFileError, InvalidInputError, StoragePermissionError, UnsafePathError
from lance_dataset.io import resolve as resolving
from lance_dataset.io.local import LocalStore
from lance_dataset.io.vended import VendedOptions
from lance_dataset.table.base_access import BaseAccess, with_base_params, without_base_params
from lance_dataset.table.manifest import BasePath

ROWS = pa.table({"a": range(4)})


def with_base(path: Path, base: str) -> Path:
    """Write a dataset whose only data file is in a base path; the reference accepts any text for it."""
    lance.write_dataset(ROWS, path, initial_bases=[lance.DatasetBasePath(base, "base")], target_bases=["base"])
    return path


@pytest.mark.parametrize("base", ["b", "./b", "../b", "~/b", "a/../b", " {0}/b", "file:b"])
def test_relative_base_paths(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base = base.format(tmp_path)
    path = with_base(tmp_path / "t", base)
    opened = ours.dataset(path)
    for use in (opened.to_table, lambda: opened.deep_clone(tmp_path / "d", None), opened.validate):
        with pytest.raises(UnsafePathError, match="is relative"):
            use()
    assert not (tmp_path / "d/data").exists()
    with pytest.raises(InvalidInputError, match="must be an absolute path or a URI"):
        ours.write_dataset(ROWS, tmp_path / "u", initial_bases=[ours.DatasetBasePath(base)])
    with pytest.raises(InvalidInputError, match="must be an absolute path or a URI"):
        ours.write_dataset(ROWS, tmp_path / "u").add_bases([ours.DatasetBasePath(base)])


@pytest.mark.parametrize("base", ["{}/b", "{}/b/", "file://{}/b", "file-object-store://{}/b", "{}/x/../b", "{}/b b"])
def test_absolute_base_paths(base: str, tmp_path: Path) -> None:
    path = with_base(tmp_path / "t", base.format(tmp_path))
    assert ours.dataset(path).to_table() == ROWS
    for trusted in ([tmp_path], [f"file://{tmp_path}/"], [tmp_path / "b", tmp_path / "b b"]):
        assert ours.dataset(path, trusted_bases=trusted).to_table() == ROWS
    for trusted in ([], [f"{tmp_path}/t"], [f"{tmp_path}/bb"], [f"s3://{tmp_path}"], [f"{tmp_path}/b/c"]):
        with pytest.raises(UnsafePathError, match="does not lie in a trusted place"):
            ours.dataset(path, trusted_bases=trusted).to_table()


def test_a_private_file_is_not_copied(tmp_path: Path) -> None:
    path = with_base(tmp_path / "t", f"{tmp_path}/home")
    data = next((tmp_path / "home").iterdir())
    data.write_bytes(b"-----BEGIN PRIVATE KEY-----".ljust(data.stat().st_size))
    with pytest.raises(CorruptFileError, match="not a Lance file"):
        ours.dataset(path).deep_clone(tmp_path / "d", None)
    assert not [each for each in (tmp_path / "d").rglob("*") if each.is_file()]


def test_the_trust_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With other versions, branches, clones, writes, in other processes, and with a shared session."""
    path = with_base(tmp_path / "t", f"{tmp_path}/b")
    session = ours.Session()
    free = ours.dataset(path, session=session)
    assert free.to_table() == ROWS
    opened = ours.dataset(path, session=session, trusted_bases=[])
    ways: list[Any] = [
        opened,
        ours.LanceDataset(path, trusted_bases=[]),
        pickle.loads(pickle.dumps(opened)),
        opened.checkout_version(1),
        opened.create_branch("x"),
        ours.dataset(path, trusted_bases=[]).shallow_clone(tmp_path / "s", None),
        ours.dataset(path, trusted_bases=[], commit_lock=lambda _version: nullcontext()),
    ]
    for each in ways:
        with pytest.raises(UnsafePathError, match="does not lie in a trusted place"):
            each.to_table()
    for change in (lambda: opened.update({"a": "1"}, where="a = 1"), lambda: opened.add_columns({"b": "a"})):
        with pytest.raises(UnsafePathError, match="does not lie in a trusted place"):
            change()
    with pytest.raises(UnsafePathError, match="does not lie in a trusted place"):
        ours.write_dataset(ROWS, opened, mode="append", target_bases=["base"])
    assert free.to_table() == ROWS
    monkeypatch.setenv("LANCE_TRUSTED_BASES", f"s3://other/x, {tmp_path}/b")
    assert ours.dataset(path).to_table() == ROWS
    monkeypatch.setenv("LANCE_TRUSTED_BASES", "")
    with pytest.raises(UnsafePathError, match="LANCE_TRUSTED_BASES"):
        ours.dataset(path).to_table()
    assert ours.dataset(path, trusted_bases=[tmp_path]).to_table() == ROWS


def test_the_table_itself_needs_no_trust(tmp_path: Path) -> None:
    source = ours.write_dataset(ROWS, tmp_path / "t")
    source.create_branch("x").insert(ROWS)
    opened = ours.dataset(tmp_path / "t", trusted_bases=[])
    assert opened.checkout_version(("x", None)).count_rows() == 8
    clone = opened.shallow_clone(tmp_path / "c", None)
    assert clone.to_table() == ROWS
    with pytest.raises(UnsafePathError):
        ours.dataset(tmp_path / "c", trusted_bases=[]).to_table()


def test_links_do_not_lend_trust(tmp_path: Path) -> None:
    (tmp_path / "trusted").mkdir()
    (tmp_path / "private").mkdir()
    (tmp_path / "trusted/link").symlink_to(tmp_path / "private")
    path = with_base(tmp_path / "t", f"{tmp_path}/trusted/link")
    with pytest.raises(UnsafePathError, match="does not lie in a trusted place"):
        ours.dataset(path, trusted_bases=[tmp_path / "trusted"]).to_table()


def test_wrong_trust(tmp_path: Path) -> None:
    path = with_base(tmp_path / "t", f"{tmp_path}/b")
    for wrong in ("x", 3, [3], {"a": "b"}):
        with pytest.raises(TypeError, match="trusted_bases"):
            ours.dataset(path, trusted_bases=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="absolute"):
        ours.dataset(path, trusted_bases=["b"])


# -- credentials ---------------------------------------------------------------------------------------------------

OPTIONS = {
    "aws_access_key_id": "hidden-key",
    "AWS_SECRET_ACCESS_KEY": "hidden-secret",
    "session_token": "hidden-token",
    "azure_storage_sas_token": "hidden-sas",
    "account_key": "hidden-account",
    "google_service_account_key": "hidden-json",
    "manifest_store_url": "postgresql://user:password@host/db",
    "aws_region": "eu-north-1",
    "endpoint": "https://minio",
    "timeout": "3s",
    "base_2.access_key_id": "second",
}
SECRETS = {value for value in OPTIONS.values() if "hidden" in value or "password" in value}


def access(uri: str, options: dict[str, str] = OPTIONS) -> BaseAccess:
    table = SimpleNamespace(uri=lambda _path: uri, table_root="t", trusted_bases=None)
    return BaseAccess(table, "t", options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("table", "base"),
    [
        ("s3://bucket/t", "s3://other/x"),
        ("s3://bucket/t", "az://bucket/x"),
        ("s3://bucket/t", "gs://bucket/x"),
        ("az://container/t", "az://other/x"),
        ("abfss://c@one.dfs.core.windows.net/t", "abfss://c@two.dfs.core.windows.net/t"),
        ("/data/t", "s3://bucket/x"),
    ],
)
def test_credentials_stay_with_the_table(table: str, base: str) -> None:
    found = access(table).options(BasePath(1, base))
    assert not SECRETS & set(found.values())
    assert found["timeout"] == "3s"
    with pytest.raises(StoragePermissionError, match=r"base path 1 is '.*'.*as in the option 'base_1\.") as caught:
        access(table).granted(BasePath(1, base))
    assert not [secret for secret in SECRETS if secret in str(caught.value)]
    granted = access(table).granted(BasePath(2, base))
    assert granted["access_key_id"] == "second"
    assert not SECRETS & set(granted.values())


def test_what_is_not_secret_goes_along() -> None:
    other = access("s3://bucket/t").options(BasePath(1, "s3://other/x"))
    assert (other["aws_region"], other["endpoint"]) == ("eu-north-1", "https://minio")
    assert "endpoint" not in access("s3://bucket/t").options(BasePath(1, "az://other/x"))
    same = access("s3://bucket/t").granted(BasePath(1, "s3://bucket/x"))
    assert same["AWS_SECRET_ACCESS_KEY"] == "hidden-secret"
    assert "manifest_store_url" not in same
    # options of stores that need no credentials
    assert access("s3://bucket/t", {"region": "x"}).granted(BasePath(1, "s3://other/x")) == {"region": "x"}


def test_options_by_uri() -> None:
    options = with_base_params(OPTIONS, {"s3://other/x/": {"region": "there", "access_key_id": "third"}})
    assert options is not None
    assert access("s3://bucket/t", dict(options)).own_options(BasePath(2, "s3://other/x")) == {
        "access_key_id": "third",
        "region": "there",
    }
    assert access("s3://bucket/t", dict(options)).own_options(BasePath(2, "s3://other/y")) == {
        "access_key_id": "second"
    }
    assert access("s3://bucket/t", dict(options)).own_options(BasePath(1, "s3://other/x.y")) == {}
    assert not [key for key in access("s3://bucket/t", dict(options)).options(BasePath(1, "az://c")) if "third" in key]
    assert without_base_params(options) == OPTIONS
    assert with_base_params(OPTIONS, None) is OPTIONS
    lent = VendedOptions.merged({"a": "own"}, {"a": "lent"}, lambda: {"a": "again"})
    both = with_base_params(lent, {"s3://other/x": {"region": "there"}})
    assert isinstance(both, VendedOptions)
    assert dict(both) == {"a": "lent", "base_s3://other/x.region": "there"}
    changed = with_base_params(both, {"s3://other/x": {"region": "elsewhere"}})
    assert dict(changed or {}) == {"a": "lent", "base_s3://other/x.region": "elsewhere"}


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ("s3://b", TypeError),
        ({"s3://b": "x"}, TypeError),
        ({1: {}}, TypeError),
        ({"s3://b": {"region": 1}}, TypeError),
        ({"b": {}}, InvalidInputError),
        ({"s3://b": {"s3.region": "x"}}, InvalidInputError),
    ],
)
def test_wrong_options_of_bases(tmp_path: Path, params: Any, error: type[Exception]) -> None:
    fragments = ours.write_fragments(ROWS, tmp_path / "t", mode="create")
    overwrite = ours.LanceOperation.Overwrite(ROWS.schema, fragments)
    batch = [ours.Transaction(1, ours.LanceOperation.Append(fragments))]
    calls: list[Any] = [
        lambda **kwargs: ours.write_dataset(ROWS, tmp_path / "u", **kwargs),
        lambda **kwargs: ours.write_fragments(ROWS, tmp_path / "u", mode="create", **kwargs),
        lambda **kwargs: ours.LanceDataset.commit(tmp_path / "t", overwrite, **kwargs),
        lambda **kwargs: ours.dataset(tmp_path / "t", **kwargs),
        lambda **kwargs: ours.LanceDataset.commit_batch(tmp_path / "t", batch, **kwargs),
    ]
    for call in calls:
        with pytest.raises(error, match="base_store_params"):
            call(base_store_params=params)
        call(base_store_params={f"{tmp_path}/nothing": {"region": "x"}})


def test_errors_do_not_show_the_options_of_bases() -> None:
    with pytest.raises(TypeError, match="not str") as caught:
        with_base_params({}, {"s3://b": "secret_access_key=hush"})  # type: ignore[dict-item]
    assert "hush" not in str(caught.value)


def test_every_call_uses_the_options_of_bases(tmp_path: Path) -> None:
    """Options by URI decide how the files of a base are read; handles keep them, and tell only the others."""
    uri, params = f"{tmp_path}/b", {f"file://{tmp_path}/b": {"mmap": "false"}}
    bases = [ours.DatasetBasePath(uri, "b")]

    def is_mapped(opened: ours.LanceDataset) -> list[bool]:
        assert set(opened.to_table()["a"].to_pylist()) == set(range(4))
        return [fragment.is_mapped for fragment in opened.snapshot.reader.fragments]

    kept: dict[str, Any] = {"base_store_params": params}
    made = ours.write_dataset(ROWS, tmp_path / "t", initial_bases=bases, target_bases=["b"], **kept)
    assert (is_mapped(made), is_mapped(ours.dataset(tmp_path / "t"))) == ([False], [True])
    opened = ours.dataset(tmp_path / "t", storage_options={"timeout": "3s"}, **kept)
    assert is_mapped(opened) == is_mapped(pickle.loads(pickle.dumps(opened))) == [False]
    assert opened.initial_storage_options == {"timeout": "3s"}
    more = ours.write_fragments(ROWS, opened, target_all_bases=True, max_rows_per_file=2, **kept)
    append = ours.LanceOperation.Append(more)
    committed = ours.LanceDataset.commit(tmp_path / "t", append, read_version=1, **kept)
    assert is_mapped(committed) == [False, True, False]
    again = ours.write_fragments(ROWS, tmp_path / "t", target_bases=["b"], **kept)
    batch = [ours.Transaction(2, ours.LanceOperation.Append(again))]
    merged = ours.LanceDataset.commit_batch(opened, batch, **kept)["dataset"]
    assert is_mapped(merged) == [False, True, False, False]
    assert lance.dataset(tmp_path / "t", **kept).to_table().num_rows == 12


def test_options_reach_the_store_of_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_base(tmp_path / "t", f"{tmp_path}/b")
    given: list[dict[str, str]] = []

    def open_cloud(_uri: str, options: dict[str, str]) -> tuple[LocalStore, str]:
        given.append(options)
        return LocalStore(), f"{tmp_path}/b"

    monkeypatch.setattr(resolving, "_cloud_store", open_cloud)
    options = {key: value for key, value in OPTIONS.items() if not key.startswith("manifest")}
    opened = ours.dataset(path, storage_options=options | {"base_1.region": "here"})
    opened.snapshot.manifest.base_paths[0].__dict__["path"] = "s3://other/b"
    assert opened.to_table() == ROWS
    assert given
    assert not [options for options in given if SECRETS & set(options.values())]
