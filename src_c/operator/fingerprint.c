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
#if defined(SPCA_CLONES) || defined(__SSE2__)
#include <immintrin.h>
#endif

enum {
    TILE = 8192, /* sums that stay in the second cache: rows are long runs of memory */
    ROWS = 4     /* rows for each read of the sums */
};

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

/* Add the terms of ROWS rows to the sums of words of 4 bytes, or of 8 (wide), as many as fill
 * vectors.  One instruction multiplies the low halves of lanes of 8 bytes, which compilers do not
 * see in a plain loop.  A lane has two words of 4 bytes, so the sums of a vector of these come with
 * those of even numbers first, and then the odd ones. */
#define PRODUCTS(name, target, vector_t, load, spread, multiply, shift, add, store)                \
    target static void name(spca_int words, spca_int stride, int wide, const unsigned char *x,     \
                            const uint64_t *keys, uint64_t *sums)                                  \
    {                                                                                              \
        enum { LANES = sizeof(vector_t) / 8 };                                                     \
        vector_t low[ROWS], high[ROWS];                                                            \
        for (int a = 0; a < ROWS; a++) {                                                           \
            low[a] = spread((long long)keys[a]);                                                   \
            high[a] = wide ? shift(low[a], 32) : low[a];                                           \
        }                                                                                          \
        for (spca_int j = 0; j < words; j += wide ? LANES : 2 * LANES, x += sizeof(vector_t)) {    \
            vector_t even = load((const void *)(sums + j)), odd = spread(0);                       \
            if (!wide) odd = load((const void *)(sums + j + LANES));                               \
            for (int a = 0; a < ROWS; a++) {                                                       \
                const unsigned char *at = x + a * stride;                                          \
                vector_t w = load((const void *)at);                                               \
                FETCH(at + ROWS * stride);                                                         \
                even = add(even, multiply(w, low[a]));                                             \
                odd = add(odd, multiply(shift(w, 32), high[a]));                                   \
            }                                                                                      \
            store((void *)(sums + j), wide ? add(even, odd) : even);                               \
            if (!wide) store((void *)(sums + j + LANES), odd);                                     \
        }                                                                                          \
    }
#ifdef __SSE2__
PRODUCTS(plain, , __m128i, _mm_loadu_si128, _mm_set1_epi64x, _mm_mul_epu32, _mm_srli_epi64,
         _mm_add_epi64, _mm_storeu_si128)
#endif
typedef void (*products_t)(spca_int words, spca_int stride, int wide, const unsigned char *x,
                           const uint64_t *keys, uint64_t *sums);
#ifdef SPCA_CLONES
PRODUCTS(by_avx2, FOR_AVX2, __m256i, _mm256_loadu_si256, _mm256_set1_epi64x, _mm256_mul_epu32,
         _mm256_srli_epi64, _mm256_add_epi64, _mm256_storeu_si256)
PRODUCTS(by_avx512, FOR_AVX512, __m512i, _mm512_loadu_si512, _mm512_set1_epi64, _mm512_mul_epu32,
         _mm512_srli_epi64, _mm512_add_epi64, _mm512_storeu_si512)
static const products_t CLONES[] = {plain, by_avx2, by_avx512};
#elif defined(__SSE2__)
static const products_t CLONES[] = {plain};
#endif

/* Add the terms of rows, a multiple of ROWS, to the sums of as many words as fill vectors: how many
 * these are. */
static spca_int in_vectors(spca_int rows, spca_int words, spca_int ld, const void *x, int size,
                           const uint64_t *keys, uint64_t *sums)
{
#ifdef __SSE2__
    int lanes = 2 << spca_clone, step = size == 8 ? lanes : 2 * lanes;
    uint64_t even[8], odd[8];
    spca_int whole = size < 4 ? 0 : words - words % step;
    for (spca_int i = 0; i < rows && whole; i += ROWS)
        CLONES[spca_clone](whole, ld * size, size == 8, (const unsigned char *)x + i * ld * size,
                           keys + i, sums);
    for (spca_int j = 0; j < whole && size == 4; j += step) {
        memcpy(even, sums + j, (size_t)lanes * sizeof(*even));
        memcpy(odd, sums + j + lanes, (size_t)lanes * sizeof(*odd));
        for (int l = 0; l < lanes; l++) sums[j + 2 * l] = even[l], sums[j + 2 * l + 1] = odd[l];
    }
    return whole;
#else
    (void)rows, (void)words, (void)ld, (void)x, (void)size, (void)keys, (void)sums;
    return 0;
#endif
}

#define SUMS(word)                                                                                 \
    /* sums of some columns, row by row, ROWS for each read of the sums */                         \
    VECTORIZED(by_rows_##word,                                                                     \
               (spca_int n, spca_int p, spca_int ld, const word *x, const uint64_t *keys,          \
                uint64_t *restrict sums),                                                          \
               (n, p, ld, x, keys, sums))                                                          \
    {                                                                                              \
        const int wide = sizeof(word) == 8;                                                        \
        spca_int i = 0;                                                                            \
        for (; i + ROWS <= n; i += ROWS) {                                                         \
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
        for (spca_int j = 0; j < p; j += TILE) {                                                   \
            spca_int most = p - j < TILE ? p - j : TILE, rows = n - n % ROWS;                      \
            spca_int whole = in_vectors(rows, most, ld, x + j, sizeof(word), keys, sums + j);      \
            by_rows_##word(rows, most - whole, ld, x + j + whole, keys, sums + j + whole);         \
            by_rows_##word(n - rows, most, ld, x + rows * ld + j, keys + rows, sums + j);          \
        }                                                                                          \
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
