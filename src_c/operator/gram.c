/* gram.c - all of A = F'F factor, or A[index[:m], index], in one pass over data without deflation.
 *
 * Of dense data, some rows of F at a time are centered and stay in cache, so that no digit is lost
 * to a large mean.  Their products are made tile by tile; the sums of each group of rows are added
 * in double precision.
 *
 * Tall data are cut by rows into stretches, whose number depends on the shape alone.  Each stretch
 * is a part with sums of its own, and these are added in order.  For other data threads share the
 * rows that are centered, and then the tiles.  They get more groups at a time, which changes no
 * sum. */
#include "gram.h"
#include <string.h>

enum {
    LANES = sizeof(lanes_t) / sizeof(real),
    GROUPS = 8,                         /* groups of rows that threads share at a time, at most */
    SPAN = GROUPS * SPCA_GROUP,         /* the most rows with one shift (read_rows) */
    SHARED = 128 * SPCA_LEAST(1 << 16), /* bytes of F that threads share at a time */
    STEP = SPCA_LEAST(128),             /* rows that a thread centers at a time */
    STRETCHES = 16,                     /* stretches of tall data, at most */
    LONG = SPCA_LEAST(2048),            /* rows of a stretch, at least */
    TALL = LONG / 128, /* and TALL for each column, which bounds the memory for sums */
    ROUND = 1 << 24,   /* bytes of a stretch that a part reads before stop is asked */
    AHEAD = 1 << 14,   /* bytes of dense rows that are fetched before their turn */
    WAYS = 16          /* sums side by side, so that none waits for another */
};

/* How many rows W holds at a time; `shared` among threads, or of one. */
static spca_int rows_of(const operator_t *A, spca_int k, int shared)
{
    spca_int groups = shared ? SHARED / (SPCA_GROUP * k * (spca_int)sizeof(real)) : 1;
    return min_int(SPCA_GROUP * (groups < 1 ? 1 : min_int(groups, GROUPS)), A->n);
}

/* Columns of a tile: tiles have about the same width, so that none has only a few columns. */
static spca_int side_of(spca_int k)
{
    return min_int(TILE, filled((k - 1) / tiles_of(k) + 1));
}

spca_int SPCA(products_work)(const operator_t *A, spca_int k)
{
    return filled(k) * (2 + rows_of(A, k, 1)) + TOGETHER;
}

products_t SPCA(products_of)(const operator_t *A, spca_int m, spca_int k, const spca_int *index,
                             real *work, double *G)
{
    real *weight = work + filled(k), *W = cache_line(weight + filled(k));
    products_t g = {A,      m, k,          index, G, work, weight, W, 0, rows_of(A, k, 1),
                    ACROSS, k, side_of(k), k};
    for (spca_int a = k; a < filled(k); a++) g.mean[a] = g.weight[a] = 0;
    for (spca_int a = 0; a < k; a++) {
        spca_int j = index ? index[a] : a;
        g.mean[a] = A->mean ? A->mean[j] * A->range : 0;
        g.weight[a] = column_weight(A, j);
    }
    memset(G, 0, (size_t)(m * k) * sizeof(*G));
    return g;
}

/* G (m x n, leading dimension k) += C, or only b >= a where `half`.  The lines of memory of a later
 * row are fetched ahead. */
VECTORIZED(add_sums, (int half, spca_int m, spca_int n, const real *C, spca_int k, double *G),
           (half, m, n, C, k, G))
{
    for (spca_int c = 0; c < m; c++, G += k) {
        for (spca_int d = 0; d < n; d += 8)
            FETCH_TO_WRITE((uintptr_t)(G + d) + (uintptr_t)(2 * k) * sizeof(*G));
        for (spca_int d = half ? c : 0; d < n; d++) G[d] += (double)C[c * n + d];
    }
}

