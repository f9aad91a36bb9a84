/* compressed_block.c - CSR and CSC data: products with a block of vectors.
 *
 * A line is a row of CSR or a column of CSC.  A block of b vectors is kept by rows, b numbers next
 * to each other for every variable, so that an entry x_ij meets one place in memory and not b of
 * them:
 *     CSR   row by row, f = x_i'W, then Y += x_i f' while the rows of W and Y it meets, which lie
 *           side by side, are in cache; nothing of size n x b is kept;
 *     CSC   column by column twice, F += x_j w_j', then y_j = x_j'F.
 * No processor foresees which places the next entries need, so these are fetched ahead.  Columns of
 * the block are taken SPCA_MANY bytes at a time, whose sums stay in registers.
 *
 * Threads have some columns of the block each.  All of them read X, but the places in W, Y and F
 * take longer.
 *
 * Every sum of a block is made in the order of one product: column c has the bits of SPCA(apply).
 */
#include "centring.h"

enum {
    LANES = sizeof(lanes_t) / sizeof(real),
    MOST = SPCA_MANY / sizeof(lanes_t), /* vectors (lanes_t) of a row of a block */
    AHEAD = 12,                         /* places are fetched this many entries ahead */
    TILE = 64,                          /* rows transposed at a time */
    ENTRY = sizeof(real) + 4            /* bytes of an entry with its index */
};
#define BLOCK ((spca_int)1 << 20) /* entries between two looks at stop */
#define WIDTH (MOST * LANES)

/* Some columns of a block, for one thread. */
typedef struct {
    const operator_t *A;
    spca_int b, padded; /* columns; with columns of zeros, a multiple of LANES */
    /* V or, where to_f is 0, U; by columns. */
    const real *in;
    real *out;
    /* to_f: whether f = F v is made from X w.  to_g: whether g is made from f, which X' multiplies
     * next. */
    int to_f, to_g;
    /* shift = mean'w (padded); sum (STRANDS x padded): the strands of s'f; rows: W and Y by rows; F
     * (m x padded): of CSC data. */
    real *shift, *sum, *rows, *F;
    /* What happens with line l.  f is x_l'source, or row l of `packed`, or row l of U; of CSR data
     * it then goes through `middle`.  Then target += x_l f' or, without a target, f becomes row l
     * of `out`. */
    const real *source, *packed;
    real *target;
    spca_int ld, out_ld;
} block_t;

/* The columns of a block, divided among threads, and the lines l0 to l1 that they are at. */
typedef struct {
    block_t block[MOST];
    spca_int count, l0, l1;
} blocks_t;

/* ---- a line and a block -------------------------------------------------------------------------
 */

/* Fetches the row of W or Y that entry q will meet. */
INLINE void fetch(const int wide, const operator_t *A, spca_int q, spca_int end, const real *rows,
                  spca_int ld)
{
    const real *row;
    if (q >= end) return;
    row = rows + at(A->indices, wide, q) * ld;
    for (spca_int i = 0; i < ld; i += 64 / (spca_int)sizeof(real)) FETCH_TO_WRITE(row + i);
}

/* f = sum of x_q W_q over the entries first to last of a line; W_q is the row of W at the index of
 * q. */
INLINE void gather(const int groups, const int wide, const operator_t *A, spca_int first,
                   spca_int last, spca_int end, const real *W, spca_int ld, real *f)
{
    lanes_t sum[MOST] = {0};
    for (spca_int q = first; q < last; q++) {
        const lanes_t *w = (const lanes_t *)(W + at(A->indices, wide, q) * ld);
        real x = A->data[q];
        fetch(wide, A, q + AHEAD, end, W, ld);
        for (int g = 0; g < groups; g++) sum[g] += x * w[g];
    }
    for (int g = 0; g < groups; g++) ((lanes_t *)f)[g] = sum[g];
}

