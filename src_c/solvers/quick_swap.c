/* quick_swap.c - swaps of variables that the vector of a support tells, without eigenvalues of
 * others.
 *
 * Let x be a unit vector on the support, l = x'Ax and y = Ax.  In the span of e_j and of x without
 * its entry i, the largest eigenvalue is that of
 *
 *     ( a  g   )        a = (l - 2 x_i y_i + x_i^2 a_ii)/(1 - x_i^2),
 *     ( g  a_jj),       g = (y_j - x_i a_ij)/(1 - x_i^2)^(1/2),
 *
 * so the support with j in the place of i has at least that.  One pass over the rows of A on the
 * support tells it for all i and j.  The best pair is swapped, x is raised by steps of the power
 * method on the new support, and so on.  exchange.c finds what is left. */
#include "pivot.h"

/* STEPS: of the power method, after a swap.  BLOCK: variables that are bounded together. */
enum { STEPS = 5, BLOCK = 128 };
#define LEFT_OUT (-REAL_MAX / 4)
#define LEAST ((real)1e-3) /* 1 - x_i^2 must be more than this for i to leave: less is rounding */

/* One place i, and what `best_entrant` needs of it. */
typedef struct {
    spca_int p;
    const real *y, *row, *own; /* y = A x, row = A_i; own: a_jj, or LEFT_OUT on the support */
    real x, a, rest;           /* x_i, a, and 1 - x_i^2 */
} place_t;

/* Finds the variable j with the largest eigenvalue above *top, and sets *top to it; where there is
 * none, nothing is written.  Whether it is above the level, (y_j - x_i a_ij)^2 > (level - a) (level
 * - a_jj) (1 - x_i^2), is told without a root, for a whole block at once. */
VECTORIZED(best_entrant, (const place_t *o, real *top, spca_int *entrant), (o, top, entrant))
{
    real x = o->x, a = o->a, scale = 1 / sqrt(o->rest);
    for (spca_int start = 0; start < o->p; start += BLOCK) {
        const real *y = o->y + start, *row = o->row + start, *own = o->own + start;
        spca_int n = min_int(BLOCK, o->p - start);
        real level = *top, factor = (level - a) * o->rest, bound[BLOCK];
        whole above = !(level > a);
        for (spca_int j = 0; j < n; j++) {
            real g = y[j] - x * row[j];
            above |= g * g > factor * (level - own[j]);
        }
        if (!above) continue;
        for (spca_int j = 0; j < n; j++) {
            real g = (y[j] - x * row[j]) * scale, half = (a - own[j]) / 2;
            real b = (a + own[j]) / 2 + sqrt(half * half + g * g);
            bound[j] = own[j] > LEFT_OUT ? b : LEFT_OUT;
        }
        for (spca_int j = 0; j < n; j++)
            if (bound[j] > *top) {
                *top = bound[j];
                *entrant = start + j;
            }
    }
}

/* The support index, with x there and own as above; inside = A_SS, image = A_SS x, kept: a copy of
 * x, and value = x'Ax. */
typedef struct {
    spca_int p, k, *index;
    const real *A;
    real *x, *y, *own, *inside, *image, *kept;
    real value;
} swaps_t;

/* Row and column a of A_SS. */
static void gather(swaps_t *s, spca_int a)
{
    const real *row = s->A + s->index[a] * s->p;
    for (spca_int b = 0; b < s->k; b++)
        s->inside[a * s->k + b] = s->inside[b * s->k + a] = row[s->index[b]];
}

/* image = A_SS x; returns x'A_SS x. */
VECTORIZED_TO(real, multiply_inside, (const swaps_t *s), (s))
{
    spca_int k = s->k;
    real *restrict image = s->image, value = 0;
    for (spca_int a = 0; a < k; a++) image[a] = 0;
    for (spca_int b = 0; b < k; b++) {
        const real *row = s->inside + b * k;
        real x = s->x[b];
        for (spca_int a = 0; a < k; a++) image[a] += x * row[a];
    }
    for (spca_int a = 0; a < k; a++) value += image[a] * s->x[a];
    return value;
}

/* Steps of the power method on the support, as long as they raise x'Ax, at most STEPS; value and
 * image are of the last x. */
static void raise_value(swaps_t *s)
{
    spca_int k = s->k;
    s->value = multiply_inside(s);
    for (int step = 0; step < STEPS; step++) {
        real value;
        for (spca_int a = 0; a < k; a++) {
            s->kept[a] = s->x[a];
            s->x[a] = s->image[a];
        }
        (void)to_unit(k, s->x);
        value = multiply_inside(s);
        if (!(value > s->value)) {
            for (spca_int a = 0; a < k; a++) s->x[a] = s->kept[a];
            return;
        }
        s->value = value;
    }
}