/* Where column a of a group of rows begins in W. */
static const real *column_of(const products_t *g, const real *W, spca_int rows, spca_int a)
{
    if (g->layout == IN_STRIPS) return W + a / STRIP * STRIP * rows + a % STRIP;
    return W + (g->layout == ACROSS ? a : a * rows);
}

/* G_ab += sum_i w_ia w_ib over all groups, for one tile with b >= a.  Where REAL is double,
 * add_tile adds to G itself. */
static void tile_part(void *context, spca_int part)
{
    const products_t *g = context;
    spca_int k = g->k, across = (k - 1) / g->side + 1;
    spca_int a0 = part / across * g->side, b0 = part % across * g->side;
    spca_int m = min_int(g->side, g->m - a0), n = min_int(g->side, k - b0);
    double *G = g->G + a0 * g->ld + b0;
    real sums[TILE * TILE];
    int wide = sizeof(real) == sizeof(double); /* then add_tile makes its sums in G */
    if (b0 < a0) return;
    for (spca_int r = 0; r < g->rows; r += SPCA_GROUP) {
        spca_int rows = min_int(SPCA_GROUP, g->rows - r);
        spca_int ld = g->layout == ACROSS ? k : g->layout == IN_STRIPS ? STRIP : rows;
        const real *W = g->W + r * g->width;
        SPCA(add_tile)(g->layout == IN_STRIPS ? ACROSS : g->layout, a0 == b0, m, n, rows,
                       column_of(g, W, rows, a0), ld, column_of(g, W, rows, b0), ld, wide,
                       wide ? (void *)G : sums, wide ? g->ld : n);
        if (!wide) add_sums(a0 == b0, m, n, sums, g->ld, G);
    }
}

spca_status SPCA(add_products)(products_t *g, spca_stop stop, void *ctx)
{
    double products = (double)g->m * ((double)g->k - (double)g->m / 2) * (double)g->rows;
    return do_parts(g->A->run, as_bytes(products), tile_part, g,
                    ((g->m - 1) / g->side + 1) * ((g->k - 1) / g->side + 1), stop, ctx);
}

spca_status SPCA(finish_products)(const products_t *g)
{
    spca_int k = g->k;
    double factor = (double)g->A->factor;
    int bad = 0;
    for (spca_int a = 0; a < g->m; a++)
        for (spca_int b = a; b < k; b++) {
            double x = g->G[a * k + b] * factor;
            bad |= !(fabs(x) <= (double)REAL_MAX);
            g->G[a * k + b] = x;
            if (b < g->m) g->G[b * k + a] = x;
        }
    return bad ? SPCA_NONFINITE : SPCA_OK;
}

/* One row: y_a = s (v x_a - mean_a) weight_a for x at the k columns of the list (NULL: the first
 * k), by groups of TOGETHER columns that are `apart` from each other, with zeros after the last. */
VECTORIZED(centered,
           (spca_int k, const spca_int *index, const real *x, real v, real s, const real *mean,
            const real *weight, spca_int apart, real *restrict y),
           (k, index, x, v, s, mean, weight, apart, y))
{
    for (spca_int a = 0; a < k; a += TOGETHER, y += apart) {
        const real *z = x + a;
        real some[TOGETHER];
        if (!index) FETCH((uintptr_t)z + AHEAD);
        if (index || a + TOGETHER > k) {
            for (int c = 0; c < TOGETHER; c++)
                some[c] = a + c < k ? x[index ? index[a + c] : a + c] : 0;
            z = some;
        }
        for (int c = 0; c < TOGETHER; c += LANES)
            *(lanes_t *)(y + c) =
                s * (v * *(const lanes_t *)(z + c) - *(const lanes_t *)(mean + a + c)) *
                *(const lanes_t *)(weight + a + c);
    }
}

