/* dense_columns.c - sums of products of the rows of CSR, where variables with many entries are
 * dense.
 *
 * With d of k variables dense, and e entries of the others in a row, the sums are those of e^2 / 2
 * pairs, of d numbers for each of the e entries, side by side, and of d^2 / 2 products of matrices:
 * much less than of all pairs where some columns have most of the entries. */
#include "scatter.h"
#include <string.h>

enum {
    LANES = sizeof(lanes_t) / sizeof(real),
    MANY = 12,                   /* vectors of sums that stay in registers; or */
    SOME = 4,                    /* so many, or one */
    AHEAD = 3,                   /* rows that are fetched before their turn */
    LINE = 64 / sizeof(lanes_t), /* vectors of a line of memory */
    SAMPLE = 1 << 18,            /* entries that show how many each column has, about */
    LEVELS = 20                  /* shares of a column from which it is dense are tried, */
};

static const double STEP = 0.85,     /* each so much less than the one before */
    BESIDE = 0.0125 * sizeof(real),  /* one of d numbers takes, of a pair's time, */
    WITHIN = 0.00625 * sizeof(real), /* one of d^2 products, */
    CLEAR = 0.8;                     /* and all together less than all pairs */

/* Entries of each variable in some rows, as many as there are of each part of the data; how many
 * rows. */
static spca_int count_entries(const products_t *g, const scatter_t *s, int32_t *count)
{
    const operator_t *A = g->A;
    spca_int step = entries_of(A) / SAMPLE + 1, rows = 0;
    memset(count, 0, (size_t)g->k * sizeof(*count));
    for (spca_int i = 0; i < A->n; i += step, rows++)
        for (spca_int q = at(A->indptr, A->wide, i), last = at(A->indptr, A->wide, i + 1); q < last;
             q++) {
            spca_int a = s->position[at(A->indices, A->wide, q)];
            if (a >= 0) count[a]++;
        }
    return rows;
}

/* The least entries of a variable that is dense, for which a row takes least time; 0 for none. */
static double least_entries(const products_t *g, const int32_t *count, spca_int rows)
{
    double all = 0, best = 0, cost, level = (double)rows;
    for (spca_int a = 0; a < g->k; a++) all += (double)count[a] / (double)rows;
    cost = CLEAR * all * all / 2;
    for (int l = 0; l < LEVELS; l++) {
        double d = 0, rest = all, time;
        level *= STEP;
        for (spca_int a = 0; a < g->k; a++)
            if ((double)count[a] >= level) {
                d++;
                rest -= (double)count[a] / (double)rows;
            }
        time = rest * rest / 2 + BESIDE * rest * d + WITHIN * d * d;
        if (d >= LANES && d <= (double)most_dense(g->k) && time < cost) {
            cost = time;
            best = level;
        }
    }
    return best;
}

products_t SPCA(choose_dense)(const products_t *g, scatter_t *s)
{
    products_t dense = *g;
    int32_t *count = s->start;
    spca_int found = 0;
    double least;
    s->dense = 0;
    if (!most_dense(g->k)) return dense;
    least = least_entries(g, count, count_entries(g, s, count));
    for (spca_int a = 0; a < g->k; a++) found += (double)count[a] >= least;
    if (least == 0) return dense;
    found = found / LANES * LANES;
    for (spca_int a = 0; a < g->k; a++) {
        int is_dense = (double)count[a] >= least && s->dense < found;
        s->among[a] = is_dense ? (int32_t)s->dense : -1;
        if (is_dense) s->list[s->dense++] = a;
    }
    memset(s->across, 0, (size_t)(g->k * s->dense) * sizeof(double));
    return SPCA(products_of)(g->A, s->dense, s->dense, s->list, s->room, s->inside);
}

/* out_c += sum_i x_ia w_ic over entries of a, of `groups` vectors from c0. */
INLINE void add_vectors(const int groups, const products_t *g, const scatter_t *s, int32_t begin,
                        int32_t end, spca_int c0, double *out)
{
    lanes_t sum[MANY] = {0};
    const real *W = g->W + c0;
    for (int32_t t = begin; t < end; t++) {
        const lanes_t *w = (const lanes_t *)(W + s->row[t] * g->k);
        real x = s->entry[t];
        const real *next = W + s->row[t + AHEAD < end ? t + AHEAD : t] * g->k;
        for (int c = 0; c < groups; c += LINE) FETCH_CLOSE(next + c * LANES);
        for (int c = 0; c < groups; c++) sum[c] += x * w[c];
    }
    for (int c = 0; c < groups * LANES; c++) out[c0 + c] += (double)((const real *)sum)[c];
}

typedef struct {
    const products_t *g;
    const scatter_t *s;
    spca_int k, step; /* variables in all, and of a part */
} across_t;

/* Some columns of W at a time, of a section, whose part of these stays in cache. */
VECTORIZED(add_part, (const across_t *f, spca_int part), (f, part))
{
    const scatter_t *s = f->s;
    spca_int d = f->g->k, a0 = part * f->step, last = min_int(f->k, a0 + f->step), width;
    for (spca_int q = 0; q < sections_of(s); q++) {
        const int32_t *start = section_of(s, q, f->k).start;
        for (spca_int c = 0; c < d; c += width) {
            width = LANES * (c + MANY * LANES <= d ? MANY : c + SOME * LANES <= d ? SOME : 1);
            for (spca_int a = a0; a < last; a++) {
                double *out = s->across + a * d;
                int32_t from = start[a], to = start[a + 1];
                if (from == to) continue;
                if (width == MANY * LANES)
                    add_vectors(MANY, f->g, s, from, to, c, out);
                else if (width == SOME * LANES)
                    add_vectors(SOME, f->g, s, from, to, c, out);
                else
                    add_vectors(1, f->g, s, from, to, c, out);
            }
        }
    }
}

static void across_part(void *context, spca_int part)
{
    add_part(context, part);
}

spca_status SPCA(add_across)(products_t *g, const scatter_t *s, spca_int k, spca_stop stop,
                             void *ctx)
{
    int threads = threads_of(g->A->run);
    across_t f = {g, s, k, threads > 1 ? k / (2 * threads) + 1 : k}; /* each reads all rows */
    double numbers = (double)s->entries * (double)g->k;
    spca_status status = do_parts(g->A->run, as_bytes(numbers), across_part, &f,
                                  (k + f.step - 1) / f.step, stop, ctx);
    return status < 0 ? status : SPCA(add_products)(g, stop, ctx);
}

void SPCA(join_dense)(const products_t *all, const scatter_t *s)
{
    spca_int k = all->k, d = s->dense;
    for (spca_int c = 0; c < d; c++) {
        spca_int b = s->list[c];
        for (spca_int e = c; e < d; e++) all->G[b * k + s->list[e]] = s->inside[c * d + e];
        for (spca_int a = 0; a < k; a++)
            if (s->among[a] < 0)
                all->G[min_int(a, b) * k + (a > b ? a : b)] += s->across[a * d + c];
    }
}
