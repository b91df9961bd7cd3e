/* Positions of set bits. */
#ifndef LANCECODEC_POSITIONS_H
#define LANCECODEC_POSITIONS_H

#include "runs.h"

/* Write the positions of the set bits among the first n, ascending. Returns their number, or -1 if there are more than
 * `room`. */
LC_CLONES static inline int64_t lc_bits_positions(const uint8_t *LC_RESTRICT bits, int64_t n, int64_t *LC_RESTRICT out,
                                                  int64_t room) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i += 64) {
        uint64_t word = 0;
        int64_t live = n - i < 64 ? n - i : 64;
        memcpy(&word, bits + i / 8, (size_t)((live + 7) / 8));
        word &= lc_low_mask(live);
        if (!word) continue;
        if (lc_popcount64(word) > room - found) return -1;
        if (word == ~0ULL) {
            for (int64_t k = 0; k < 64; k++) out[found + k] = i + k;
            found += 64;
            continue;
        }
        for (; word; word &= word - 1) out[found++] = i + lc_lowest_bit(word);
    }
    return found;
}

#endif
