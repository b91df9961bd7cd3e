"""Lint the codec core: cython-lint, and the import rule that import-linter cannot see in .pyx files.

`lancecodec` may import only itself, Cython, the C library and the standard library. Its `general` module may also
import the two compression libraries.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

CODEC_DIR = Path(__file__).resolve().parent.parent / "src" / "lancecodec"
IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+c?import\b|c?import\s+([\w.]+))")
ALLOWED = {"lancecodec", "cython", "libc", "libcpp", "cpython", *sys.stdlib_module_names}
# typing_extensions: for type checkers, in stubs.
ALLOWED_IN = {"general": {"lz4", "zstandard", "typing_extensions"}}


def forbidden_imports(path: Path) -> list[str]:
    """Return one message per forbidden import of the codec core."""
    messages = []
    allowed = ALLOWED | ALLOWED_IN.get(path.stem, set())
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = IMPORT.match(line)
        module = (match[1] or match[2]) if match else "."
        if not module.startswith(".") and module.split(".")[0] not in allowed:
            messages.append(f"{path}:{number}: lancecodec must not import {module}")
    return messages


def main() -> None:
    sources = sorted([*CODEC_DIR.rglob("*.pyx"), *CODEC_DIR.rglob("*.pxd")])
    if not sources:
        return
    imports = [*sources, *sorted(CODEC_DIR.rglob("*.py"))]
    messages = [message for path in imports for message in forbidden_imports(path)]
    print("\n".join(messages), end="\n" if messages else "")
    tools = Path(sys.executable).parent  # cython-lint looks for pycodestyle on the PATH
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}
    linted = subprocess.run([tools / "cython-lint", *sources], env=environment, check=False)
    sys.exit(bool(messages) or linted.returncode)


if __name__ == "__main__":
    main()
