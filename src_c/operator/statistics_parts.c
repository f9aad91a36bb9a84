/* statistics_parts.c - the statistics of dense data by threads.  Each thread takes some columns,
 * whose statistics do not depend on the others. */
#include "real.h"

/* bytes of a part, at most, since stop is asked only between parts */
#define LONGEST ((double)(1 << 28))
/* columns of a part in C order, at least; fewer are read slowly */
enum { COLUMNS = SPCA_LEAST(256) };

typedef struct {
    spca_int n, p, ld, step;
    const real *X;
    int row_major, center;
    spca_int quantized_ld;
    double *mean, *square, *low, *high;
    int8_t *quantized;
    double *step_of, *error;
    float *size;
} columns_t;

static void columns_part(void *context, spca_int part)
{
    const columns_t *s = context;
    spca_int j = part * s->step;
    int8_t *quantized = s->quantized ? s->quantized + j * s->quantized_ld : NULL;
    (void)SPCA(dense_statistics)(
        s->n, min_int(s->step, s->p - j), s->X + (s->row_major ? j : j * s->ld), s->ld,
        s->row_major, s->center, s->quantized_ld, NULL, NULL, s->mean + j, s->square + j,
        s->low + j, s->high + j, quantized, quantized ? s->step_of + j : NULL,
        quantized ? s->error + j : NULL, quantized ? s->size + j : NULL);
}

spca_status SPCA(shared_statistics)(spca_int n, spca_int p, const real *X, spca_int ld,
                                    int row_major, int center, spca_int quantized_ld, spca_run run,
                                    spca_stop stop, void *ctx, double *mean, double *square,
                                    double *low, double *high, int8_t *quantized, double *step,
                                    double *error, float *size)
{
    double bytes = (double)n * sizeof(real);
    spca_int some = 8 * SPCA_PART / (n * (spca_int)sizeof(real)) + 1;
    if (row_major && some < COLUMNS) some = COLUMNS;
    if (threads_of(run) == 1 || bytes * (double)some > LONGEST)
        return SPCA(dense_statistics)(n, p, X, ld, row_major, center, quantized_ld, stop, ctx, mean,
                                      square, low, high, quantized, step, error, size);
    columns_t s = {n,    p,      ld,  some, X,         row_major, center, quantized_ld,
                   mean, square, low, high, quantized, step,      error,  size};
    return do_parts(run, bytes * (double)p, columns_part, &s, (p + some - 1) / some, stop, ctx);
}
