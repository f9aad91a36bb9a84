/* joint_pool.c - loadings that are combined: those before and after a sweep, or those of two
 * members.
 *
 * V has 2r columns then, some of which may be empty.  G = V'V and H = V'AV (2r x 2r) tell what any
 * r of them explain. */
#include "joint.h"

#define RISE 1e-7   /* share of what is explained that an exchange must add */
#define TINY 1e-12  /* share that a longer step must gain */
#define LONGEST 1e3 /* the longest step */
/* the share of a squared loading that must be left beside those it is combined with */
#define APART 1e-2
enum { EXCHANGES = 60 };

/* G and H of the pool. */
static void multiply_pool(joint_search_t *s)
{
    joint_t *o = &s->o;
    spca_int n = 2 * o->r, room = o->room;
    for (spca_int a = 0; a < n; a++)
        for (spca_int b = 0; b <= a; b++) {
            double h = 0;
            for (spca_int c = 0; c < o->V.nnz[a] && o->V.nnz[b] > 0; c++)
                h += o->V.value[a * room + c] * o->image[b * o->p + o->V.index[a * room + c]];
            s->H[a * n + b] = s->H[b * n + a] = h;
            s->G[a * n + b] = s->G[b * n + a] = SPCA(joint_product)(o, &o->V, a, b);
        }
}

/* Tr(G^-1 H), G and H = W (r x r, overwritten); -1 where a column is nearly in the span of others.
 */
static double trace_of(spca_int r, double *G, double *W)
{
    double sum = 0;
    for (spca_int a = 0; a < r; a++) { /* G <- L, G = LL' */
        double whole = G[a * r + a], left = whole;
        for (spca_int b = 0; b < a; b++) {
            double l = G[a * r + b];
            for (spca_int c = 0; c < b; c++) l -= G[a * r + c] * G[b * r + c];
            G[a * r + b] = l / G[b * r + b];
            left -= G[a * r + b] * G[a * r + b];
        }
        if (!(left > APART * whole)) return -1;
        G[a * r + a] = sqrt(left);
    }
    for (spca_int c = 0; c < r; c++) /* W <- L^-1 H, then the diagonal of W L^-T */
        for (spca_int a = 0; a < r; a++) {
            for (spca_int b = 0; b < a; b++) W[a * r + c] -= G[a * r + b] * W[b * r + c];
            W[a * r + c] /= G[a * r + a];
        }
    for (spca_int a = 0; a < r; a++) {
        for (spca_int c = 0; c <= a; c++) {
            for (spca_int b = 0; b < c; b++) W[a * r + c] -= G[c * r + b] * W[a * r + b];
            W[a * r + c] /= G[c * r + c];
        }
        sum += W[a * r + a];
    }
    return sum;
}

/* What loadings with G = V'V and H = V'AV explain; under a constraint, less the penalty. */
static double value_of(const joint_t *o, double *G, double *H)
{
    double sum = 0;
    int uncorrelated = o->constraint == JOINT_UNCORRELATED;
    spca_int r = o->r;
    if (!o->constraint) return trace_of(r, G, H);
    for (spca_int a = 0; a < r; a++) {
        sum += H[a * r + a] / G[a * r + a];
        for (spca_int b = 0; b < a; b++) {
            double c = uncorrelated ? H[a * r + b] / o->scale : G[a * r + b];
            sum -= o->penalty * c * c / (G[a * r + a] * G[b * r + b]);
        }
    }
    return sum;
}

/* What r columns of the pool, `order`, explain. */
static double pool_explains(joint_search_t *s, const spca_int *order)
{
    spca_int r = s->o.r, n = 2 * r;
    double *G = s->T, *H = G + r * r;
    for (spca_int a = 0; a < r; a++)
        for (spca_int b = 0; b < r; b++) {
            G[a * r + b] = s->G[order[a] * n + order[b]];
            H[a * r + b] = s->H[order[a] * n + order[b]];
        }
    return value_of(&s->o, G, H);
}

/* What V + step D explains; the pool has V and D. */
static double extrapolated(joint_search_t *s, double step)
{
    spca_int r = s->o.r, n = 2 * r;
    double *out = s->T;
    for (int which = 0; which < 2; which++, out += r * r) {
        const double *M = which ? s->H : s->G;
        for (spca_int a = 0; a < r; a++)
            for (spca_int b = 0; b < r; b++)
                out[a * r + b] = M[a * n + b] + step * (M[a * n + r + b] + M[(r + a) * n + b]) +
                                 step * step * M[(r + a) * n + r + b];
    }
    return value_of(&s->o, s->T, s->T + r * r);
}

