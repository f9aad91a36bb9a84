/* joint_column.c - one sparse loading given others, by truncated power, and exchanges
 * (joint_exchange.c).
 *
 * For rho = x'Nx/x'Mx the matrix B = N + rho QQ' is semidefinite.  So the unit vector y, with as
 * many nonzeros as are allowed, that is nearest Bx has y'By >= x'Bx = rho x'x, i.e. y'Ny/y'My >=
 * rho (Mackey 2008; Yuan & Zhang 2013).  On its support the quotient is then raised by conjugate
 * directions: the best combination of x, its residual and the step before (Knyazev 2001, LOBPCG).
 */
#include "joint.h"

#define LEAST_RISE 1e-12 /* share that a step must rise to be worth another, at last, */
#define SMALL_RISE 1e-8  /* and while supports are tried */
#define AHEAD 3          /* later steps may add AHEAD times the rise of this one */
#define APART 1e-11      /* share of a squared norm that counts as nothing */
#define NOTHING 1e-24    /* a squared norm that counts as nothing beside 1 */
/* the least squared sine of the angle to the others, since loadings of given signs explain ever
 * more as they near each other */
#define SIGNED_SPAN 1e-2
/* where more than 1/DENSE of the variables are in use, all are multiplied */
enum { DENSE = 4 };
enum { NEWTON = 60, CLIMBS = 8, LAST_STEPS = 30, SWAPS = 40 };

/* y += a x, n entries. */
VECTORIZED(add_multiple, (spca_int n, double a, const double *x, double *restrict y), (n, a, x, y))
{
    for (spca_int i = 0; i < n; i++) y[i] += a * x[i];
}

void SPCA(joint_add)(spca_int n, double a, const double *x, double *y)
{
    add_multiple(n, a, x, y);
}

void SPCA(joint_add_used)(const joint_t *o, double a, const double *x, double *y)
{
    if (o->n_used * DENSE > o->p)
        add_multiple(o->p, a, x, y);
    else
        for (spca_int c = 0; c < o->n_used; c++) y[o->used[c]] += a * x[o->used[c]];
}

/* joint_rows: four rows in one addition. */
VECTORIZED(add_rows,
           (spca_int p, const real *A, spca_int nnz, const spca_int *index, const double *x,
            double *restrict y),
           (p, A, nnz, index, x, y))
{
    spca_int a = 0;
    for (spca_int i = 0; i < p; i++) y[i] = 0;
    for (; a + 4 <= nnz; a += 4) {
        const real *l0 = A + index[a] * p, *l1 = A + index[a + 1] * p;
        const real *l2 = A + index[a + 2] * p, *l3 = A + index[a + 3] * p;
        double x0 = x[a], x1 = x[a + 1], x2 = x[a + 2], x3 = x[a + 3];
        for (spca_int i = 0; i < p; i++)
            y[i] += (x0 * (double)l0[i] + x1 * (double)l1[i]) +
                    (x2 * (double)l2[i] + x3 * (double)l3[i]);
    }
    for (; a < nnz; a++) {
        const real *line = A + index[a] * p;
        for (spca_int i = 0; i < p; i++) y[i] += x[a] * (double)line[i];
    }
}

void SPCA(joint_rows)(spca_int p, const real *A, spca_int nnz, const spca_int *index,
                      const double *x, double *y)
{
    add_rows(p, A, nnz, index, x, y);
}

void SPCA(joint_image)(joint_t *o, spca_int nnz, const spca_int *index, const double *x, double *y)
{
    add_rows(o->p, o->A, nnz, index, x, y);
    o->spent += (double)(nnz * o->p);
}

double SPCA(joint_product)(const joint_t *o, const loadings_t *V, spca_int s, spca_int t)
{
    const spca_int *i = V->index + s * o->room, *j = V->index + t * o->room;
    const double *x = V->value + s * o->room, *y = V->value + t * o->room;
    double sum = 0;
    for (spca_int a = 0, b = 0; a < V->nnz[s] && b < V->nnz[t];)
        if (i[a] == j[b])
            sum += x[a++] * y[b++];
        else if (i[a] < j[b])
            a++;
        else
            b++;
    return sum;
}

