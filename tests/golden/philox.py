"""The counter-based generator that both sides of a golden run use: Philox 4x32-10 (Salmon et al. 2011, SC'11).

Key      (seed low 32 bits, seed high 32 bits)
Counter  (block low, block high, stream low, stream high)
Element i of a tensor takes word i % 4 of block i / 4.
"""
import numpy as np

M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
W0, W1 = 0x9E3779B9, 0xBB67AE85
LOW, SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)


def _rounds(counter, seed):
    """Ten rounds on four uint64 arrays (each below 2^32) of counter words; returns the four output words."""
    c0, c1, c2, c3 = counter
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = M0 * c0, M1 * c2
        c0, c1, c2, c3 = (p1 >> SHIFT) ^ c1 ^ np.uint64(k0), p1 & LOW, (p0 >> SHIFT) ^ c3 ^ np.uint64(k1), p0 & LOW
        k0, k1 = (k0 + W0) & 0xFFFFFFFF, (k1 + W1) & 0xFFFFFFFF
    return c0, c1, c2, c3


def words(seed, stream, count):
    """The first `count` 32-bit words of `stream`, as uint32."""
    out = np.empty((-(-count // 4), 4), np.uint32)
    step = 1 << 16                                          # keep the temporaries in the cache
    for first in range(0, len(out), step):
        block = np.arange(first, min(first + step, len(out)), dtype=np.uint64)
        same = lambda value: np.full_like(block, value)
        result = _rounds((block & LOW, block >> SHIFT, same(stream & 0xFFFFFFFF), same(stream >> 32)), seed)
        for i, column in enumerate(result):
            out[first:first + step, i] = column
    return out.reshape(-1)[:count]


def uniform(seed, stream, shape, lo, hi):
    """float32 values lo + (hi - lo) * u with u = (word >> 8) * 2^-24, every operation in float32.

    Ranges are chosen so that hi - lo is a power of two: the product is then exact, and a compiler that contracts the
    expression into a fused multiply-add gets the same bits.
    """
    lo, hi = np.float32(lo), np.float32(hi)
    width = hi - lo
    if np.frexp(width)[0] != 0.5:
        raise ValueError(f"hi - lo is not a power of two: lo {lo}, hi {hi}")
    u = (words(seed, stream, int(np.prod(shape))) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    return (lo + width * u).reshape(shape)


def integers(seed, stream, shape, classes):
    """int64 values word % classes."""
    return (words(seed, stream, int(np.prod(shape))) % np.uint32(classes)).astype(np.int64).reshape(shape)


def self_test():
    """The known answers published with the algorithm (Random123, kat_vectors), philox4x32 with 10 rounds."""
    one = lambda values: tuple(np.array([v], np.uint64) for v in values)
    show = lambda result: " ".join(f"{int(v[0]):08x}" for v in result)
    assert show(_rounds(one([0] * 4), 0)) == "6627e8d5 e169c58d bc57ac4c 9b00dbd8"
    assert show(_rounds(one([0xFFFFFFFF] * 4), 0xFFFFFFFFFFFFFFFF)) == "408f276d 41c83b0e a20bc7c6 6d5451fd"
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    assert show(_rounds(one(pi), 0x299F31D0A4093822)) == "d16cfe09 94fdcceb 5001e420 24126ea1"


self_test()