double SPCA(joint_further)(joint_search_t *s, double explained)
{
    joint_t *o = &s->o;
    spca_int r = o->r, room = o->room, p = o->p;
    double step = 0, most = explained;
    for (spca_int t = 0; t < r; t++) { /* D takes the place of the loadings before, where the
                                          support is the same; else that is empty */
        const spca_int *index = o->V.index + t * room, *earlier = o->V.index + (r + t) * room;
        const double *x = o->V.value + t * room;
        double *d = o->V.value + (r + t) * room, inner = 0;
        int same = o->V.nnz[t] == o->V.nnz[r + t];
        for (spca_int a = 0; same && a < o->V.nnz[t]; a++) same = index[a] == earlier[a];
        for (spca_int a = 0; same && a < o->V.nnz[t]; a++) inner += x[a] * d[a];
        if (!same) {
            o->V.nnz[r + t] = 0;
            continue;
        }
        for (spca_int a = 0; a < o->V.nnz[t]; a++) d[a] = x[a] - (inner < 0 ? -d[a] : d[a]);
        for (spca_int i = 0; i < p; i++) {
            double *image = o->image + (r + t) * p + i;
            *image = o->image[t * p + i] - (inner < 0 ? -*image : *image);
        }
    }
    /* the step is doubled as long as that gains */
    multiply_pool(s);
    for (double next = 1; next < LONGEST; next *= 2) {
        double value = extrapolated(s, next);
        if (!(value > most * (1 + TINY))) break;
        most = value;
        step = next;
    }
    for (spca_int t = 0; t < r && step > 0; t++) {
        double square = 0, moved = 0, *x = o->V.value + t * room;
        for (spca_int a = 0; a < o->V.nnz[r + t]; a++) {
            double d = step * o->V.value[(r + t) * room + a];
            x[a] += d;
            square += x[a] * x[a];
            moved += d * d;
        }
        for (spca_int u = 0; u < r; u++) o->drift[u] += moved;
        if (o->V.nnz[r + t] == 0) continue;
        for (spca_int a = 0; a < o->V.nnz[t]; a++) x[a] /= sqrt(square);
        for (spca_int i = 0; i < p; i++)
            o->image[t * p + i] =
                (o->image[t * p + i] + step * o->image[(r + t) * p + i]) / sqrt(square);
    }
    return most;
}

/* Makes the best exchange of one column of the choice for another of the pool, as long as there is
 * one. */
static void exchange_columns(joint_search_t *s, spca_int *choice)
{
    spca_int r = s->o.r, n = 2 * r;
    double now = pool_explains(s, choice);
    for (int pass = 0; pass < EXCHANGES; pass++) {
        double most = fmax(now, 0) * (1 + RISE);
        spca_int place = -1, column = 0;
        for (spca_int t = 0; t < r; t++) {
            spca_int kept = choice[t];
            for (spca_int j = 0; j < n; j++) {
                double value;
                int taken = s->o.size[j % r] > s->o.size[t];
                for (spca_int a = 0; a < r; a++) taken |= choice[a] == j;
                if (taken) continue;
                choice[t] = j;
                value = pool_explains(s, choice);
                if (!(value > most)) continue;
                most = value * (1 + RISE);
                place = t;
                column = j;
            }
            choice[t] = kept;
        }
        if (place < 0) break;
        choice[place] = column;
        now = most / (1 + RISE);
    }
}

void SPCA(joint_combine)(joint_search_t *s, loadings_t other)
{
    joint_t *o = &s->o;
    spca_int r = o->r, n = 2 * r, *choice = s->order + r;
    for (spca_int t = 0; t < r; t++) joint_copy(o, &other, t, &o->V, r + t);
    for (spca_int t = 0; t < n; t++)
        SPCA(joint_image)(o, o->V.nnz[t], o->V.index + t * o->room, o->V.value + t * o->room,
                          o->image + t * o->p);
    multiply_pool(s);
    joint_permute(s, r);
    for (spca_int t = 0; t < r; t++) choice[t] = t + (joint_below(s, 2) ? r : 0);
    exchange_columns(s, choice);
    /* by way of the last places, since columns of V may change places */
    for (spca_int t = 0; t < r; t++)
        joint_copy(o, choice[t] < r ? &o->V : &other, choice[t] % r, &o->V, r + t);
    for (spca_int t = 0; t < r; t++) joint_copy(o, &o->V, r + t, &o->V, t);
    o->spent += (double)(EXCHANGES * r * r * r * r);
}
