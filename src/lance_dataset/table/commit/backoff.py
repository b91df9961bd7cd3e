"""Backoff between commit attempts: delays, and the limits on attempts and time."""

from __future__ import annotations

import random
import time

__all__ = ["Backoff"]

#: Number of lost attempts that are retried without a delay.
_AT_ONCE = 4
_MAX_SLOTS = 8
_MAX_SLEEP = 5.0
#: Minimum number of attempts, and minimum number of seconds, if no number of attempts is given.
_ATTEMPTS = 20
_PATIENCE = 60.0


class Backoff:
    """Waits between lost commit attempts, for a random time so that writers get out of each other's way.

    The first retries follow without a delay, because a writer that waits longer than writers who commit continuously
    never wins. After that, the delay is at most 2, 4, then 8 times the duration of an attempt, and never more than 5
    seconds.

    Parameters
    ----------
    attempts
        Maximum number of attempts. None allows at least 20, and more until a minute has passed.
    seconds
        Time after which no further attempt begins. None for no limit. The first attempt always begins.
    """

    def __init__(self, attempts: int | None = None, seconds: float | None = None) -> None:
        self._attempts = attempts
        self._seconds = seconds
        self._began = self._started = time.monotonic()
        self.lost = 0

    def start(self) -> bool:
        """Begin an attempt. Return False if the limits are reached."""
        self._started = time.monotonic()
        if self._seconds is not None and self.lost and self._started > self._began + self._seconds:
            return False
        if self._attempts is not None:
            return self.lost < self._attempts
        return self.lost < _ATTEMPTS or self._started < self._began + _PATIENCE

    def sleep(self) -> None:
        """Wait after a lost attempt."""
        unit = time.monotonic() - self._started
        self.lost += 1
        if self.lost > _AT_ONCE:
            slots = min(_MAX_SLOTS, 2 ** (self.lost - _AT_ONCE))
            time.sleep(min(_MAX_SLEEP, random.uniform(0, slots) * unit))
