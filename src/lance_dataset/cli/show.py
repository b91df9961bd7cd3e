"""`view`: the dataset in a page of the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import DatasetArgument, JsonOption, VersionOption, open_dataset

__all__ = ["view"]


@guarded
def view(
    uri: DatasetArgument,
    version: VersionOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page. [default: any that is free]")] = 0,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen at. With 0.0.0.0, other machines get in that have the address of the page."
        ),
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Show a dataset in a page of the browser, until Ctrl-C: rows, statistics, versions, storage. It only reads.

    Example: lance-dataset view flights.lance
    """
    from lance_dataset.cli import output
    from lance_dataset.viewer import Viewer

    viewer = Viewer(open_dataset(uri, version), host, port, ())
    output.tell({"uri": uri, "url": viewer.url}, f"{uri} is shown at\n{viewer.url}\nCtrl-C ends it.", as_json)
    if browser:
        import webbrowser

        webbrowser.open(viewer.url)
    viewer.run()
