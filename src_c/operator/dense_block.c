/* dense_block.c - Y = A V for a block of vectors: dense data are read once for many of them.
 *
 * A power step with b vectors is two products of skinny matrices, X'(X W), and memory bounds it,
 * since each of them reads X.  Here a block of rows goes through both products while it is in
 * cache.  The means, weights and deflations of operator.c and centring.h are rank-one terms beside
 * them, and those of projection act on f = F v row by row.
 *
 * X is read twice, all rows through the first product before the second (`apart`), where
 *     - Schur complements are removed, which need all of f at once;
 *     - in C order, rows are so long that only a few of them stay in cache;
 *     - in C order, threads share the work, and would have to meet after each block;
 *     - in Fortran order, p is large or the block has many vectors: the strands of all
 *       lines, which are kept from one block of rows to the next, would not stay in cache.
 *
 * Threads share each product by its outputs: lines, or stretches of y.
 *
 * Every sum is made in the order of dense.c.  So column c of Y has the bits of SPCA(apply) to
 * column c of V, whatever the other columns, their number and the number of threads. */
#include "centring.h"

enum {
    TOGETHER = 4, /* vectors of a register block */
    WIDE = SPCA_TOGETHER,
    LANES = sizeof(lanes_t) / sizeof(real),
    TILE = 4096 / sizeof(real), /* entries of a line; a multiple of STRANDS */
    GROUP = SPCA_LEAST(64), /* lines whose strands are kept while tiles go by; a multiple of 4 */
    SHORTEST = SPCA_LEAST(128), /* entries of y that a thread adds lines to */
    FEWEST = SPCA_LEAST(8)      /* rows of a block in C order, or products are apart */
};
#define LINE(A) ((A)->ld * (spca_int)sizeof(real)) /* from one line to the next, in bytes */
#define CACHED ((spca_int)1 << 20)                 /* bytes of a block of rows, in C order */
#define PANEL ((spca_int)4 << 20)                  /* and in Fortran order */
/* bytes of lines that are added to y between two looks at stop */
#define REGION ((spca_int)SPCA_LEAST(1 << 25))

/* Memory keeps up only with far more reads under way than one loop asks for by itself, so the lines
 * after those at work are fetched `ahead` bytes before their turn. */

/* ---- two loops over lines, the contiguous vectors of the storage -------------------------------
 */

/* S_lc += line_l . x_c, strand by strand: strand s has the entries i = s modulo STRANDS.  A
 * register block of `lines` lines (1 or 2), `columns` vectors and `parts` lanes_t of strands goes
 * over all n entries, then the next strands do.  S holds TOGETHER x STRANDS sums for each line.
 * The last n % STRANDS entries are added at the end, as in strands_dot. */
INLINE void dot_tile(const int lines, const int columns, const int parts, spca_int ahead,
                     spca_int n, const real *line, spca_int ld, const real *x, spca_int ldx,
                     real *S)
{
    spca_int whole = n - n % STRANDS;
    for (int first = 0; first < STRANDS; first += parts * LANES) {
        lanes_t sum[2][TOGETHER][4];
        for (int l = 0; l < lines; l++)
            for (int c = 0; c < columns; c++)
                for (int q = 0; q < parts; q++)
                    sum[l][c][q] =
                        *(lanes_t *)(S + (l * TOGETHER + c) * STRANDS + first + q * LANES);
        for (spca_int i = first; i < whole; i += STRANDS)
            for (int q = 0; q < parts; q++) {
                lanes_t z[2];
                for (int l = 0; l < lines; l++) {
                    z[l] = *(const lanes_t *)(line + l * ld + i + q * LANES);
                    if (ahead && (first / LANES + q) % 2 == 0)
                        FETCH((uintptr_t)(line + l * ld + i + q * LANES) + (uintptr_t)ahead);
                }
                for (int c = 0; c < columns; c++) {
                    lanes_t w = *(const lanes_t *)(x + c * ldx + i + q * LANES);
                    for (int l = 0; l < lines; l++) sum[l][c][q] += z[l] * w;
                }
            }
        for (int l = 0; l < lines; l++)
            for (int c = 0; c < columns; c++)
                for (int q = 0; q < parts; q++)
                    *(lanes_t *)(S + (l * TOGETHER + c) * STRANDS + first + q * LANES) =
                        sum[l][c][q];
    }
    for (spca_int i = whole; i < n; i++)
        for (int l = 0; l < lines; l++)
            for (int c = 0; c < columns; c++)
                S[(l * TOGETHER + c) * STRANDS + i - whole] += line[l * ld + i] * x[c * ldx + i];
}

