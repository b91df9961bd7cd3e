"""Server of a catalog: an ASGI application."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from lance_dataset.api.catalogs.packages import errors
from lance_dataset.api.catalogs.rest.routes import ARROW_FILE, ROUTES, Answer, Body, Route, sent_text, status_of
from lance_dataset.io.external.base import required_package
from lance_dataset.io.secrets import keep_secret, redacted

__all__ = ["CatalogApplication", "ServerLimits"]

_log = logging.getLogger(__name__)
_WHAT = "a server of catalogs"
_DEFAULT_BODY = 256 << 20
_JSON_BODY = 4 << 20
_OWN_SITES = (None, "same-origin", "none")
_DEFAULT_HOSTS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ServerLimits:
    """Limits of the use of a server: who may use it, and how much of it.

    Attributes
    ----------
    token
        Token that requests need, as ``Authorization: Bearer TOKEN``; None for no check.
    hosts
        Names in the header ``Host`` that are accepted, so that pages of other sites cannot use a server of this
        machine; ``*`` for all.
    max_body_bytes
        Most bytes of the rows of a request.
    """

    token: str | None = field(default=None, repr=False)
    hosts: Sequence[str] = _DEFAULT_HOSTS
    max_body_bytes: int = _DEFAULT_BODY


class _Refused(Exception):
    """Request that is answered with a status and an error."""

    def __init__(self, status: int, error: Exception) -> None:
        super().__init__(str(error))
        self.status, self.error = status, error


class CatalogApplication:
    """ASGI application that serves a catalog.

    Parameters
    ----------
    catalog
        The catalog, a `lance_namespace.LanceNamespace`.
    limits
        Who may use it.
    """

    def __init__(self, catalog: Any, limits: ServerLimits) -> None:
        self._catalog, self._limits = catalog, limits
        if limits.token:
            keep_secret([limits.token])
        self._requests = required_package("starlette.requests", "namespace", _WHAT)
        self._responses = required_package("starlette.responses", "namespace", _WHAT)
        self._threads = required_package("starlette.concurrency", "namespace", _WHAT)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request of HTTP."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            return
        answer = await self._reply(self._requests.Request(scope, receive))
        await answer(scope, receive, send)

    async def _reply(self, request: Any) -> Any:
        try:
            self._check_sender(request)
            route, parts, fields = self._route(request)
            content = await self._read_body(request, route)
            arguments = self._arguments(request, route, parts, fields, content)
            found = await self._threads.run_in_threadpool(getattr(self._catalog, route.name), *arguments)
            return self._answer(route, found)
        except _Refused as error:
            return self._failure(error.status, error.error)
        except errors.LanceNamespaceError as error:
            return self._failure(status_of(int(error.code)), error)
        except NotImplementedError as error:
            return self._failure(status_of(0), errors.UnsupportedOperationError(str(error)))
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.url.path)
            return self._failure(500, errors.InternalError(f"Internal error: {type(error).__name__}: {error}"))

    def _check_sender(self, request: Any) -> None:
        host = _host_name(request.headers.get("host", ""))
        if "*" not in self._limits.hosts and host not in self._limits.hosts:
            raise _Refused(421, errors.PermissionDeniedError(f"the host {host[:200]!r} is not served here"))
        if not _is_own_site(request.headers):
            raise _Refused(403, errors.PermissionDeniedError("requests of pages of other sites are refused"))
        if self._limits.token is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._limits.token.encode()):
            raise _Refused(401, errors.UnauthenticatedError("a valid token is needed: 'Authorization: Bearer TOKEN'"))

    def _route(self, request: Any) -> tuple[Route, list[str], dict[str, str]]:
        """Find the operation of a path, the id, and other fields in it. Segments are decoded one by one."""
        raw = request.scope.get("raw_path") or request.url.path.encode()
        segments = raw.decode("ascii", "replace").partition("?")[0].strip("/").split("/")
        delimiter = request.query_params.get("delimiter") or "$"
        for route in ROUTES.values():
            fields = _matched(route, segments) if request.method == route.method else None
            if fields is not None:
                name = fields.pop("id", "")
                return route, [] if name in ("", delimiter) else name.split(delimiter), fields
        raise _Refused(404, errors.UnsupportedOperationError(f"there is no request {request.method} {raw[:200]!r}"))

    async def _read_body(self, request: Any, route: Route) -> bytes:
        most = self._limits.max_body_bytes if route.body is Body.ROWS else _JSON_BODY
        refused = _Refused(413, errors.InvalidInputError(f"the content of a {route.name} has at most {most} bytes"))
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise refused
        parts: list[bytes] = []
        size = 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise refused
                parts.append(part)
        except self._requests.ClientDisconnect as error:
            raise _Refused(400, errors.InvalidInputError("the content of the request ends early")) from error
        return b"".join(parts)

    def _arguments(
        self, request: Any, route: Route, parts: list[str], fields: Mapping[str, str], content: bytes
    ) -> list[Any]:
        given: dict[str, Any] = {**_from_query(route, request.query_params), **fields}
        if route.body is Body.METADATA:
            given["metadata"] = _json(content)
        elif route.body is Body.JSON:
            given = {**_json(content), **given}
        given["id"] = parts
        given.pop("identity", None)
        try:
            made = route.request_class.model_validate(given)
        except ValueError as error:
            raise errors.InvalidInputError(f"Invalid input: {route.name}: {str(error)[:1000]}") from error
        return [made, content] if route.body is Body.ROWS else [made]

    def _answer(self, route: Route, found: Any) -> Any:
        if route.answer is Answer.NONE:
            return self._responses.Response(status_code=200)
        if route.answer is Answer.ROWS:
            return self._responses.Response(found.data, media_type=ARROW_FILE)
        if route.answer is Answer.TEXT:
            return self._responses.JSONResponse(found)
        if route.answer is Answer.COUNT:
            return self._responses.JSONResponse(found.count)
        if route.answer is Answer.METADATA:
            return self._responses.JSONResponse(found.metadata or {})
        plain = found if isinstance(found, dict) else found.model_dump(by_alias=True, exclude_none=True, mode="json")
        plain.pop("context", None)
        return self._responses.JSONResponse(plain)

    def _failure(self, status: int, error: Exception) -> Any:
        code = int(getattr(error, "code", 18))
        text = sent_text(code, redacted(str(error)))
        return self._responses.JSONResponse({"error": text, "code": code}, status_code=status)


def _matched(route: Route, segments: Sequence[str]) -> dict[str, str] | None:
    """Return the fields in a path, None if it is not that of a route."""
    wanted = ["v1", *route.path.split("/")]
    if len(wanted) != len(segments):
        return None
    fields: dict[str, str] = {}
    for pattern, segment in zip(wanted, segments, strict=True):
        if pattern.startswith("{"):
            # bytes that are not UTF-8 become lone surrogates, which names must not have
            fields[pattern[1:-1]] = unquote(segment, errors="surrogateescape")
        elif pattern != segment:
            return None
    return fields


def _from_query(route: Route, parameters: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kinds = route.request_class.model_fields
    for name in route.query:
        values = parameters.getlist(name)
        if not values or name not in kinds:
            continue
        kind = str(kinds[name].annotation)
        if "Dict" in kind:
            found[name] = _json(values[-1].encode())
        elif "List" in kind:
            found[name] = values
        elif "bool" in kind:
            found[name] = _flag(name, values[-1])
        elif "int" in kind:
            found[name] = _number(name, values[-1])
        else:
            found[name] = values[-1]
    return found


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise errors.InvalidInputError(f"Invalid input: {name} must be true or false, not {text[:100]!r}")
    return text.lower() == "true"


def _number(name: str, text: str) -> int:
    if not text.lstrip("-").isdecimal() or len(text) > 18:
        raise errors.InvalidInputError(f"Invalid input: {name} must be a number, not {text[:100]!r}")
    return int(text)


def _json(content: bytes) -> dict[str, Any]:
    if not content.strip():
        return {}
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise errors.InvalidInputError(f"Invalid input: the content is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise errors.InvalidInputError("Invalid input: the content must be a JSON object")
    return found


def _host_name(header: str) -> str:
    """Return the name in a header ``Host``, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.rpartition(":")[0].lower() if header.count(":") == 1 else header.lower()


def _is_own_site(headers: Mapping[str, str]) -> bool:
    """Return False for a request that a browser sends for a page of another site, whatever its user wants.

    Browsers send simple requests to any server that they reach, also to one of their own machine.
    """
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower():
        return False
    return headers.get("sec-fetch-site") in _OWN_SITES


async def _live(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
