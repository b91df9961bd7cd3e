"""Rules for requests before anything looks at them: they have the token, come from this page, only read, are small."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Sequence

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "allowed_names"]

_METHODS = ("GET", "HEAD")
_LONGEST_URL = 64_000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
#: Sites that may start a request: this page, and a person who opens the address.
_OWN_SITES = (None, "same-origin", "none")
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}"
)
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


def allowed_names(host: str) -> frozenset[str]:
    """Return the names under which a server that listens at `host` may be asked for."""
    names = {*_LOOPBACK, host.lower()}
    if host not in _LOOPBACK:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


class Guard:
    """Middleware that refuses what the page itself never sends, and adds the headers that browsers enforce.

    Parameters
    ----------
    app
        The application behind.
    token
        First part of every path.
    names
        Names of this server in the header Host.
    any_address
        Whether Host may be any IP address: the server listens at all of them. Names of others are refused even then.
    ancestors
        Sources of pages that may show this one in a frame.
    """

    def __init__(
        self, app: ASGIApp, token: str, names: frozenset[str], any_address: bool, ancestors: Sequence[str]
    ) -> None:
        self._app = app
        self._token = token
        self._names = names
        self._any_address = any_address
        self._policy = _PAGE_POLICY.format(ancestors=" ".join(ancestors) or "'none'").encode()
        self._in_frames = bool(ancestors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = {name.lower() for name, _ in message["headers"]}
                added = [*_HEADERS, (b"content-security-policy", self._policy), (b"cache-control", b"no-store")]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in named)]
            await send(message)

        if refusal is not None:
            await refusal(scope, receive, sent)
            return
        prefix = f"/{self._token}"
        await self._app({**scope, "path": scope["path"][len(prefix) :] or "/", "root_path": ""}, receive, sent)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not self._is_own_host(headers.get(b"host", "")):
            return PlainTextResponse("this server is asked for under a name that is not its own\n", 421)
        if scope["method"] not in _METHODS:
            return PlainTextResponse("this server only reads\n", 405, {"Allow": ", ".join(_METHODS)})
        if headers.get(b"content-length", "0") != "0" or b"transfer-encoding" in headers:
            return PlainTextResponse("requests have no body here\n", 413)
        if len(scope["raw_path"]) + len(scope["query_string"]) > _LONGEST_URL:
            return PlainTextResponse("the address is too long\n", 414)
        if not self._is_own_site(headers):
            return PlainTextResponse("requests of other pages are refused\n", 403)
        given = scope["path"].split("/", 2)
        if len(given) < 3 or not secrets.compare_digest(given[1].encode(), self._token.encode()):
            return PlainTextResponse("the address needs the token that the program printed\n", 403)
        return None

    def _is_own_host(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        name = name.strip("[]").lower()
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._any_address

    def _is_own_site(self, headers: dict[bytes, str]) -> bool:
        origin = headers.get(b"origin")
        if origin is not None and origin.partition("://")[2] != headers.get(b"host"):
            return False
        if headers.get(b"sec-fetch-site") in _OWN_SITES:
            return True
        # A link in a message, or a notebook that shows the page, opens it; a foreign page cannot read what it gets.
        opened = ("document", "iframe") if self._in_frames else ("document",)
        return headers.get(b"sec-fetch-mode") == "navigate" and headers.get(b"sec-fetch-dest") in opened
