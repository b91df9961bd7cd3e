"""Storage options that a catalog lends for some time, and that are renewed before they expire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lance_dataset.errors import StoragePermissionError
from lance_dataset.locks import SharedLock

__all__ = ["EXPIRES", "VendedOptions"]

#: Option with the time at which the others expire, in milliseconds since the epoch. Stores never see it.
EXPIRES = "expires_at_millis"
#: Options are renewed this long before they expire.
_EARLY_SECONDS = 60.0


class VendedOptions(Mapping[str, str]):
    """Mapping of storage options, some of which a catalog lends.

    The mapping itself never changes, so that it can name a store; `current` returns the options of now.

    Parameters
    ----------
    options
        First options.
    own
        Options of the user, which the catalog's replace.
    expires
        Time at which they expire, in seconds since the epoch; None for never.
    renew
        Function that returns new options.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        own: Mapping[str, str],
        expires: float | None,
        renew: Callable[[], Mapping[str, str]],
    ) -> None:
        self._options, self._own, self._renew = dict(options), dict(own), renew
        self._now, self._expires = self._options, expires
        self._lock = SharedLock()

    @classmethod
    def merged(
        cls, own: Mapping[str, str], vended: Mapping[str, str], renew: Callable[[], Mapping[str, str]]
    ) -> VendedOptions:
        """Return the options of a user, replaced by those that a catalog lends."""
        return cls(_together(own, vended), own, _expiry(vended), renew)

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            return VendedOptions, (self._now, self._own, self._expires, self._renew)

    def __getitem__(self, key: str) -> str:
        return self._options[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __repr__(self) -> str:
        return f"VendedOptions({sorted(self._options)})"

    def with_own(self, own: Mapping[str, str]) -> VendedOptions:
        """Return these options with more of the user, which replace earlier ones of the same names."""
        with self._lock:
            lent = {key: value for key, value in self._now.items() if self._own.get(key) != value}
            all_own = {**self._own, **own}
            return VendedOptions(_together(all_own, lent), all_own, self._expires, self._renew)

    @property
    def expires(self) -> float | None:
        """Time at which the current options expire, in seconds since the epoch; None for never."""
        return self._expires

    def current(self) -> Mapping[str, str]:
        """Return the options of now, after renewing them if they are about to expire.

        Raises
        ------
        StoragePermissionError
            The catalog lends no options any more. Its own errors are passed on.
        """
        with self._lock:
            if self._expires is not None and time.time() >= self._expires - _EARLY_SECONDS:
                fresh = self._renew()
                if not fresh:
                    raise StoragePermissionError(
                        "the storage options that a catalog lent expire, and it lends no new ones; open the table anew"
                    )
                self._now, self._expires = _together(self._own, fresh), _expiry(fresh)
            return self._now


def _together(own: Mapping[str, str], vended: Mapping[str, str]) -> dict[str, str]:
    options = {**own, **{str(key): str(value) for key, value in vended.items() if value is not None}}
    options.pop(EXPIRES, None)
    return options


def _expiry(vended: Mapping[str, str]) -> float | None:
    try:
        return int(vended[EXPIRES]) / 1000
    except (KeyError, TypeError, ValueError):
        return None
