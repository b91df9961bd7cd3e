"""Compiled kernels: buffers in, buffers out. Knows no Arrow, no protobuf, no files.

One module per subject. Values: `bitmap`, `flat`, `bitpacking`, `bitstream`, `byte_stream_split`, `rle`, `sequences`,
`constant`, `variable`, `fsst`, `fixed_size_list`, `packed`, `dictionary`, `gather`, `general`. Pages: `offsets` and
`pages` (2.0), `miniblock` with `miniblock_values`, `miniblock_levels` and `miniblock_write`, `fullzip`. Levels:
`level_builder`, `level_unraveler`, `levels`. Rows of all of these at once: `take` and `take_pages`. Around them:
`statistics` (for the choice of a codec) and `utf8`. The ``README.md`` beside this file says what each stores and where
its bytes lie.

Every kernel checks its bounds, raises `CodecError` on content that contradicts the format, and runs without the GIL.
Inputs and outputs are contiguous objects with the buffer protocol (bytes, NumPy arrays of any type, Arrow buffers),
taken as bytes at any address; arrays of 64-bit integers are typed and aligned where a signature says so. Outputs are
allocated by the caller at their final size, must not overlap inputs, and have no defined content after an error.
"""

from lancecodec.errors import CodecError, OffsetOverflowError

__all__ = ["CodecError", "OffsetOverflowError"]