/* S += strands of `lines` lines with b <= TOGETHER vectors, two lines at a time.  The shapes of
 * register blocks are so that sums fill the registers, but do not exceed them. */
VECTORIZED(dot_tiles,
           (spca_int lines, spca_int b, spca_int ahead, spca_int n, const real *line, spca_int ld,
            const real *x, spca_int ldx, real *S),
           (lines, b, ahead, n, line, ld, x, ldx, S))
{
    spca_int l = 0;
    for (; l + 2 <= lines; l += 2) {
        const real *z = line + l * ld;
        real *s = S + l * TOGETHER * STRANDS;
        if (b == 4) dot_tile(2, 4, 1, ahead, n, z, ld, x, ldx, s);
        if (b == 3 || b == 2) dot_tile(2, 2, 2, ahead, n, z, ld, x, ldx, s);
        if (b == 3) dot_tile(2, 1, 4, 0, n, z, ld, x + 2 * ldx, ldx, s + 2 * STRANDS);
        if (b == 1) dot_tile(2, 1, 4, ahead, n, z, ld, x, ldx, s);
    }
    for (; l < lines; l++)
        for (spca_int c = 0; c < b; c++)
            dot_tile(1, 1, 4, 0, n, line + l * ld, ld, x + c * ldx, ldx,
                     S + (l * TOGETHER + c) * STRANDS);
}

/* y_c += w_0c line_0 + .. + w_3c line_3 (n entries each) for c < `columns`, with the additions of
 * add_four (dense.c). */
INLINE void add_tile(const int columns, spca_int ahead, spca_int n, const real *line, spca_int ld,
                     const real *w, spca_int ldw, real *y, spca_int ldy)
{
    const real *l0 = line, *l1 = line + ld, *l2 = line + 2 * ld, *l3 = line + 3 * ld;
    const lanes_t zero = {0};
    lanes_t u[TOGETHER][4];
    spca_int i = 0;
    for (int c = 0; c < columns; c++)
        for (int l = 0; l < 4; l++) u[c][l] = w[c * ldw + l] - zero;
    for (; i + LANES <= n; i += LANES) {
        lanes_t z0 = *(const lanes_t *)(l0 + i), z1 = *(const lanes_t *)(l1 + i);
        lanes_t z2 = *(const lanes_t *)(l2 + i), z3 = *(const lanes_t *)(l3 + i);
        if (ahead)
            for (int l = 0; l < 4; l++) FETCH((uintptr_t)(line + l * ld + i) + (uintptr_t)ahead);
        for (int c = 0; c < columns; c++)
            *(lanes_t *)(y + c * ldy + i) +=
                (u[c][0] * z0 + u[c][1] * z1) + (u[c][2] * z2 + u[c][3] * z3);
    }
    for (; i < n; i++)
        for (int c = 0; c < columns; c++) {
            const real *a = w + c * ldw;
            y[c * ldy + i] += (a[0] * l0[i] + a[1] * l1[i]) + (a[2] * l2[i] + a[3] * l3[i]);
        }
}

/* y_c += sum of w_lc line_l over `lines` lines, for b <= TOGETHER vectors y_c. */
VECTORIZED(add_tiles,
           (spca_int lines, spca_int b, spca_int ahead, spca_int n, const real *line, spca_int ld,
            const real *w, spca_int ldw, real *y, spca_int ldy),
           (lines, b, ahead, n, line, ld, w, ldw, y, ldy))
{
    spca_int l = 0;
    for (; l + 4 <= lines; l += 4) {
        const real *z = line + l * ld, *u = w + l;
        if (b == 4) add_tile(4, ahead, n, z, ld, u, ldw, y, ldy);
        if (b == 3 || b == 2) add_tile(2, ahead, n, z, ld, u, ldw, y, ldy);
        if (b == 3) add_tile(1, 0, n, z, ld, u + 2 * ldw, ldw, y + 2 * ldy, ldy);
        if (b == 1) add_tile(1, ahead, n, z, ld, u, ldw, y, ldy);
    }
    for (; l < lines; l++)
        for (spca_int c = 0; c < b; c++)
            for (spca_int i = 0; i < n; i++) y[c * ldy + i] += w[c * ldw + l] * line[l * ld + i];
}

