"""The parts that page encodings of 2.0 are built of when written."""

from __future__ import annotations

from lance_dataset._proto import encodings_pb2 as pb

__all__ = ["all_nulls", "flat", "no_nulls"]


def flat(bits: int, buffer: int, scheme: str = "", level: int | None = None) -> pb.ArrayEncoding:
    """Values of `bits` bits in a page buffer, compressed as a whole if there is a `scheme`."""
    message = pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=buffer))
    if scheme:
        message.compression.CopyFrom(pb.Compression(scheme=scheme, level=level))
    return pb.ArrayEncoding(flat=message)


def no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Values that are all valid."""
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def all_nulls() -> pb.ArrayEncoding:
    """Nothing but nulls, which take no buffer."""
    return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))
