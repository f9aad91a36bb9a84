/* joint_given.c - what the other loadings take from A, for one that is sought: Q and F, and the
 * diagonals of N and M (joint.h). */
#include "joint.h"

/* Appends to Q the part of loading t that the rows of Q do not span, normalized, and to F its
 * image; nothing where that part is nearly zero. */
static void orthogonalize(joint_t *o, spca_int t)
{
    spca_int p = o->p, m = o->m, n = o->V.nnz[t];
    const spca_int *index = o->V.index + t * o->room;
    const double *x = o->V.value + t * o->room;
    double *q = o->Q + m * p, *f = o->F + m * p, *l = o->L, left = 1, inverse;
    for (spca_int b = 0; b < m; b++) {
        const double *earlier = o->Q + b * p;
        l[b] = 0;
        for (spca_int a = 0; a < n; a++) l[b] += earlier[index[a]] * x[a];
        left -= l[b] * l[b];
    }
    if (left <= JOINT_SPAN) return;
    inverse = 1 / sqrt(left);
    for (spca_int i = 0; i < p; i++) q[i] = f[i] = 0;
    for (spca_int a = 0; a < n; a++) {
        spca_int i = index[a];
        q[i] = x[a] * inverse;
        if (!o->inside[i]) o->used[o->n_used++] = i;
        o->inside[i] = 1;
    }
    SPCA(joint_add)(p, inverse, o->image + t * p, f);
    for (spca_int b = 0; b < m; b++) {
        const double *earlier = o->Q + b * p;
        double along = l[b] * inverse;
        if (along == 0) continue;
        SPCA(joint_add_used)(o, -along, earlier, q);
        SPCA(joint_add)(p, -along, o->F + b * p, f);
    }
    o->m++;
}

/* Under a constraint: Q = C times the others, F = penalty/2 Q, and rest, less the penalties between
 * the others. */
static void penalize(joint_t *o, spca_int t)
{
    spca_int p = o->p, room = o->room;
    int dense = o->constraint == JOINT_UNCORRELATED;
    for (spca_int s = 0; s < o->r; s++) {
        double *q = o->Q + o->m * p, *f = o->F + o->m * p;
        const spca_int *index = o->V.index + s * room;
        const double *x = o->V.value + s * room, *image = o->image + s * p;
        if (s == t || o->V.nnz[s] == 0) continue;
        for (spca_int i = 0; i < p; i++) q[i] = f[i] = 0;
        for (spca_int a = 0; a < o->V.nnz[s]; a++) o->rest += x[a] * image[index[a]];
        for (spca_int u = 0; u < s; u++) {
            double sum = 0;
            if (u == t || o->V.nnz[u] == 0) continue;
            if (!dense) sum = SPCA(joint_product)(o, &o->V, s, u);
            for (spca_int a = 0; dense && a < o->V.nnz[u]; a++)
                sum += o->V.value[u * room + a] * image[o->V.index[u * room + a]] / o->scale;
            o->rest -= o->penalty * sum * sum;
        }
        for (spca_int b = 0; b < (dense ? p : o->V.nnz[s]); b++) {
            spca_int i = dense ? b : index[b];
            q[i] = dense ? image[i] / o->scale : x[b];
            f[i] = o->penalty / 2 * q[i];
            o->variance[i] -= o->penalty * q[i] * q[i];
            if (!o->inside[i]) o->used[o->n_used++] = i;
            o->inside[i] = 1;
        }
        o->m++;
    }
    o->spent += (double)(o->m * 3 * p);
}

