"""Client of a catalog behind a server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from lance_dataset.api.catalogs.operation import CountedCatalog, DynamicContextProvider, parts_of
from lance_dataset.api.catalogs.packages import errors, models, package
from lance_dataset.api.catalogs.rest.routes import ARROW_STREAM, ROUTES, Answer, Body, Route, error_of
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.external.base import required_package
from lance_dataset.io.option_values import flag_option
from lance_dataset.io.secrets import keep_secret, redacted

__all__ = ["RestNamespace"]

_HEADER, _CONTEXT_HEADER, _TLS = "header.", "headers.", "tls."
_SECONDS = 300.0
#: An answer that is longer does not describe its error in a way that helps.
_MOST_ERROR_BYTES = 10_000


class RestNamespace(CountedCatalog, package.LanceNamespace):
    """Catalog behind a server. It talks to servers of the reference, and of this package.

    Parameters
    ----------
    context_provider
        Object that is asked before each request; its ``headers.NAME`` are sent as headers.
    **properties
        ``uri`` (``http://host:port``, required), ``delimiter`` (``$`` by default), ``header.NAME`` (headers of every
        request), ``tls.cert_file``, ``tls.key_file``, ``tls.ssl_ca_cert``, ``tls.assert_hostname`` (``false`` for
        none), ``timeout_seconds`` (300), ``ops_metrics_enabled``.

    Raises
    ------
    InvalidInputError
        ``uri`` is missing or not one of HTTP, or a property has an invalid value.
    """

    def __init__(self, context_provider: DynamicContextProvider | None = None, **properties: Any) -> None:
        uri = str(properties.get("uri") or "")
        if not uri.startswith(("http://", "https://")):
            raise InvalidInputError(
                f"Missing required property 'uri', such as 'http://host:2333', not {redacted(uri)!r}"
            )
        self._uri = uri.rstrip("/")
        self._delimiter = str(properties.get("delimiter") or "$")
        self._headers = {
            name.removeprefix(_HEADER): str(value) for name, value in properties.items() if name.startswith(_HEADER)
        }
        keep_secret(self._headers.values())
        self._properties = dict(properties)
        self._context_provider = context_provider
        counted = flag_option("ops_metrics_enabled", str(properties.get("ops_metrics_enabled", "false")))
        self._counts = {} if counted else None
        self._pool: Any = None
        self._process = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._context_provider, self._properties)

    def __repr__(self) -> str:
        return self.namespace_id()

    def namespace_id(self) -> str:
        """Return a description of the catalog."""
        return f'RestNamespace {{ endpoint: "{redacted(self._uri)}", delimiter: "{self._delimiter}" }}'

    def batch_create_table_versions(self, request: Any) -> Any:
        """Raise UnsupportedOperationError: the protocol has no such request."""
        raise errors.UnsupportedOperationError("Not supported: batch_create_table_versions; create them one by one")

    def batch_commit_tables(self, request: Any) -> Any:
        """Raise UnsupportedOperationError: the protocol has no such request."""
        raise errors.UnsupportedOperationError("Not supported: batch_commit_tables; change the tables one by one")

    def update_field_metadata(self, request: Any) -> Any:
        """Raise UnsupportedOperationError: the protocol has no such request."""
        raise errors.UnsupportedOperationError(
            "Not supported: update_field_metadata; open the table with dataset(namespace_client=, table_id=)"
        )

    # -- requests --------------------------------------------------------------------------------------------------

    def _call(self, route: Route, request: Any, data: bytes | None = None) -> Any:
        """Send a request and return its answer."""
        headers = {**self._headers, **self._context_headers(route.name, request)}
        fields = _fields(request)
        in_path = {name: fields.get(name) for name in route.path_fields}
        missing = [name for name, value in in_path.items() if not value]
        if missing:
            raise errors.InvalidInputError(f"Invalid input: {', '.join(missing)} of {route.name} is missing")
        url = self._uri + route.url_path(parts_of(request), self._delimiter, in_path)
        content: bytes | None = None
        if route.body is Body.ROWS:
            content, headers["Content-Type"] = data or b"", ARROW_STREAM
        elif route.body is not Body.NONE:
            sent = fields.get("metadata") or {} if route.body is Body.METADATA else fields
            content, headers["Content-Type"] = json.dumps(sent).encode(), "application/json"
        query = [("delimiter", self._delimiter), *_query(route, fields)]
        return self._answer(route, *self._send(route.method, url, query, headers, content))

    def _context_headers(self, name: str, request: Any) -> dict[str, str]:
        context = self._begin(name, request)
        given = {
            key.removeprefix(_CONTEXT_HEADER): str(value)
            for key, value in context.items()
            if key.startswith(_CONTEXT_HEADER)
        }
        keep_secret(given.values())
        return given

    def _send(
        self, method: str, url: str, query: list[tuple[str, str]], headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        urllib3 = required_package("urllib3", "namespace", "a catalog behind a server")
        parse = required_package("urllib.parse", "namespace", "a catalog behind a server")
        address = f"{url}?{parse.urlencode(query)}"
        try:
            found = self._connections(urllib3).request(
                method, address, body=content, headers=dict(headers), redirect=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise errors.ServiceUnavailableError(
                f"Service unavailable: {redacted(self._uri)} does not answer: {redacted(str(error))}"
            ) from error
        return found.status, found.headers, found.data

    def _connections(self, urllib3: Any) -> Any:
        # connections must not be shared with the process that this one was forked from
        if self._pool is None or self._process != os.getpid():
            tls = {key.removeprefix(_TLS): value for key, value in self._properties.items() if key.startswith(_TLS)}
            options: dict[str, Any] = {
                "cert_file": tls.get("cert_file"),
                "key_file": tls.get("key_file"),
                "ca_certs": tls.get("ssl_ca_cert"),
            }
            if not flag_option("tls.assert_hostname", str(tls.get("assert_hostname", "true"))):
                options["assert_hostname"] = False
            # A request that changes something is not repeated: it may have succeeded although its answer was lost.
            retries = urllib3.Retry(connect=3, read=0, redirect=0, status=0, other=0, backoff_factor=0.1)
            seconds = float(self._properties.get("timeout_seconds") or _SECONDS)
            given = {name: value for name, value in options.items() if value is not None}
            self._pool = urllib3.PoolManager(retries=retries, timeout=urllib3.Timeout(seconds), **given)
            self._process = os.getpid()
        return self._pool

    def _answer(self, route: Route, status: int, headers: Mapping[str, str], content: bytes) -> Any:
        if not 200 <= status < 300:
            raise _error(route, status, content)
        if route.answer is Answer.ROWS:
            return models.QueryTableResponse(data=content)
        if route.answer is Answer.NONE:
            return route.answer_class()
        try:
            found = json.loads(content) if content.strip() else {}
            if route.answer is Answer.TEXT:
                return found if isinstance(found, str) else str(found)
            if route.answer is Answer.COUNT:
                return models.CountTableRowsResponse(count=found)
            if route.answer is Answer.METADATA:
                return models.UpdateTableSchemaMetadataResponse(metadata=found)
            made = route.answer_class.model_validate(found)
        except ValueError as error:
            raise errors.InternalError(
                f"Internal error: the answer of {redacted(self._uri)} to {route.name} cannot be read: "
                f"{redacted(str(error))[:500]}"
            ) from error
        made.context = {f"header.{name.lower()}": value for name, value in headers.items()}
        return made


def _fields(request: Any) -> dict[str, Any]:
    found = request if isinstance(request, dict) else request.model_dump(by_alias=True, exclude_none=True, mode="json")
    return {name: value for name, value in found.items() if value is not None and name not in ("identity", "context")}


def _query(route: Route, fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name in route.query:
        value = fields.get(name)
        if isinstance(value, list):
            found.extend((name, str(each)) for each in value)
        elif isinstance(value, dict):
            found.append((name, json.dumps(value, separators=(",", ":"))))
        elif isinstance(value, bool):
            found.append((name, "true" if value else "false"))
        elif value is not None:
            found.append((name, str(value)))
    return found


def _error(route: Route, status: int, content: bytes) -> Exception:
    """Return the error that an answer describes."""
    code, text = None, content[:_MOST_ERROR_BYTES].decode("utf-8", "replace")
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if isinstance(found, dict):
        code, text = found.get("code"), str(found.get("error") or found.get("detail") or text)
    return error_of(code, status, redacted(text) or f"{route.name} failed with status {status}")


def _method(route: Route) -> Callable[..., Any]:
    if route.body is Body.ROWS:

        def send_rows(self: RestNamespace, request: Any, request_data: bytes) -> Any:
            return self._call(route, request, request_data)

        made: Callable[..., Any] = send_rows
    else:

        def send(self: RestNamespace, request: Any) -> Any:
            return self._call(route, request)

        made = send
    made.__name__, made.__qualname__ = route.name, f"RestNamespace.{route.name}"
    made.__doc__ = f"Send the request ``{route.method} /v1/{route.path}``."
    return made


for _route in ROUTES.values():
    setattr(RestNamespace, _route.name, _method(_route))


def _unpickled(context_provider: DynamicContextProvider | None, properties: dict[str, Any]) -> RestNamespace:
    return RestNamespace(context_provider, **properties)
