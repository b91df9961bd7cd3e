"""Application behind the page: paths, answers, errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime
from importlib.resources import files
from typing import Any

import pyarrow as pa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from lance_dataset.errors import LanceError
from lance_dataset.viewer import facts, queries, rows
from lance_dataset.viewer.export import export
from lance_dataset.viewer.media import UNKNOWN_MEDIA, Content, content
from lance_dataset.viewer.parameters import Parameters
from lance_dataset.viewer.plane import plane
from lance_dataset.viewer.problems import problem
from lance_dataset.viewer.source import Source

__all__ = ["application"]

_logger = logging.getLogger("lance_dataset.viewer")

_ARROW = "application/vnd.apache.arrow.stream"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
#: Values are shown in elements that run no scripts; this holds for one that is opened by itself, too.
_VALUE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_PDF_POLICY = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'"

_ANSWERS: dict[str, Callable[[Source, Parameters], Any]] = {
    "table": rows.table,
    "rows": rows.window,
    "count": rows.count,
    "cell": rows.cell,
    "sql": queries.sql,
    "search": queries.search,
    "plan": queries.plan,
    "statistics": facts.statistics,
    "versions": facts.history,
    "compare": facts.comparison,
    "storage": facts.occupied,
    "map": plane,
}


def application(source: Source) -> Starlette:
    """Return the application that shows a dataset; the paths have no token any more."""
    routes = [Route(f"/api/{name}", _answering(source, answer)) for name, answer in _ANSWERS.items()]
    routes += [Route("/media", _media(source)), Route("/export", _export(source))]
    routes += [Route(path, _static(data, kind)) for path, (data, kind) in _page_files().items()]
    return Starlette(routes=routes)


def _page_files() -> dict[str, tuple[bytes, str]]:
    """Read the files of the page; no path of a request ever reaches the file system."""
    found = {}
    for file in files("lance_dataset.viewer").joinpath("static").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in _TYPES:
            found["/" if file.name == "index.html" else f"/{file.name}"] = (file.read_bytes(), _TYPES[suffix])
    return found


def _static(data: bytes, kind: str) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return Response(data, media_type=kind)

    return answer


def _answering(source: Source, make: Callable[[Source, Parameters], Any]) -> Callable[[Request], Response]:
    """Return the endpoint of a function that returns an Arrow stream, or facts for JSON."""

    def answer(request: Request) -> Response:
        given = request.query_params
        try:
            made = make(source, Parameters(given))
            return Response(made, media_type=_ARROW) if isinstance(made, bytes) else _json(made)
        except Exception as error:
            return _failed(error, given.get("query") or given.get("filter"))

    return answer


def _media(source: Source) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        try:
            found = content(source, Parameters(request.query_params), request.headers.get("range"))
        except Exception as error:
            return _failed(error, None)
        return Response(status_code=404) if found is None else _content_response(found)

    return answer


def _content_response(found: Content) -> Response:
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Security-Policy": _PDF_POLICY if found.type == "application/pdf" else _VALUE_POLICY,
        "Content-Disposition": "attachment; filename=value.bin" if found.type == UNKNOWN_MEDIA else "inline",
        "X-Value-Size": str(found.size),
    }
    if found.partial:
        headers["Content-Range"] = f"bytes {found.start}-{found.start + len(found.data) - 1}/{found.size}"
    return Response(found.data, 206 if found.partial else 200, headers, found.type)


def _export(source: Source) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        given = Parameters(request.query_params)
        try:
            made = export(source, given)
        except Exception as error:
            return _failed(error, request.query_params.get("filter"))
        disposition = f"attachment; filename={made.name}"
        return StreamingResponse(made.parts, 200, {"Content-Disposition": disposition}, made.type)

    return answer


def _failed(error: Exception, text: str | None) -> Response:
    """Return what the page shows of an error; of one that nobody expects only that it happened."""
    if isinstance(error, (LanceError, pa.ArrowException, OSError)):
        return _json({"error": problem(error, text)}, 400)
    _logger.error("a request failed", exc_info=error)
    message = f"the server failed ({type(error).__name__}); its log says where"
    return _json({"error": {"type": "ServerError", "message": message, "position": None}}, 500)


def _json(value: Any, status: int = 200) -> Response:
    def plain(other: object) -> object:
        return other.isoformat() if isinstance(other, datetime) else str(other)

    text = json.dumps(value, default=plain, ensure_ascii=False, allow_nan=False)
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")