void SPCA(joint_apart)(joint_t *o, spca_int t)
{
    spca_int p = o->p, r = o->r;
    o->m = o->n_used = 0;
    o->apart = 1;
    for (spca_int i = 0; i < p; i++) {
        o->variance[i] = o->diagonal[i];
        o->left[i] = 1;
    }
    for (spca_int s = 0; s < r; s++) {
        double *q = o->Q + o->m * p, whole = 0, square = 0;
        const spca_int *index = o->V.index + s * o->room;
        if (s == t || o->V.nnz[s] == 0) continue;
        for (spca_int i = 0; i < p; i++)
            q[i] = o->constraint == JOINT_UNCORRELATED ? o->image[s * p + i] : 0;
        for (spca_int a = 0; o->constraint == JOINT_ORTHOGONAL && a < o->V.nnz[s]; a++)
            q[index[a]] = o->V.value[s * o->room + a];
        whole = joint_dot(p, q, q);
        for (int twice = 0; twice < 2; twice++)
            for (spca_int b = 0; b < o->m; b++)
                SPCA(joint_add)(p, -joint_dot(p, q, o->Q + b * p), o->Q + b * p, q);
        square = joint_dot(p, q, q);
        if (!(square > JOINT_SPAN * whole)) continue;
        for (spca_int i = 0; i < p; i++) q[i] /= sqrt(square);
        o->m++;
    }
    for (spca_int i = 0; i < p && o->m > 0; i++) o->used[o->n_used++] = i;
    for (spca_int a = 0; a < o->m; a++)
        SPCA(joint_image)(o, p, o->used, o->Q + a * p, o->F + a * p);
    for (spca_int a = 0; a < o->m; a++)
        for (spca_int b = 0; b <= a; b++)
            o->C[a * r + b] = o->C[b * r + a] = joint_dot(p, o->Q + a * p, o->F + b * p);
    for (spca_int a = 0; a < o->m; a++) {
        double *f = o->F + a * p;
        const double *q = o->Q + a * p;
        for (spca_int b = 0; b < o->m; b++)
            SPCA(joint_add)(p, -o->C[a * r + b] / 2, o->Q + b * p, f);
        for (spca_int i = 0; i < p; i++) o->variance[i] -= 2 * q[i] * f[i];
    }
    o->spent += (double)(o->m * (3 * o->m + 4) * p);
}

/* F <- AQ - QC/2, rest = Tr C, and the diagonals of N and M, where Q has entries. */
VECTORIZED(take_within, (joint_t * o), (o))
{
    spca_int p = o->p, n = o->n_used, m = o->m;
    double *Q = o->compact, *f = Q + m * n;
    for (spca_int a = 0; a < m; a++) {
        for (spca_int c = 0; c < n; c++) {
            Q[a * n + c] = o->Q[a * p + o->used[c]];
            f[c] = o->F[a * p + o->used[c]];
        }
        for (spca_int b = 0; b <= a; b++)
            o->C[a * m + b] = o->C[b * m + a] = joint_dot(n, Q + b * n, f);
        o->rest += o->C[a * m + a];
    }
    for (spca_int a = 0; a < m; a++) {
        const double *q = Q + a * n;
        for (spca_int c = 0; c < n; c++) f[c] = o->F[a * p + o->used[c]];
        for (spca_int b = 0; b < m; b++) SPCA(joint_add)(n, -o->C[a * m + b] / 2, Q + b * n, f);
        for (spca_int c = 0; c < n; c++) {
            spca_int i = o->used[c];
            o->F[a * p + i] = f[c];
            o->variance[i] -= 2 * q[c] * f[c];
            o->left[i] -= q[c] * q[c];
        }
    }
    for (spca_int c = 0; c < n; c++)
        if (o->left[o->used[c]] <= JOINT_SPAN) o->variance[o->used[c]] = 0;
}

void SPCA(joint_given)(joint_t *o, spca_int t)
{
    spca_int p = o->p, r = o->r;
    o->m = o->n_used = o->apart = 0;
    o->rest = 0;
    for (spca_int i = 0; i < p; i++) {
        o->variance[i] = o->diagonal[i];
        o->left[i] = 1;
        o->inside[i] = 0;
    }
    if (o->constraint) {
        penalize(o, t);
        return;
    }
    for (spca_int s = 0; s < r; s++)
        if (s != t && o->V.nnz[s] > 0) orthogonalize(o, s);
    take_within(o);
    o->spent += (double)(o->m * (o->m + 8) * (p + 4 * o->n_used)) / 4;
}