/* What `centered` does, for TOGETHER columns x of Fortran order, which become rows. */
VECTORIZED(turned,
           (spca_int rows, const real *const *x, const real *v, const real *s, const real *mean,
            const real *weight, real *restrict y),
           (rows, x, v, s, mean, weight, y))
{
    for (spca_int r = 0; r < rows; r++) {
        FETCH(x[r % TOGETHER] + r / TOGETHER * TOGETHER + STEP);
        for (int c = 0; c < TOGETHER; c += LANES) {
#define ENTRY(l) x[c + (l)][r]
            lanes_t z = LANES_OF(ENTRY), m = *(const lanes_t *)(mean + c);
            *(lanes_t *)(y + r * TOGETHER + c) =
                s[r] * (v[r] * z - m) * *(const lanes_t *)(weight + c);
#undef ENTRY
        }
    }
}

/* The rows of F of a part (STEP rows), into W by groups. */
static void centered_part(void *context, spca_int part)
{
    const products_t *g = context;
    const operator_t *A = g->A;
    spca_int r0 = part * STEP, i0 = g->i0 + r0, rows = min_int(STEP, g->rows - r0);
    spca_int group = r0 / SPCA_GROUP * SPCA_GROUP,
             apart = TOGETHER * min_int(SPCA_GROUP, g->rows - group);
    real v[STEP], s[STEP], *W = g->W + group * g->width + (r0 - group) * TOGETHER;
    for (spca_int r = 0; r < rows; r++) {
        v[r] = before_center(A, i0 + r) * A->range;
        s[r] = row_center(A, i0 + r);
    }
    for (spca_int r = 0; A->row_major && r < rows; r++)
        centered(g->k, g->index, A->data + (i0 + r) * A->ld, v[r], s[r], g->mean, g->weight, apart,
                 W + r * TOGETHER);
    for (spca_int a = 0; !A->row_major && a < g->k; a += TOGETHER, W += apart) {
        const real *x[TOGETHER];
        for (spca_int c = 0; c < TOGETHER; c++) {
            spca_int b = min_int(a + c, g->k - 1);
            x[c] = A->data + (g->index ? g->index[b] : b) * A->ld + i0;
        }
        turned(rows, x, v, s, g->mean + a, g->weight + a, W);
    }
}

/* A stretch of rows and its sums.  With sums of columns (dense_moments), a span of rows is shifted
 * by the mean m_a of the n_a rows before it, the first by its own.  Let y_i be the rows of the span
 * less that shift, e their mean, n_b their number, and d = e - s->mean, the mean of the span less
 * that of the rows before it.  Then
 *     M = M_a + sum_i y_i y_i' - n_b e e' + n_a n_b / (n_a + n_b) d d'
 * (Chan, Golub & LeVeque 1983).  No digits cancel, whatever the order of the rows: n_a >= n_b, so
 * that the squares of all y, M_b + n_b d^2 of a span, are at most twice those of M. */
typedef struct {
    products_t g;
    spca_int begin; /* its first row */
    /* (k): the mean less the shift, sums of squares, extremes; all or none */
    double *mean, *square, *low, *high;
    double *sum; /* (k): sum of y, and scratch */
} stretch_t;

/* Sums, sums of squares and extremes of TOGETHER columns of `rows` rows: WAYS entries side by side,
 * then the entries of each column. */
VECTORIZED(add_columns,
           (spca_int rows, const real *y, double *sum, double *square, real *low, real *high),
           (rows, y, sum, square, low, high))
{
    double s[WAYS] = {0}, q[WAYS] = {0};
    real least[WAYS], most[WAYS];
    spca_int i = 0, count = rows * TOGETHER;
    for (int l = 0; l < WAYS; l++) least[l] = most[l] = y[l % TOGETHER];
    for (; i + WAYS <= count; i += WAYS)
        for (int l = 0; l < WAYS; l++) {
            real x = y[i + l];
            s[l] += (double)x;
            q[l] += (double)x * (double)x;
            least[l] = x < least[l] ? x : least[l];
            most[l] = x > most[l] ? x : most[l];
        }
    for (int l = 0; i + l < count; l++) {
        real x = y[i + l];
        s[l] += (double)x;
        q[l] += (double)x * (double)x;
        least[l] = x < least[l] ? x : least[l];
        most[l] = x > most[l] ? x : most[l];
    }
    for (int c = 0; c < TOGETHER; c++) {
        sum[c] = square[c] = 0;
        low[c] = high[c] = y[c];
        for (int l = c; l < WAYS; l += TOGETHER) {
            sum[c] += s[l];
            square[c] += q[l];
            low[c] = least[l] < low[c] ? least[l] : low[c];
            high[c] = most[l] > high[c] ? most[l] : high[c];
        }
    }
}

