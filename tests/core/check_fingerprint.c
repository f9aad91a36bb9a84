/* check_fingerprint.c - sums of columns of words and of whole numbers, against plain loops. */
#include "core.h"

static uint64_t half_of(const unsigned char *word, int size, int high)
{
    uint16_t two;
    uint32_t four;
    uint64_t x = *word;
    if (size == 2) memcpy(&two, word, 2), x = two;
    if (size == 4) memcpy(&four, word, 4), x = four;
    if (size == 8) memcpy(&x, word, 8);
    return high ? x >> 32 : x & UINT32_MAX;
}

void SPCA(check_fingerprint)(trial_t *t)
{
    int size = 1 << below(t, 4), row_major = chance(t, 50);
    spca_int n = below(t, 40), p = between(t, 1, chance(t, 10) ? 20000 : 40);
    spca_int lines = row_major ? n : p, width = row_major ? p : n, ld = width + below(t, 5);
    spca_int length = lines > 0 ? ((lines - 1) * ld + width) * size : 0;
    spca_int shift = below(t, 2); /* words may be at any address */
    unsigned char *X = SCRATCH(t, length + shift, unsigned char) + shift;
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

void SPCA(check_lines)(trial_t *t)
{
    spca_int lines = between(t, 1, 20), length = between(t, 1, 20), stored = 0, q = 0;
    int32_t *indptr = SCRATCH(t, lines + 1, int32_t);
    int32_t *indices = SCRATCH(t, lines * length + 1, int32_t);
    int64_t *wide_indptr = SCRATCH(t, lines + 1, int64_t);
    int64_t *wide_indices = SCRATCH(t, lines * length + 1, int64_t);
    int order = 2, wrong = chance(t, 50), falls = chance(t, 50);
    for (spca_int l = indptr[0] = 0; l < lines; indptr[++l] = (int32_t)stored)
        for (spca_int j = below(t, length); j < length; j += between(t, 1, 3))
            indices[stored++] = (int32_t)j;
    if (falls) /* an index that is that of the one before */
        for (spca_int l = 0; l < lines && order == 2; l++)
            if (indptr[l + 1] > indptr[l] + 1) {
                indices[indptr[l] + 1] = indices[indptr[l]];
                order = 1;
            }
    if (wrong) {
        int32_t outside = chance(t, 50) ? -1 : (int32_t)(chance(t, 50) ? length : INT32_MAX);
        if (stored && chance(t, 50))
            indices[below(t, stored)] = outside;
        else if (chance(t, 50) && stored)
            q = 1; /* one fewer is stored than indptr says */
        else
            indptr[chance(t, 50) ? 0 : lines] = chance(t, 50) ? -1 : (int32_t)stored + 1;
        order = 0;
    }
    for (spca_int l = 0; l <= lines; l++) wide_indptr[l] = indptr[l];
    for (spca_int a = 0; a < stored; a++) wide_indices[a] = indices[a];
    CHECK(t, spca_line_order(lines, length, stored - q, indptr, indices, 0) == order);
    CHECK(t, spca_line_order(lines, length, stored - q, wide_indptr, wide_indices, 1) == order);
}

static void put(void *X, int kind, spca_int at, double x)
{
    if (kind == SPCA_INT8) ((int8_t *)X)[at] = (int8_t)x;
    if (kind == SPCA_UINT8) ((uint8_t *)X)[at] = (uint8_t)x;
    if (kind == SPCA_INT16) ((int16_t *)X)[at] = (int16_t)x;
    if (kind == SPCA_UINT16) ((uint16_t *)X)[at] = (uint16_t)x;
    if (kind == SPCA_SINGLES) ((float *)X)[at] = (float)x;
    if (kind == SPCA_DOUBLES) ((double *)X)[at] = x;
}

static double get(const void *X, int kind, spca_int at)
{
    return kind == SPCA_INT8      ? ((const int8_t *)X)[at]
           : kind == SPCA_UINT8   ? ((const uint8_t *)X)[at]
           : kind == SPCA_INT16   ? ((const int16_t *)X)[at]
           : kind == SPCA_UINT16  ? ((const uint16_t *)X)[at]
           : kind == SPCA_SINGLES ? (double)((const float *)X)[at]
                                  : ((const double *)X)[at];
}

void SPCA(check_whole)(trial_t *t)
{
    static const int BYTES[] = {1, 1, 2, 2, 4, 8}, LEAST[] = {-128, 0, -2047, 0, -2047, -2047},
                     MOST[] = {127, 255, 2047, 2047, 2047, 2047};
    static const double WRONG[] = {2048, -2048, 0.5, -1e-30, HUGE_VAL, (double)NAN};
    int kind = (int)below(t, 6), row_major = chance(t, 50), wrong = kind > 1 && chance(t, 15);
    spca_int n = between(t, 1, 40), p = between(t, 1, 40);
    spca_int lines = row_major ? n : p, width = row_major ? p : n, ld = width + below(t, 5);
    spca_int length = (lines - 1) * ld + width;
    spca_int room = spca_whole_work(p, chance(t, 50) ? backwards : NULL);
    void *X = SCRATCH(t, length * BYTES[kind], char), *work = SCRATCH(t, room, char);
    int64_t *low = SCRATCH(t, p, int64_t), *high = SCRATCH(t, p, int64_t);
    int64_t *sum = SCRATCH(t, p, int64_t), *G = SCRATCH(t, p * p, int64_t);
    spca_status status;
    for (spca_int a = 0; a < length; a++) /* many at an end of their range */
        put(X, kind, a,
            chance(t, 40)   ? LEAST[kind]
            : chance(t, 40) ? MOST[kind]
                            : (double)between(t, LEAST[kind], MOST[kind]));
    if (wrong) {
        spca_int i = below(t, n), j = below(t, p), first = kind == SPCA_UINT16 ? 1 : 2;
        spca_int which = kind < SPCA_SINGLES ? below(t, first) : below(t, 6);
        put(X, kind, row_major ? i * ld + j : j * ld + i, WRONG[which]);
    }
    status = spca_whole_moments(n, p, ld, row_major, kind, X, chance(t, 50) ? backwards : NULL,
                                NULL, NULL, room, work, low, high, sum, G);
    CHECK(t, status == (wrong ? SPCA_NOT_CONVERGED : SPCA_OK));
    for (spca_int a = 0; !wrong && a < p; a++)
        for (spca_int b = 0; b < p; b++) {
            int64_t least = MOST[kind], most = LEAST[kind], one = 0, both = 0;
            for (spca_int i = 0; i < n; i++) {
                int64_t x = (int64_t)get(X, kind, row_major ? i * ld + a : a * ld + i);
                int64_t y = (int64_t)get(X, kind, row_major ? i * ld + b : b * ld + i);
                one += x;
                both += x * y;
                least = x < least ? x : least;
                most = x > most ? x : most;
            }
            CHECK(t, G[a * p + b] == both && sum[a] == one && low[a] == least && high[a] == most);
        }
    if (!wrong) digest(t, G, (size_t)(p * p) * sizeof *G);
}
