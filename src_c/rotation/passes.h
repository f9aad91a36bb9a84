/* passes.h - private: the state of an orthomax rotation of many rows, and its passes over them. */
#ifndef SPCA_PASSES_H
#define SPCA_PASSES_H
#include "real.h"

enum { MOST_PARTS = 64, PART_ROWS = SPCA_LEAST(1 << 13) };

/* What a pass over the rows does; U, S and G are the sums of moments.c. */
typedef enum {
    START,   /* as TRIAL, and also the Gram matrix and the criterion of the rows without rotation */
    TRIAL,   /* sums in single precision; the rows are only read */
    ROTATE,  /* the rows are rotated; sums of the rounded rows in single precision */
    PRECISE, /* the rows are rotated; sums in double */
} pass_t;

/* The state of a rotation. */
typedef struct {
    spca_int p, r, pairs;
    double share, part; /* gamma/(1 + gamma)/p, 1/(1 + gamma) */
    double range;
    spca_stop stop;
    void *ctx;
    real *Y;
    double *done, *local; /* done: the rotation that the rows have had; local: what is still to
                             apply to them */
    /* G0, G: Gram matrices at no rotation and now; S, U: sums of moments.c */
    double *G0, *G, *S, *U, *half;
    double *N, *D, *energy; /* (pairs): N, D (rotate.c) and sum of (y_ia^2 + y_ib^2)^2 */
    double f, level;        /* f: criterion/(1 + gamma); level: sum of ||y_i||^4 */
    double fourth;          /* sum of y_ij^4 at no rotation */
    int faint;              /* whether some pairs are left to sweeps */
    spca_run run;
    double *scratch; /* scratch of each part of a pass */
} state_t;

/* The scratch of a part of a pass: tiles of either precision, and sums. */
typedef struct {
    double *y, *z, *w, *square, *S, *U, *G, *fourth;
} place_t;

/* The next n numbers of work, or NULL where only the length is asked for. */
static inline double *take(double *work, spca_int *used, spca_int n)
{
    *used += n;
    return work ? work + *used - n : NULL;
}

/* Cuts the scratch of a part; *used: its length. */
static inline place_t place_in(spca_int r, double *scratch, spca_int *used)
{
    spca_int tile = (r + r % 2) * SPCA_TILE, n = r * r;
    place_t at;
    *used = 0;
    at.y = take(scratch, used, tile);
    at.z = take(scratch, used, tile);
    at.w = take(scratch, used, tile);
    at.square = take(scratch, used, tile);
    at.S = take(scratch, used, n);
    at.U = take(scratch, used, n);
    at.G = take(scratch, used, n);
    at.fourth = take(scratch, used, 1);
    return at;
}

/* The scratch of part `part`. */
static inline place_t place_of(const state_t *s, spca_int part)
{
    spca_int size;
    (void)place_in(s->r, NULL, &size);
    return place_in(s->r, s->scratch + part * size, &size);
}

/* How many parts of a pass have scratch at the same time, which takes no more room than an eighth
 * of the rows. */
static inline spca_int places(spca_int p)
{
    return p < PART_ROWS ? 1 : min_int(p / PART_ROWS, MOST_PARTS);
}

/* y = range times n rows of Y from start on, as a tile in single precision; zeros fill it. */
void SPCA(load_single)(const state_t *s, spca_int start, spca_int n, float *y);

/* The sums of moments.c over all rows times local, into s, as the pass says. */
spca_status SPCA(sum_moments)(state_t *s, pass_t pass);
#endif
