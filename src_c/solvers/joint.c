/* joint.c - several sparse loadings that explain much together.
 *
 * A move changes one of the best loadings known, or begins anew; then each loading in turn ascends
 * given the others (joint_column.c), until none gains.  Moves: loadings are sought again from
 * single variables; some variables of a support are replaced; some loadings are rotated within
 * their span and truncated; loadings of two members of the population are combined.  The first
 * ones begin from loadings sought in turn, from the leading subspace after varimax, and from
 * random rotations of it. */
#include "joint.h"

#define RISE 1e-7   /* of what is explained, for which loadings are others */
#define BEHIND 2e-2 /* share below the best from which an ascent is given up */
#define SLOW 1e-3   /* share that a sweep gains, below which its step goes on */
#define TINY 1e-12  /* share that a longer step must gain */
#define HOPE 20     /* times the gain of a sweep, that later ones may gain together */
#define LONGEST 1e3 /* step */
#define APART 1e-2  /* what must be left of a squared loading beside those it is combined with */
enum { SWEEPS = 60, PASSES = 6, FIRST_MOVES = 15, GREEDY_STARTS = 16, EXCHANGES = 60 };

typedef struct {
    joint_t o;
    spca_int members, *held; /* of the population: at most, and now */
    loadings_t population;
    double *explained;
    uint64_t *random;
    double *U, *eigenvalue; /* (l x p), (l): the leading subspace, l = min(p, 2r) */
    real *turned;           /* (p x r) */
    spca_int *order;        /* (2r) */
    double *G, *H, *T;      /* (2r x 2r) */
} search_t;