/* x = 0. */
static void zero(spca_int n, real *x)
{
    for (spca_int i = 0; i < n; i++) x[i] = 0;
}

/* S += strands of the products of `count` lines (at `line`) with x (length x b).  S has, for each
 * TOGETHER vectors, the strands of all `count` lines. */
static void along(const operator_t *A, spca_int b, spca_int count, const real *line,
                  spca_int length, const real *x, spca_int ldx, real *S)
{
    for (spca_int i = 0; i < length; i += TILE)
        for (spca_int c = 0; c < b; c += TOGETHER)
            dot_tiles(count, min_int(TOGETHER, b - c), c ? 0 : 2 * LINE(A),
                      min_int(TILE, length - i), line + i, A->ld, x + c * ldx + i, ldx,
                      S + c * count * STRANDS);
}

/* y (length x b) += sum of line_l w_l' over `count` lines, w (count x b). */
static void across(const operator_t *A, spca_int b, spca_int count, const real *line,
                   spca_int length, const real *w, spca_int ldw, real *y, spca_int ldy)
{
    for (spca_int i = 0; i < length; i += TILE)
        for (spca_int c = 0; c < b; c += TOGETHER)
            add_tiles(count, min_int(TOGETHER, b - c), c ? 0 : 4 * LINE(A),
                      min_int(TILE, length - i), line + i, A->ld, w + c * ldw, ldw, y + c * ldy + i,
                      ldy);
}

/* out (count x b) = the sums of the strands in S. */
static void add_lines(spca_int b, spca_int count, real *S, real *out, spca_int ldo)
{
    for (spca_int c = 0; c < b; c++)
        for (spca_int l = 0; l < count; l++)
            out[c * ldo + l] =
                add_strands(S + ((c / TOGETHER * count + l) * TOGETHER + c % TOGETHER) * STRANDS);
}

/* ---- both products of at most WIDE columns ------------------------------------------------
 */

typedef struct {
    spca_int rows; /* rows that go through the first product before the second; all n, or a multiple
                      of 4 in C order, of STRANDS in Fortran order, so that sums are cut where a
                      single product cuts them */
    int apart;     /* all rows go through the first product before any goes through the second */
    spca_int strands; /* lines whose strands are kept from block to block: p in Fortran order, 0
                         where apart */
} plan_t;

/* How b vectors go through both products (see the top).  shared: whether threads share the work. */
static plan_t make_plan(const operator_t *A, spca_int b, int shared)
{
    spca_int row = A->p * (spca_int)sizeof(real), multiple = A->row_major ? 4 : STRANDS;
    spca_int rows = (A->row_major ? CACHED : PANEL) / row / multiple * multiple;
    int apart = A->deflation == SPCA_SCHUR ||
                (A->row_major ? shared || rows < FEWEST : b > TOGETHER || PANEL / row < GROUP * 2);
    if (apart) rows = A->n;
    return (plan_t){min_int(rows, A->n), apart, apart || A->row_major ? 0 : A->p};
}

/* The most that any number of vectors up to b needs, with and without threads; laid out in `fused`.
 */
spca_int SPCA(dense_block_work)(const operator_t *A, spca_block what, spca_int b)
{
    spca_int most = 0;
    if (A->symmetric_form || A->quotient || A->span_weight != 0 ||
        (what == SPCA_FORWARD && A->t > 0))
        return 0;
    for (spca_int c = 1; c <= min_int(b, WIDE); c++)
        for (int shared = 0; shared < 2; shared++) {
            plan_t plan = make_plan(A, c, shared);
            spca_int work = c * (A->p + A->m + (plan.apart ? 0 : plan.rows) + 1 + 2 * A->t);
            work += TOGETHER * STRANDS * plan.strands;
            if (work > most) most = work;
        }
    return most;
}

/* One of the two products, with b vectors x: of `rows` rows from i0 and, in Fortran order, of the
 * `count` lines from j0.  A part has `step` of its outputs.  S: NULL, or the strands that are kept.
 */
typedef struct {
    const operator_t *A;
    spca_int b, i0, rows, j0, count, step; /* the lines from j0, in Fortran order */
    const real *x;
    spca_int ldx;
    real *S, *y;
    spca_int ldy;
} product_t;

/* Numbers in S for a line: the strands of TOGETHER vectors. */
#define OF_LINE (TOGETHER * STRANDS)

