"""Error handling: one message on stderr and an exit status, never a traceback for a mistake of the user."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ParamSpec, TypeVar

import typer

from lance_dataset.errors import DamagedIndexError, LanceError

__all__ = ["guarded", "run_with_json_errors"]

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def guarded(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wrap a command so that expected errors end it with a message and a status.

    Errors of this package, of Arrow (such as a bad value in a CSV file) and of the operating system exit with 1.
    With ``--json`` the message is JSON too. Ctrl-C exits with 130. Anything else is a bug and keeps its traceback.
    """

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        import pyarrow as pa

        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # The reader (`| head`) has closed the pipe; the interpreter must not complain when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except (LanceError, pa.ArrowException, OSError) as error:
            _tell(error, as_json=bool(kwargs.get("as_json")))
            raise typer.Exit(FAILED) from None

    return run


def run_with_json_errors(app: typer.Typer) -> int:
    """Run a command whose arguments have ``--json``, and return its status. Mistakes in its arguments are JSON too."""
    usage_error = typer.BadParameter.__base__
    try:
        return int(typer.main.get_command(app).main(standalone_mode=False) or 0)
    except Exception as error:
        if usage_error is None or not isinstance(error, usage_error):
            raise
        _tell(error, as_json=True)
        return WRONG_USAGE


def _tell(error: Exception, *, as_json: bool) -> None:
    if as_json:
        import json

        message = getattr(error, "format_message", error.__str__)()
        told: dict[str, Any] = {"type": type(error).__name__, "message": message}
        if isinstance(error, DamagedIndexError):
            told["problems"] = [asdict(problem) for problem in error.problems]
        typer.echo(json.dumps({"error": told}), err=True)
    else:
        typer.echo(f"error: {error}", err=True)