/* The pencil (N, M) on a support of n variables, and vectors there. */
typedef struct {
    spca_int n, m;
    double projected, span;       /* span: the least squared sine of the angle to the others */
    double *G, *q, *f;            /* A (n x n), Q and F (m x n) on the support */
    double *x[3], *Nx[3], *Mx[3]; /* (n): x, its residual, and the step before */
} local_t;

/* y = G x, G (n x n) symmetric. */
INLINE void multiply(spca_int n, const double *G, const double *x, double *restrict y)
{
    spca_int b = 0;
    for (spca_int a = 0; a < n; a++) y[a] = 0;
    for (; b + 2 <= n; b += 2)
        for (spca_int a = 0; a < n; a++) y[a] += x[b] * G[b * n + a] + x[b + 1] * G[b * n + n + a];
    for (; b < n; b++)
        for (spca_int a = 0; a < n; a++) y[a] += x[b] * G[b * n + a];
}

/* The pencil on a support, in the scratch o->fit. */
INLINE local_t local_of(joint_t *o, spca_int n, const spca_int *index)
{
    local_t s = {.n = n, .m = o->m, .projected = o->projected, .span = JOINT_SPAN, .G = o->fit};
    if (o->of && o->of->signs) s.span = SIGNED_SPAN;
    double *next = s.G + n * n;
    s.q = next, next += o->m * n;
    s.f = next, next += o->m * n;
    for (int a = 0; a < 3; a++) {
        s.x[a] = next, next += n;
        s.Nx[a] = next, next += n;
        s.Mx[a] = next, next += n;
    }
    for (spca_int b = 0; b < n; b++) {
        const real *line = o->A + index[b] * o->p;
        for (spca_int a = 0; a < n; a++) s.G[b * n + a] = (double)line[index[a]];
    }
    for (spca_int a = 0; a < o->m; a++)
        for (spca_int b = 0; b < n; b++) {
            s.q[a * n + b] = o->Q[a * o->p + index[b]];
            s.f[a * n + b] = o->F[a * o->p + index[b]];
        }
    return s;
}

/* For joint_apart, on the support: rows of q become orthonormal, f = Gq - Cq/2, C = qGq', and x is
 * projected away from them. */
static void keep_apart(joint_t *o, local_t *s)
{
    spca_int n = s->n, count = s->m;
    double *C = o->L;
    s->m = 0;
    for (spca_int a = 0; a < count; a++) {
        double *q = s->q + s->m * n, whole = joint_dot(n, s->q + a * n, s->q + a * n), left = 0;
        for (spca_int i = 0; i < n; i++) q[i] = s->q[a * n + i];
        for (int twice = 0; twice < 2; twice++)
            for (spca_int b = 0; b < s->m; b++)
                SPCA(joint_add)(n, -joint_dot(n, q, s->q + b * n), s->q + b * n, q);
        left = joint_dot(n, q, q);
        if (!(left > APART * whole) || !(whole > NOTHING)) continue;
        for (spca_int i = 0; i < n; i++) q[i] /= sqrt(left);
        s->m++;
    }
    for (spca_int a = 0; a < s->m; a++) {
        multiply(n, s->G, s->q + a * n, s->f + a * n);
        for (spca_int b = 0; b <= a; b++)
            C[a * o->r + b] = C[b * o->r + a] = joint_dot(n, s->q + b * n, s->f + a * n);
    }
    for (spca_int a = 0; a < s->m; a++)
        for (spca_int b = 0; b < s->m; b++)
            SPCA(joint_add)(n, -C[a * o->r + b] / 2, s->q + b * n, s->f + a * n);
    for (spca_int b = 0; b < s->m; b++)
        SPCA(joint_add)(n, -joint_dot(n, s->x[0], s->q + b * n), s->q + b * n, s->x[0]);
    o->spent += (double)(s->m * n * (n + 3 * s->m));
}

/* Nx and Mx for the vector in place a. */
INLINE void apply(const local_t *s, int a)
{
    spca_int n = s->n;
    const double *x = s->x[a];
    double *y = s->Nx[a], *z = s->Mx[a];
    multiply(n, s->G, x, y);
    for (spca_int i = 0; i < n; i++) z[i] = x[i];
    for (spca_int b = 0; b < s->m; b++) {
        const double *q = s->q + b * n, *f = s->f + b * n;
        double along = joint_dot(n, q, x), across = joint_dot(n, f, x);
        for (spca_int i = 0; i < n; i++) {
            y[i] -= along * f[i] + across * q[i];
            z[i] -= s->projected * along * q[i];
        }
    }
}