/* y = lines . x for the lines of a part, or, where S is kept, only the strands of these sums. */
static void along_part(void *context, spca_int part)
{
    const product_t *s = context;
    const operator_t *A = s->A;
    spca_int l = part * s->step, end = min_int(l + s->step, s->count), c;
    spca_int length = A->row_major ? A->p : s->rows;
    const real *data = A->data + (A->row_major ? s->i0 * A->ld : s->i0) + s->j0 * A->ld;
    real strands[GROUP * OF_LINE];
    spca_int groups = (s->b + TOGETHER - 1) / TOGETHER;
    if (s->S) {
        along(A, s->b, end - l, data + l * A->ld, length, s->x, s->ldx, s->S + l * OF_LINE);
        return;
    }
    for (; l < end; l += c) {
        c = min_int(GROUP / groups / 4 * 4, end - l);
        zero(groups * c * OF_LINE, strands);
        along(A, s->b, c, data + l * A->ld, length, s->x, s->ldx, strands);
        add_lines(s->b, c, strands, s->y + l, s->ldy);
    }
}

/* y += sum of line_l x_l', at the entries of y of a part. */
static void across_part(void *context, spca_int part)
{
    const product_t *s = context;
    const operator_t *A = s->A;
    spca_int length = A->row_major ? A->p : s->rows, i = part * s->step;
    spca_int n = min_int(s->step, length - i);
    const real *data = A->data + (A->row_major ? s->i0 * A->ld : s->i0) + s->j0 * A->ld + i;
    for (spca_int l = 0; l < s->count; l += GROUP)
        across(A, s->b, min_int(GROUP, s->count - l), data + l * A->ld, n, s->x + l, s->ldx,
               s->y + i, s->ldy);
}

/* Cuts y = lines . x into parts of about SPCA_PART bytes, four lines or more each. */
static spca_status lines_along(product_t s, spca_stop stop, void *ctx)
{
    spca_int length = s.A->row_major ? s.A->p : s.rows;
    spca_int bytes = length * (spca_int)sizeof(real), lines = s.count;
    spca_int share = lines / (4 * threads_of(s.A->run));
    s.step = min_int(min_int(share, GROUP), REGION / bytes);
    if (s.step < SPCA_PART / bytes) s.step = SPCA_PART / bytes;
    s.step = (s.step / 4 + 1) * 4;
    return do_parts(s.A->run, (double)s.b * (double)lines * (double)bytes, along_part, &s,
                    (lines + s.step - 1) / s.step, stop, ctx);
}

/* y += sum of line_l x_l'.  Each thread has one stretch of y.  Between regions of lines it looks at
 * stop. */
static spca_status lines_across(product_t s, spca_stop stop, void *ctx)
{
    spca_int length = s.A->row_major ? s.A->p : s.rows, lines = s.count;
    spca_int bytes = length * (spca_int)sizeof(real), region = REGION / bytes / GROUP * GROUP;
    int threads = threads_of(s.A->run);
    const real *x = s.x;
    spca_status status = SPCA_OK;
    s.step = length;
    if (threads > 1) s.step = ((length + threads - 1) / threads + STRANDS - 1) / STRANDS * STRANDS;
    if (s.step < SHORTEST) s.step = SHORTEST;
    if (region < GROUP) region = GROUP;
    for (spca_int l = 0; l < lines && status >= 0; l += region, s.j0 += region) {
        s.x = x + l;
        s.count = min_int(region, lines - l);
        status = do_parts(s.A->run, (double)s.b * (double)s.count * (double)bytes, across_part, &s,
                          (length + s.step - 1) / s.step, stop, ctx);
    }
    return status;
}

/* f (rows x b, at rows from i0) = X w. */
static spca_status forward_rows(const operator_t *A, spca_int b, spca_int i0, spca_int rows,
                                const real *w, spca_stop stop, void *ctx, real *f)
{
    product_t s = {.A = A, .b = b, .i0 = i0, .rows = rows, .x = w, .ldx = A->p, .ldy = A->n};
    s.y = f + i0;
    s.count = A->row_major ? rows : A->p;
    if (A->row_major) return lines_along(s, stop, ctx);
    for (spca_int c = 0; c < b; c++) zero(rows, s.y + c * A->n);
    return lines_across(s, stop, ctx);
}

/* C order: y += X[rows]' g.  Fortran order: y = X[rows]' g or, unless products are apart, only the
 * strands of these sums are added to S. */