/* Y_q += x_q f for the entries first to last of a line. */
INLINE void scatter(const int groups, const int wide, const operator_t *A, spca_int first,
                    spca_int last, spca_int end, const real *f, real *Y, spca_int ld, int far)
{
    lanes_t u[MOST];
    for (int g = 0; g < groups; g++) u[g] = ((const lanes_t *)f)[g];
    for (spca_int q = first; q < last; q++) {
        lanes_t *y = (lanes_t *)(Y + at(A->indices, wide, q) * ld);
        real x = A->data[q];
        if (far) fetch(wide, A, q + AHEAD, end, Y, ld);
        for (int g = 0; g < groups; g++) y[g] += x * u[g];
    }
}

/* Row i between the two products, for all columns: f <- row of F v from that of X w (to_f); then g
 * = range factor u f, and s_i range factor f is added to the strands of the total (to_g). */
INLINE void middle(const block_t *s, spca_int i, real *f)
{
    const operator_t *A = s->A;
    real center = row_center(A, i), before = before_center(A, i);
    for (spca_int c = 0; s->to_f && c < s->padded; c++)
        f[c] = A->range * (center * (before * f[c] - s->shift[c]));
    if (!s->to_g) return;
    for (spca_int c = 0; c < s->padded; c++) f[c] *= A->factor;
    for (spca_int c = 0; c < s->padded; c++) f[c] *= A->range;
    for (spca_int c = 0; c < s->padded; c++) s->sum[i % STRANDS * s->padded + c] += f[c] * center;
    for (spca_int c = 0; A->row_weight && c < s->padded; c++) f[c] *= A->row_weight[i];
}

/* Lines l0 to l1 of X with the columns of s (block_t says how); groups: padded/LANES. */
INLINE void lines(const int groups, const int wide, const block_t *s, spca_int l0, spca_int l1)
{
    const operator_t *A = s->A;
    spca_int end = at(A->indptr, wide, A->row_major ? A->m : A->p);
    real f[WIDTH] = {0};
    for (spca_int l = l0; l < l1; l++) {
        spca_int first = at(A->indptr, wide, l), last = at(A->indptr, wide, l + 1);
        if (s->source)
            gather(groups, wide, A, first, last, end, s->source, s->ld, f);
        else if (s->packed)
            for (int g = 0; g < groups; g++)
                ((lanes_t *)f)[g] = ((const lanes_t *)(s->packed + l * s->padded))[g];
        else
            for (spca_int c = 0; c < s->b; c++) f[c] = s->in[c * A->m + l];
        if (A->row_major) middle(s, l, f);
        if (s->target)
            scatter(groups, wide, A, first, last, end, f, s->target, s->ld, !s->source);
        else
            for (spca_int c = 0; c < s->b; c++) s->out[c * s->out_ld + l] = f[c];
    }
}

/* `lines` with a constant number of groups. */
VECTORIZED(some_lines, (const block_t *s, spca_int l0, spca_int l1), (s, l0, l1))
{
    int wide = s->A->wide, groups = (int)(s->padded / LANES);
#ifdef __GNUC__
    switch (groups) { /* a constant number of groups, so that sums stay in registers */
#define CASE(groups)                                                                               \
    case groups:                                                                                   \
        wide ? lines(groups, 1, s, l0, l1) : lines(groups, 0, s, l0, l1);                          \
        return
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
    default:
        wide ? lines(5, 1, s, l0, l1) : lines(5, 0, s, l0, l1);
        return;
    }
#else
    lines(groups, wide, s, l0, l1);
#endif
}

static void lines_part(void *context, spca_int part)
{
    const blocks_t *q = context;
    some_lines(q->block + part, q->l0, q->l1);
}

