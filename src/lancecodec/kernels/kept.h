/* Values that a bitmap keeps, moved together. The caller has checked the bounds of the bitmap and of the values. */
#ifndef LANCECODEC_KEPT_H
#define LANCECODEC_KEPT_H

#include "kept_lanes.h"
#include "levels_mask.h"
#include "chunk.h"

/* With more values of a word than this, moving all of them without a branch is faster than finding those to keep. */
#define LC_KEPT_MANY 12
/* With more than this, there are so few runs that offsets are moved run by run. */
#define LC_KEPT_MOST 56

/* Bits [at, at + n) of a bitmap, n from 1 to 64. */
LC_INLINE uint64_t lc_kept_word(const uint8_t *bits, int64_t at, int64_t n) {
    const uint8_t *p = bits + (at >> 3);
    int64_t shift = at & 7, bytes = (shift + n + 7) >> 3;
    uint64_t word = 0;
    if (bytes >= 8)
        word = lc_load_u64(p);
    else
        memcpy(&word, p, (size_t)bytes);
    word >>= shift;
    if (bytes == 9) word |= (uint64_t)p[8] << (64 - shift);
    return n == 64 ? word : word & lc_low_mask(n);
}

/* Move the values of one word; `room` is the number of values that fit the output. */
LC_INLINE void lc_kept_move(uint64_t word, const uint8_t *values, uint8_t *out, int64_t count, int64_t room,
                            const int64_t width) {
    if (word == UINT64_MAX) {
        memcpy(out, values, (size_t)(64 * width));
    } else if (count > LC_KEPT_MANY && room >= 64 && width <= 16) {
        /* a value that is not kept is overwritten by the next one */
        for (int64_t k = 0, at = 0; k < 64; k++) {
            memcpy(out + at * width, values + k * width, (size_t)width);
            at += (int64_t)(word >> k & 1);
        }
    } else {
        for (; word; word &= word - 1, out += width)
            memcpy(out, values + lc_ctz64(word) * width, (size_t)width);
    }
}

LC_INLINE int lc_kept_width(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *values, int64_t room,
                            uint8_t *out, const int64_t width) {
    for (int64_t i = 0; i < n; i += 64) {
        int64_t some = n - i < 64 ? n - i : 64;
        uint64_t word = lc_kept_word(bits, offset + i, some);
        int64_t count = lc_popcount64(word);
        if (count > room) return LC_NO_SPACE;
        if (some == 64)
            lc_kept_move(word, values + i * width, out, count, room, width);
        else
            lc_kept_move(word, values + i * width, out, count, 0, width);
        out += count * width;
        room -= count;
    }
    return room ? LC_BAD_COUNT : LC_OK;
}

LC_CLONES static int lc_kept_values(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *values,
                                    int64_t width, int64_t room, uint8_t *out) {
    switch (width) {
        case 1: return lc_kept_width(bits, offset, n, values, room, out, 1);
        case 2: return lc_kept_width(bits, offset, n, values, room, out, 2);
        case 4: return lc_kept_width(bits, offset, n, values, room, out, 4);
        case 8: return lc_kept_width(bits, offset, n, values, room, out, 8);
        case 16: return lc_kept_width(bits, offset, n, values, room, out, 16);
        default: return lc_kept_width(bits, offset, n, values, room, out, width);
    }
}

/* Exactly `room` of n values of `width` bytes are kept. */
static int lc_kept_fixed(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *values, int64_t width,
                         int64_t room, uint8_t *out) {
#ifdef LC_KEPT_LANES
    int64_t moved, passed = lc_lanes_move(bits, offset, n, values, width, room, out, &moved);
    offset += passed, n -= passed, values += passed * width;
    room -= moved, out += moved * width;
#endif
    return lc_kept_values(bits, offset, n, values, width, room, out);
}

/* The same for bits from bit `start` on, written from bit `at` of the output on. */
static int lc_kept_bits_at(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *values, int64_t start,
                           int64_t room, uint8_t *out, int64_t at) {
    lc_bit_writer writer = lc_bit_writer_at(out, at);
    for (int64_t i = 0; i < n; i += 64) {
        int64_t some = n - i < 64 ? n - i : 64;
        uint64_t word = lc_kept_word(bits, offset + i, some);
        int64_t count = lc_popcount64(word);
        if (count > room) return LC_NO_SPACE;
        lc_bit_writer_add(&writer, lc_compress64(lc_kept_word(values, start + i, some), word, count), count);
        room -= count;
    }
    lc_bit_writer_end(&writer);
    return room ? LC_BAD_COUNT : LC_OK;
}

static inline int lc_kept_bits(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *values, int64_t start,
                               int64_t room, uint8_t *out) {
    return lc_kept_bits_at(bits, offset, n, values, start, room, out, 0);
}

LC_INLINE int64_t lc_kept_offset(const uint8_t *offsets, int wide, int64_t i) {
    return wide ? (int64_t)lc_load_u64(offsets + 8 * i) : (int32_t)lc_load_u32(offsets + 4 * i);
}

LC_INLINE void lc_kept_store(uint8_t *offsets, int wide, int64_t i, int64_t value) {
    if (wide)
        lc_store_u64(offsets + 8 * i, (uint64_t)value);
    else
        lc_store_u32(offsets + 4 * i, (uint32_t)value);
}

/* Ends of a run of strings from string `from` on, of which the first begins at `end` in the output. The result has its
 * sign bit set if offsets are negative or decrease. */