static spca_status backward_rows(const operator_t *A, plan_t plan, spca_int b, spca_int i0,
                                 spca_int rows, const real *g, spca_int ldg, spca_stop stop,
                                 void *ctx, real *S, real *y)
{
    product_t s = {.A = A, .b = b, .i0 = i0, .rows = rows, .x = g, .ldx = ldg, .y = y, .ldy = A->p};
    s.count = A->row_major ? rows : A->p;
    if (A->row_major) return lines_across(s, stop, ctx);
    s.S = plan.apart ? NULL : S;
    return lines_along(s, stop, ctx);
}

/* f <- rows of F v from rows of X w, for one vector: centering, and deflation by projection with
 * e_i = x_i'v. */
static void project_rows(const operator_t *A, spca_int i0, spca_int rows, real shift, const real *e,
                         real *f)
{
    finish_rows(A, i0, rows, shift, f);
    for (spca_int i = 0; A->deflation == SPCA_PROJECTION && i < A->t; i++)
        subtract_multiple(rows, e[i], A->image[i] + i0, f);
}

/* g = a f. */
static void scale_rows(spca_int rows, real a, const real *f, real *g)
{
    for (spca_int i = 0; i < rows; i++) g[i] = a * f[i];
}

/* d_i: the coefficients of the directions that are subtracted from A v, given f = factor F v and
 * e_i = x_i'v (weigh_image of operator.c). */
static void coefficients(const operator_t *A, const real *e, const real *f, real *d)
{
    for (spca_int i = 0; i < SPCA(subtracted)(A); i++)
        d[i] = A->deflation == SPCA_PROJECTION ? strands_dot(A->m, A->image[i], f)
                                               : A->coefficient[i] * e[i];
}

/* Scratch of `fused`, each by columns of the block: w = range weight V (p), f = F V (n), g (rows of
 * the plan), shift = mean'w, e_i = x_i'v and the coefficients d_i (t each), and the strands S of
 * the lines. */
typedef struct {
    real *w, *f, *g, *shift, *e, *d, *S;
} room_t;

/* Between the products, for vector c: f <- F v at rows from i0 and, unless products are apart, g =
 * range u factor f, from which the second product goes on. */
static void between_products(const operator_t *A, const plan_t *plan, const room_t *s, spca_int c,
                             spca_int i0, spca_int rows)
{
    real *f = s->f + c * A->n + i0, *g = s->g + c * plan->rows;
    project_rows(A, i0, rows, s->shift[c], s->e + c * A->t, f);
    if (plan->apart) return;
    scale_rows(rows, A->factor, f, f);
    scale_rows(rows, A->range, f, g);
    weight_rows(A, i0, rows, g);
}

/* Once all rows of f are known, for vector c: Schur complements, the coefficients d, and total =
 * range s'f, which is returned. */
static real after_forward(const operator_t *A, const plan_t *plan, const room_t *s, spca_int c)
{
    real *f = s->f + c * A->n, total;
    for (spca_int i = 0; A->deflation == SPCA_SCHUR && i < A->t; i++)
        subtract_multiple(A->n, strands_dot(A->n, A->image[i], f) * A->coefficient[i], A->image[i],
                          f);
    if (plan->apart) scale_rows(A->n, A->factor, f, f);
    coefficients(A, s->e + c * A->t, f, s->d + c * A->t);
    scale_rows(A->n, A->range, f, f);
    total = total_of(A, f);
    if (plan->apart) weight_rows(A, 0, A->n, f);
    return total;
}

