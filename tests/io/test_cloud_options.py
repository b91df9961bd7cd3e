"""Tests of options of cloud stores, handles that keep them, and error messages."""

from __future__ import annotations

import copy
import os
import pickle
import signal
from pathlib import Path

import pytest
from support.processes.child_process import run_script
from support.stores.s3_server import S3Server
from support.stores.stepping_stores import Lock

from lance_dataset.errors import (
    InvalidInputError,
    LanceError,
    StorageError,
    StoragePermissionError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.cloud import CLOUD_SCHEMES, CloudStore
from lance_dataset.io.cloud_options import AZURE, GCS, S3, StoreKind, read_options
from lance_dataset.io.guarded import commit_lock_of, with_commit_lock
from lance_dataset.io.resolve import resolve

# -- handles -----------------------------------------------------------------------------------------------------


def test_pickled_and_copied_stores(s3_server: S3Server, store: ObjectStore) -> None:
    store.put("t/a", b"x")
    for other in (pickle.loads(pickle.dumps(store)), copy.copy(store)):
        assert type(other) is CloudStore
        assert other.read("t/a") == b"x"
        assert other.uri("t/a") == store.uri("t/a")
        guarded = with_commit_lock(other, Lock())
        again = pickle.loads(pickle.dumps(guarded))
        assert type(commit_lock_of(again)) is Lock
        assert again.read("t/a") == b"x"
        assert commit_lock_of(store) is None
    script = """
        import pickle, sys
        sys.stdout.write(pickle.loads(bytes.fromhex(sys.argv[1])).read("t/a").decode())
    """
    process = run_script(script, pickle.dumps(store).hex())
    assert process.communicate(timeout=60)[0] == "x"


# -- options -----------------------------------------------------------------------------------------------------


def _options(kind: StoreKind, given: dict[str, str]) -> dict[str, object]:
    read = read_options(kind, given, {}, "s3://b")
    return {**read.config, **read.client}


def test_option_names() -> None:
    expected = {"region": "r", "access_key_id": "k", "endpoint": "http://e", "allow_http": True}
    for given in (
        {"aws_region": "r", "aws_access_key_id": "k", "aws_endpoint": "http://e", "allow_http": "true"},
        {"region": "r", "access_key_id": "k", "endpoint": "http://e", "aws_allow_http": "1"},
        {"REGION": "r", "AWS_ACCESS_KEY_ID": "k", "aws_endpoint_url": "http://e", "Allow_HTTP": "True", "what": "?"},
    ):
        assert _options(S3, given) == expected
    assert _options(S3, {"aws_session_token": "t"}) == _options(S3, {"token": "t"}) == {"session_token": "t"}
    for key in ("azure_storage_sas_key", "azure_storage_sas_token", "sas_key", "sas_token"):
        assert _options(AZURE, {key: "s"}) == {"sas_key": "s"}
    for key in ("azure_storage_use_emulator", "object_store_use_emulator", "use_emulator"):
        assert _options(AZURE, {key: "true"}) == {"use_emulator": "true"}
    for key in ("azure_storage_token", "bearer_token", "token"):
        assert _options(AZURE, {key: "s"}) == {"token": "s"}
    assert _options(AZURE, {"identity_endpoint": "s", "azure_use_azure_cli": "1"}) == {
        "msi_endpoint": "s",
        "use_azure_cli": "1",
    }
    assert _options(GCS, {"google_service_account": "s", "application_credentials": "a"}) == {
        "service_account": "s",
        "application_credentials": "a",
    }


def test_the_environment_counts_where_nothing_is_given(
    s3_server: S3Server, bucket: str, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("t/a", b"x")
    for key, value in s3_server.options.items():
        monkeypatch.setenv(key.upper(), value)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert resolve(f"s3://{bucket}/t")[0].read("t/a") == b"x"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoragePermissionError):
        resolve(f"s3://{bucket}/t")[0].read("t/a")
    right = {"secret_access_key": s3_server.options["aws_secret_access_key"]}
    assert resolve(f"s3://{bucket}/t", right)[0].read("t/a") == b"x"
    monkeypatch.setenv("ALLOW_HTTP", "false")
    with pytest.raises(InvalidInputError, match="allow_http"):
        resolve(f"s3://{bucket}/t", right)


def test_options_of_this_package() -> None:
    read = read_options(
        S3, {"client_max_retries": "7", "download_retry_count": "1", "block_size": "4096"}, {}, "s3://b"
    )
    assert (read.max_retries, read.retry_timeout, read.download_retries, read.block_size) == (7, 180, 1, 4096)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allow_http": "perhaps"}, "allow_http"),
        ({"client_max_retries": "-1"}, "client_max_retries"),
        ({"aws_endpoint": "http://localhost"}, "allow_http='true'"),
        ({"aws_region": "a", "region": "b"}, "contradict"),
        ({"timeout": "soon"}, "timeout"),
        ({"aws_s3_express": "perhaps"}, "s3_express"),
    ],
)
def test_bad_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        resolve("s3://bucket/t", options)