/* The largest eigenvalue of N (n x n, n <= 3) and a vector u of it; -1: none was found.  For n = 3,
 * Newton's method on the characteristic polynomial descends from above the root, and u is a cross
 * product of rows of N less the eigenvalue. */
static double leading(int n, const double *N, double *u)
{
    double mean = 0, square = 0, most = 0, x, det, B[9];
    u[0] = 1;
    if (n == 1) return N[0];
    if (n == 2) {
        double d = (N[0] - N[3]) / 2, h = sqrt(d * d + N[1] * N[1]);
        u[0] = d < 0 ? N[1] : h > 0 ? h + d : 1;
        u[1] = d < 0 ? h - d : N[1];
        return (N[0] + N[3]) / 2 + h;
    }
    /* n = 3: the characteristic polynomial of B = N - mean I is x^3 - 3 square x - det */
    mean = (N[0] + N[4] + N[8]) / 3;
    for (int a = 0; a < 9; a++) {
        B[a] = N[a] - (a % 4 == 0 ? mean : 0);
        square += B[a] * B[a] / 6;
    }
    det = B[0] * (B[4] * B[8] - B[5] * B[5]) - B[1] * (B[1] * B[8] - B[5] * B[2]) +
          B[2] * (B[1] * B[5] - B[4] * B[2]);
    x = 2 * sqrt(square);
    for (int step = 0; step < NEWTON; step++) {
        double slope = 3 * (x * x - square), excess = x * x * x - 3 * square * x - det;
        if (!(slope > 0) || !(excess > 1e-15 * slope * x)) break;
        x -= excess / slope;
    }
    /* u: the longest cross product of two rows of B - x I */
    for (int a = 0; a < 9; a += 4) B[a] -= x;
    for (int a = 0; a < 3; a++) {
        const double *e = B + a * 3, *f = B + (a + 1) % 3 * 3;
        double v[3] = {e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2],
                       e[0] * f[1] - e[1] * f[0]};
        double size = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
        if (!(size > most)) continue;
        most = size;
        for (int b = 0; b < 3; b++) u[b] = v[b];
    }
    if (!(most > 1e-20 * square * square)) { /* two equal eigenvalues */
        double copy[9], work[21], values[3], U[9];
        for (int a = 0; a < 9; a++) copy[a] = N[a];
        if (spca_small_eigen(n, copy, work, values, U) < 0) return -1;
        for (int b = 0; b < 3; b++) u[b] = U[b];
        return values[0];
    }
    x = 0;
    for (int a = 0; a < 9; a++) x += u[a / 3] / most * N[a] * u[a % 3];
    return x;
}

/* c: the combination of the first `count` vectors x with the largest quotient, which is returned;
 * -1 where there is none. */
INLINE double combine(const local_t *s, int count, double *c)
{
    double N[9], M[9], L[9], U[3], best = -1;
    int used[3], n = 0;
    /* L: the Cholesky factor of M; dependent vectors are left out */
    for (int a = 0; a < count; a++) {
        double left = M[a * 3 + a] = joint_dot(s->n, s->x[a], s->Mx[a]), whole = left;
        double row[3] = {0};
        for (int b = 0; b < n; b++) {
            row[b] = joint_dot(s->n, s->x[a], s->Mx[used[b]]);
            for (int l = 0; l < b; l++) row[b] -= row[l] * L[b * 3 + l];
            row[b] /= L[b * 3 + b];
            left -= row[b] * row[b];
        }
        if (!(left > JOINT_SPAN * whole) || !(whole > s->span * joint_dot(s->n, s->x[a], s->x[a])))
            continue;
        row[n] = sqrt(left);
        for (int b = 0; b <= n; b++) L[n * 3 + b] = row[b];
        used[n++] = a;
    }
    for (int a = 0; a < count; a++) c[a] = 0;
    if (n == 0) return best;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) N[a * n + b] = joint_dot(s->n, s->x[used[a]], s->Nx[used[b]]);
    for (int pass = 0; pass < 2; pass++) /* N <- L^-1 N L^-T */
        for (int b = 0; b < n; b++)
            for (int a = 0; a < n; a++) {
                double *e = pass ? N + b * n + a : N + a * n + b;
                for (int l = 0; l < a; l++)
                    *e -= L[a * 3 + l] * (pass ? N[b * n + l] : N[l * n + b]);
                *e /= L[a * 3 + a];
            }
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++) N[a * n + b] = N[b * n + a] = (N[a * n + b] + N[b * n + a]) / 2;
    best = leading(n, N, U);
    if (best < 0) return best;
    for (int a = n - 1; a >= 0; a--) {
        double e = U[a];
        for (int l = a + 1; l < n; l++) e -= L[l * 3 + a] * c[used[l]];
        c[used[a]] = e / L[a * 3 + a];
    }
    return best;
}

