/* whole.c - sums and products of columns of small whole numbers, without rounding.
 *
 * Entries are copied to 16 bits, by panels of WIDE columns with two rows side by side, so that one
 * instruction multiplies and adds both.  The products of ROWS rows are summed in 32 bits, which
 * hold ROWS SPCA_WHOLE^2, and these sums in 64.  Whole numbers have the same sum in any order, so
 * each thread has rows and sums of its own. */
#include "../real.h"
#include <string.h>
#if defined(SPCA_CLONES) || defined(__SSE2__)
#include <immintrin.h>
#endif

enum {
    WIDE = 16, /* columns of a panel; a pair of its rows takes 64 bytes, a line of memory */
    ROWS =
        /* ROWS: an even number of rows at a time; two panels of them are in the first cache. */
    SPCA_LEAST(512),
    MOST = SPCA_WHOLE,
    PARTS = 16,                 /* parts, at most */
    ROUND = SPCA_LEAST(1 << 27) /* products of a part between two looks at stop, about */
};

typedef void (*products_t)(spca_int pairs, const int16_t *a, const int16_t *b, int32_t *C);

/* C_rc = sum_t (a_2t,r b_2t,c + a_2t+1,r b_2t+1,c) for `rows` columns r of a panel at a time and
 * all columns c of another, over pairs of rows t.  A pair of rows of a panel takes `vectors`
 * vectors; pairs_of multiplies 16-bit numbers and adds neighbors. */
#define PRODUCTS(name, target, vector_t, vectors, rows, zero, load, spread, pairs_of, add, store)  \
    target static void name##_some(spca_int pairs, const int16_t *a, const int16_t *b, int32_t *C) \
    {                                                                                              \
        vector_t sum[rows][vectors];                                                               \
        for (int r = 0; r < rows; r++)                                                             \
            for (int v = 0; v < vectors; v++) sum[r][v] = zero();                                  \
        for (spca_int t = 0; t < pairs; t++, a += 2 * WIDE, b += 2 * WIDE) {                       \
            vector_t y[vectors];                                                                   \
            for (int v = 0; v < vectors; v++)                                                      \
                y[v] = load((const void *)(b + v * (2 * WIDE / vectors)));                         \
            for (int r = 0; r < rows; r++) {                                                       \
                int32_t two;                                                                       \
                vector_t x;                                                                        \
                memcpy(&two, a + 2 * r, sizeof two);                                               \
                x = spread(two);                                                                   \
                for (int v = 0; v < vectors; v++) sum[r][v] = add(sum[r][v], pairs_of(x, y[v]));   \
            }                                                                                      \
        }                                                                                          \
        for (int r = 0; r < rows; r++)                                                             \
            for (int v = 0; v < vectors; v++)                                                      \
                store((void *)(C + r * WIDE + v * (WIDE / vectors)), sum[r][v]);                   \
    }                                                                                              \
    static void name(spca_int pairs, const int16_t *a, const int16_t *b, int32_t *C)               \
    {                                                                                              \
        for (int r = 0; r < WIDE; r += rows) name##_some(pairs, a + 2 * r, b, C + r * WIDE);       \
    }

#ifdef __SSE2__
PRODUCTS(plain, , __m128i, 4, 2, _mm_setzero_si128, _mm_loadu_si128, _mm_set1_epi32, _mm_madd_epi16,
         _mm_add_epi32, _mm_storeu_si128)
#else
/* The same sums without vectors. */
static void plain(spca_int pairs, const int16_t *a, const int16_t *b, int32_t *C)
{
    memset(C, 0, WIDE * WIDE * sizeof(*C));
    for (spca_int t = 0; t < pairs; t++, a += 2 * WIDE, b += 2 * WIDE)
        for (int r = 0; r < WIDE; r++)
            for (int c = 0; c < WIDE; c++)
                C[r * WIDE + c] += a[2 * r] * b[2 * c] + a[2 * r + 1] * b[2 * c + 1];
}
#endif
#ifdef SPCA_CLONES
PRODUCTS(by_avx2, FOR_AVX2, __m256i, 2, 4, _mm256_setzero_si256, _mm256_loadu_si256,
         _mm256_set1_epi32, _mm256_madd_epi16, _mm256_add_epi32, _mm256_storeu_si256)
