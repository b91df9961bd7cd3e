"""The one exception of the codec core."""

__all__ = ["CodecError"]


class CodecError(ValueError):
    """Encoded bytes contradict their encoding, or a buffer is too small for what it should hold."""