/* The sums of a part's columns over the rows in W. */
static void columns_part(void *context, spca_int part)
{
    const stretch_t *s = context;
    const products_t *g = &s->g;
    spca_int j0 = part * TOGETHER;
    for (spca_int r = 0; r < g->rows; r += SPCA_GROUP) {
        spca_int rows = min_int(SPCA_GROUP, g->rows - r);
        double sum[TOGETHER], square[TOGETHER];
        real low[TOGETHER], high[TOGETHER];
        add_columns(rows, g->W + r * g->width + j0 * rows, sum, square, low, high);
        for (spca_int j = j0; j < min_int(j0 + TOGETHER, g->k); j++) {
            double shift = (double)g->mean[j];
            s->sum[j] += sum[j - j0];
            s->square[j] += square[j - j0];
            s->low[j] = fmin(s->low[j], shift + (double)low[j - j0]);
            s->high[j] = fmax(s->high[j], shift + (double)high[j - j0]);
        }
    }
}

/* Reads the rows up to `end`: centers them, adds the sums of columns where they are wanted, and the
 * products if `products`. */
static spca_status add_rows(stretch_t *s, spca_int end, int products, spca_stop stop, void *ctx)
{
    products_t *g = &s->g;
    spca_run run = g->A->run;
    spca_int rows = rows_of(g->A, g->k, threads_of(run) > 1);
    for (; g->i0 < end; g->i0 += g->rows) {
        spca_status status;
        double bytes;
        g->rows = min_int(rows, end - g->i0);
        bytes = (double)(g->rows * g->k) * sizeof(real);
        status = do_parts(run, bytes, centered_part, g, (g->rows + STEP - 1) / STEP, stop, ctx);
        if (status >= 0 && s->mean)
            status = do_parts(run, bytes, columns_part, s, filled(g->k) / TOGETHER, stop, ctx);
        if (status >= 0 && products) status = SPCA(add_products)(g, stop, ctx);
        if (status < 0) return status;
    }
    return SPCA_OK;
}

/* After a span of `rows` rows, with `before` rows before it: removes the shift from the sums by the
 * formula at stretch_t.  The mean of all rows becomes the next shift, rounded to REAL; s->mean
 * keeps what it has beyond that. */
static void end_span(stretch_t *s, spca_int before, spca_int rows)
{
    const products_t *g = &s->g;
    double n = (double)(before + rows), share = (double)before / n, count = (double)rows;
    for (spca_int a = 0; a < g->k; a++) {
        double e = s->sum[a] / count, d = e - s->mean[a];
        s->square[a] += count * (share * (d * d) - e * e);
        s->sum[a] = e;
    }
    for (spca_int a = 0; a < g->k; a++) {
        double e_a = s->sum[a], d_a = e_a - s->mean[a];
        for (spca_int b = a + 1; b < g->k; b++)
            g->G[a * g->k + b] +=
                count * (share * d_a * (s->sum[b] - s->mean[b]) - e_a * s->sum[b]);
    }
    for (spca_int a = 0; a < g->k; a++) {
        double shift = (double)g->mean[a],
               more = s->mean[a] + (s->sum[a] - s->mean[a]) * (count / n);
        g->mean[a] = (real)(shift + more);
        s->mean[a] = shift - (double)g->mean[a] + more;
        s->sum[a] = 0;
    }
}