PRODUCTS(by_avx512, FOR_AVX512, __m512i, 1, 8, _mm512_setzero_si512, _mm512_loadu_si512,
         _mm512_set1_epi32, _mm512_madd_epi16, _mm512_add_epi32, _mm512_storeu_si512)
static const products_t CLONES[] = {plain, by_avx2, by_avx512};
#else
static const products_t CLONES[] = {plain};
#endif

/* The data, and what one round reads: rows begin to end, `rows` of them in each part. */
typedef struct {
    const void *X;
    spca_int p, ld;
    int kind, row_major;
    spca_int begin, end, rows; /* of a round, and of a part */
    char *work;
} whole_t;

/* The sums of a part, in its share of the work: X'X by panels, X'1, whether an entry is no small
 * whole number, extremes, and the panels of ROWS rows. */
typedef struct {
    int64_t *G, *sum;
    int32_t *bad;
    int16_t *low, *high, *panels;
} sums_t;

/* p rounded up to whole panels. */
static spca_int filled(spca_int p)
{
    return (p + WIDE - 1) / WIDE * WIDE;
}

/* Bytes of the sums of a part, in the order of sums_t. */
static spca_int bytes_of(spca_int p)
{
    spca_int q = filled(p);
    return (q * q + q) * (spca_int)sizeof(int64_t) + 64 +
           q * (2 + ROWS) * (spca_int)sizeof(int16_t);
}

/* The sums of a part, in its share of the work. */
static sums_t sums_of(const whole_t *w, spca_int part)
{
    spca_int q = filled(w->p);
    sums_t s;
    s.G = (int64_t *)(void *)(w->work + part * bytes_of(w->p));
    s.sum = s.G + q * q;
    s.bad = (int32_t *)(void *)(s.sum + q);
    s.low = (int16_t *)(void *)(s.bad + 16);
    s.high = s.low + q;
    s.panels = s.high + q;
    return s;
}

/* number = x, or 0 where x is no whole number of size MOST at most; then `bad` is set. */
#define NUMBER(type, number, x, bad)                                                               \
    type number##_was = (x);                                                                       \
    int number = number##_was >= -MOST && number##_was <= MOST ? (int)number##_was : 0;            \
    bad |= (type)number != number##_was

/* Copies `rows` rows of `wide` columns as pairs of rows, with zeros beside and below; returns 0
 * where all entries are small whole numbers. */
#define COPIED(type, wide_t)                                                                       \
    VECTORIZED_TO(int, copied_##type,                                                              \
                  (spca_int rows, spca_int wide, const type *x, spca_int ld, int row_major,        \
                   int16_t *restrict y),                                                           \
                  (rows, wide, x, ld, row_major, y))                                               \
    {                                                                                              \
        int bad = 0;                                                                               \
        spca_int down = row_major ? ld : 1, along = row_major ? 1 : ld, done = 0;                  \
        for (; row_major && wide == WIDE && done + 2 <= rows; done += 2) {                         \
            const type *a = x + done * ld, *b = a + ld;                                            \
            int16_t *z = y + done * WIDE;                                                          \
            for (int c = 0; c < WIDE; c++) {                                                       \
                NUMBER(wide_t, first, a[c], bad);                                                  \
                NUMBER(wide_t, second, b[c], bad);                                                 \
                z[2 * c] = (int16_t)first;                                                         \
                z[2 * c + 1] = (int16_t)second;                                                    \
            }                                                                                      \
        }                                                                                          \
        if (done == rows) return bad;                                                              \
        memset(y + done * WIDE, 0, (size_t)((rows + 1 - done) / 2 * 2 * WIDE) * sizeof(*y));       \
        for (spca_int c = 0; c < wide; c++)                                                        \
            for (spca_int t = done; t < rows; t++) {                                               \
                NUMBER(wide_t, number, x[t * down + c * along], bad);                              \
                y[t / 2 * (2 * WIDE) + 2 * c + t % 2] = (int16_t)number;                           \
            }                                                                                      \
        return bad;                                                                                \
    }
