"""Hooks of the site's build: pages of the reference made from the public modules, and links that leave the site.

Run by mkdocs; see ``make docs``.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_PACKAGE = "lance_dataset"
#: Modules with a page of their own, in the order of the navigation.
_MODULES = (
    "dataset",
    "fragment",
    "query",
    "indices",
    "vector",
    "optimize",
    "schema",
    "blob",
    "file",
    "sampler",
    "udf",
    "commit",
    "progress",
    "util",
    "bitmap",
    "debug",
    "log",
    "errors",
    "spark",
)
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./(?:CONTRIBUTING|README)\.md\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each public module."""
    for module in _MODULES:
        files.append(File.generated(config, f"reference/{module}.md", content=_page(module)))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the pages of the reference in the navigation."""
    pages = [{f"{_PACKAGE}.{module}": f"reference/{module}.md"} for module in _MODULES]
    config.nav = [{"Reference": pages} if "Reference" in entry else entry for entry in config.nav or []]
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn links to files outside of the site into plain text."""
    return _OUTSIDE.sub(r"\1", markdown)


def _page(name: str) -> str:
    """Return the text of a module's page: its own docstring, then every public name where it is defined."""
    module = importlib.import_module(f"{_PACKAGE}.{name}")
    lines = [f"# {_PACKAGE}.{name}", "", inspect.getdoc(module) or "", ""]
    for public in sorted(module.__all__):
        value = getattr(module, public)
        if inspect.ismodule(value):
            continue
        place = getattr(value, "__module__", None)
        home = place if isinstance(place, str) and place.startswith(_PACKAGE) else module.__name__
        known = getattr(value, "__qualname__", public) if home != module.__name__ else public
        lines += [f"::: {home}.{known}", ""]
    return "\n".join(lines)
