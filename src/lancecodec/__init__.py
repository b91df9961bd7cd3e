"""Compiled kernels: buffers in, buffers out. Knows no Arrow, no protobuf, no files.

One module per subject: `bitmap`, `offsets`, `gather`, `utf8`, and `pages` for random access over the pages of a column.
Every kernel checks its bounds, raises `CodecError` on content that contradicts the format, and runs without the GIL.
Inputs and outputs are contiguous objects with the buffer protocol (bytes, NumPy arrays of any type, Arrow buffers),
taken as bytes at any address; arrays of 64-bit integers are typed and aligned where a signature says so. Outputs are
allocated by the caller at their final size, must not overlap inputs, and have no defined content after an error.
"""

from lancecodec.errors import CodecError, OffsetOverflowError

__all__ = ["CodecError", "OffsetOverflowError"]