COPIED(int8_t, int)
COPIED(uint8_t, int)
COPIED(int16_t, int)
COPIED(uint16_t, int)
COPIED(float, float)
COPIED(double, double)

/* What copied_double does, for pairs of whole rows, in less than half of the time: beside 3 2^51 a
 * double has no digits after the point, and its last 16 bits are those of the whole number. */
VECTORIZED_TO(int, copied_pairs, (spca_int rows, const double *x, spca_int ld, int16_t *restrict y),
              (rows, x, ld, y))
{
    const double point = 6755399441055744.0;
    int64_t bad = 0;
    for (spca_int t = 0; t < rows; t += 2, y += 2 * WIDE) {
        const double *a = x + t * ld, *b = a + ld;
        for (int c = 0; c < WIDE; c++) {
            double p = a[c] + point, q = b[c] + point;
            int64_t i, j;
            memcpy(&i, &p, sizeof i);
            memcpy(&j, &q, sizeof j);
            bad |= (int64_t)(p - point != a[c]) | (int64_t)(q - point != b[c]) |
                   (int64_t)!(fabs(a[c]) <= MOST) | (int64_t)!(fabs(b[c]) <= MOST);
            y[2 * c] = (int16_t)i;
            y[2 * c + 1] = (int16_t)j;
        }
    }
    return bad != 0;
}

/* Copies rows of the panel from column j; returns 0 where all entries are small whole numbers. */
static int copy_panel(const whole_t *w, spca_int row, spca_int rows, spca_int j, int16_t *y)
{
    spca_int wide = min_int(WIDE, w->p - j), at = w->row_major ? row * w->ld + j : row + j * w->ld;
    if (w->kind == SPCA_DOUBLES && w->row_major && wide == WIDE && FLT_EVAL_METHOD == 0) {
        const double *x = (const double *)w->X + at;
        spca_int even = rows / 2 * 2;
        return copied_pairs(even, x, w->ld, y) |
               copied_double(rows - even, wide, x + even * w->ld, w->ld, 1, y + even * WIDE);
    }
#define COPY(type) copied_##type(rows, wide, (const type *)w->X + at, w->ld, w->row_major, y)
    return w->kind == SPCA_INT8      ? COPY(int8_t)
           : w->kind == SPCA_UINT8   ? COPY(uint8_t)
           : w->kind == SPCA_INT16   ? COPY(int16_t)
           : w->kind == SPCA_UINT16  ? COPY(uint16_t)
           : w->kind == SPCA_SINGLES ? COPY(float)
                                     : COPY(double);
#undef COPY
}

/* Adds the sums and extremes of a panel; with an odd number of rows, the zeros below the last are
 * left out. */
VECTORIZED(add_columns,
           (spca_int rows, const int16_t *y, int64_t *sum, int16_t *low, int16_t *high),
           (rows, y, sum, low, high))
{
    int16_t least[2 * WIDE], most[2 * WIDE];
    int32_t s[2 * WIDE] = {0};
    for (int l = 0; l < 2 * WIDE; l++) least[l] = MOST, most[l] = -MOST;
    for (spca_int t = 0; t < rows / 2; t++, y += 2 * WIDE)
        for (int l = 0; l < 2 * WIDE; l++) {
            s[l] += y[l];
            least[l] = y[l] < least[l] ? y[l] : least[l];
            most[l] = y[l] > most[l] ? y[l] : most[l];
        }
    for (int l = 0; rows % 2 && l < 2 * WIDE; l += 2) {
        s[l] += y[l];
        least[l] = y[l] < least[l] ? y[l] : least[l];
        most[l] = y[l] > most[l] ? y[l] : most[l];
    }
    for (int l = 0; l < 2 * WIDE; l++) {
        sum[l / 2] += s[l];
        low[l / 2] = least[l] < low[l / 2] ? least[l] : low[l / 2];
        high[l / 2] = most[l] > high[l / 2] ? most[l] : high[l / 2];
    }
}