/* Y = A V for b <= WIDE vectors. */
static spca_status fused(const operator_t *A, spca_int b, const real *V, spca_stop stop, void *ctx,
                         real *work, real *Y)
{
    plan_t plan = make_plan(A, b, threads_of(A->run) > 1);
    spca_int n = A->n, p = A->p, t = A->t;
    real *f = work + b * p, *g = f + b * n, *shift = g + (plan.apart ? 0 : b * plan.rows);
    real *e = shift + b, total[WIDE];
    room_t s = {work, f, g, shift, e, e + b * t, e + 2 * b * t};
    spca_status status;
    /* w = range weight V, shift = mean'w, e_i = x_i'v */
    for (spca_int c = 0; c < b; c++) {
        vector_t v = {p, NULL, V + c * p};
        s.shift[c] = weighted(A, v, 1, s.w + c * p);
        for (spca_int i = 0; i < t; i++) e[c * t + i] = sparse_dot(A->direction[i], v.value);
    }
    /* Y, or the strands of its sums, begin at 0 */
    if (A->row_major)
        zero(p * b, Y);
    else
        zero(plan.strands * TOGETHER * STRANDS, s.S);
    /* f = F V by blocks of rows, each followed at once by its share of Y += X'g */
    for (spca_int i0 = 0; i0 < n; i0 += plan.rows) {
        spca_int rows = min_int(plan.rows, n - i0);
        status = forward_rows(A, b, i0, rows, s.w, stop, ctx, f);
        if (status < 0) return status;
        for (spca_int c = 0; c < b; c++) between_products(A, &plan, &s, c, i0, rows);
        if (plan.apart) continue;
        status = backward_rows(A, plan, b, i0, rows, g, plan.rows, stop, ctx, s.S, Y);
        if (status < 0) return status;
    }
    /* what needs all rows of f, and then the second product where it has waited for that */
    for (spca_int c = 0; c < b; c++) total[c] = after_forward(A, &plan, &s, c);
    if (plan.apart) {
        status = backward_rows(A, plan, b, 0, n, f, n, stop, ctx, s.S, Y);
        if (status < 0) return status;
    }
    /* the sums of the strands, means, weights, and the multiples of directions */
    if (!A->row_major && !plan.apart) add_lines(b, p, s.S, Y, p);
    for (spca_int c = 0; c < b; c++) {
        vector_t v = {p, NULL, V + c * p};
        finish_backward(A, total[c], p, NULL, Y + c * p);
        SPCA(subtract)(A, v, s.d + c * t, p, NULL, Y + c * p);
    }
    return SPCA_OK;
}

/* ---- one product ------------------------------------------------------------------------------
 */

/* f (n x b) = F V without deflations. */
static spca_status images(const operator_t *A, spca_int b, const real *V, spca_stop stop, void *ctx,
                          real *work, real *f)
{
    real *w = work, shift[WIDE];
    spca_status status;
    for (spca_int c = 0; c < b; c++) {
        vector_t v = {A->p, NULL, V + c * A->p};
        shift[c] = weighted(A, v, 1, w + c * A->p);
    }
    status = forward_rows(A, b, 0, A->n, w, stop, ctx, f);
    for (spca_int c = 0; c < b && status >= 0; c++) finish_rows(A, 0, A->n, shift[c], f + c * A->n);
    return status;
}

/* y (p x b) = factor F'U, without what deflations subtract. */
static spca_status transposes(const operator_t *A, spca_int b, const real *U, spca_stop stop,
                              void *ctx, real *work, real *y)
{
    const plan_t plan = {A->n, 1, 0};
    spca_int n = A->n, p = A->p;
    real *g = work, total[WIDE];
    spca_status status;
    for (spca_int c = 0; c < b; c++) {
        scale_rows(n, A->factor, U + c * n, g + c * n);
        scale_rows(n, A->range, g + c * n, g + c * n);
        total[c] = total_of(A, g + c * n);
        weight_rows(A, 0, n, g + c * n);
    }
    if (A->row_major) zero(p * b, y);
    status = backward_rows(A, plan, b, 0, n, g, n, stop, ctx, NULL, y);
    for (spca_int c = 0; c < b && status >= 0; c++)
        finish_backward(A, total[c], p, NULL, y + c * p);
    return status;
}

/* At most WIDE columns at a time, in as few passes as possible and of nearly equal size. */
spca_status SPCA(dense_block)(const operator_t *A, spca_block what, spca_int b, const real *V,
                              spca_stop stop, void *ctx, real *work, real *out)
{
    spca_int from = what == SPCA_BACKWARD ? A->m : A->p, to = what == SPCA_FORWARD ? A->m : A->p;
    for (spca_int c = 0, count; c < b; c += count) {
        const real *v = V + c * from;
        real *y = out + c * to;
        spca_status status;
        spca_int passes = (b - c + WIDE - 1) / WIDE;
        count = min_int(((b - c) / passes + TOGETHER - 1) / TOGETHER * TOGETHER, b - c);
        status = what == SPCA_FORWARD    ? images(A, count, v, stop, ctx, work, y)
                 : what == SPCA_BACKWARD ? transposes(A, count, v, stop, ctx, work, y)
                                         : fused(A, count, v, stop, ctx, work, y);
        if (status < 0) return status;
    }
    return SPCA_OK;
}
