"""Releases of the reference on the page, the file versions they write, and their environments.

As a program, it installs the named releases if they are missing: `python -m compatibility.releases 0.4.21 1.0.0`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ENVIRONMENTS", "RELEASES", "VERSIONS", "Release", "environment"]

PROJECT = Path(__file__).parents[2]
#: Environment folder of a release, with {} for the release.
ENVIRONMENTS = str(PROJECT / ".venv-pylance-{}")
#: File versions, one table each.
VERSIONS = ("legacy", "2.0", "2.1", "2.2", "2.3")


@dataclass(frozen=True)
class Release:
    """Release of pylance.

    Attributes
    ----------
    name
        Version of the package on PyPI.
    versions
        File versions that it writes.
    unstable
        File versions that were still unstable; only the release itself is expected to read its files.
    requirements
        Requirements to install with it, because its own admit packages that are too new for it.
    """

    name: str
    versions: tuple[str, ...]
    unstable: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()

    @property
    def has_delete(self) -> bool:
        return self.name != "0.4.21"

    @property
    def has_new_manifest_names(self) -> bool:
        """True if it reads the manifest names that today's releases write by default."""
        return tuple(int(part) for part in self.name.split(".")) >= (0, 18)


def _with_arrow(version: str) -> tuple[str, ...]:
    return (f"pyarrow=={version}", "numpy<2")


RELEASES = (
    Release("0.4.21", ("legacy",), (), _with_arrow("14.0.2")),
    Release("0.5.10", ("legacy",), (), _with_arrow("14.0.2")),
    Release("0.6.0", ("legacy",), (), _with_arrow("14.0.2")),
    Release("0.7.5", ("legacy",), (), _with_arrow("14.0.2")),
    Release("0.8.0", ("legacy",), (), _with_arrow("14.0.2")),
    Release("0.8.21", ("legacy",), (), _with_arrow("14.0.2")),
    Release("0.10.18", ("legacy",), (), _with_arrow("14.0.2")),
    Release("0.15.0", ("legacy", "2.0"), (), _with_arrow("15.0.2")),
    Release("0.16.0", ("legacy", "2.0", "2.1"), ("2.1",), _with_arrow("15.0.2")),
    Release("0.18.2", ("legacy", "2.0", "2.1"), ("2.1",), _with_arrow("15.0.2")),
    Release("0.20.0", ("legacy", "2.0", "2.1"), ("2.1",)),
    Release("0.25.2", ("legacy", "2.0", "2.1"), ("2.1",)),
    Release("0.38.2", ("legacy", "2.0", "2.1", "2.2"), ("2.2",)),
    Release("1.0.0", ("legacy", "2.0", "2.1", "2.2"), ("2.2",)),
    Release("4.0.0", ("legacy", "2.0", "2.1", "2.2", "2.3"), ("2.3",)),
    Release("6.0.0", ("legacy", "2.0", "2.1", "2.2", "2.3"), ("2.3",)),
    Release("14.0.2", ("legacy", "2.0", "2.1", "2.2", "2.3"), ("2.3",)),
)


def environment(release: Release, folder: str) -> Path:
    """Return the Python interpreter of a release's environment, which is created first if it is missing.

    Parameters
    ----------
    folder
        Folder of the environment, with `{}` for the release.
    """
    home = Path(folder.format(release.name))
    python = home / "bin" / "python"
    if (home / ".stamp").exists():
        return python
    # All of these have wheels for Python 3.10 to 3.12.
    found = subprocess.run(
        [PROJECT / "scripts" / "find_python.sh", "10", "12"], check=True, stdout=subprocess.PIPE, text=True
    )
    print(f"Installing pylance {release.name} into {home}", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([found.stdout.strip(), "-m", "venv", home], check=True)
    packages = [f"pylance=={release.name}", *release.requirements]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    (home / ".stamp").touch()
    return python


if __name__ == "__main__":
    for wanted in RELEASES:
        if wanted.name in sys.argv[1:]:
            environment(wanted, ENVIRONMENTS)
