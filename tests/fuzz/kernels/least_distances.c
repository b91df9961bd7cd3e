/* Least of any distances: numbers exist, are in order, and no other distance is less than the last one. */
#include "fuzz.h"
#include "nearest.h"

static float at(const uint8_t *distances, uint64_t number) {
    float value;
    memcpy(&value, distances + 4 * number, sizeof value);
    return value;
}

static void fz_target(fz_input *in) {
    int64_t n = fz_upto(in, 200), k = 1 + fz_upto(in, 20), count = -1, less = 0, numbers_of_any = 0;
    const uint8_t *distances = fz_take(in, 4 * n);
    uint8_t *numbers = fz_memory(8 * k, 0);
    FZ_CHECK(!lc_least_distances(distances, n, k, numbers, &count) && count >= 0 && count <= k);
    uint64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t number;
        memcpy(&number, numbers + 8 * i, sizeof number);
        FZ_CHECK(number < (uint64_t)n && at(distances, number) == at(distances, number));
        float before = i ? at(distances, last) : 0, value = at(distances, number);
        FZ_CHECK(!i || before < value || (before == value && last < number));
        last = number;
    }
    for (int64_t i = 0; i < n; i++) {
        float value = at(distances, (uint64_t)i);
        if (value != value) continue;
        numbers_of_any++;
        less += count > 0 && value < at(distances, last);
    }
    FZ_CHECK(count == (numbers_of_any < k ? numbers_of_any : k) && less < (count ? count : 1));
}
