"""Values of options that users write as text: in storage options, table configuration and environment variables."""

from __future__ import annotations

from lance_dataset.errors import InvalidInputError

__all__ = ["flag_option", "lenient_bool", "number_option", "strict_bool"]

_STRICT = {"true": True, "false": False}
_LENIENT = _STRICT | {
    **dict.fromkeys(("1", "yes", "y", "on", "t"), True),
    **dict.fromkeys(("0", "no", "n", "off", "f"), False),
}
_MAX_DIGITS = 15


def strict_bool(text: str) -> bool | None:
    """Return the value of ``true`` or ``false``, None for other text."""
    return _STRICT.get(text)


def lenient_bool(text: str) -> bool | None:
    """Return the value of any usual word, such as ``yes``, ``0`` or ``Off``; None for other text."""
    return _LENIENT.get(text.strip().lower())


def flag_option(name: str, value: object, where: str = "") -> bool:
    """Return the value of a storage option that is on or off.

    Parameters
    ----------
    name
        Name of the option, for the error message.
    value
        The text, or another object that is spelled like it.
    where
        Prefix of the error message.

    Raises
    ------
    InvalidInputError
        The value is not a usual word for true or false.
    """
    parsed = lenient_bool(str(value))
    if parsed is None:
        raise InvalidInputError(f"{where}storage option {name!r} must be 'true' or 'false'")
    return parsed


def number_option(name: str, value: str, where: str = "") -> int:
    """Return the value of a storage option that is a number.

    Raises
    ------
    InvalidInputError
        The value is not a whole number, or has more than 15 digits.
    """
    text = value.strip()
    if not text.isdecimal() or len(text) > _MAX_DIGITS:
        raise InvalidInputError(
            f"{where}storage option {name!r} must be a whole number of at most {_MAX_DIGITS} digits"
        )
    return int(text)
