/* Definitions shared by all codec kernels: exact byte ranges as input, and a problem number as result (0 = success).
 *
 * A chunk decoder gets the buffers of one chunk with their exact sizes (no padding) and the number of values n to
 * produce. It checks everything that it reads: sizes, widths, counts. The caller has checked that `out` holds n
 * values. */
#ifndef LANCECODEC_CHUNK_H
#define LANCECODEC_CHUNK_H

#include "portable.h"

typedef struct {
    const uint8_t *data;
    int64_t size;
} lc_bytes;

/* The messages are in problems.pyx. */
enum lc_problem {
    LC_OK = 0,
    LC_BAD_SIZE,     /* a buffer is shorter or longer than its values */
    LC_BAD_WIDTH,    /* a bit width that the codec does not support */
    LC_BAD_COUNT,    /* more values than one unit of the codec can hold, or counts that do not add up */
    LC_BAD_OFFSETS,  /* offsets that decrease, start too early or exceed their bytes */
    LC_BAD_RUN,      /* a run of length 0, or run lengths that do not match the number of values */
    LC_BAD_CODE,     /* FSST: a code without a symbol, or an escape without its byte */
    LC_BAD_TABLE,    /* FSST: not a symbol table */
    LC_BAD_INDEX,    /* a dictionary index without an entry */
    LC_BAD_LEVEL,    /* a repetition or definition level that does not exist in its layers */
    LC_BAD_HEADER,   /* a header that contradicts the buffer it describes */
    LC_BAD_ROW,      /* a packed row that is shorter or longer than its fields */
    LC_NO_SPACE,     /* the output is too small, or does not fit its offset type */
    LC_NO_MEMORY
};

#endif
