"""PostgreSQL server for tests, of the installed package, on a free port of this machine.

It refuses to run as root, so root starts it as the user ``nobody``. A test that needs it fails if it is not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.stores.server_process import free_ports, running

__all__ = ["PostgresServer", "postgres_server"]

_USER = "tests"
_PASSWORD = "test-password"
#: Durability is not what is tested, and syncs are slow on a busy machine.
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "max_connections": "40", "shared_buffers": "16MB"}


@dataclass(frozen=True)
class PostgresServer:
    """Running server.

    Attributes
    ----------
    port
        Its port.
    """

    port: int

    def new_database(self) -> str:
        """Create an empty database and return its URL for SQLAlchemy."""
        name = f"tests_{uuid.uuid4().hex[:12]}"
        with self.connect() as connection:
            connection.autocommit = True
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
        return f"postgresql+psycopg://{_USER}:{_PASSWORD}@127.0.0.1:{self.port}/{name}"

    def connect(self) -> psycopg.Connection[Any]:
        """Connect as the administrator."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=_USER, password=_PASSWORD, dbname="postgres", connect_timeout=5
        )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="postgres-") as made:  # pytest's folders are closed to other users
        folder = Path(made)
        owner: dict[str, Any] = {}
        if os.name == "posix" and os.geteuid() == 0:
            owner = {"user": "nobody", "group": "nogroup" if Path("/etc/debian_version").exists() else "nobody"}
            shutil.chown(folder, **owner)
        data, secret = folder / "data", folder / "password"
        secret.write_text(_PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        setup = [f"--pgdata={data}", f"--username={_USER}", f"--pwfile={secret}", "--auth=scram-sha-256", "--no-sync"]
        done = subprocess.run(
            [programs / "initdb", *setup, "--encoding=UTF8", "--locale=C"], capture_output=True, cwd=folder, **owner
        )
        assert done.returncode == 0, done.stderr.decode()
        server = PostgresServer(free_ports(1)[0])
        command = [str(programs / "postgres"), "-D", str(data), "-k", str(folder), "-p", str(server.port)]
        command += ["-c", "listen_addresses=127.0.0.1"]
        for name, value in _SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        with running("PostgreSQL", command, folder, lambda: server.connect().close(), **owner):
            yield server


def _programs() -> Path:
    """Return the folder of the programs: the newest of Debian's, or that on the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    found = debian[-1] if debian else shutil.which("initdb")
    if found is None:
        pytest.fail("the tests with PostgreSQL need its server: scripts/ensure_servers.sh")
    return Path(os.path.realpath(found)).parent
