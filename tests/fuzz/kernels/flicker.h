/* Memory that a second process changes: before every load of a kernel, the bytes loaded become those of one of two
 * versions of a file, at random. So a value that is loaded twice differs half of the time. Include this first. */
#ifndef LANCECODEC_FUZZ_FLICKER_H
#define LANCECODEC_FUZZ_FLICKER_H

#define LC_FLICKER
#include "fuzz.h"

#define FK_FILES 8

static struct {
    uint8_t *at, *one, *other;
    int64_t size;
} fk_files[FK_FILES];
static int fk_count;
static uint64_t fk_state;

static int fk_coin(void) {
    fk_state ^= fk_state << 13, fk_state ^= fk_state >> 7, fk_state ^= fk_state << 17;
    return (int)(fk_state >> 40) & 1;
}

static void lc_flicker(const void *p, size_t size) {
    for (int f = 0; f < fk_count; f++) {
        int64_t at = (int64_t)((intptr_t)p - (intptr_t)fk_files[f].at), end = at + (int64_t)size;
        if (at >= fk_files[f].size || end <= 0) continue;
        if (at < 0) at = 0;
        if (end > fk_files[f].size) end = fk_files[f].size;
        memcpy(fk_files[f].at + at, (fk_coin() ? fk_files[f].one : fk_files[f].other) + at, (size_t)(end - at));
    }
}

/* Begin a target: no files, and coins that depend on the input. */
static inline void fk_begin(fz_input *in) {
    fk_count = 0;
    fk_state = fz_word(in, 4) | 1ULL << 40;
}

/* A file with this content and another one that differs in a few words of `width` bytes. */
static inline uint8_t *fk_file(fz_input *in, const uint8_t *content, int64_t size, int64_t width) {
    uint8_t *file = fz_out(in, size), *one = fz_memory(size, 0), *other = fz_memory(size, 0);
    FZ_CHECK(fk_count < FK_FILES);
    if (size) memcpy(file, content, (size_t)size), memcpy(one, content, (size_t)size), memcpy(other, content, (size_t)size);
    for (int64_t k = 1 + fz_upto(in, 3); k > 0 && size >= width; k--) {
        int64_t at = fz_upto(in, size / width - 1) * width;
        uint64_t word = fz_upto(in, 3) ? (uint64_t)fz_upto(in, 300) : fz_upto(in, 1) ? fz_word(in, 8) : 0 - fz_word(in, 1);
        memcpy(other + at, &word, (size_t)width);
    }
    fk_files[fk_count].at = file, fk_files[fk_count].one = one, fk_files[fk_count].other = other;
    fk_files[fk_count++].size = size;
    return file;
}

/* n ends after `base` must not decrease, and must not pass `last`. */
static inline void fk_check_ends(const uint8_t *ends, int wide, int64_t n, int64_t base, int64_t last) {
    for (int64_t i = 0; i < n; i++) {
        int64_t end = lc_load_offset(ends, wide, i);
        FZ_CHECK(end >= base && end <= last);
        base = end;
    }
}

#endif