/* Begins the sums again, with the shift that there is. */
static void restart(stretch_t *s)
{
    s->g.i0 = s->begin;
    for (spca_int a = 0; a < s->g.k; a++) {
        s->sum[a] = s->square[a] = 0;
        s->low[a] = HUGE_VAL;
        s->high[a] = -HUGE_VAL;
    }
}

/* Reads the rows up to `end`; with sums of columns span by span, each no longer than all rows
 * before it.  The first group is read twice: once to find its mean, then shifted by that. */
static spca_status read_rows(stretch_t *s, spca_int end, spca_stop stop, void *ctx)
{
    products_t *g = &s->g;
    const operator_t *A = g->A;
    spca_int first = min_int(SPCA_GROUP, end - s->begin);
    spca_status status = SPCA_OK;
    if (!s->mean) return add_rows(s, end, 1, stop, ctx);
    if (g->i0 == s->begin) {
        for (spca_int a = 0; a < g->k; a++) {
            g->mean[a] = A->data[A->row_major ? g->i0 * A->ld + a : g->i0 + a * A->ld];
            s->mean[a] = 0;
        }
        restart(s);
        status = add_rows(s, s->begin + first, 0, stop, ctx);
        end_span(s, 0, first);
        restart(s);
        memset(g->G, 0, (size_t)(g->k * g->k) * sizeof(*g->G));
    }
    while (g->i0 < end && status >= 0) {
        spca_int before = g->i0 - s->begin, rows = before ? before : first;
        rows = min_int(min_int(rows, SPAN), end - g->i0);
        status = add_rows(s, g->i0 + rows, 1, stop, ctx);
        end_span(s, before, rows);
    }
    return status;
}

/* Adds the sums of the stretch t, of `rows` rows, to s, whose sums are of the `before` rows in
 * front of it. */
static void join(stretch_t *s, const stretch_t *t, spca_int before, spca_int rows)
{
    spca_int k = s->g.k;
    double share = (double)rows / (double)(before + rows), weight = (double)before * share;
    for (spca_int a = 0; s->mean && a < k; a++) {
        double d = (double)t->g.mean[a] - (double)s->g.mean[a] + (t->mean[a] - s->mean[a]);
        s->sum[a] = d;
        s->square[a] += t->square[a] + weight * (d * d);
        s->mean[a] += d * share;
        s->low[a] = fmin(s->low[a], t->low[a]);
        s->high[a] = fmax(s->high[a], t->high[a]);
    }
    for (spca_int a = 0; a < s->g.m; a++) {
        const double *other = t->g.G + a * k;
        double *G = s->g.G + a * k, d = s->mean ? weight * s->sum[a] : 0;
        for (spca_int b = a; b < k; b++) G[b] += other[b] + (s->mean ? d * s->sum[b] : 0);
    }
}

/* ---- all rows -------------------------------------------------------------------------------- */

typedef struct {
    stretch_t of[STRETCHES];
    spca_int count,
        rows; /* how many; and the rows of each, from its first, that are read or being read */
} stretches_t;

/* How many stretches; 1 unless the data are tall.  It depends on the shape alone, or sums would
 * depend on threads. */
static spca_int stretches_of(const operator_t *A, spca_int k)
{
    spca_int least = k * TALL < LONG ? LONG : k * TALL, count = A->n / least;
    return count < 2 ? 1 : min_int(count, STRETCHES);
}

/* The first row of stretch s of `count`. */
static spca_int first_row(const operator_t *A, spca_int count, spca_int s)
{
    return A->n / count * s + min_int(A->n % count, s);
}

/* Doubles of work for one stretch: sum, mean, square, low and high of columns; G; and what
 * products_of needs. */
static spca_int stretch_work(const operator_t *A, spca_int count, spca_int k)
{
    spca_int reals = filled(k) * (2 + rows_of(A, k, count == 1)) + TOGETHER;
    return (5 + (count > 1 ? k : 0)) * k +
           reals * (spca_int)sizeof(real) / (spca_int)sizeof(double);
}

