"""Azure server for tests: Azurite, which `scripts/ensure_servers.sh` installs in ``.servers``, with data in memory.

A test that needs it fails if it is not installed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import pytest

from support.stores.server_process import free_ports, running

__all__ = ["AzureServer", "azure_server"]

_ACCOUNT = "testaccount"
_KEY = base64.b64encode(b"a key that is of no use elsewhere").decode()
_PROGRAM = Path(__file__).parents[3] / ".servers/node_modules/azurite/dist/src/blob/main.js"


@dataclass(frozen=True)
class AzureServer:
    """Running server.

    Attributes
    ----------
    endpoint
        URL of the account.
    """

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """Storage options for this server."""
        return {
            "azure_endpoint": self.endpoint,
            "azure_storage_account_name": _ACCOUNT,
            "azure_storage_account_key": _KEY,
            "allow_http": "true",
        }

    def new_container(self) -> str:
        """Create an empty container and return its name."""
        name = f"container-{uuid.uuid4().hex[:12]}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-10-04"}
        signed = "\n".join(
            [
                "PUT",
                *[""] * 11,
                *(f"{key}:{value}" for key, value in headers.items()),
                f"/{_ACCOUNT}/{_ACCOUNT}/{name}",
                "restype:container",
            ]
        )
        digest = hmac.new(base64.b64decode(_KEY), signed.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}"
        url = f"{self.endpoint}/{name}?restype=container"
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=10):
            return name


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    if not _PROGRAM.exists():
        pytest.fail("the tests with an Azure server need Azurite: scripts/ensure_servers.sh")
    folder = tmp_path_factory.mktemp("azure")
    [port] = free_ports(1)
    server = AzureServer(f"http://127.0.0.1:{port}/{_ACCOUNT}")
    command = ["node", str(_PROGRAM), "--inMemoryPersistence", "--skipApiVersionCheck", "--silent"]
    command += ["--disableTelemetry", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    accounts = {**os.environ, "AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_KEY}"}
    with running("Azurite", command, folder, server.new_container, env=accounts):
        yield server
