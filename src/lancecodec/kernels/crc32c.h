/* CRC-32C (Castagnoli), eight bytes at a time (Kounavis and Berry, "Novel table lookup-based algorithms for
 * high-performance CRC generation", 2008). */
#ifndef LANCECODEC_CRC32C_H
#define LANCECODEC_CRC32C_H

#include "chunk.h"

#define LC_CRC32C_POLYNOMIAL 0x82F63B78u

typedef struct {
    uint32_t of[8][256];
} lc_crc32c_tables;

static void lc_crc32c_fill(lc_crc32c_tables *t) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int k = 0; k < 8; k++) v = (v >> 1) ^ (v & 1 ? LC_CRC32C_POLYNOMIAL : 0);
        t->of[0][i] = v;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++) t->of[k][i] = (t->of[k - 1][i] >> 8) ^ t->of[0][t->of[k - 1][i] & 0xFF];
}

static uint32_t lc_crc32c(const lc_crc32c_tables *t, lc_bytes bytes) {
    uint32_t v = 0xFFFFFFFF;
    const uint8_t *p = bytes.data, *end = p + bytes.size;
    for (; end - p >= 8; p += 8) {
        uint32_t low = lc_load_u32(p) ^ v, high = lc_load_u32(p + 4);
        v = t->of[7][low & 0xFF] ^ t->of[6][low >> 8 & 0xFF] ^ t->of[5][low >> 16 & 0xFF] ^ t->of[4][low >> 24] ^
            t->of[3][high & 0xFF] ^ t->of[2][high >> 8 & 0xFF] ^ t->of[1][high >> 16 & 0xFF] ^ t->of[0][high >> 24];
    }
    for (; p < end; p++) v = t->of[0][(v ^ lc_load_u8(p)) & 0xFF] ^ (v >> 8);
    return ~v;
}

#endif
