"""Files that another process changes all the time."""

from __future__ import annotations

import mmap
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TOGGLE = """
import mmap, sys
from pathlib import Path
one, other = Path(sys.argv[2]).read_bytes(), Path(sys.argv[3]).read_bytes()
with open(sys.argv[1], "r+b") as handle:
    view = mmap.mmap(handle.fileno(), 0)
print("ready", flush=True)
while True:
    for _ in range(1000):
        view[: len(one)] = other
        view[: len(one)] = one
"""


@contextmanager
def toggled(path: Path, other: bytes) -> Iterator[None]:
    """Let another process replace the begin of a file by other bytes and put it back, again and again."""
    content = path.read_bytes()
    versions = [path.with_suffix(".one"), path.with_suffix(".other")]
    versions[0].write_bytes(content[: len(other)])
    versions[1].write_bytes(other)
    command = [sys.executable, "-c", _TOGGLE, str(path), *map(str, versions)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        try:
            yield
        finally:
            child.kill()
    path.write_bytes(content)


@contextmanager
def toggled_view(path: Path, one: bytes, other: bytes) -> Iterator[mmap.mmap]:
    """Map a file with the content `one`, which another process toggles."""
    path.write_bytes(one)
    with (
        open(path, "rb") as handle,
        mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as view,
        toggled(path, other),
    ):
        yield view
