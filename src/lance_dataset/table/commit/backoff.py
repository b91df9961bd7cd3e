"""How long, and how often, to try again after other writers were faster."""

from __future__ import annotations

import random
import time

__all__ = ["Backoff"]

#: Lost attempts that are followed by another one at once.
_AT_ONCE = 4
_MAX_SLOTS = 8
_MAX_SLEEP = 5.0
#: Without a given number of attempts: as many at least, and for so many seconds at least.
_ATTEMPTS = 20
_PATIENCE = 60.0


class Backoff:
    """Waits between attempts that others won, at random so that writers get out of each other's way.

    The first attempts follow each other at once: next to writers that make one version after the other, whoever waits
    longer than them never wins. Then the time is up to 2, 4, 8 times that of an attempt, 5 seconds at most.

    Parameters
    ----------
    attempts
        How many attempts there may be; None for at least 20, and more as long as a minute has not passed.
    seconds
        After how long no other attempt is begun, None for no such limit; the first one always is.
    """

    def __init__(self, attempts: int | None = None, seconds: float | None = None) -> None:
        self._attempts = attempts
        self._seconds = seconds
        self._began = self._started = time.monotonic()
        self.lost = 0

    def start(self) -> bool:
        """Begin an attempt; False if there were enough."""
        self._started = time.monotonic()
        if self._seconds is not None and self.lost and self._started > self._began + self._seconds:
            return False
        if self._attempts is not None:
            return self.lost < self._attempts
        return self.lost < _ATTEMPTS or self._started < self._began + _PATIENCE

    def sleep(self) -> None:
        """Wait after an attempt that was lost."""
        unit = time.monotonic() - self._started
        self.lost += 1
        if self.lost > _AT_ONCE:
            slots = min(_MAX_SLOTS, 2 ** (self.lost - _AT_ONCE))
            time.sleep(min(_MAX_SLEEP, random.uniform(0, slots) * unit))