/* All lines of X, some at a time; between these it looks at stop. */
static spca_status all_lines(blocks_t *q, spca_stop stop, void *ctx)
{
    const operator_t *A = q->block[0].A;
    spca_int count = A->row_major ? A->m : A->p;
    spca_status status = SPCA_OK;
    for (q->l0 = 0; q->l0 < count && status >= 0; q->l0 = q->l1) {
        spca_int first = at(A->indptr, A->wide, q->l0), l = q->l0 + 1;
        while (l < count && at(A->indptr, A->wide, l) + 16 * (l - q->l0) < first + BLOCK) l++;
        q->l1 = l;
        status = do_parts(A->run, (double)(at(A->indptr, A->wide, l) - first) * ENTRY * MOST,
                          lines_part, q, q->count, stop, ctx);
    }
    return status;
}

/* ---- blocks by columns and by rows --------------------------------------------------------------
 */

/* W = range weight V by rows, and the shifts mean'w, with the roundings of `weighted`.  TILE rows
 * at a time stay in cache while they are transposed. */
static void pack(const block_t *s)
{
    const operator_t *A = s->A;
    const real *V = s->in;
    real *W = s->rows, *shift = s->shift;
    for (spca_int c = 0; c < s->padded; c++) shift[c] = 0;
    for (spca_int j0 = 0; j0 < A->p; j0 += TILE) {
        spca_int j1 = min_int(A->p, j0 + TILE);
        for (spca_int c = 0; c < s->padded; c++)
            for (spca_int j = j0; j < j1; j++) {
                real x = c < s->b ? V[c * A->p + j] * A->range * (A->weight ? A->weight[j] : 1) : 0;
                W[j * s->ld + c] = x;
                if (A->mean) shift[c] += A->mean[j] * x;
            }
    }
}

/* out (by columns) = the first b columns of `rows` (by rows). */
static void unpack(const block_t *s, spca_int n, const real *rows, spca_int ld, real *out)
{
    for (spca_int i0 = 0; i0 < n; i0 += TILE)
        for (spca_int c = 0; c < s->b; c++)
            for (spca_int i = i0; i < min_int(n, i0 + TILE); i++) out[c * n + i] = rows[i * ld + c];
}

/* `rows` (n x padded, leading dimension ld) = 0. */
static void zero_rows(spca_int n, spca_int padded, real *rows, spca_int ld)
{
    for (spca_int i = 0; i < n; i++)
        for (spca_int c = 0; c < padded; c++) rows[i * ld + c] = 0;
}

/* b rounded up to a multiple of LANES. */
static spca_int padded_to(spca_int b)
{
    return (b + LANES - 1) / LANES * LANES;
}

/* Reals for min(b, WIDTH) columns: a shift and strands, W and Y, and F of CSC data.  0 where
 * deflations stand between the two products. */
spca_int SPCA(compressed_block_work)(const operator_t *A, spca_block what, spca_int b)
{
    if (A->symmetric_form || (what != SPCA_BACKWARD && A->t > 0)) return 0;
    return padded_to(min_int(b, WIDTH)) * (2 * A->p + (A->row_major ? 0 : A->m) + STRANDS + 1);
}

/* Before the lines: W from V, and zeros where sums begin. */
static void begin(void *context, spca_int part)
{
    const block_t *s = ((const blocks_t *)context)->block + part;
    const operator_t *A = s->A;
    for (spca_int i = 0; i < STRANDS * s->padded; i++) s->sum[i] = 0;
    if (s->to_f) pack(s);
    if (s->target) zero_rows(A->row_major ? A->p : A->m, s->padded, s->target, s->ld);
}

/* CSC data, between the two passes: F from X W, or from U, to what X' multiplies, or to `out` where
 * F V is all that is asked for. */
static void all_rows(void *context, spca_int part)
{
    block_t *s = ((blocks_t *)context)->block + part;
    spca_int m = s->A->m;
    for (spca_int i = 0; i < m; i++) {
        real *f = s->F + i * s->padded;
        for (spca_int c = 0; !s->to_f && c < s->b; c++) f[c] = s->in[c * m + i];
        middle(s, i, f);
    }
    if (!s->to_g) unpack(s, m, s->F, s->padded, s->out);
    s->packed = s->target = NULL;
    s->source = s->F;
}