/* A counter, scrambled (Steele, Lea & Flood 2014, SplitMix64). */
static uint64_t draw(search_t *s)
{
    uint64_t z = *s->random += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double uniform(search_t *s)
{
    return (double)(draw(s) >> 11) * 0x1p-53;
}

static spca_int below(search_t *s, spca_int n)
{
    return (spca_int)(draw(s) % (uint64_t)n);
}

static double centered(search_t *s)
{
    return uniform(s) + uniform(s) + uniform(s) - 1.5;
}

static void permute(search_t *s, spca_int n)
{
    for (spca_int a = 0; a < n; a++) {
        spca_int b = below(s, a + 1);
        s->order[a] = s->order[b];
        s->order[b] = a;
    }
}

static loadings_t member(const search_t *s, spca_int place)
{
    spca_int r = s->o.r, room = s->o.room;
    loadings_t V = s->population;
    V.nnz += place * r;
    V.index += place * r * room;
    V.value += place * r * room;
    return V;
}

static void copy(const search_t *s, const loadings_t *from, spca_int t, loadings_t *to, spca_int u)
{
    spca_int room = s->o.room;
    to->nnz[u] = from->nnz[t];
    for (spca_int a = 0; a < from->nnz[t]; a++) {
        to->index[u * room + a] = from->index[t * room + a];
        to->value[u * room + a] = from->value[t * room + a];
    }
}

static void copy_all(const search_t *s, loadings_t from, loadings_t to)
{
    for (spca_int t = 0; t < s->o.r; t++) copy(s, &from, t, &to, t);
}

static void renew_image(search_t *s, spca_int t)
{
    joint_t *o = &s->o;
    SPCA(joint_image)(o, o->V.nnz[t], o->V.index + t * o->room, o->V.value + t * o->room,
                      o->image + t * o->p);
}

/* ---- loadings that are combined ------------------------------------------------------------- */

/* G = V'V and H = V'AV of all 2r columns of o->V, some of which may be empty. */
static void multiply_pool(search_t *s)
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

/* Tr(G^-1 H), both r x r and overwritten; -1 where a column is nearly in the span of others. */
static double trace_of(spca_int r, double *G, double *W)
{
    double sum = 0;
    for (spca_int a = 0; a < r; a++) { /* G = LL', in place */
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
    for (spca_int c = 0; c < r; c++) /* W = L^-1 H, then the diagonal of W L^-T */
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

/* What the columns `order` of the pool explain. */
static double pool_explains(search_t *s, const spca_int *order)
{
    spca_int r = s->o.r, n = 2 * r;
    double *G = s->T, *H = G + r * r;
    for (spca_int a = 0; a < r; a++)
        for (spca_int b = 0; b < r; b++) {
            G[a * r + b] = s->G[order[a] * n + order[b]];
            H[a * r + b] = s->H[order[a] * n + order[b]];
        }
    return trace_of(r, G, H);
}

/* What V + step D explains, of which the pool has V and D. */
static double extrapolated(search_t *s, double step)
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
    return trace_of(r, s->T, s->T + r * r);
}

/* Where a sweep gained little, its step D goes on as far as that gains: the loadings before are in
 * the last r places, with their images.  What is explained then. */
static double go_further(search_t *s, double explained)
{
    joint_t *o = &s->o;
    spca_int r = o->r, room = o->room, p = o->p;
    double step = 0, most = explained;
    for (spca_int t = 0; t < r; t++) { /* D in place of the loadings before */
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
    multiply_pool(s);
    for (double next = 1; next < LONGEST; next *= 2) {
        double value = extrapolated(s, next);
        if (!(value > most * (1 + TINY))) break;
        most = value;
        step = next;
    }
    for (spca_int t = 0; t < r && step > 0; t++) {
        double square = 0, *x = o->V.value + t * room;
        for (spca_int a = 0; a < o->V.nnz[r + t]; a++) {
            x[a] += step * o->V.value[(r + t) * room + a];
            square += x[a] * x[a];
        }
        if (o->V.nnz[r + t] == 0) continue;
        for (spca_int a = 0; a < o->V.nnz[t]; a++) x[a] /= sqrt(square);
        for (spca_int i = 0; i < p; i++)
            o->image[t * p + i] =
                (o->image[t * p + i] + step * o->image[(r + t) * p + i]) / sqrt(square);
    }
    return most;
}

/* ---- ascent --------------------------------------------------------------------------------- */

/* Loading t ascends given the others; what all explain. */
static double ascend_one(search_t *s, spca_int t, int thorough)
{
    joint_t *o = &s->o;
    spca_int *nnz = o->V.nnz + t, *index = o->V.index + t * o->room;
    double *x = o->V.value + t * o->room, value;
    SPCA(joint_given)(o, t);
    value = *nnz > 0 ? SPCA(joint_ascend)(o, o->size[t], thorough, nnz, index, x) : -1;
    if (value <= 0) { /* in the span of the others: anew from the best variable alone */
        double most = -1;
        for (spca_int i = 0; i < o->p; i++) {
            double alone = o->left[i] > JOINT_SPAN ? o->variance[i] / o->left[i] : 0;
            if (!(alone > most * (1 + RISE))) continue;
            most = alone;
            index[0] = i;
        }
        *nnz = 1;
        x[0] = 1;
        value = fmax(SPCA(joint_ascend)(o, o->size[t], thorough, nnz, index, x), 0);
    }
    renew_image(s, t);
    return o->rest + value;
}

/* All ascend in turn until none gains, then with exchanges, and so on until these gain nothing;
 * given up where that stays behind the bar.  What they explain. */
static spca_status ascend_all(search_t *s, double bar, double *explained)
{
    joint_t *o = &s->o;
    spca_int r = o->r;
    int thorough = 0;
    *explained = 0;
    for (spca_int t = 0; t < r; t++) renew_image(s, t);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double before = *explained, gain;
        for (spca_int t = 0; t < r; t++) {
            copy(s, &o->V, t, &o->V, r + t);
            for (spca_int i = 0; i < o->p; i++)
                o->image[(r + t) * o->p + i] = o->image[t * o->p + i];
        }
        permute(s, r);
        for (spca_int a = 0; a < r; a++) {
            if (asked_to_stop(o->stop, o->ctx)) return SPCA_STOPPED;
            *explained = ascend_one(s, s->order[a], thorough);
        }
        if (sweep > 0 && *explained - before < SLOW * *explained)
            *explained = go_further(s, *explained);
        gain = *explained - before;
        if (sweep > 0 && *explained < bar * (1 - BEHIND)) break;
        if (thorough && !(gain > RISE * *explained)) break;
        if (thorough && *explained + HOPE * gain < bar) break;
        thorough = !(gain > RISE * *explained) || (sweep > 1 && *explained + HOPE * gain < bar);
    }
    return SPCA_OK;
}

/* Whether the loadings become a member, in their place by what they explain. */
static int join(search_t *s, double explained)
{
    spca_int place = *s->held;
    for (spca_int a = 0; a < *s->held; a++)
        if (fabs(s->explained[a] - explained) <= RISE * s->explained[0]) {
            if (!(explained > s->explained[a])) return 0;
            copy_all(s, s->o.V, member(s, a)); /* the same but for its last digits */
            s->explained[a] = explained;
            return 0;
        }
    while (place > 0 && s->explained[place - 1] < explained) place--;
    if (place == s->members) return 0;
    if (*s->held < s->members) ++*s->held;
    for (spca_int a = *s->held - 1; a > place; a--) {
        copy_all(s, member(s, a - 1), member(s, a));
        s->explained[a] = s->explained[a - 1];
    }
    copy_all(s, s->o.V, member(s, place));
    s->explained[place] = explained;
    return place == 0;
}

/* ---- moves ---------------------------------------------------------------------------------- */

/* Loading t becomes the largest entries of y (p), each to the digits of float, which the order of
 * additions does not reach; zeros alone: nothing. */
static void truncate(search_t *s, spca_int t, const double *y)
{
    joint_t *o = &s->o;
    double *x = o->V.value + t * o->room, square = 0;
    SPCA(joint_select)(o, o->size[t], y, o->V.index + t * o->room, x);
    for (spca_int a = 0; a < o->size[t]; a++) {
        x[a] = (double)(float)x[a];
        square += x[a] * x[a];
    }
    for (spca_int a = 0; a < o->size[t] && square > 0; a++) x[a] /= sqrt(square);
    o->V.nnz[t] = square > 0 ? o->size[t] : 0;
}

/* A variable with the chance weight_i^power. */
static spca_int drawn(search_t *s, const double *weight, const double *over)
{
    joint_t *o = &s->o;
    double total = 0, at;
    for (spca_int i = 0; i < o->p; i++) {
        double w = over ? (over[i] > JOINT_SPAN ? weight[i] / over[i] : 0) : weight[i];
        total += w > 0 ? (over ? w * w : w) : 0;
        o->gain[i] = total;
    }
    at = uniform(s) * total;
    for (spca_int i = 0; i < o->p - 1; i++)
        if (at < o->gain[i]) return i;
    return o->p - 1;
}

/* The first `count` loadings of the order are sought again, one after another, from some single
 * variables. */
static void regrow(search_t *s, spca_int count, spca_int starts)
{
    joint_t *o = &s->o;
    for (spca_int a = 0; a < count; a++) o->V.nnz[s->order[a]] = 0;
    for (spca_int a = 0; a < count; a++) {
        spca_int t = s->order[a], nnz, *index = o->V.index + t * o->room;
        double *x = o->V.value + t * o->room, most = -1;
        spca_int *best = o->list;
        double *entries = o->entry + 2 * o->room;
        SPCA(joint_given)(o, t);
        for (spca_int b = 0; b < starts; b++) {
            double value;
            nnz = 1;
            index[0] = drawn(s, o->variance, o->left);
            x[0] = 1;
            value = SPCA(joint_ascend)(o, o->size[t], 0, &nnz, index, x);
            if (!(value > most * (1 + RISE))) continue;
            most = value;
            o->V.nnz[t] = nnz;
            for (spca_int c = 0; c < nnz; c++) {
                best[c] = index[c];
                entries[c] = x[c];
            }
        }
        for (spca_int c = 0; c < o->V.nnz[t]; c++) {
            index[c] = best[c];
            x[c] = entries[c];
        }
        renew_image(s, t);
    }
}

/* A third of the variables of some loadings, or fewer, become others. */
static void replace_some(search_t *s)
{
    joint_t *o = &s->o;
    spca_int count;
    permute(s, o->r);
    count = 1 + below(s, o->r);
    for (spca_int a = 0; a < count; a++) {
        spca_int t = s->order[a], n = o->V.nnz[t], some = 1 + below(s, n / 3 > 1 ? n / 3 : 1);
        const spca_int *index = o->V.index + t * o->room;
        for (spca_int i = 0; i < o->p; i++) o->score[i] = 0;
        for (spca_int b = 0; b < n; b++) o->score[index[b]] = o->V.value[t * o->room + b];
        for (spca_int b = 0; b < some && n > 0; b++) {
            spca_int i = drawn(s, o->diagonal, NULL);
            o->score[index[below(s, n)]] = 0;
            if (o->score[i] == 0) o->score[i] = 0.2 * centered(s);
        }
        truncate(s, t, o->score);
    }
}

/* An orthogonal matrix (n x n) at random. */
static void rotation(search_t *s, spca_int n, double *R)
{
    for (spca_int a = 0; a < n; a++) {
        double *row = R + a * n, square = 0;
        while (!(square > 1e-3)) {
            square = 0;
            for (spca_int i = 0; i < n; i++) row[i] = centered(s);
            for (spca_int b = 0; b < a; b++) {
                double along = 0;
                for (spca_int i = 0; i < n; i++) along += row[i] * R[b * n + i];
                for (spca_int i = 0; i < n; i++) row[i] -= along * R[b * n + i];
            }
            for (spca_int i = 0; i < n; i++) square += row[i] * row[i];
        }
        for (spca_int i = 0; i < n; i++) row[i] /= sqrt(square);
    }
}

/* Some loadings become rotations of themselves, after a product with A, truncated. */
static void rotate(search_t *s)
{
    joint_t *o = &s->o;
    spca_int n = o->r > 2 && below(s, 4) == 0 ? 3 : 2;
    permute(s, o->r);
    rotation(s, n, s->T);
    for (spca_int a = 0; a < n; a++) renew_image(s, s->order[a]);
    for (spca_int a = 0; a < n; a++) {
        for (spca_int i = 0; i < o->p; i++) {
            o->score[i] = 0;
            for (spca_int b = 0; b < n; b++)
                o->score[i] += s->T[a * n + b] * o->image[s->order[b] * o->p + i];
        }
        truncate(s, s->order[a], o->score);
    }
}

/* The best exchange of one column of the choice for another of the pool, while there is one. */
static void exchange_columns(search_t *s, const loadings_t *pool, spca_int *choice)
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
                int taken = pool->nnz[j] > s->o.size[t];
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

/* The best combination of the loadings, the first r of 2r of o->V, and of another member. */
static void cross(search_t *s, loadings_t other)
{
    joint_t *o = &s->o;
    spca_int r = o->r, n = 2 * r, *choice = s->order + n;
    for (spca_int t = 0; t < r; t++) copy(s, &other, t, &o->V, r + t);
    for (spca_int t = 0; t < n; t++) renew_image(s, t);
    multiply_pool(s);
    permute(s, r);
    for (spca_int t = 0; t < r; t++) choice[t] = t + (below(s, 2) ? r : 0);
    exchange_columns(s, &o->V, choice);
    for (spca_int t = 0; t < r;
         t++) /* those of the other member first: their places are beyond r */
        if (choice[t] >= r) copy(s, &o->V, choice[t], &o->V, t);
    for (spca_int t = 0; t < r; t++)
        if (choice[t] < r && choice[t] != t) copy(s, &o->V, choice[t], &o->V, t);
    o->spent += (double)(EXCHANGES * r * r * r * r);
}

/* ---- the first moves ------------------------------------------------------------------------ */

/* Y (l x p) = U A */
VECTORIZED(multiply, (spca_int p, spca_int l, const real *A, const double *U, double *restrict Y),
           (p, l, A, U, Y))
{
    for (spca_int i = 0; i < l * p; i++) Y[i] = 0;
    for (spca_int j = 0; j < p; j++) {
        const real *line = A + j * p;
        for (spca_int a = 0; a < l; a++) {
            double u = U[a * p + j], *y = Y + a * p;
            for (spca_int i = 0; i < p; i++) y[i] += u * (double)line[i];
        }
    }
}

static double product(spca_int p, const double *x, const double *y)
{
    double sum[4] = {0};
    spca_int i = 0;
    for (; i + 4 <= p; i += 4)
        for (int a = 0; a < 4; a++) sum[a] += x[i + a] * y[i + a];
    for (; i < p; i++) sum[0] += x[i] * y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Orthonormal rows; zero where earlier ones span one. */
static void orthonormalize(spca_int p, spca_int l, double *U)
{
    for (spca_int a = 0; a < l; a++) {
        double *u = U + a * p, whole = product(p, u, u), square;
        for (int twice = 0; twice < 2; twice++)
            for (spca_int b = 0; b < a; b++) {
                double along = product(p, u, U + b * p);
                for (spca_int i = 0; i < p; i++) u[i] -= along * U[b * p + i];
            }
        square = product(p, u, u);
        for (spca_int i = 0; i < p; i++)
            u[i] = square > 1e-20 * whole && square > 0 ? u[i] / sqrt(square) : 0;
    }
}

/* The leading subspace of A, nearly: eigenvalues and vectors of A within it.  Y (2r x p). */
static spca_status find_subspace(search_t *s, spca_int l, double *Y)
{
    joint_t *o = &s->o;
    spca_int p = o->p;
    double *H = s->G, *vectors = s->H, *work = s->T;
    spca_status status;
    for (spca_int i = 0; i < l * p; i++) s->U[i] = centered(s);
    for (int pass = 0; pass < PASSES; pass++) {
        double *swap = s->U;
        if (asked_to_stop(o->stop, o->ctx)) return SPCA_STOPPED;
        orthonormalize(p, l, s->U);
        multiply(p, l, o->A, s->U, Y);
        if (pass == PASSES - 1) break;
        for (spca_int i = 0; i < l * p; i++) swap[i] = Y[i];
    }
    for (spca_int a = 0; a < l; a++)
        for (spca_int b = 0; b <= a; b++)
            H[a * l + b] = H[b * l + a] = product(p, Y + a * p, s->U + b * p);
    status = spca_small_eigen(l, H, work, s->eigenvalue, vectors);
    if (status < 0) return status;
    for (spca_int a = 0; a < l; a++) {
        for (spca_int i = 0; i < p; i++) Y[a * p + i] = 0;
        for (spca_int b = 0; b < l; b++)
            for (spca_int i = 0; i < p; i++) Y[a * p + i] += vectors[a * l + b] * s->U[b * p + i];
    }
    for (spca_int i = 0; i < l * p; i++) s->U[i] = Y[i];
    o->spent += (double)(PASSES * l * p) * (double)(p + 2 * l);
    return SPCA_OK;
}

/* Loadings from the leading subspace: after varimax, or (turn) rotated at random; weighted: of the
 * principal components times their standard deviations, or (wide) of twice as many. */
static spca_status from_subspace(search_t *s, int weighted, int varimax, spca_int l)
{
    joint_t *o = &s->o;
    spca_int p = o->p, r = o->r, n_iter = 0, width = varimax || !weighted ? min_int(r, l) : l;
    double *R = s->T;
    if (varimax) {
        for (spca_int a = 0; a < width; a++) {
            double weight = weighted ? sqrt(fmax(s->eigenvalue[a], 0)) : 1;
            for (spca_int i = 0; i < p; i++)
                s->turned[a * p + i] = (real)(weight * s->U[a * p + i]);
            for (spca_int b = 0; b < width; b++) R[a * width + b] = a == b;
        }
        spca_status status =
            SPCA(planar_sweeps)(p, width, 1, 50, 1e-4, o->stop, o->ctx, s->turned, R, &n_iter);
        if (status < 0) return status;
    } else if (!weighted)
        rotation(s, width, R);
    for (spca_int t = 0; t < r; t++) {
        for (spca_int i = 0; i < p; i++) o->score[i] = 0;
        if (varimax)
            for (spca_int i = 0; i < p && t < width; i++)
                o->score[i] = (double)s->turned[t * p + i];
        else
            for (spca_int a = 0; a < width; a++) {
                double c = weighted ? sqrt(fmax(s->eigenvalue[a], 0)) * centered(s)
                                    : (t < width ? R[t * width + a] : centered(s));
                for (spca_int i = 0; i < p; i++) o->score[i] += c * s->U[a * p + i];
            }
        truncate(s, t, o->score);
    }
    return SPCA_OK;
}

/* The loadings that a move begins from. */
static spca_status move(search_t *s, spca_int number)
{
    joint_t *o = &s->o;
    spca_int r = o->r, l = min_int(o->p, 2 * r), held = *s->held, which, parent, count;
    if (number == 0) {
        spca_status status = find_subspace(s, l, o->image);
        if (status < 0) return status;
    }
    if (number < FIRST_MOVES) {
        permute(s, r);
        if (number == 0 || (number > 2 && number % 3 == 2)) {
            regrow(s, r, number == 0 ? GREEDY_STARTS : 1);
            return SPCA_OK;
        }
        return from_subspace(s, number < 2 || number % 3 == 1, number < 3, l);
    }
    for (parent = 0; parent < held - 1 && uniform(s) < 0.6;) parent++;
    which = below(s, held > 1 ? 5 : 4);
    copy_all(s, member(s, parent), o->V);
    for (spca_int t = 0; t < r && which < 2; t++) renew_image(s, t);
    permute(s, r);
    count = r > 2 ? 2 + below(s, (r > 3 ? r / 2 + 1 : 3) - 2) : r;
    if (which == 0)
        regrow(s, 1, 1 + below(s, 4));
    else if (which == 1)
        regrow(s, count, 1 + below(s, 3));
    else if (which == 2)
        replace_some(s);
    else if (which == 3 && r > 1)
        rotate(s);
    else if (which == 4)
        cross(s, member(s, (parent + 1 + below(s, held - 1)) % held));
    return SPCA_OK;
}

spca_int SPCA(joint_work)(spca_int p, spca_int r, spca_int room)
{
    return (4 * r + 5) * p + 14 * r * r + 8 * r + (room + 4 * r + 12) * room;
}

spca_int SPCA(joint_iwork)(spca_int p, spca_int r, spca_int room)
{
    return 2 * p + 6 * r + (2 * r + 3) * room;
}

/* Divides what the caller has. */
static void divide(search_t *s, double *work, spca_int *iwork)
{
    joint_t *o = &s->o;
    spca_int p = o->p, r = o->r, room = o->room;
    o->image = work, work += 2 * r * p;
    o->Q = work, work += r * p;
    o->F = work, work += r * p;
    o->variance = work, work += p;
    o->left = work, work += p;
    o->score = work, work += p;
    o->row = work, work += p;
    o->gain = work, work += p;
    o->C = work, work += r * r;
    o->L = work, work += r * r;
    s->G = work, work += 4 * r * r;
    s->H = work, work += 4 * r * r;
    s->T = work, work += 4 * r * r + 8 * r;
    o->V.value = work, work += 2 * r * room;
    o->entry = work, work += 3 * room;
    o->fit = work;
    o->V.nnz = iwork, iwork += 2 * r;
    o->V.index = iwork, iwork += 2 * r * room;
    o->inside = iwork, iwork += p;
    o->used = iwork, iwork += p;
    o->list = iwork, iwork += room;
    o->trial = iwork, iwork += 2 * room + r;
    s->order = iwork;
}

spca_status SPCA(joint)(spca_int p, spca_int r, spca_int room, const real *A,
                        const double *diagonal, const spca_int *size, spca_int members,
                        spca_int given, spca_int moves, spca_int patience, double limit,
                        spca_stop stop, void *ctx, uint64_t *random, spca_int *state, double *spent,
                        double *subspace, spca_int *nnz, spca_int *index, double *value,
                        double *explained, double *work, spca_int *iwork, real *turned)
{
    search_t s = {.o = {.p = p, .r = r, .room = room, .A = A, .diagonal = diagonal, .size = size},
                  .members = members,
                  .held = state + 2,
                  .population = {nnz, index, value},
                  .explained = explained,
                  .random = random,
                  .U = subspace,
                  .eigenvalue = subspace + 2 * r * p,
                  .turned = turned};
    spca_status status = SPCA_OK;
    s.o.stop = stop;
    s.o.ctx = ctx;
    divide(&s, work, iwork);
    s.o.spent = *spent;
    for (spca_int a = 0; a < given + moves && status >= 0; a++) {
        double found, bar = *s.held > 0 ? explained[0] : 0;
        if (a < given)
            copy_all(&s, member(&s, a), s.o.V);
        else if (state[1] >= patience || *spent >= limit)
            break;
        else
            status = move(&s, state[0]++);
        if (status >= 0) status = ascend_all(&s, a < given ? 0 : bar, &found);
        if (status < 0) break;
        state[1] = join(&s, found) && found > bar * (1 + RISE) ? 0 : state[1] + (a >= given);
        *spent = s.o.spent;
    }
    return status;
}