def test_the_client_knows_all_names() -> None:
    flags = {"allow_http", "allow_invalid_certificates", "http1_only", "http2_only"}
    values = {
        "application_credentials": None,
        "service_account": None,
        "service_account_key": None,
        "server_side_encryption": "AES256",
        "checksum_algorithm": "sha256",
        "conditional_put": "etag",
        "sse_customer_key_base64": None,
        "proxy_ca_certificate": None,
        "pool_max_idle_per_host": "3",
        "user_agent": "x",
        "default_content_type": "x/y",
        "proxy_url": "https://p",
        "proxy_excludes": "a",
        "account_key": "eHg=",
        "sas_key": "sv=1&sig=2",
    }
    client = {"timeout", "connect_timeout", "pool_idle_timeout", "http2_keep_alive_interval"}
    for uri, kind in (("s3://b/x", S3), ("gs://b/x", GCS), ("az://c/x", AZURE)):
        booleans = {name for name in kind.keys if name.startswith(("use_", "disable_", "skip_", "unsigned", "imdsv1"))}
        booleans |= {"s3_express", "virtual_hosted_style_request", "sse_bucket_key_enabled", "request_payer"}
        for name in sorted(kind.keys | flags | client | {"proxy_url", "user_agent", "default_content_type"}):
            if name in ("access_key_id", "secret_access_key"):
                continue  # neither without the other
            value = "false" if name in booleans | flags else "5s" if name in client else values.get(name, "https://x")
            if value is not None:
                account = {"account_name": "acc"} if kind is AZURE and name != "account_name" else {}
                assert isinstance(resolve(uri, {name: value, **account})[0], CloudStore), name


def test_other_stores_than_s3() -> None:
    assert set(CLOUD_SCHEMES) == {"s3", "gs", "az", "abfss"}
    store, root = resolve("gs://bucket/a/b", {"google_skip_signature": "true"})
    assert (store.uri(root), store.lists_in_order) == ("gs://bucket/a/b", True)
    store, root = resolve("az://box/a", {"account_name": "acc", "azure_storage_account_key": "eHg="})
    assert (store.uri(root), store.lists_in_order) == ("az://box/a", True)
    uri = "abfss://box@acc.dfs.core.windows.net/a"
    store, root = resolve(uri, {"sas_token": "sv=1&sig=2"})
    assert (store.uri(root), root) == (uri, "a")
    assert not resolve("s3://name--usw2-az1--x-s3/a", {"region": "us-west-2"})[0].lists_in_order
    with pytest.raises(InvalidInputError, match="Zone suffix"):
        resolve("s3://name/a", {"aws_s3_express": "true", "region": "us-west-2"})


# -- errors ------------------------------------------------------------------------------------------------------


def test_refused_credentials(s3_server: S3Server, bucket: str) -> None:
    wrong = {**s3_server.options, "aws_secret_access_key": "wrong", "client_max_retries": "0"}
    store, root = resolve(f"s3://{bucket}/t", wrong)
    for call in (
        lambda: store.read(root),
        lambda: store.open_input(root),
        lambda: store.put(root, b""),
        lambda: store.put_if_absent(root, b""),
        lambda: list(store.list(root)),
        lambda: store.exists(root),
        lambda: store.copy(root, "x"),
        lambda: store.delete_tree(root),
    ):
        with pytest.raises(StoragePermissionError, match=rf"s3://{bucket}/.*check the credentials") as caught:
            call()
        assert isinstance(caught.value, PermissionError)
        assert isinstance(caught.value, LanceError)


def test_missing_buckets_and_servers(s3_server: S3Server) -> None:
    store, root = resolve("s3://no-such-bucket/t", s3_server.options)
    with pytest.raises(StorageError, match="no such bucket"):
        store.read(root)
    with pytest.raises(StorageError, match="no such bucket"):
        store.put_if_absent(root, b"")
    nobody = {**s3_server.options, "aws_endpoint": "http://127.0.0.1:9", "client_max_retries": "0"}
    store, root = resolve("s3://bucket/t", nobody)
    for call in (lambda: store.read(root), lambda: list(store.list(root)), lambda: store.exists(root)):
        with pytest.raises(StorageError, match="check the endpoint"):
            call()


def test_without_the_client_library(tmp_path: Path) -> None:
    script = """
        import sys
        sys.modules["obstore"] = None
        import lance_dataset
        try:
            lance_dataset.dataset("s3://bucket/t")
        except lance_dataset.errors.UnsupportedError as error:
            print(error)
    """
    process = run_script(script)
    assert "pip install lance-dataset[cloud]" in process.communicate(timeout=60)[0]


def test_a_forked_child_says_what_is_wrong(store: ObjectStore) -> None:
    store.put("t/a", bytes(1 << 20))
    opened = store.open_input("t/a")
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        signal.alarm(20)
        try:
            answer = opened.read(0, 1).to_pybytes().decode() + store.read("t/a").decode()
        except BaseException as error:
            answer = f"{type(error).__name__} {error}"
        os.write(writing, answer.encode()[:2000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    assert answer.startswith("StorageError")
    assert "spawn" in answer
