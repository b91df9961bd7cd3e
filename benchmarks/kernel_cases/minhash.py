from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import minhash

HASHES, BANDS = 128, 16
TEXTS = VALUES // 100


def sign() -> Case:
    lengths = rng().integers(2, 11, 10_000)
    offsets, codes = np.append(0, np.cumsum(lengths)), rng().integers(0, 10_000, VALUES // 10).astype(np.int32)
    data, ends = rng().integers(97, 123, int(offsets[-1]), np.uint8), np.arange(100, len(codes) + 1, 100)
    signer, out = minhash.Signer(HASHES, 3), np.empty((len(ends), HASHES), np.uint16)
    return Case(lambda: signer.sign(offsets, data, codes, ends, out), int(lengths[codes].sum()))


def signatures() -> np.ndarray:
    return rng().integers(0, 1 << 16, (TEXTS, HASHES), np.uint16)


def band_keys() -> Case:
    found, out = signatures(), np.empty((TEXTS, BANDS), np.uint64)
    return Case(lambda: minhash.band_keys(found, HASHES, BANDS, out), found.nbytes)


def count_equal() -> Case:
    found, out = signatures(), np.empty(TEXTS, np.uint32)
    return Case(lambda: minhash.count_equal(found, HASHES, found[7], out), found.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "minhash.Signer": sign,
    "minhash.band_keys": band_keys,
    "minhash.count_equal": count_equal,
}
