"""Commands of the command line, run in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from lance_dataset.cli.app import app


def run(*arguments: object, status: int = 0) -> Result:
    """Run a command that must end with a status; its other exceptions are raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result


def run_json(*arguments: object) -> Any:
    """Run a command and return its JSON output."""
    return json.loads(run(*arguments, "--json").stdout)
