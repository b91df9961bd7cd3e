"""Passwords, keys and tokens in options: nothing shows them."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import inspect
import logging
import pickle
import pkgutil
import threading
import traceback
import types
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import InvalidInputError, LanceError
from lance_dataset.io import secrets
from lance_dataset.io.external.dynamodb import DynamoAccess, DynamoManifests
from lance_dataset.io.external.options import without_manifests
from lance_dataset.io.resolve import resolve
from lance_dataset.io.secrets import redacted, scrubbed

ROWS = pa.table({"a": range(10)})
SECRET = "geheim-0123456789"
#: Words in the names of what may hold a secret.
TELLING = ("option", "config", "client", "key_id", "secret", "token", "password", "credential", "environment", "url")
OPTIONS = {
    "aws_access_key_id": f"id-{SECRET}",
    "aws_secret_access_key": SECRET,
    "aws_session_token": SECRET,
    "azure_storage_account_key": SECRET,
    "azure_storage_sas_token": f"?sv=1&sig={SECRET}",
    "google_service_account_key": f'{{"private_key": "{SECRET}"}}',
    "proxy_url": f"http://user:{SECRET}@proxy",
    "base_1.secret_access_key": SECRET,
    "something_else": SECRET,
}


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without secrets that were noted: what is not shown must not depend on that alone."""
    monkeypatch.setattr(secrets, "_known", {})


def modules() -> Iterator[types.ModuleType]:
    for found in pkgutil.walk_packages(lance_dataset.__path__, "lance_dataset."):
        if found.name.endswith("__main__"):
            continue
        with suppress(ModuleNotFoundError):  # an optional package
            yield importlib.import_module(found.name)


def dataclasses_of_options() -> list[type]:
    found = {
        each
        for module in modules()
        for each in vars(module).values()
        if inspect.isclass(each) and dataclasses.is_dataclass(each) and each.__module__ == module.__name__
        if any(word in field.name.lower() for field in dataclasses.fields(each) for word in TELLING)
    }
    return sorted(found, key=lambda each: (each.__module__, each.__qualname__))


#: Rooms that know no stores.
_ELSEWHERE = tuple(f"lance_dataset.{room}." for room in ("_proto", "expr", "file", "index", "types"))
#: Fields whose name sounds like it, but which hold no options of a store.
NAMES_ONLY = {"CloudObject.client", "StoreKind.credentials"}
HARMLESS = {"type_url", "config", "config_delete_keys", "config_upserts", "options", "scan_options", "tokens"}


def is_option(kind: type, field: dataclasses.Field[Any]) -> bool:
    """Return True if a field may hold options of a store."""
    if not any(word in field.name.lower() for word in TELLING) or f"{kind.__name__}.{field.name}" in NAMES_ONLY:
        return False
    return kind.__module__.startswith("lance_dataset.io.") or field.name not in HARMLESS


def test_dataclasses() -> None:
    """Fields with options of a store, and fields for single secrets, are not part of the representation."""
    checked, shows = set(), []
    for kind in dataclasses_of_options():
        if kind.__module__.startswith(_ELSEWHERE):
            continue
        made, held = object.__new__(kind), set()
        for field in dataclasses.fields(kind):
            holds = is_option(kind, field)
            held |= {f"{kind.__name__}.{field.name}"} if holds else set()
            single = field.name in ("access_key_id", "secret_access_key", "session_token")
            object.__setattr__(made, field.name, (SECRET if single else OPTIONS) if holds else "")
        try:
            shown = f"{made!r} {made}"
        except (AttributeError, TypeError):  # a representation of more than fields
            continue
        checked |= held
        if SECRET in shown:
            shows.append(f"{kind.__module__}.{kind.__qualname__}")
    assert shows == []
    assert {
        "CloudOptions.config",
        "CloudOptions.client",
        "DynamoAccess.secret_access_key",
        "DynamoAccess.session_token",
        "DynamoAccess.access_key_id",
        "ReadOptions.storage_options",
        "WriteOptions.storage_options",
        "TableLocation.storage_options",
    } <= checked


def reachable(start: object) -> Iterator[object]:
    """Yield the objects of the package that an object leads to."""
    seen, left = set(), [start]
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, types.ModuleType | types.FunctionType | type | types.FrameType):
            continue
        seen.add(id(each))
        if type(each).__module__.startswith("lance_dataset"):
            yield each
        left += gc.get_referents(each)


def check_reachable(start: object) -> int:
    found = list(reachable(start))
    for each in found:
        assert SECRET not in f"{each!r} {each}", type(each)
    return len({type(each) for each in found})


