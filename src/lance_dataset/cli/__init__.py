"""The `lance-dataset` command. It needs the extra ``cli``, which is imported only when the command runs."""

from __future__ import annotations

import sys

__all__ = ["main"]

_EXTRA_PACKAGES = frozenset({"rich", "typer"})


def main() -> None:
    """Run the command with the arguments of the process, and exit with its status."""
    try:
        from lance_dataset.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA_PACKAGES:
            raise
        sys.exit(f"lance-dataset: the command line needs {error.name}: pip install 'lance-dataset[cli]'")
    app()
