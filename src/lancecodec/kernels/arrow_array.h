/* Filled buffers as arrays of the Arrow C data interface. Each array owns its buffers, and frees them when its consumer
 * calls `release`, on whatever thread. */
#ifndef LANCECODEC_ARROW_ARRAY_H
#define LANCECODEC_ARROW_ARRAY_H

#include <stdlib.h>

#include "portable.h"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

#define LC_ARRAY_ALIGN 64
#define LC_ARRAY_BUFFERS 3

typedef struct ArrowArray lc_array;

/* Parts owned by an array: its children and the pointers to them. */
typedef struct {
    const void *buffers[LC_ARRAY_BUFFERS];
    void *owned[LC_ARRAY_BUFFERS]; /* memory from malloc */
} lc_array_parts;

/* Allocate memory for a buffer of an array. *at becomes its first byte, at a multiple of 64. Returns NULL without
 * memory. */
static inline void *lc_array_memory(int64_t size, uint8_t **at) {
    void *memory = malloc((size_t)size + LC_ARRAY_ALIGN);
    *at = (uint8_t *)(((uintptr_t)memory + LC_ARRAY_ALIGN - 1) & ~(uintptr_t)(LC_ARRAY_ALIGN - 1));
    return memory;
}

static void lc_array_release(lc_array *array) {
    lc_array_parts *parts = (lc_array_parts *)array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release) array->children[i]->release(array->children[i]);
    for (int i = 0; i < LC_ARRAY_BUFFERS; i++) free(parts->owned[i]);
    free(parts);
    array->release = NULL;
}

/* Make an array without buffers yet (all NULL) and with released children, to be filled by the caller. Returns its
 * parts, or NULL without memory. */
static lc_array_parts *lc_array_make(lc_array *array, int64_t length, int64_t buffers, int64_t children) {
    size_t size = sizeof(lc_array_parts) + (size_t)children * (sizeof(lc_array) + sizeof(lc_array *));
    lc_array_parts *parts = (lc_array_parts *)calloc(1, size);
    memset(array, 0, sizeof *array);
    if (parts == NULL) return NULL;
    lc_array *below = (lc_array *)(parts + 1);
    array->children = (lc_array **)(below + children);
    for (int64_t i = 0; i < children; i++) array->children[i] = below + i;
    array->length = length;
    array->n_buffers = buffers;
    array->n_children = children;
    array->buffers = parts->buffers;
    array->release = lc_array_release;
    array->private_data = parts;
    return parts;
}

/* Pass a buffer to an array: `memory` is the address to free, `data` the first byte. */
LC_INLINE void lc_array_give(lc_array *array, int buffer, void *memory, const void *data) {
    lc_array_parts *parts = (lc_array_parts *)array->private_data;
    parts->owned[buffer] = memory;
    parts->buffers[buffer] = data;
}

#endif
