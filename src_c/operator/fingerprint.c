/* fingerprint.c - sums that tell whether a block of rows is what it was.
 *
 * With the halves l and h of the word x_ij and m and k of a random key of the row, of 32 bits each,
 * the sum over i of l m + h k modulo 2^64.  Whole numbers add to the same in any order.  Where x
 * changes by d, an entry of d is not 0, and d m = c modulo 2^64 holds for at most one m, because d
 * is below 2^32: so of all keys at most one in 2^32 misses a change. */
#include "../real.h"
#include "../simd.h"

enum { TILE = 1024 }; /* sums that stay in the first cache */

INLINE uint64_t term(uint64_t x, uint64_t key, const int wide)
{
    uint64_t sum = (uint64_t)(uint32_t)x * (uint32_t)key;
    return wide ? sum + (x >> 32) * (key >> 32) : sum;
}

#define SUMS(word)                                                                                 \
    /* some columns, row by row; two rows for each read of the sums */                             \
    static void by_rows_##word(spca_int n, spca_int p, spca_int ld, const word *x,                 \
                               const uint64_t *keys, uint64_t *sums)                               \
    {                                                                                              \
        const int wide = sizeof(word) == 8;                                                        \
        spca_int i = 0;                                                                            \
        for (; i + 2 <= n; i += 2) {                                                               \
            const word *a = x + i * ld, *b = a + ld;                                               \
            uint64_t k = keys[i], l = keys[i + 1];                                                 \
            for (spca_int j = 0; j < p; j++) sums[j] += term(a[j], k, wide) + term(b[j], l, wide); \
        }                                                                                          \
        for (spca_int j = 0; i < n && j < p; j++) sums[j] += term(x[i * ld + j], keys[i], wide);   \
    }                                                                                              \
                                                                                                   \
    static uint64_t of_column_##word(spca_int n, const word *x, const uint64_t *keys)              \
    {                                                                                              \
        const int wide = sizeof(word) == 8;                                                        \
        uint64_t sum = 0;                                                                          \
        for (spca_int i = 0; i < n; i++) sum += term(x[i], keys[i], wide);                         \
        return sum;                                                                                \
    }                                                                                              \
                                                                                                   \
    static void sums_##word(spca_int n, spca_int p, spca_int ld, int row_major, const void *block, \
                            const uint64_t *keys, uint64_t *sums)                                  \
    {                                                                                              \
        const word *x = block;                                                                     \
        for (spca_int j = 0; j < p; j++)                                                           \
            sums[j] = row_major ? 0 : of_column_##word(n, x + j * ld, keys);                       \
        for (spca_int j = 0; row_major && j < p; j += TILE)                                        \
            by_rows_##word(n, p - j < TILE ? p - j : TILE, ld, x + j, keys, sums + j);             \
    }

SUMS(uint8_t)
SUMS(uint16_t)
SUMS(uint32_t)
SUMS(uint64_t)

void spca_fingerprint(spca_int n, spca_int p, spca_int ld, int row_major, int size, const void *x,
                      const uint64_t *keys, uint64_t *sums)
{
    (size == 1   ? sums_uint8_t
     : size == 2 ? sums_uint16_t
     : size == 4 ? sums_uint32_t
                 : sums_uint64_t)(n, p, ld, row_major, x, keys, sums);
}
