"""Compiled kernels that read and write buffers. The package does not depend on Arrow, protobuf or files.

One module per subject. Values: `bitmap`, `flat`, `bitpacking`, `bitstream`, `byte_stream_split`, `rle`, `sequences`,
`constant`, `variable`, `fsst`, `fixed_size_list`, `packed`, `dictionary`, `gather`, `general`. Pages: `offsets` and
`pages` (2.0), `miniblock` with `miniblock_values`, `miniblock_levels` and `miniblock_write`, `fullzip`. Levels:
`level_builder`, `level_unraveler`, `levels`. Random access to pages of any layout: `take` and `take_pages`. Legacy
files: `spans`. Metadata: `records` and `metadata`. Queries: `predicates`, `join_keys` and `decimals`. Also `statistics`
(for the choice of a codec) and `utf8`. The ``README.md`` beside this file describes the byte layout of each codec.

Every kernel checks its bounds, raises `CodecError` on content that contradicts the format, and runs without the GIL.
Inputs and outputs are contiguous objects with the buffer protocol (bytes, NumPy arrays of any type, Arrow buffers),
taken as bytes at any address. Arguments that are documented as int64 arrays must be C-contiguous, of that type and
aligned. Outputs are allocated by the caller at their final size, must not overlap inputs, and have undefined content
after an error.

A docstring lists the errors of its function. In addition, an argument without the buffer protocol raises `TypeError`,
a read-only output `BufferError`, an array that is not contiguous or of the wrong type `ValueError`, and a number that
does not fit 64 bits `OverflowError`.
"""

from lancecodec.errors import CodecError, OffsetOverflowError

__all__ = ["CodecError", "OffsetOverflowError"]
