"""General compression (LZ4, Zstandard) of chunks and of dictionary entries, on request."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lance_dataset.file.v2_1.compressive import General
from lance_dataset.file.v2_1.write.encoded import EncodedChunks
from lance_dataset.file.v2_1.write.request import Request
from lancecodec import general
from lancecodec.general import Scheme

__all__ = ["compressed", "smallest_compressed"]

#: Below so many bytes a page is not compressed: as the reference.
_LEAST_BYTES = 4096


def compressed(encoded: EncodedChunks, request: Request) -> EncodedChunks:
    """The same chunks with their first buffer compressed, if that was asked for and pays."""
    options = request.options
    if options.compression not in ("lz4", "zstd"):
        return encoded
    data, ends = encoded.buffers[0]
    if memoryview(data).nbytes < _LEAST_BYTES:
        return encoded
    scheme: Scheme = "lz4" if options.compression == "lz4" else "zstd"
    new_ends = np.empty(len(ends), np.int64)
    stops = np.ascontiguousarray(ends, np.int64).data
    units = general.compress_units(scheme, options.compression_level, data, stops, new_ends.data)
    wrapped = replace(
        encoded,
        encoding=General(scheme, encoded.encoding, options.compression_level),
        buffers=[(units, new_ends), *encoded.buffers[1:]],
        full=0,
        reason=f"{encoded.reason}, {scheme} compressed",
    )
    return wrapped if request.size(wrapped) < request.size(encoded) and request.fits(wrapped) else encoded


def smallest_compressed(choices: list[EncodedChunks], request: Request) -> EncodedChunks:
    """The choice that is smallest when compressed, if that was asked for."""
    return min((compressed(one, request) for one in choices), key=request.size)
