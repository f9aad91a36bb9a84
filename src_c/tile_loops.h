/* tile_loops.h - private: the loops of tile.c for one length of vectors, which NAMED and vector_t
 * are for. */

enum {
    NAMED(EACH) = sizeof(vector_t) / sizeof(real), /* numbers of a vector, */
    NAMED(STRIP) = WIDE / NAMED(EACH),             /* vectors of a row of a strip, */
    NAMED(LINE) = LONG / NAMED(EACH)               /* and of a narrow one */
};

/* C_ic = sum_l a_il b_lc + keep C_ic, of `tall` rows and `count` vectors, some at a time. */
INLINE void NAMED(add_block)(const int tall, const int count, const int some, const tile_t *t,
                             const real *a, const real *b, real *C, spca_int ldc, int keep)
{
    for (int first = 0; first < count; first += some) {
        vector_t sum[TALL][MOST];
        for (int r = 0; r < tall; r++)
            for (int v = 0; v < some; v++) sum[r][v] = (vector_t){0};
        for (spca_int l = 0; l < t->depth; l++) {
            const vector_t *row = (const vector_t *)b + l * count + first;
            for (int r = 0; r < tall; r++)
                for (int v = 0; v < some; v++) sum[r][v] += a[l * t->lda + r] * row[v];
        }
        for (int r = 0; r < tall; r++)
            for (int v = 0; v < some; v++) {
                vector_t *x = (vector_t *)(C + r * ldc) + first + v;
                if (keep) sum[r][v] += *x;
                *x = sum[r][v];
            }
    }
}

/* Of `count` vectors of columns from j, or of fewer columns with zeros beside them. */
INLINE void NAMED(add_strip)(const int tall, const int count, const int some, const tile_t *t,
                             const real *a, const real *b, spca_int j)
{
    real B[DEPTH * WIDE], S[TALL * WIDE];
    const spca_int wide = count * NAMED(EACH), n = min_int(wide, t->n - j);
    spca_int rows;
    for (spca_int l = 0; l < t->depth; l++) {
        const real *x = b + l * t->ldb + j;
        real *y = B + l * wide;
        for (int v = 0; n == wide && v < count; v++) ((vector_t *)y)[v] = ((const vector_t *)x)[v];
        for (spca_int c = 0; n < wide && c < wide; c++) y[c] = c < n ? x[c] : 0;
    }
    for (spca_int i = 0; i < t->m && !(t->half && i >= j + n); i += rows) {
        real *C = t->C + i * t->ldc + j;
        rows = i + tall <= t->m ? tall : 1;
        if (n == wide && rows == tall)
            NAMED(add_block)(tall, count, some, t, a + i, B, C, t->ldc, t->keep);
        else if (n == wide)
            NAMED(add_block)(1, count, some, t, a + i, B, C, t->ldc, t->keep);
        else if (rows == tall)
            NAMED(add_block)(tall, count, some, t, a + i, B, S, wide, 0);
        else
            NAMED(add_block)(1, count, some, t, a + i, B, S, wide, 0);
        for (spca_int r = 0; n < wide && r < rows; r++)
            for (spca_int c = 0; c < n; c++) {
                real *x = C + r * t->ldc + c;
                *x = S[r * wide + c] + (t->keep ? *x : 0);
            }
    }
}

INLINE void NAMED(add_across)(const int tall, const int some, const tile_t *t, const real *a,
                              const real *b)
{
    spca_int j = 0;
    for (; j + WIDE - LONG < t->n; j += WIDE)
        NAMED(add_strip)(tall, NAMED(STRIP), some, t, a, b, j);
    for (; j < t->n; j += LONG)
        NAMED(add_strip)(tall, NAMED(LINE), some < NAMED(LINE) ? some : NAMED(LINE), t, a, b, j);
}

/* sum += a_l b_l side by side, of `tall` rows of a and `many` of b. */
INLINE void NAMED(add_products)(const int tall, const int many, const real *a, spca_int lda,
                                const real *b, spca_int ldb, vector_t sum[SIDE][SIDE][NAMED(LINE)])
{
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < many; c++)
            for (int v = 0; v < NAMED(LINE); v++)
                sum[r][c][v] +=
                    ((const vector_t *)(a + r * lda))[v] * ((const vector_t *)(b + c * ldb))[v];
}

/* C_ij = sum_l a_il b_jl + keep C_ij of these, the last of the depth with zeros beside it. */
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
