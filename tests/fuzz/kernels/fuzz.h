/* Parts common to all fuzz targets: arguments cut from the fuzzer's bytes, in heap memory of exactly their size.
 *
 * Built with -fsanitize=fuzzer, libFuzzer calls LLVMFuzzerTestOneInput. Built with -DFUZZ_STANDALONE, a main does so, for
 * compilers and machines without libFuzzer:  target [inputs [seed [failing [file ...]]]]. It feeds the files, then random
 * bytes and files of which it has changed some bytes. `failing` holds the last input while it is tried. */
#ifndef LANCECODEC_FUZZ_H
#define LANCECODEC_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chunk.h"

#define FZ_CHECK(condition)                                                         \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

#define FZ_ALLOCATIONS 256
static void *fz_allocated[FZ_ALLOCATIONS];
static int fz_allocations;

typedef struct {
    const uint8_t *data;
    int64_t size;
} fz_input;

/* Memory whose end a sanitizer watches, at an odd address if `skew`. */
static uint8_t *fz_memory(int64_t size, int skew) {
    FZ_CHECK(size >= 0 && fz_allocations < FZ_ALLOCATIONS);
    uint8_t *data = malloc((size_t)size + (size_t)skew + (size == 0 && skew == 0));
    FZ_CHECK(data != NULL);
    memset(data, 0xA5, (size_t)size + (size_t)skew);
    fz_allocated[fz_allocations++] = data;
    return data + skew;
}

static uint64_t fz_word(fz_input *in, int bytes) {
    uint64_t v = 0;
    int64_t n = in->size < bytes ? in->size : bytes;
    if (n) memcpy(&v, in->data, (size_t)n);
    in->data += n;
    in->size -= n;
    return v;
}

/* A number from 0 to `top`. */
static int64_t fz_upto(fz_input *in, int64_t top) {
    return (int64_t)(fz_word(in, top < 256 ? 1 : 4) % ((uint64_t)top + 1));
}

static inline uint8_t *fz_out(fz_input *in, int64_t size) { return fz_memory(size, (int)fz_upto(in, 3)); }

/* The next `size` bytes, zeros after the last. */
static inline uint8_t *fz_take(fz_input *in, int64_t size) {
    uint8_t *data = fz_out(in, size);
    int64_t n = in->size < size ? in->size : size;
    if (size) memset(data, 0, (size_t)size);
    if (n) memcpy(data, in->data, (size_t)n);
    in->data += n;
    in->size -= n;
    return data;
}

/* All bytes that are left. */
static inline lc_bytes fz_rest(fz_input *in) {
    int skew = (int)fz_upto(in, 3);
    lc_bytes rest = {fz_memory(in->size, skew), in->size};
    if (in->size) memcpy((uint8_t *)rest.data, in->data, (size_t)in->size);
    in->data += in->size;
    in->size = 0;
    return rest;
}

/* Positions below `top`, which is not 0. */
static inline int64_t *fz_positions(fz_input *in, int64_t count, int64_t top) {
    int64_t *at = (int64_t *)fz_memory(8 * count, 0);
    for (int64_t i = 0; i < count; i++) at[i] = fz_upto(in, top - 1);
    return at;
}

/* A copy with a few changed bytes. */
static inline uint8_t *fz_damaged(fz_input *in, const uint8_t *data, int64_t size) {
    uint8_t *copy = fz_out(in, size);
    if (size) memcpy(copy, data, (size_t)size);
    for (int64_t k = fz_upto(in, 3); k > 0 && size; k--) {
        int64_t at = fz_upto(in, fz_upto(in, 1) && size > 16 ? 15 : size - 1);
        copy[at] = (uint8_t)fz_upto(in, 255);
    }
    return copy;
}

static void fz_target(fz_input *in);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fz_input in = {data, (int64_t)size};
    fz_target(&in);
    while (fz_allocations) free(fz_allocated[--fz_allocations]);
    for (int i = 0; i < FZ_ALLOCATIONS; i++) fz_allocated[i] = NULL;
    return 0;
}

#ifdef FUZZ_STANDALONE
static uint64_t fz_state;

static uint64_t fz_random(void) {
    fz_state ^= fz_state << 13, fz_state ^= fz_state >> 7, fz_state ^= fz_state << 17;
    return fz_state;
}

static uint8_t fz_data[1 << 13];

/* Feed an input, which `failing` holds if the target does not return. */
static void fz_try(const char *failing, size_t size) {
    FILE *file = failing ? fopen(failing, "wb") : NULL;
    if (file) fwrite(fz_data, 1, size, file), fclose(file);
    LLVMFuzzerTestOneInput(fz_data, size);
}

static size_t fz_load(const char *path) {
    FILE *file = fopen(path, "rb");
    FZ_CHECK(file != NULL);
    size_t size = fread(fz_data, 1, sizeof fz_data, file);
    fclose(file);
    return size;
}

static size_t fz_make(long i) {
    size_t size = fz_random() % (i % 4 ? 200 : sizeof fz_data);
    uint8_t mask = (uint8_t)(i % 3 ? 0xFF : 0x03); /* a third of small numbers, as headers and lengths are */
    for (size_t k = 0; k < size; k++) fz_data[k] = (uint8_t)(fz_random() >> 32) & mask;
    return size;
}

int main(int count, char **arguments) {
    long inputs = count > 1 ? atol(arguments[1]) : 1000;
    const char *failing = count > 3 ? arguments[3] : NULL;
    fz_state = 0x9E3779B97F4A7C15ULL ^ (count > 2 ? (uint64_t)atol(arguments[2]) << 20 : 0);
    for (int f = 4; f < count; f++) fz_try(failing, fz_load(arguments[f]));
    for (long i = 0; i < inputs; i++) {
        int again = count > 4 && i % 2; /* a known input, with other bytes in some places */
        size_t size = again ? fz_load(arguments[4 + i / 2 % (count - 4)]) : fz_make(i);
        for (int k = again ? 1 + (int)(fz_random() % 4) : 0; k > 0 && size; k--) fz_data[fz_random() % size] = (uint8_t)fz_random();
        fz_try(failing, size);
    }
    if (failing) remove(failing);
    printf("%ld inputs\n", inputs);
    return 0;
}
#endif

#endif
