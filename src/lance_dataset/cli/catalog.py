"""Command that serves a catalog."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import JsonOption

__all__ = ["serve_namespace"]

_TOKEN = "LANCE_NAMESPACE_TOKEN"


@guarded
def serve_namespace(
    root: Annotated[str, typer.Argument(metavar="FOLDER", help="Path or URI of the folder of the tables.")],
    host: Annotated[str, typer.Option(help="Address to listen on. Others than that of this machine need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 2333,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help=f"Token that clients must send. [default: the environment variable {_TOKEN}]"
        ),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host", metavar="NAME", help="Name by which clients call this server; * for any. May be repeated."
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(metavar="BYTES", min=1, help="Most bytes of the rows of a request.")] = 256
    << 20,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property", metavar="NAME=VALUE", help="Property of the catalog, as in: storage.aws_region=eu-west-1."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the tables of a folder as a catalog, until interrupted. Needs the extra "namespace".

    Example: lance-dataset serve-namespace tables/ --port 2333
    """
    from lance_dataset.namespace import DirectoryNamespace, ServerLimits, serve_catalog

    given: dict[str, Any] = dict(_pair(text) for text in properties or ())
    secret = token or os.environ.get(_TOKEN) or None
    local = ("localhost", "127.0.0.1", "::1")
    if secret is None and host not in local:
        raise typer.BadParameter(f"serving on {host} needs a token: --token, or {_TOKEN}", param_hint="--host")
    catalog = DirectoryNamespace(**{**given, "root": root})
    hosts = (*local, host, *(each.lower() for each in allowed_hosts or ()))
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    typer.echo(json.dumps({"root": root, "url": url}) if as_json else f"serving {root} on {url}", err=not as_json)
    serve_catalog(catalog, host, port, ServerLimits(secret, hosts, max_body))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--property")
    return name, value
