"""Tests of MinHash signatures, against values of the format and plain loops over hashes of the library xxhash."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash

from lancecodec.errors import CodecError
from lancecodec.search import minhash

MASK = (1 << 64) - 1


def vocabulary(tokens: list[bytes]) -> tuple[bytes, bytes]:
    return np.cumsum([0, *map(len, tokens)], dtype=np.int64).tobytes(), b"".join(tokens)


def signed(texts: list[list[bytes]], hashes: int, shingle: int) -> np.ndarray:
    tokens = sorted({token for text in texts for token in text})
    codes = np.array([tokens.index(token) for text in texts for token in text], np.int32)
    ends, out = np.cumsum([len(text) for text in texts], dtype=np.int64), np.empty((len(texts), hashes), np.uint16)
    minhash.Signer(hashes, shingle).sign(*vocabulary(tokens), codes, ends, out)
    return out


def coefficients(hashes: int) -> list[tuple[int, int, int]]:
    state = 42

    def following() -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    pairs = [(following() | 1, following()) for _ in range(hashes)]
    return [(a, b, following() | 1) for a, b in pairs]


def slow(text: list[bytes], hashes: int, shingle: int) -> list[int]:
    size = min(len(text), shingle)
    shingles = [b"\x1f".join(text[at : at + size]) for at in range(len(text) - size + 1)] if text else []
    found = [xxhash.xxh64_intdigest(each, 42) for each in shingles]
    if not found:
        return [0] * hashes
    return [((c * min((a * x + b) & MASK for x in found)) & MASK) >> 48 for a, b, c in coefficients(hashes)]


def test_values_of_the_format() -> None:
    """Signatures and keys are those of files of the reference."""
    out = signed([[b"the", b"quick", b"brown", b"fox"], [b"fox"]], 4, 2)
    assert out.tolist() == [[0xB00F, 0x59D6, 0x511A, 0xCD2C], [0x2970, 0xD6DB, 0x65F8, 0xADFC]]
    keys = np.empty((2, 2), np.uint64)
    minhash.band_keys(out, 4, 2, keys)
    assert keys[0].tolist() == [0x00F30F3501D458EA, 0x01AEC5DF28D04915]


@pytest.mark.parametrize("seed", range(6))
def test_random_texts(seed: int) -> None:
    """Signatures, keys of bands and numbers of equal values are those of plain loops."""
    random = np.random.default_rng(seed)
    words = [random.bytes(int(size)) for size in random.integers(0, 90, 30)]
    texts = [[words[i] for i in random.integers(0, 30, size)] for size in random.integers(0, 20, 25)]
    bands, shingle = int(random.integers(1, 5)), int(random.integers(1, 6))
    hashes = bands * int(random.integers(1, 9))
    out = signed(texts, hashes, shingle)
    assert out.tolist() == [slow(text, hashes, shingle) for text in texts]
    keys, size = np.empty((25, bands), np.uint64), hashes // bands
    minhash.band_keys(out, hashes, bands, keys)
    for row, found in zip(out, keys.tolist(), strict=True):
        parts = [xxhash.xxh64_intdigest(row[j * size : (j + 1) * size].tobytes(), 42) for j in range(bands)]
        assert found == [j << 56 | (part & ((1 << 56) - 1)) for j, part in enumerate(parts)]
    equal = np.empty(25, np.uint32)
    minhash.count_equal(out, hashes, out[3], equal)
    assert equal.tolist() == (out == out[3]).sum(1).tolist()


def test_errors() -> None:
    """Codes without a token, numbers that decrease, sizes that do not fit are refused."""
    signer, known = minhash.Signer(4, 2), vocabulary([b"a", b"b"])
    out, codes = np.empty((2, 4), np.uint16), np.array([0, 1, 0], np.int32)
    for wrong in (np.array([0, 2, 0], np.int32), np.array([0, -1, 0], np.int32)):
        with pytest.raises(CodecError, match="index"):
            signer.sign(*known, wrong, np.array([2, 3]), out)
    for ends in ([2, 1], [2, 4], [-1, 2]):
        with pytest.raises(CodecError, match="offsets"):
            signer.sign(*known, codes, np.array(ends), out)
    for offsets in ([0, 9, 9], [0, 2, 1], [-1, 0, 1]):
        with pytest.raises(CodecError, match="offsets"):
            signer.sign(np.array(offsets), b"ab", codes, np.array([2, 3]), out)
    with pytest.raises(CodecError, match="too few"):
        signer.sign(*known, codes, np.array([1, 2, 3]), out)
    for hashes, shingle in ((0, 1), (1, 0), (1 << 30, 1)):
        with pytest.raises(CodecError):
            minhash.Signer(hashes, shingle)
    for hashes, bands in ((4, 3), (4, 0), (0, 1), (512, 512), (3, 1)):
        with pytest.raises(CodecError):
            minhash.band_keys(bytes(8), hashes, bands, np.empty(99, np.uint64))
    with pytest.raises(CodecError, match="too small"):
        minhash.count_equal(bytes(8), 4, bytes(7), np.empty(1, np.uint32))