def test_everything_that_a_handle_leads_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = {"manifest_store_url": f"sqlite:///{tmp_path}/db"}
    path = f"{tmp_path}/t"
    lance_dataset.write_dataset(ROWS, path, storage_options=OPTIONS | url)
    opened = lance_dataset.dataset(path, storage_options=OPTIONS | url)
    opened.to_table()
    scanner = opened.scanner(filter="a > 3")
    kinds = check_reachable(
        [opened, opened._repr_html_(), scanner, opened.get_fragments(), opened.session(), opened.tags, opened.branches]
    )
    assert kinds > 20
    assert SECRET not in f"{scanner.explain_plan()} {scanner.analyze_plan()} {opened.stats.dataset_stats()}"
    assert SECRET not in caplog.text
    # pickles carry the options, which the guide says
    assert SECRET.encode() in pickle.dumps(opened)


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://bucket/t?X-Amz-Signature={SECRET}&a=b",
        f"az://container/t?sv=2&sig={SECRET}",
        f"file://user:{SECRET}@host/a",
        f"https://user:{SECRET}@host/a",
        f"s3+ddb://bucket/x?sig={SECRET}",
        f"s3://:{SECRET}@bucket/../x",
    ],
)
def test_locations(uri: str) -> None:
    with pytest.raises(LanceError) as caught:
        lance_dataset.dataset(uri, storage_options=OPTIONS)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "uri", ["s3://me:{}@bucket/x", "gs://:{}@bucket/x", "az://me:{}@account/x", "abfss://me:{}@account/x"]
)
def test_passwords_of_locations(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    """They are hidden although no option has told that they are secret."""
    caplog.set_level(logging.DEBUG)
    password = "-".join(["unheard", "of"])
    with pytest.raises(InvalidInputError, match="has a password") as caught:
        lance_dataset.dataset(uri.format(password))
    assert password not in "".join(traceback.format_exception(caught.value)) + caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"allow_http": SECRET},
        {"timeout": SECRET},
        {"client_max_retries": SECRET},
        {"aws_access_key_id": SECRET, "access_key_id": "other"},
        {"endpoint": f"http://user:{SECRET}@host"},
        {"checksum_algorithm": SECRET},
        {"conditional_put": SECRET},
        {"manifest_store_url": SECRET},
        {"manifest_store_url": f"nonsense://user:{SECRET}@host/db"},
        {"manifest_store_url": f"sqlite://user:{SECRET}@/:memory:"},
        {"manifest_store_url": f"postgresql://user:{SECRET}@localhost:1/db?password={SECRET}"},
    ],
)
def test_options_that_cannot_be_used(options: dict[str, str]) -> None:
    with pytest.raises(LanceError) as caught:
        lance_dataset.dataset("s3://bucket/t", storage_options={"aws_region": "x"} | options)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_manifest_stores() -> None:
    _, manifests = without_manifests("/t", {"manifest_store_url": f"sqlite:////tmp/db?timeout=5&password={SECRET}"})
    assert SECRET not in f"{manifests!r} {manifests}"
    access = DynamoAccess.from_options(OPTIONS | {"dynamodb_endpoint": f"http://user:{SECRET}@host"})
    assert access.secret_access_key == SECRET
    assert SECRET not in f"{access!r} {access} {DynamoManifests('t', access)!r}"


def test_a_server_that_sends_secrets_back(caplog: pytest.LogCaptureFixture) -> None:
    """Some servers describe a bad signature with all that they got, and a hostile one may know more."""
    caplog.set_level(logging.DEBUG)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = (
                f"<Error><Code>SignatureDoesNotMatch</Code><Message>{SECRET} {self.headers}</Message></Error>".encode()
            )
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {
        "aws_region": "x",
        "aws_access_key_id": "name",
        "aws_secret_access_key": SECRET,
        "endpoint": f"http://127.0.0.1:{server.server_port}",
        "allow_http": "true",
        "client_max_retries": "0",
    }
    try:
        store, root = resolve("s3://bucket/t", options)
        calls: list[Any] = [
            *(store.read, store.open_input, store.exists, store.delete, store.delete_tree),
            *(lambda path: store.put(path, b"x"), lambda path: store.put_if_absent(path, b"x")),
            *(lambda path: list(store.list(path)), lambda path: store.copy(path, "y")),
        ]
        for call in calls:
            with pytest.raises(LanceError, match="failed") as caught:
                call(f"{root}/x")
            assert SECRET not in "".join(traceback.format_exception(caught.value))
    finally:
        server.shutdown()
        server.server_close()
    assert SECRET not in caplog.text


def test_redaction() -> None:
    secrets.keep_secret([SECRET, "short", None, ""])
    for text, expected in (
        (f"bad {SECRET}!", "bad ***!"),
        ("postgresql://me:pass/word@host/db", "postgresql://me:pass/word@host/db"),
        ("postgresql://me:pa:ss@host/db", "postgresql://me:***@host/db"),
        ("https://h/p?sig=abc%3D&se=3 and", "https://h/p?sig=***&se=3 and"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
        ("short stays, a=b", "short stays, a=b"),
    ):
        assert redacted(text) == expected
    inner = ValueError(f"inner {SECRET}", 3)
    outer = OSError(5, f"outer {SECRET}")
    outer.__cause__ = inner
    outer.__notes__ = [f"note {SECRET}"]  # as add_note does from Python 3.11 on
    assert SECRET not in "".join(traceback.format_exception(scrubbed(outer)))
    assert outer.errno == 5
    for number in range(3000):
        secrets.keep_secret([f"secret number {number}"])
    assert len(secrets._known) <= 1024
    with pytest.raises(InvalidInputError):
        lance_dataset.dataset("")
