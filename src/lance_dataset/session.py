"""Sessions: what several datasets share."""

from __future__ import annotations

__all__ = ["Session"]


class Session:
    """Shared by datasets opened with it; owns the data of ``memory://`` URIs.

    Parameters
    ----------
    index_cache_size_bytes, metadata_cache_size_bytes
        Accepted for compatibility. Metadata is cached on each open dataset, not here.
    """

    def __init__(self, index_cache_size_bytes: int | None = None, metadata_cache_size_bytes: int | None = None) -> None:
        self._index_cache_size_bytes = index_cache_size_bytes
        self._metadata_cache_size_bytes = metadata_cache_size_bytes

    def is_same_as(self, other: Session) -> bool:
        """Whether both are the same session."""
        return self is other