/* G (WIDE x WIDE, leading dimension q) += C. */
VECTORIZED(add_tile, (const int32_t *C, int64_t *restrict G, spca_int q), (C, G, q))
{
    for (int r = 0; r < WIDE; r++, C += WIDE, G += q)
        for (int c = 0; c < WIDE; c++) G[c] += C[c];
}

/* The rows of a part: panels of ROWS rows, and their products, until an entry is no small whole
 * number. */
static void rows_part(void *context, spca_int part)
{
    const whole_t *w = context;
    sums_t s = sums_of(w, part);
    spca_int q = filled(w->p), first = w->begin + part * w->rows;
    spca_int last = min_int(w->end, first + w->rows);
    for (spca_int i = first, rows; i < last && !*s.bad; i += rows) {
        rows = min_int(ROWS, last - i);
        for (spca_int j = 0; j < q && !*s.bad; j += WIDE) {
            *s.bad = copy_panel(w, i, rows, j, s.panels + j * ROWS);
            add_columns(rows, s.panels + j * ROWS, s.sum + j, s.low + j, s.high + j);
        }
        for (spca_int j = 0; j < q && !*s.bad; j += WIDE)
            for (spca_int h = 0; h <= j; h += WIDE) {
                int32_t C[WIDE * WIDE];
                CLONES[spca_clone]((rows + 1) / 2, s.panels + h * ROWS, s.panels + j * ROWS, C);
                add_tile(C, s.G + h * q + j, q);
            }
    }
}

/* How many parts there are; the sums do not depend on it. */
static spca_int parts_of(spca_run run)
{
    return min_int(threads_of(run), PARTS);
}

spca_int spca_whole_work(spca_int p, spca_run run)
{
    return parts_of(run) * bytes_of(p);
}

spca_status spca_whole_moments(spca_int n, spca_int p, spca_int ld, int row_major, int kind,
                               const void *X, spca_run run, spca_stop stop, void *ctx,
                               spca_int room, void *work, int64_t *low, int64_t *high, int64_t *sum,
                               int64_t *G)
{
    whole_t w = {X, p, ld, kind, row_major, 0, 0, 0, work};
    spca_int q = filled(p), parts = min_int(parts_of(run), room / bytes_of(p));
    double products = (double)ROWS * (double)q * (double)q / 2; /* products of ROWS rows */
    spca_int blocks = products < ROUND ? (spca_int)(ROUND / products) : 1;
    sums_t all = sums_of(&w, 0);
    memset(work, 0, (size_t)(parts * bytes_of(p)));
    for (spca_int t = 0; t < parts; t++) {
        sums_t s = sums_of(&w, t);
        for (spca_int j = 0; j < q; j++) s.low[j] = MOST, s.high[j] = -MOST;
    }
    for (; w.begin < n; w.begin = w.end) {
        spca_status status;
        w.end = min_int(n, w.begin + parts * blocks * ROWS);
        w.rows = ((w.end - w.begin - 1) / parts / 2 + 1) * 2;
        status = do_parts(run, (double)(w.end - w.begin) * (double)q * (double)q / 8, rows_part, &w,
                          parts, stop, ctx);
        if (status < 0) return status;
        for (spca_int t = 0; t < parts; t++)
            if (*sums_of(&w, t).bad) return SPCA_NOT_CONVERGED;
    }
    for (spca_int t = 1; t < parts; t++) {
        sums_t s = sums_of(&w, t);
        for (spca_int j = 0; j < p; j++) {
            all.sum[j] += s.sum[j];
            all.low[j] = s.low[j] < all.low[j] ? s.low[j] : all.low[j];
            all.high[j] = s.high[j] > all.high[j] ? s.high[j] : all.high[j];
            for (spca_int h = 0; h <= j; h++) all.G[h * q + j] += s.G[h * q + j];
        }
    }
    for (spca_int j = 0; j < p; j++) {
        low[j] = all.low[j];
        high[j] = all.high[j];
        sum[j] = all.sum[j];
        for (spca_int h = 0; h <= j; h++) G[h * p + j] = G[j * p + h] = all.G[h * q + j];
    }
    return SPCA_OK;
}