LC_INLINE uint64_t lc_kept_run(const uint8_t *offsets, const int wide, int64_t from, int64_t run, uint64_t end,
                               uint8_t *out) {
    if (wide) {
        const uint8_t *p = offsets + 8 * from;
        uint64_t shift = lc_load_u64(p) - end, bad = 0;
        for (int64_t k = 0; k < run; k++) {
            uint64_t low = lc_load_u64(p + 8 * k), high = lc_load_u64(p + 8 * k + 8);
            bad |= low | high | (high - low);
            lc_store_u64(out + 8 * k, high - shift);
        }
        return bad;
    }
    const uint8_t *p = offsets + 4 * from;
    uint32_t shift = lc_load_u32(p) - (uint32_t)end, bad = 0;
    for (int64_t k = 0; k < run; k++) {
        uint32_t low = lc_load_u32(p + 4 * k), high = lc_load_u32(p + 4 * k + 4);
        bad |= low | high | (high - low);
        lc_store_u32(out + 4 * k, high - shift);
    }
    return (uint64_t)(bad >> 31) << 63;
}

/* Ends of the strings that are kept, behind a first offset of 0; `total` is the last. Differences are unsigned, as those
 * of damaged offsets may overflow; `bad` gets the sign bit of anything that is negative. */
LC_INLINE int lc_kept_lengths(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *offsets, const int wide,
                              int64_t room, uint8_t *out, int64_t *total) {
    uint64_t end = 0, low = (uint64_t)lc_kept_offset(offsets, wide, 0), bad = low;
    int64_t at = 0;
    lc_kept_store(out, wide, 0, 0);
    for (int64_t i = 0; i < n; i += 64) {
        int64_t some = n - i < 64 ? n - i : 64;
        uint64_t word = lc_kept_word(bits, offset + i, some);
        int64_t count = lc_popcount64(word);
        if (count > room - at) return LC_NO_SPACE;
        if (count > LC_KEPT_MOST) {
            for (int64_t base = i; word;) {
                int64_t skip = lc_ctz64(word), run;
                word >>= skip;
                base += skip;
                if (word == UINT64_MAX) {
                    run = 64;
                    bad |= lc_kept_run(offsets, wide, base, 64, end, out + (wide ? 8 : 4) * (at + 1));
                } else {
                    run = lc_ctz64(~word);
                    bad |= lc_kept_run(offsets, wide, base, run, end, out + (wide ? 8 : 4) * (at + 1));
                }
                end += (uint64_t)lc_kept_offset(offsets, wide, base + run) -
                       (uint64_t)lc_kept_offset(offsets, wide, base);
                base += run;
                at += run;
                word = run == 64 ? 0 : word >> run;
            }
        } else if (some == 64 && count > LC_KEPT_MANY && room - at >= 64) {
            low = (uint64_t)lc_kept_offset(offsets, wide, i);
            for (int64_t k = 0; k < 64; k++) {
                uint64_t high = (uint64_t)lc_kept_offset(offsets, wide, i + k + 1);
                bad |= low | high | (high - low);
                end += (high - low) & (0 - (word >> k & 1));
                low = high;
                at += (int64_t)(word >> k & 1);
                /* after a string that is not kept, the same end again */
                lc_kept_store(out, wide, at, (int64_t)end);
            }
        } else {
            for (; word; word &= word - 1) {
                int64_t k = i + lc_ctz64(word);
                uint64_t high = (uint64_t)lc_kept_offset(offsets, wide, k + 1);
                low = (uint64_t)lc_kept_offset(offsets, wide, k);
                bad |= low | high | (high - low);
                end += high - low;
                lc_kept_store(out, wide, ++at, (int64_t)end);
            }
        }
    }
    *total = (int64_t)end;
    if ((bad | end) >> 63) return LC_BAD_OFFSETS;
    return at == room ? LC_OK : LC_BAD_COUNT;
}

LC_CLONES static int lc_kept_ends(const uint8_t *bits, int64_t offset, int64_t n, const uint8_t *offsets, int wide,
                                  int64_t room, uint8_t *out, int64_t *total) {
    return wide ? lc_kept_lengths(bits, offset, n, offsets, 1, room, out, total)
                : lc_kept_lengths(bits, offset, n, offsets, 0, room, out, total);
}

/* Bytes of the strings that are kept, run by run; there must be exactly `size` of them. */
static int lc_kept_bytes(const uint8_t *bits, int64_t offset, int64_t n, lc_bytes data, const uint8_t *offsets,
                         int wide, uint8_t *out, int64_t size) {
    for (int64_t i = 0; i < n; i += 64) {
        uint64_t word = lc_kept_word(bits, offset + i, n - i < 64 ? n - i : 64);
        int64_t base = i;
        while (word) {
            int64_t skip = lc_ctz64(word);
            word >>= skip;
            int64_t run = word == UINT64_MAX ? 64 : lc_ctz64(~word);
            int64_t low = lc_kept_offset(offsets, wide, base + skip);
            int64_t high = lc_kept_offset(offsets, wide, base + skip + run);
            if (low < 0 || high < low || high > data.size) return LC_BAD_OFFSETS;
            if (high - low > size) return LC_NO_SPACE;
            memcpy(out, data.data + low, (size_t)(high - low));
            out += high - low;
            size -= high - low;
            base += skip + run;
            word = run == 64 ? 0 : word >> run;
        }
    }
    return size ? LC_BAD_SIZE : LC_OK;
}

#endif
