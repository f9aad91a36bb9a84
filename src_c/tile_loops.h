/* tile_loops.h - private: the loops of tile.c for one length of vectors.  It is included once for
 * each: NAMED() makes the names, and vector_t is the vector. */

enum {
    NAMED(EACH) = sizeof(vector_t) / sizeof(real), /* numbers in a vector */
    NAMED(STRIP) = WIDE / NAMED(EACH),             /* vectors in a row of a strip */
    NAMED(LINE) = LONG / NAMED(EACH) /* vectors in a row of a narrow strip, LONG columns */
};

/* y = x (depth x count) by groups of LONG columns; zeros fill the last group. */
INLINE void NAMED(copy_groups)(spca_int depth, spca_int count, const real *x, spca_int ldx, real *y)
{
    for (spca_int c = 0; c < count; c += LONG, y += LONG * depth) {
        const spca_int wide = min_int(LONG, count - c);
        for (spca_int l = 0; wide == LONG && l < depth; l++)
            for (int v = 0; v < NAMED(LINE); v++)
                ((vector_t *)(y + l * LONG))[v] = ((const vector_t *)(x + l * ldx + c))[v];
        for (spca_int l = 0; wide < LONG && l < depth; l++)
            for (spca_int i = 0; i < LONG; i++) y[l * LONG + i] = i < wide ? x[l * ldx + c + i] : 0;
    }
}

/* C_ic = sum_l a_li b_lc, plus C_ic where `keep`, for `tall` rows i of a group and `some` vectors
 * of columns from vector `first` on.  All sums are in registers. */
INLINE void NAMED(add_block)(const int tall, const int some, const tile_t *t, const real *a,
                             const real *b, spca_int first, real *C, spca_int ldc, int keep)
{
    vector_t sum[TALL][MOST];
    const real *row[MOST];
    for (int v = 0; v < some; v++) {
        spca_int q = first + v;
        row[v] = b + q / NAMED(LINE) * LONG * t->ldb + q % NAMED(LINE) * NAMED(EACH);
    }
    for (int r = 0; r < tall; r++)
        for (int v = 0; v < some; v++) sum[r][v] = (vector_t){0};
    for (spca_int l = 0; l < t->depth; l++)
        for (int r = 0; r < tall; r++)
            for (int v = 0; v < some; v++)
                sum[r][v] += a[l * LONG + r] * *(const vector_t *)(row[v] + l * LONG);
    for (int r = 0; r < tall; r++)
        for (int v = 0; v < some; v++) {
            vector_t *x = (vector_t *)(C + r * ldc) + first + v;
            if (keep) sum[r][v] += *x;
            *x = sum[r][v];
        }
}

/* `tall` rows of C from row i and `count` vectors of columns from column j, `some` vectors at a
 * time.  Of half a tile, only vectors that end right of row i's diagonal are made.  A strip that is
 * wider than C goes to S first. */
INLINE void NAMED(add_rows)(const int tall, const int count, const int some, const tile_t *t,
                            const real *a, const real *b, spca_int i, spca_int j)
{
    _Alignas(64) real S[TALL * WIDE];
    const spca_int wide = count * NAMED(EACH), n = min_int(wide, t->n - j);
    const spca_int below = t->half && i > j ? (i - j) / NAMED(EACH) : 0;
    const real *x = a + i / LONG * LONG * t->lda + i % LONG;
    real *C = n == wide ? t->C + i * t->ldc + j : S;
    const spca_int ldc = n == wide ? t->ldc : wide;
    const int keep = n == wide && t->keep;
    for (spca_int v = 0, u; v < count; v += some)
        if (below <= v)
            NAMED(add_block)(tall, some, t, x, b, v, C, ldc, keep);
        else { /* the diagonal crosses these vectors: begin with its own */
            for (u = below; u + 2 <= v + some; u += 2)
                NAMED(add_block)(tall, 2, t, x, b, u, C, ldc, keep);
            if (u < v + some) NAMED(add_block)(tall, 1, t, x, b, u, C, ldc, keep);
        }
    for (spca_int r = 0; n < wide && r < tall; r++)
        for (spca_int c = below * NAMED(EACH); c < n; c++) {
            real *y = t->C + (i + r) * t->ldc + j + c;
            *y = S[r * wide + c] + (t->keep ? *y : 0);
        }
}

/* All rows of C for `count` vectors of columns from column j; the last rows by 4, then one at a
 * time. */