/* Reads the next rows of a stretch. */
static void read_part(void *context, spca_int part)
{
    stretches_t *f = context;
    stretch_t *s = f->of + part;
    spca_int end = first_row(s->g.A, f->count, part + 1);
    (void)read_rows(s, min_int(end, s->begin + f->rows), NULL, NULL);
}

/* Cuts the work of a stretch.  The first one uses the caller's arrays for G and the sums of
 * columns. */
static void begin_stretch(const operator_t *A, spca_int count, spca_int part,
                          const stretch_t *first, double *work, stretch_t *s)
{
    spca_int m = first->g.m, k = first->g.k;
    double *G = first->g.G;
    *s = *first;
    s->sum = work;
    work += k;
    if (part > 0 && s->mean) {
        s->mean = work;
        s->square = work + k;
        s->low = work + 2 * k;
        s->high = work + 3 * k;
    }
    work += 4 * k;
    if (part > 0) G = work;
    if (count > 1) work += k * k;
    s->g = SPCA(products_of)(A, m, k, first->g.index, (real *)work, G);
    s->g.layout = IN_GROUPS;
    s->g.width = filled(k);
    s->begin = s->g.i0 = first_row(A, count, part);
}

/* Reads all rows.  The sums of the first stretch, whose places are given, become those of all. */
static spca_status read_stretches(const operator_t *A, const stretch_t *given, spca_stop stop,
                                  void *ctx, double *work, stretch_t *all)
{
    stretches_t f;
    operator_t alone = *A;
    spca_int k = given->g.k, count = stretches_of(A, k), longest = (A->n - 1) / count + 1;
    spca_int step = ROUND / (k * (spca_int)sizeof(real)) + SPAN;
    spca_status status = SPCA_OK;
    f.count = count;
    alone.run = count > 1 ? NULL : A->run;
    for (spca_int s = 0; s < count; s++)
        begin_stretch(&alone, count, s, given, work + s * stretch_work(A, count, k), f.of + s);
    if (count == 1) status = read_rows(f.of, A->n, stop, ctx);
    for (f.rows = 0; count > 1 && f.rows < longest && status >= 0;) {
        f.rows += step;
        status = do_parts(A->run, (double)(step * count * k) * sizeof(real), read_part, &f, count,
                          stop, ctx);
    }
    for (spca_int s = 1; s < count && status >= 0; s++)
        join(f.of, f.of + s, f.of[s].begin, first_row(A, count, s + 1) - f.of[s].begin);
    *all = f.of[0];
    all->g.A = A;
    return status;
}

spca_status SPCA(dense_gram)(const operator_t *A, spca_int m, spca_int k, const spca_int *index,
                             spca_stop stop, void *ctx, void *work, double *G)
{
    stretch_t s = {.g = {.m = m, .k = k, .index = index, .G = G}};
    spca_status status = read_stretches(A, &s, stop, ctx, work, &s);
    return status < 0 ? status : SPCA(finish_products)(&s.g);
}

spca_int SPCA(dense_gram_work)(const operator_t *A, spca_int k)
{
    spca_int count = stretches_of(A, k);
    return count * stretch_work(A, count, k) * (spca_int)sizeof(double);
}

spca_status SPCA(dense_moments)(const operator_t *A, spca_stop stop, void *ctx, void *work,
                                double *mean, double *square, double *low, double *high, double *G)
{
    operator_t plain = *A; /* the statistics are of X itself, so F = X */
    spca_int k = A->p;
    stretch_t s = {{.m = k, .k = k, .G = G}, 0, mean, square, low, high, NULL};
    spca_status status;
    plain.mean = plain.weight = plain.row_weight = NULL;
    plain.range = plain.factor = 1;
    status = read_stretches(&plain, &s, stop, ctx, work, &s);
    for (spca_int a = 0; a < k; a++) {
        mean[a] += (double)s.g.mean[a];
        G[a * k + a] = square[a];
    }
    (void)SPCA(finish_products)(&s.g);
    return status;
}
