/* What every codec kernel shares: exact byte ranges in, and a problem number out (0 = none).
 *
 * A chunk decoder gets the buffers of one chunk with their exact sizes (no padding) and the number of values n it must
 * produce. It checks everything it reads: sizes, widths, counts. The caller has checked that `out` holds n values. */
#ifndef LANCECODEC_CHUNK_H
#define LANCECODEC_CHUNK_H

#include "portable.h"

typedef struct {
    const uint8_t *data;
    int64_t size;
} lc_bytes;

/* Words for these are in problems.pyx. */
enum lc_problem {
    LC_OK = 0,
    LC_BAD_SIZE,     /* a buffer is shorter or longer than its values */
    LC_BAD_WIDTH,    /* a bit width the codec does not have */
    LC_BAD_COUNT,    /* more values than the codec holds in one unit, or counts that do not add up */
    LC_BAD_OFFSETS,  /* offsets that decrease, start too early or pass their bytes */
    LC_BAD_RUN,      /* a run of length 0, or run lengths that miss the number of values */
    LC_BAD_CODE,     /* FSST: a code without a symbol, or an escape without its byte */
    LC_BAD_TABLE,    /* FSST: not a symbol table */
    LC_BAD_INDEX,    /* a dictionary index without an entry */
    LC_BAD_LEVEL,    /* a repetition or definition level its layers do not have */
    LC_BAD_HEADER,   /* a header that contradicts the buffer it describes */
    LC_BAD_ROW,      /* a packed row that is shorter or longer than its fields */
    LC_NO_SPACE,     /* the output is too small, or does not fit its offset type */
    LC_NO_MEMORY
};

#endif
