/* The automaton against the plain rule for one character. */
#include "fuzz.h"
#include "utf8.h"

static uint64_t table[256];

static void fz_target(fz_input *in) {
    if (!table[0xC3]) lc_utf8_fill(table);
    lc_bytes text = fz_rest(in);
    int64_t at = 0;
    while (at < text.size) {
        int length = lc_utf8_character(text.data + at, text.size - at);
        if (length <= 0) break;
        at += length;
    }
    int64_t found = lc_utf8_find_invalid(table, text.data, text.size);
    FZ_CHECK((found < 0) == (at == text.size));
    if (lc_is_ascii(text.data, text.size)) FZ_CHECK(found < 0);
}
