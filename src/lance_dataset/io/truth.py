"""Truth values that users write as text, in options, config and environment variables."""

from __future__ import annotations

__all__ = ["lenient_truth", "strict_truth"]

_STRICT = {"true": True, "false": False}
_LENIENT = _STRICT | {
    **dict.fromkeys(("1", "yes", "y", "on", "t"), True),
    **dict.fromkeys(("0", "no", "n", "off", "f"), False),
}


def strict_truth(text: str) -> bool | None:
    """The value of ``true`` and ``false``, None for other text."""
    return _STRICT.get(text)


def lenient_truth(text: str) -> bool | None:
    """The value of all usual words, such as ``yes``, ``0`` or ``Off``; None for other text."""
    return _LENIENT.get(text.strip().lower())
