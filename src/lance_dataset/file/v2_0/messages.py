"""Building blocks of the page encoding messages that 2.0 files write."""

from __future__ import annotations

from lance_dataset._proto import encodings_pb2 as pb

__all__ = ["all_nulls", "flat", "no_nulls"]


def flat(bits: int, buffer: int, scheme: str = "", level: int | None = None) -> pb.ArrayEncoding:
    """Return values of `bits` bits in a page buffer, compressed as a whole if there is a `scheme`."""
    message = pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=buffer))
    if scheme:
        message.compression.CopyFrom(pb.Compression(scheme=scheme, level=level))
    return pb.ArrayEncoding(flat=message)


def no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Return values that are all valid."""
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def all_nulls() -> pb.ArrayEncoding:
    """Return an encoding of nulls only, which need no buffer."""
    return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))
