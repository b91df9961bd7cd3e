"""Exceptions of the codec core."""

__all__ = ["CodecError", "OffsetOverflowError"]


class CodecError(ValueError):
    """Encoded bytes contradict their encoding, a buffer is too small, or an argument is out of range."""


class OffsetOverflowError(CodecError):
    """The values do not fit the output or its 32-bit offsets. Ask for fewer values."""
