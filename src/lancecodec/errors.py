"""The exceptions of the codec core."""

__all__ = ["CodecError", "OffsetOverflowError"]


class CodecError(ValueError):
    """Encoded bytes contradict their encoding, or a buffer is too small for what it should hold."""


class OffsetOverflowError(CodecError):
    """The values are too many, or too long together, for the output or for its 32-bit offsets; ask for fewer."""
