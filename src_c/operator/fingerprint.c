/* fingerprint.c - sums that tell whether a block of rows is what it was.
 *
 * Let l and h be the halves of the word x_ij, and m and k those of a random key of the row, of 32
 * bits each.  The fingerprint of a column is the sum over i of l m + h k modulo 2^64.  Whole
 * numbers have the same sum in any order.  Where x changes by d, some half of an entry changes by
 * less than 2^32; then, all other keys given, at most one m leaves the sum as it was.  So of all
 * keys at most one in 2^32 misses a change. */
#include "../real.h"
#include "../simd.h"
#include <string.h>

enum { TILE = 8192 }; /* sums that stay in the second cache: rows are long runs of memory */

#ifdef __GNUC__ /* so that entries of any type, at any address, may be read as words */
#define WORD(bits) typedef uint##bits##_t __attribute__((aligned(1), may_alias)) word##bits;
#else
#define WORD(bits) typedef uint##bits##_t word##bits;
#endif
WORD(8)
WORD(16)
WORD(32)
WORD(64)

/* The term l m + h k of a word; words of less than 64 bits (not wide) have no h. */
INLINE uint64_t term(uint64_t x, uint64_t key, const int wide)
{
    uint64_t sum = (uint64_t)(uint32_t)x * (uint32_t)key;
    return wide ? sum + (x >> 32) * (key >> 32) : sum;
}

#define SUMS(word)                                                                                 \
    /* sums of some columns, row by row, with four rows for each read of the sums */               \
    VECTORIZED(by_rows_##word,                                                                     \
               (spca_int n, spca_int p, spca_int ld, const word *x, const uint64_t *keys,          \
                uint64_t *restrict sums),                                                          \
               (n, p, ld, x, keys, sums))                                                          \
    {                                                                                              \
        const int wide = sizeof(word) == 8;                                                        \
        spca_int i = 0;                                                                            \
        for (; i + 4 <= n; i += 4) {                                                               \
            const word *a = x + i * ld, *b = a + ld, *c = b + ld, *d = c + ld;                     \
            uint64_t k = keys[i], l = keys[i + 1], m = keys[i + 2], o = keys[i + 3];               \
            for (spca_int j = 0; j < p; j++)                                                       \
                sums[j] += term(a[j], k, wide) + term(b[j], l, wide) + term(c[j], m, wide) +       \
                           term(d[j], o, wide);                                                    \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            for (spca_int j = 0; j < p; j++) sums[j] += term(x[i * ld + j], keys[i], wide);        \
    }                                                                                              \
                                                                                                   \
    /* sums of columns, with four columns for each read of the keys */                             \
    VECTORIZED(by_columns_##word,                                                                  \
               (spca_int n, spca_int p, spca_int ld, const word *x, const uint64_t *keys,          \
                uint64_t *restrict sums),                                                          \
               (n, p, ld, x, keys, sums))                                                          \
    {                                                                                              \
        const int wide = sizeof(word) == 8;                                                        \
        spca_int j = 0;                                                                            \
        for (; j + 4 <= p; j += 4) {                                                               \
            const word *a = x + j * ld, *b = a + ld, *c = b + ld, *d = c + ld;                     \
            uint64_t s = 0, t = 0, u = 0, v = 0;                                                   \
            for (spca_int i = 0; i < n; i++) {                                                     \
                s += term(a[i], keys[i], wide);                                                    \
                t += term(b[i], keys[i], wide);                                                    \
                u += term(c[i], keys[i], wide);                                                    \
                v += term(d[i], keys[i], wide);                                                    \
            }                                                                                      \
            sums[j] = s, sums[j + 1] = t, sums[j + 2] = u, sums[j + 3] = v;                        \
        }                                                                                          \
        for (; j < p; j++) {                                                                       \
            sums[j] = 0;                                                                           \
            for (spca_int i = 0; i < n; i++) sums[j] += term(x[j * ld + i], keys[i], wide);        \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void sums_##word(spca_int n, spca_int p, spca_int ld, int row_major, const void *block, \
                            const uint64_t *keys, uint64_t *sums)                                  \
    {                                                                                              \
        const word *x = block;                                                                     \
        if (!row_major) {                                                                          \
            by_columns_##word(n, p, ld, x, keys, sums);                                            \
            return;                                                                                \
        }                                                                                          \
        memset(sums, 0, (size_t)p * sizeof(*sums));                                                \
        for (spca_int j = 0; j < p; j += TILE)                                                     \
            by_rows_##word(n, p - j < TILE ? p - j : TILE, ld, x + j, keys, sums + j);             \
    }

SUMS(word8)
SUMS(word16)
SUMS(word32)
SUMS(word64)

void spca_fingerprint(spca_int n, spca_int p, spca_int ld, int row_major, int size, const void *x,
                      const uint64_t *keys, uint64_t *sums)
{
    (size == 1   ? sums_word8
     : size == 2 ? sums_word16
     : size == 4 ? sums_word32
                 : sums_word64)(n, p, ld, row_major, x, keys, sums);
}
