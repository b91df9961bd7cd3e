/* Products of 128-bit numbers against those of 16-bit digits. */
#include "decimal_multiply.h"
#include "fuzz.h"

/* Digits of 16 bits of a magnitude of up to 16 of them. */
static void fz_long_product(const uint16_t *a, const uint16_t *b, uint16_t *out) {
    memset(out, 0, 16 * sizeof *out);
    for (int i = 0; i < 8; i++) {
        uint32_t carry = 0;
        for (int k = 0; k < 8; k++) {
            uint32_t sum = out[i + k] + (uint32_t)a[i] * b[k] + carry;
            out[i + k] = (uint16_t)sum;
            carry = sum >> 16;
        }
        out[i + 8] = (uint16_t)carry;
    }
}

static lc_magnitude fz_number(const uint8_t *at, uint64_t *sign) {
    lc_magnitude v = {lc_load_u64(at), lc_load_u64(at + 8)};
    *sign = 0 - (v.high >> 63);
    return lc_negated(v, *sign);
}

static int fz_fits(lc_magnitude a, lc_magnitude b, lc_magnitude most, lc_magnitude *product) {
    uint16_t digits[16];
    fz_long_product((const uint16_t *)&a, (const uint16_t *)&b, digits);
    memcpy(product, digits, sizeof *product);
    for (int i = 8; i < 16; i++)
        if (digits[i]) return 0;
    return product->high < most.high || (product->high == most.high && product->low <= most.low);
}

static void fz_target(fz_input *in) {
    int64_t n = fz_upto(in, 20), step = fz_upto(in, 1) ? 16 : 0;
    lc_magnitude most = {fz_word(in, 8), fz_word(in, 8) >> 1};
    uint8_t *left = fz_take(in, 16 * n), *right = fz_take(in, step ? 16 * n : 16), *out = fz_out(in, 16 * n);
    int fits = lc_decimals_multiply(left, right, step, n, most, out), all = 1;
    for (int64_t i = 0; i < n; i++) {
        uint64_t a_sign, b_sign;
        lc_magnitude a = fz_number(left + 16 * i, &a_sign), b = fz_number(right + step * i, &b_sign), product;
        all &= fz_fits(a, b, most, &product);
        product = lc_negated(product, a_sign ^ b_sign);
        if (fits) FZ_CHECK(lc_load_u64(out + 16 * i) == product.low && lc_load_u64(out + 16 * i + 8) == product.high);
    }
    FZ_CHECK(fits == all);
}