/* After the lines: Y by columns, less the means, times the weights. */
static void end(void *context, spca_int part)
{
    const block_t *s = ((const blocks_t *)context)->block + part;
    spca_int p = s->A->p;
    if (s->target) unpack(s, p, s->target, s->ld, s->out);
    for (spca_int c = 0; c < s->b; c++) {
        real sum[STRANDS];
        for (int i = 0; i < STRANDS; i++) sum[i] = s->sum[i * s->padded + c];
        finish_backward(s->A, add_strands(sum), p, NULL, s->out + c * p);
    }
}

/* At most WIDTH columns of a block: divided among threads by whole vectors, then one pass over CSR,
 * or two over CSC with all_rows between them. */
static spca_status some_columns(const operator_t *A, spca_block what, spca_int b, const real *in,
                                spca_stop stop, void *ctx, real *work, real *out)
{
    int to_f = what != SPCA_BACKWARD, to_g = what != SPCA_FORWARD;
    spca_int from = to_f ? A->p : A->m, to = to_g ? A->p : A->m, groups = padded_to(b) / LANES;
    double bytes = (double)((from + to) * b) * sizeof(real);
    blocks_t q = {.count = min_int(threads_of(A->run), groups)};
    spca_status status = SPCA_OK;
    for (spca_int part = 0; part < q.count; part++) {
        spca_int first = groups * part / q.count * LANES;
        spca_int padded = groups * (part + 1) / q.count * LANES - first;
        real *shift = work + SPCA(compressed_block_work)(A, what, first), *sum = shift + padded;
        real *rows = sum + STRANDS * padded, *F = rows + padded * A->p;
        block_t s = {
            .A = A, .b = min_int(padded, b - first), .padded = padded, .to_f = to_f, .to_g = to_g};
        s.in = in + first * from;
        s.out = out + first * to;
        s.out_ld = to;
        s.shift = shift;
        s.sum = sum;
        s.rows = rows;
        s.F = F;
        s.ld = A->row_major && to_f && to_g ? 2 * padded : padded;
        s.source = A->row_major && to_f ? rows : NULL;
        s.packed = A->row_major ? NULL : rows;
        s.target = !A->row_major ? F : !to_g ? NULL : rows + (to_f ? padded : 0);
        q.block[part] = s;
    }
    (void)do_parts(A->run, bytes, begin, &q, q.count, NULL, NULL);
    if (A->row_major || to_f) status = all_lines(&q, stop, ctx);
    if (status >= 0 && !A->row_major) {
        (void)do_parts(A->run, bytes, all_rows, &q, q.count, NULL, NULL);
        if (to_g) status = all_lines(&q, stop, ctx);
    }
    if (status >= 0 && to_g) (void)do_parts(A->run, bytes, end, &q, q.count, NULL, NULL);
    return status;
}

/* Any number of columns, WIDTH or fewer at a time.  What is left for SPCA_BOTH without directions
 * is the shift. */
spca_status SPCA(compressed_block)(const operator_t *A, spca_block what, spca_int b, const real *V,
                                   spca_stop stop, void *ctx, real *work, real *out)
{
    spca_int parts = (b + WIDTH - 1) / WIDTH, from = what == SPCA_BACKWARD ? A->m : A->p;
    spca_int to = what == SPCA_FORWARD ? A->m : A->p;
    for (spca_int c = 0, count; c < b; c += count) {
        spca_status status;
        count = (b - c + parts - 1) / parts;
        parts--;
        status = some_columns(A, what, count, V + c * from, stop, ctx, work, out + c * to);
        if (status < 0) return status;
    }
    for (spca_int c = 0; what == SPCA_BOTH && c < b; c++) {
        vector_t v = {A->p, NULL, V + c * A->p};
        SPCA(subtract)(A, v, NULL, A->p, NULL, out + c * A->p);
    }
    return SPCA_OK;
}
