"""Texts without secrets, for messages, logs and representations of objects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from lance_dataset.locks import SharedLock

__all__ = ["keep_secret", "redacted", "scrubbed"]

_Error = TypeVar("_Error", bound=BaseException)

_HIDDEN = "***"
#: Shorter values cannot be told from other text.
_SHORTEST = 8
_MOST_SECRETS = 1024
_LONGEST_CHAIN = 20
_PASSWORD = re.compile(r"(://[^/\s:@?#'\"]*):[^/\s'\"]*@")
#: Values of queries in URLs that give access: signatures, tokens and passwords.
_QUERY = re.compile(
    r"([?&](?:sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature|x-goog-credential|"
    r"token|access_token|sas|password|passwd|pwd|sslpassword|secret|key|api_key|apikey)=)[^&#\s'\"<>)]+",
    re.IGNORECASE,
)
#: Secrets that this process got in options, the most recent ones last.
_known: dict[str, None] = {}
_lock = SharedLock()


def keep_secret(values: Iterable[str | None]) -> None:
    """Note values of options that `redacted` is to hide wherever they occur, as a server may send them back."""
    with _lock:
        for value in values:
            if value and len(value) >= _SHORTEST:
                _known.pop(value, None)
                _known[value] = None
        while len(_known) > _MOST_SECRETS:
            del _known[next(iter(_known))]


def redacted(text: str) -> str:
    """Return a text without passwords and signatures in URLs, and without the secrets of options."""
    with _lock:
        secrets = sorted(_known, key=len, reverse=True)
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, _HIDDEN)
    if "://" in text:
        text = _PASSWORD.sub(rf"\1:{_HIDDEN}@", text)
    return _QUERY.sub(rf"\1{_HIDDEN}", text) if "=" in text else text


def scrubbed(error: _Error) -> _Error:
    """Hide secrets in the arguments and notes of an error of another package, and of those that it came from."""
    seen: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if seen is None:
            break
        if isinstance(seen, OSError) and isinstance(seen.strerror, str):
            seen.strerror = redacted(seen.strerror)
        seen.args = tuple(redacted(each) if isinstance(each, str) else each for each in seen.args)
        notes = getattr(seen, "__notes__", None)
        if isinstance(notes, list):
            notes[:] = [redacted(each) if isinstance(each, str) else each for each in notes]
        seen = seen.__cause__ or seen.__context__
    return error