/* joint_fitted without regard to signs. */
VECTORIZED_TO(double, fitted_freely,
              (joint_t * o, spca_int n, const spca_int *index, int steps, double level, double *x),
              (o, n, index, steps, level, x))
{
    local_t s = local_of(o, n, index);
    double value = -1, c[3], norm;
    int count = 1, step = 0;
    for (spca_int i = 0; i < n; i++) s.x[0][i] = x[i];
    if (o->apart) keep_apart(o, &s);
    if (o->apart && !(joint_dot(n, s.x[0], s.x[0]) > APART * joint_dot(n, x, x))) return -1;
    apply(&s, 0);
    for (;; step++) {
        double before = value, first, left = 0, size = 0;
        value = combine(&s, count, c);
        if (value < 0) return -1;
        first = c[0];
        for (spca_int i = 0; i < n; i++) { /* the new x, the step to it, and its residual */
            double d = 0, dN = 0, dM = 0;
            for (int a = 1; a < count; a++) {
                d += c[a] * s.x[a][i];
                dN += c[a] * s.Nx[a][i];
                dM += c[a] * s.Mx[a][i];
            }
            s.x[0][i] = first * s.x[0][i] + d;
            s.Nx[0][i] = first * s.Nx[0][i] + dN;
            s.Mx[0][i] = first * s.Mx[0][i] + dM;
            s.x[2][i] = d, s.Nx[2][i] = dN, s.Mx[2][i] = dM;
            s.x[1][i] = s.Nx[0][i] - value * s.Mx[0][i];
            left += s.x[1][i] * s.x[1][i];
            size += s.x[0][i] * s.x[0][i];
        }
        if (step >= steps || left <= 1e-18 * value * value * size) break;
        if (step > 1 && value - before <= (steps > JOINT_STEPS ? LEAST_RISE : SMALL_RISE) * value)
            break;
        if (step > 1 && value + AHEAD * (value - before) < level) break;
        apply(&s, 1);
        count = step == 0 ? 2 : 3;
    }
    norm = sqrt(joint_dot(n, s.x[0], s.x[0]));
    for (spca_int i = 0; i < n; i++) x[i] = s.x[0][i] / norm;
    o->spent += (double)((step + 4) * (n * n + 5 * o->m * n + 12 * n + 500));
    return value;
}

/* Where signs are given, variables whose entries have wrong signs are left out, and the rest is
 * fitted again, until none is. */
double SPCA(joint_fitted)(joint_t *o, spca_int n, const spca_int *index, int steps, double level,
                          double *x)
{
    double value = fitted_freely(o, n, index, steps, level, x);
    spca_int left = n;
    if (!o->of || !o->of->signs) return value;
    while (value >= 0) {
        double balance = 0;
        spca_int m = 0, before = left;
        for (spca_int a = 0; a < n; a++) balance += o->of->signs[index[a]] * x[a] * fabs(x[a]);
        for (spca_int a = 0; a < n; a++) {
            if (balance < 0) x[a] = -x[a];
            if (x[a] * o->of->signs[index[a]] < 0) x[a] = 0;
            if (x[a] == 0) continue;
            o->signed_index[m] = index[a];
            o->signed_x[m++] = x[a];
        }
        left = m;
        if (m == before || m == 0) return m == 0 ? -1 : value;
        value = fitted_freely(o, m, o->signed_index, steps, 0, o->signed_x);
        for (spca_int a = 0, b = 0; a < n; a++)
            if (x[a] != 0) x[a] = o->signed_x[b++];
    }
    return value;
}