/* y = A x, p entries. */
VECTORIZED(multiply, (const swaps_t *s), (s))
{
    real *restrict y = s->y;
    for (spca_int j = 0; j < s->p; j++) y[j] = 0;
    for (spca_int a = 0; a < s->k; a++) {
        const real *row = s->A + s->index[a] * s->p;
        real x = s->x[a];
        for (spca_int j = 0; j < s->p; j++) y[j] += x * row[j];
    }
}

/* a_ii. */
static real of_itself(const swaps_t *s, spca_int i)
{
    return s->A[i * (s->p + 1)];
}

/* a of a place: x'Ax/x'x for x without its entry there. */
static real without(const swaps_t *s, spca_int place)
{
    spca_int i = s->index[place];
    real x = s->x[place];
    return (s->value - 2 * x * s->y[i] + x * x * of_itself(s, i)) / (1 - x * x);
}

/* The place of the pair with the largest bound above *top, and who enters there; k where there is
 * none.  The place with the least loading comes first, because few others are above what is reached
 * then. */
static spca_int best_pair(const swaps_t *s, real *top, spca_int *entrant)
{
    spca_int k = s->k, found = k, first = 0;
    for (spca_int a = 1; a < k; a++)
        if (fabs(s->x[a]) < fabs(s->x[first])) first = a;
    for (spca_int n = 0; n < k; n++) {
        spca_int a = n == 0 ? first : n <= first ? n - 1 : n, i = s->index[a];
        real x = s->x[a], rest = 1 - x * x, before = *top;
        place_t place = {s->p, s->y, s->A + i * s->p, s->own, x, 0, rest};
        if (!(rest > LEAST)) continue;
        place.a = without(s, a);
        best_entrant(&place, top, entrant);
        if (*top > before) found = a;
    }
    return found;
}

/* Makes the swap: x becomes the best vector of the span, whose eigenvalue is `value`, with j in the
 * place. */
static void enter(swaps_t *s, spca_int place, spca_int j, real value)
{
    spca_int i = s->index[place];
    real left = s->x[place], rest = sqrt(1 - left * left);
    real g = (s->y[j] - left * s->A[i * s->p + j]) / rest, across = value - s->own[j];
    real down = value - without(s, place);
    int mostly_new = down > across; /* then (g, down) has more digits than (across, g) */
    s->own[i] = of_itself(s, i);
    s->own[j] = LEFT_OUT;
    s->index[place] = j;
    for (spca_int a = 0; a < s->k; a++) s->x[a] *= (mostly_new ? g : across) / rest;
    s->x[place] = mostly_new ? down : g;
    if (to_unit(s->k, s->x) == 0) s->x[place] = 1;
    gather(s, place);
}

/* Sorts the support, with its entries. */
static void sort(swaps_t *s)
{
    for (spca_int a = 1; a < s->k; a++) {
        spca_int j = s->index[a], b = a;
        real x = s->x[a];
        for (; b > 0 && s->index[b - 1] > j; b--) {
            s->index[b] = s->index[b - 1];
            s->x[b] = s->x[b - 1];
        }
        s->index[b] = j;
        s->x[b] = x;
    }
}

spca_status SPCA(quick_swaps)(spca_int p, spca_int k, const real *A, real rise, spca_int most,
                              spca_stop stop, void *ctx, real *work, spca_int *index, real *value,
                              double *objective, spca_int *made)
{
    swaps_t s = {.p = p, .k = k, .index = index, .A = A, .x = value, .y = work};
    spca_status status = SPCA_OK;
    real top;
    s.own = s.y + p, s.inside = s.own + p, s.image = s.inside + k * k, s.kept = s.image + k;
    for (spca_int j = 0; j < p; j++) s.own[j] = of_itself(&s, j);
    for (spca_int a = 0; a < k; a++) {
        s.own[index[a]] = LEFT_OUT;
        gather(&s, a);
    }
    (void)to_unit(k, value);
    raise_value(&s);
    for (*made = 0; *made < most;) {
        spca_int place, j = 0;
        real before = s.value;
        if (asked_to_stop(stop, ctx)) {
            status = SPCA_STOPPED;
            break;
        }
        multiply(&s);
        top = before + rise * fabs(before);
        place = best_pair(&s, &top, &j);
        if (place == k) break;
        enter(&s, place, j, top);
        raise_value(&s);
        ++*made;
        if (!(s.value > before)) break; /* nothing but rounding is left */
    }
    sort(&s);
    *objective = (double)s.value;
    return status;
}
