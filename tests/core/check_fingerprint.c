/* check_fingerprint.c - sums of columns of words, against plain loops over their bytes. */
#include "core.h"

static uint64_t half_of(const unsigned char *word, int size, int high)
{
    uint64_t x = 0;
    if (size == 1) x = *word;
    if (size == 2) x = *(const uint16_t *)word;
    if (size == 4) x = *(const uint32_t *)word;
    if (size == 8) x = *(const uint64_t *)word;
    return high ? x >> 32 : x & UINT32_MAX;
}

void SPCA(check_fingerprint)(trial_t *t)
{
    int size = 1 << below(t, 4), row_major = chance(t, 50);
    spca_int n = below(t, 40), p = between(t, 1, chance(t, 10) ? 2500 : 40);
    spca_int lines = row_major ? n : p, width = row_major ? p : n, ld = width + below(t, 5);
    spca_int length = lines > 0 ? ((lines - 1) * ld + width) * size : 0;
    unsigned char *X = SCRATCH(t, length, unsigned char);
    uint64_t *keys = SCRATCH(t, n, uint64_t), *sums = SCRATCH(t, p, uint64_t);
    for (spca_int a = 0; a < length; a++) /* many at an end of their range */
        X[a] = (unsigned char)(chance(t, 30) ? 255 : below(t, 256));
    for (spca_int i = 0; i < n; i++) keys[i] = chance(t, 20) ? UINT64_MAX : scramble(&t->state);
    spca_fingerprint(n, p, ld, row_major, size, X, keys, sums);
    for (spca_int j = 0; j < p; j++) {
        uint64_t sum = 0;
        for (spca_int i = 0; i < n; i++) {
            const unsigned char *word = X + (row_major ? i * ld + j : j * ld + i) * size;
            for (int high = 0; high < 2; high++)
                sum += half_of(word, size, high) * (high ? keys[i] >> 32 : keys[i] & UINT32_MAX);
        }
        CHECK(t, sums[j] == sum);
    }
    digest(t, sums, (size_t)p * sizeof *sums);
}