void SPCA(joint_apply)(joint_t *o, double rho, spca_int nnz, const spca_int *index, const double *x)
{
    spca_int p = o->p;
    rho *= o->projected;
    add_rows(p, o->A, nnz, index, x, o->score);
    for (spca_int a = 0; a < o->m; a++) {
        const double *q = o->Q + a * p, *f = o->F + a * p;
        double along = 0, across = 0;
        for (spca_int b = 0; b < nnz; b++) {
            along += q[index[b]] * x[b];
            across += f[index[b]] * x[b];
        }
        SPCA(joint_add_used)(o, rho * along - across, q, o->score);
        if (along != 0) add_multiple(p, -along, f, o->score);
    }
    o->spent += (double)((nnz + o->m + 8) * p);
}

/* Whether nothing is missing in a support: it has whole units, all that is included and, without
 * units, as many variables as it may. */
static int complete(joint_t *o, spca_int size, spca_int nnz, const spca_int *index)
{
    const spca_supports *of = o->of;
    if (!of) return nnz == size;
    for (spca_int u = 0; u < of->units; u++) o->kept[u] = of->included[u];
    for (spca_int a = 0; a < nnz; a++) o->kept[of->unit[index[a]]] = 1;
    for (spca_int i = 0, a = 0; i < o->p; i++) {
        int in = a < nnz && index[a] == i;
        if (o->kept[of->unit[i]] && !in) return 0;
        a += in;
    }
    return 1;
}

/* Truncated power from x, whose quotient is `value`; at most `most` steps.  Returns the new
 * quotient. */
static double climb(joint_t *o, double value, int most, spca_int size, spca_int *nnz,
                    spca_int *index, double *x)
{
    int whole = complete(o, size, *nnz, index);
    for (int it = 0; it < most; it++) {
        double new;
        spca_int n;
        SPCA(joint_apply)(o, fmax(value, 0), *nnz, index, x);
        o->near = index, o->n_near = *nnz;
        n = SPCA(joint_select)(o, size, o->score, o->trial, o->entry);
        o->n_near = 0;
        if (whole && joint_same(*nnz, index, n, o->trial)) break;
        new = SPCA(joint_fitted)(o, n, o->trial, JOINT_STEPS, value, o->entry);
        if (new < 0 || (whole && !(new > value * (1 + JOINT_RISE)))) break;
        value = new;
        whole = 1;
        *nnz = n;
        joint_take(n, o->trial, o->entry, index, x);
    }
    return value;
}

/* Completes the support of x and fits it; returns the quotient.  No nonzeros are left, and -1 is
 * returned, where the units of x have no room beside what is included. */
static double completed(joint_t *o, spca_int size, spca_int *nnz, spca_int *index, double *x)
{
    double square = 0;
    spca_int n;
    for (spca_int i = 0; i < o->p; i++) o->score[i] = 0;
    for (spca_int a = 0; a < *nnz; a++) o->score[index[a]] = x[a];
    n = SPCA(joint_select)(o, size, o->score, o->trial, o->entry);
    for (spca_int a = 0; a < n; a++) square += o->entry[a] * o->entry[a];
    *nnz = square > 0 ? n : 0;
    if (*nnz == 0) return -1;
    joint_take(n, o->trial, o->entry, index, x);
    return SPCA(joint_fitted)(o, n, index, JOINT_STEPS, 0, x);
}

double SPCA(joint_ascend)(joint_t *o, spca_int size, int thorough, spca_int *nnz, spca_int *index,
                          double *x)
{
    double value = SPCA(joint_fitted)(o, *nnz, index, thorough ? LAST_STEPS : JOINT_STEPS, 0, x);
    value = climb(o, value, CLIMBS, size, nnz, index, x);
    if (o->of && !complete(o, size, *nnz, index)) value = completed(o, size, nnz, index, x);
    thorough &= size < o->p;
    for (int swap = 0; thorough && value > 0 && swap < SWAPS; swap++) {
        double before = value;
        if (!complete(o, size, *nnz, index)) break;
        value = SPCA(joint_exchanged)(o, value, size, nnz, index, x);
        if (!(value > before * (1 + JOINT_RISE))) break;
        value = climb(o, value, 3, size, nnz, index, x);
    }
    return value;
}
