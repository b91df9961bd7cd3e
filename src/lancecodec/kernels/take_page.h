/* Pages from which rows are taken, of any layout. */
#ifndef LANCECODEC_TAKE_PAGE_H
#define LANCECODEC_TAKE_PAGE_H

#include "blocks.h"
#include "fullzip.h"
#include "miniblock_fixed.h"
#include "miniblock_levels.h"
#include "miniblock_variable.h"

enum lc_take_kind { LC_TAKE_NULLS, LC_TAKE_CONSTANT, LC_TAKE_CHUNKS, LC_TAKE_ZIPPED };

/* Entries of a dictionary: of one width, or (offsets not NULL) of varying size. */
typedef struct {
    lc_bytes data;
    const uint8_t *offsets;
    int wide;
    int64_t count; /* -1: there is no dictionary */
} lc_take_entries;

/* Rows of a page of lists: where they begin, and the meaning of their levels. */
typedef struct {
    lc_level_codecs codecs;
    const int64_t *started;             /* rows that start before each chunk, and all */
    int64_t null_item, null_list, empty; /* definition levels; 0: does not exist */
    int required;                       /* a null list counts as damage */
} lc_take_lists;

typedef struct {
    int64_t kind, rows;
    int64_t width; /* bytes of a value; 0: a bit; -1: values vary in size */
    int required;  /* a null counts as damage */
    /* chunks */
    const lc_chunks *chunks;
    lc_value_codec values; /* fixed width, or dictionary indices */
    lc_text_codec text;
    lc_level_codec levels;
    lc_take_entries entries;
    const lc_take_lists *lists; /* NULL: a row is a value */
    /* zipped */
    lc_zip zip;
    lc_bytes data, index; /* positions of rows, of index_width bytes; empty if items have one size */
    int64_t index_width;
    /* constant */
    lc_bytes value;
    const uint8_t *definition; /* a level of 16 bits per row; NULL: no nulls */
    lc_blocks *blocks;         /* of the file, which take_needs.h loads first; NULL: all bytes are in memory */
} lc_take_page;

/* Rows of a page: rows[i] - base is the row in the page, and it is written to places[i], or to first + i. */
typedef struct {
    const int64_t *rows, *places;
    int64_t n, base, first;
} lc_take_span;

#endif