INLINE void NAMED(add_strip)(const int tall, const int count, const int some, const tile_t *t,
                             const real *a, const real *b, spca_int j)
{
    const spca_int m = t->half ? min_int(t->m, j + count * NAMED(EACH)) : t->m;
    spca_int i = 0;
    for (; i + tall <= m; i += tall) NAMED(add_rows)(tall, count, some, t, a, b, i, j);
    if (tall > 4 && i + 4 <= m) {
        NAMED(add_rows)(4, count, some, t, a, b, i, j);
        i += 4;
    }
    for (; i < m; i++) NAMED(add_rows)(1, count, count, t, a, b, i, j);
}

/* The tile where rows lie across memory or are in groups: columns by strips.  Rows that are not in
 * groups are copied so. */
INLINE void NAMED(add_across)(const int tall, const int some, const tile_t *given, const real *a,
                              const real *b)
{
    _Alignas(64) real A[DEPTH * TILE], B[DEPTH * WIDE];
    tile_t t = *given;
    if (!t.grouped) {
        NAMED(copy_groups)(t.depth, t.m, a, t.lda, A);
        t.lda = t.ldb = t.depth;
        a = A;
    }
    for (spca_int j = 0, wide; j < t.n; j += wide) {
        const real *strip = t.grouped ? b + j * t.ldb : B;
        wide = j + WIDE - LONG < t.n ? WIDE : LONG;
        if (!t.grouped) NAMED(copy_groups)(t.depth, min_int(wide, t.n - j), b + j, given->ldb, B);
        if (wide == WIDE)
            NAMED(add_strip)(tall, NAMED(STRIP), some, &t, a, strip, j);
        else
            NAMED(add_strip)(tall, NAMED(LINE), some < NAMED(LINE) ? some : NAMED(LINE), &t, a,
                             strip, j);
    }
}

/* sum_rc += LONG products of rows r of a (`tall`) and c of b (`many`), side by side. */
INLINE void NAMED(add_products)(const int tall, const int many, const real *a, spca_int lda,
                                const real *b, spca_int ldb, vector_t sum[SIDE][SIDE][NAMED(LINE)])
{
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < many; c++)
            for (int v = 0; v < NAMED(LINE); v++)
                sum[r][c][v] +=
                    ((const vector_t *)(a + r * lda))[v] * ((const vector_t *)(b + c * ldb))[v];
}

/* C_ij = sum_l a_il b_jl, plus C_ij where `keep`, for `tall` rows of a and `many` of b that lie
 * along memory.  Zeros fill the last LONG products. */
INLINE void NAMED(add_dots)(const int tall, const int many, const tile_t *t, const real *a,
                            const real *b, real *C)
{
    vector_t sum[SIDE][SIDE][NAMED(LINE)];
    spca_int l = 0;
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < many; c++)
            for (int v = 0; v < NAMED(LINE); v++) sum[r][c][v] = (vector_t){0};
    for (; l + LONG <= t->depth; l += LONG)
        NAMED(add_products)(tall, many, a + l, t->lda, b + l, t->ldb, sum);
    if (l < t->depth) {
        real A[SIDE * LONG] = {0}, B[SIDE * LONG] = {0};
        for (spca_int i = l; i < t->depth; i++) {
            for (int r = 0; r < tall; r++) A[r * LONG + i - l] = a[r * t->lda + i];
            for (int c = 0; c < many; c++) B[c * LONG + i - l] = b[c * t->ldb + i];
        }
        NAMED(add_products)(tall, many, A, LONG, B, LONG, sum);
    }
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < many; c++) {
            real x[LONG], *y = C + r * t->ldc + c;
            for (int v = 0; v < NAMED(LINE); v++) ((vector_t *)x)[v] = sum[r][c][v];
            for (int half = LONG / 2; half > 0; half /= 2)
                for (int i = 0; i < half; i++) x[i] += x[i + half];
            *y = x[0] + (t->keep ? *y : 0);
        }
}

/* The tile where rows lie along memory: `side` rows of a and of b at a time, then what is left. */
INLINE void NAMED(add_along)(const int side, const tile_t *t, const real *a, const real *b)
{
    for (spca_int j = 0, many; j < t->n; j += many) {
        many = j + side <= t->n ? side : 1;
        for (spca_int i = 0, tall; i < t->m; i += tall) {
            const real *x = a + i * t->lda, *y = b + j * t->ldb;
            real *z = t->C + i * t->ldc + j;
            tall = many == side && i + side <= t->m ? side : 1;
            if (tall == side)
                NAMED(add_dots)(side, side, t, x, y, z);
            else if (many == side)
                NAMED(add_dots)(1, side, t, x, y, z);
            else
                NAMED(add_dots)(1, 1, t, x, y, z);
        }
    }
}

#undef NAMED
#undef vector_t
