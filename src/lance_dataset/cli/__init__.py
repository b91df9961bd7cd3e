"""The `lance-dataset` command. It needs the extra ``cli``, which is imported only when the command runs."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

__all__ = ["main"]

_EXTRA_PACKAGES = frozenset({"rich", "typer"})


class _WithoutPandas:
    """Import hook that keeps pandas out.

    Arrow imports pandas, if it is installed, as soon as it converts a value. That takes longer than most commands do,
    and none of them needs it.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("the command line does not use pandas", name=name)
        return None


def main() -> None:
    """Run the command with the arguments of the process, and exit with its status."""
    sys.meta_path.insert(0, _WithoutPandas)
    try:
        from lance_dataset.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA_PACKAGES:
            raise
        sys.exit(f"lance-dataset: the command line needs {error.name}: pip install 'lance-dataset[cli]'")
    if "--json" in sys.argv:
        from lance_dataset.cli.guard import run_with_json_errors

        sys.exit(run_with_json_errors(app))
    app()
