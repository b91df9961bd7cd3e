"""DynamoDB server for tests: the server of moto, over HTTP, in a thread of this process.

moto checks the condition of a change and makes the change in two steps. DynamoDB promises one atomic step, so requests
are handled one at a time.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

__all__ = ["DynamoServer", "dynamodb_server"]

REGION = "us-east-1"


@dataclass(frozen=True)
class DynamoServer:
    """Running server.

    Attributes
    ----------
    endpoint
        URL of the server.
    calls
        Names of the requested operations; tests clear and count them.
    """

    endpoint: str
    calls: list[str] = field(default_factory=list)

    @property
    def options(self) -> dict[str, str]:
        """Storage options for this server, besides those of an S3 store."""
        return {"dynamodb_endpoint": self.endpoint, "aws_region": REGION}

    def client(self) -> Any:
        """Boto3 client to inspect and change the stored rows."""
        return boto3.client(
            "dynamodb",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def new_table(self, *keys: tuple[str, str, str]) -> str:
        """Make a table with (name, type, role) as keys, by default those of a manifest store, and return its name."""
        keys = keys or (("base_uri", "S", "HASH"), ("version", "N", "RANGE"))
        name = f"manifests-{uuid.uuid4().hex[:12]}"
        self.client().create_table(
            TableName=name,
            KeySchema=[{"AttributeName": key, "KeyType": role} for key, _, role in keys],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind} for key, kind, _ in keys],
            BillingMode="PAY_PER_REQUEST",
        )
        return name

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return everything in a table by dataset and version, with numbers as int."""
        items = self.client().scan(TableName=table, ConsistentRead=True)["Items"]
        rows = [{name: int(v["N"]) if "N" in v else v["S"] for name, v in item.items()} for item in items]
        return sorted(rows, key=lambda row: (row["base_uri"], row["version"]))

    def put(self, table: str, **values: str | int) -> None:
        """Insert or replace a row."""
        item = {name: {"N": str(v)} if isinstance(v, int) else {"S": v} for name, v in values.items()}
        self.client().put_item(TableName=table, Item=item)


class _OneAtATime:
    def __init__(self, calls: list[str]) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._calls = calls

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            if target := environ.get("HTTP_X_AMZ_TARGET"):
                self._calls.append(target.rpartition(".")[2])
            return list(self._app(environ, start_response))


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def dynamodb_server() -> Iterator[DynamoServer]:
    calls: list[str] = []
    server = make_server("127.0.0.1", 0, _OneAtATime(calls), threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield DynamoServer(f"http://127.0.0.1:{server.server_port}", calls)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
