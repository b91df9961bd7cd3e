"""Types of columns of text: found from all values, so that no value changes when it is converted."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["LookFinder", "TypeFinder", "convert", "first_misfit", "is_read_from_text"]

_TEXT = pa.string()
_BOOLEANS = pa.array(["true", "True", "TRUE", "false", "False", "FALSE"])
_TRUE = pa.array(["true", "True", "TRUE", "1"])
_FALSE = pa.array(["false", "False", "FALSE", "0"])
#: Text that a float64 would not keep: signs and zeros in front, as in phone numbers and codes, and long numbers.
_NOT_A_FLOAT = r"^\+|^-?0[0-9]|^-?[0-9]{16,}$"
#: Times need minutes: two digits alone are no hour.
_TIME = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?$"
#: Types by how they are tried, with the type that is tried if a later value does not fit.
_WIDER = {
    pa.int64(): pa.float64(),
    pa.float64(): _TEXT,
    pa.bool_(): _TEXT,
    pa.date32(): pa.timestamp("s"),
    pa.timestamp("s"): pa.timestamp("us"),
    pa.timestamp("us"): pa.timestamp("ns"),
    pa.timestamp("ns"): _TEXT,
    pa.time32("s"): _TEXT,
    pa.timestamp("s", "UTC"): pa.timestamp("us", "UTC"),
    pa.timestamp("us", "UTC"): pa.timestamp("ns", "UTC"),
    pa.timestamp("ns", "UTC"): _TEXT,
}
#: Greatest integer up to which a float64 has all of them.
_EXACT = 2**53


class TypeFinder:
    """Finds the type of a column from blocks of its values.

    Attributes
    ----------
    kind
        Type that all values so far have: null if there were none, string if no other type fits.
    """

    def __init__(self) -> None:
        self.kind: pa.DataType = pa.null()
        self._exact_as_float = True

    def add(self, values: pa.Array) -> None:
        """Note the values of a block, an array of strings.

        Nulls and empty strings fit every type. Space around values does not count, except in text.
        """
        values = _filled(values)
        if not len(values) or self.kind == _TEXT:
            return
        values = pc.utf8_trim_whitespace(values)
        if pc.any(pc.equal(values, "")).as_py():  # only text keeps space
            self.kind = _TEXT
            return
        if self.kind == pa.null():
            self.kind = next((kind for kind in _WIDER if self._fits(values, kind)), _TEXT)
        while self.kind != _TEXT and not self._fits(values, self.kind):
            self.kind = _WIDER[self.kind]
            if self.kind == pa.float64() and not self._exact_as_float:
                self.kind = _TEXT

    def _fits(self, values: pa.Array, kind: pa.DataType) -> bool:
        """Return True if no value changes as a value of a type."""
        if kind == pa.bool_():
            return bool(pc.all(pc.is_in(values, _BOOLEANS)).as_py())
        if kind == pa.float64() and pc.any(pc.match_substring_regex(values, _NOT_A_FLOAT)).as_py():
            return False
        try:
            converted = convert(values, kind)
        except pa.ArrowInvalid:
            return False
        if kind == pa.float64():  # infinite numbers have to be written as such
            return not pc.any(pc.and_(pc.is_inf(converted), pc.match_substring_regex(values, "[0-9]"))).as_py()
        if kind != pa.int64():
            return True
        # An integer has to be written as it is printed: 007, 0x7 and -0 are text.
        if not pc.all(pc.equal(converted.cast(_TEXT), values)).as_py():
            return False
        limits = pc.min_max(converted)
        self._exact_as_float &= limits["min"].as_py() >= -_EXACT and limits["max"].as_py() <= _EXACT
        return True


class LookFinder:
    """Finds values that do not look like those before: numbers, times, truth values and other text.

    Attributes
    ----------
    look
        What the values so far look like; empty if there were none.
    """

    look = ""

    def add(self, values: pa.Array) -> int | None:
        """Note the values of a block. Return the position of the first that looks different, or None."""
        codes = pa.nulls(len(values), pa.string())
        for look, pattern in _LOOKS.items():
            codes = pc.coalesce(codes, pc.if_else(pc.match_substring_regex(values, pattern), look, None))
        if not self.look:
            self.look = next((code for code in codes.to_pylist() if code), "") if codes.null_count < len(codes) else ""
        position = pc.index(pc.fill_null(pc.not_equal(codes, self.look), False), True).as_py()
        return None if position < 0 else position


#: What values look like; the first pattern that matches counts. Empty values look like nothing.
_LOOKS = {
    "numbers": r"^\s*([-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(nan|NaN|inf|Infinity))\s*$",
    "dates or times": r"^\s*([0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+.*)?|[0-9]{2}:[0-9]{2}(:[0-9.]+)?)\s*$",
    "truth values": r"^\s*(?i:true|false)\s*$",
    "text": r".",
}


def is_read_from_text(kind: pa.DataType) -> bool:
    """Return True if `convert` makes values of a type."""
    tests = ("integer", "floating", "boolean", "decimal", "date", "time", "timestamp", "string", "large_string", "null")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in (*tests, "binary", "large_binary"))


def convert(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert an array of strings. Empty strings are null unless the type is one of text or bytes.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value is not written like one of the type.
    """
    if pa.types.is_null(kind) or kind == values.type:
        return values if kind == values.type else pa.nulls(len(values))
    if pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return values.cast(kind)
    values = pc.utf8_trim_whitespace(values)
    values = pc.if_else(pc.equal(values, ""), pa.scalar(None, values.type), values)
    if pa.types.is_boolean(kind):
        return _booleans(values)
    if pa.types.is_time(kind):
        if pc.any(pc.invert(pc.match_substring_regex(values, _TIME))).as_py():
            raise pa.ArrowInvalid("a value is not written as hours, minutes and seconds")
        return pc.binary_join_element_wise("1970-01-01", values, " ").cast(pa.timestamp("ns")).cast(kind)
    return values.cast(kind)


def _booleans(values: pa.Array) -> pa.Array:
    truths = pc.is_in(values, _TRUE)
    known = pc.or_(truths, pc.is_in(values, _FALSE))
    if not pc.all(pc.or_(known, pc.is_null(values))).as_py():
        raise pa.ArrowInvalid("a value is neither true nor false")
    return pc.if_else(known, truths, pa.scalar(None, pa.bool_()))


def first_misfit(values: pa.Array, kind: pa.DataType) -> int:
    """Return the position of the first value that `convert` refuses; there is one."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(values.slice(low, middle - low), kind)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def _filled(values: pa.Array) -> pa.Array:
    return values.filter(pc.fill_null(pc.not_equal(values, ""), False))
