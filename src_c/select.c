/* select.c - the k largest entries in magnitude, ties to the lower index.
 *
 * A strided sample gives a level that slightly more than k entries exceed; one pass collects those;
 * partition finds the k-th among them (Floyd & Rivest 1975, in spirit).  If the sample misled, all
 * entries are collected: the answer never depends on it. */
#include "pivot.h"

enum { SAMPLE = 1024 };

static inline void swap(real *a, real *b)
{
    real t = *a;
    *a = *b;
    *b = t;
}

/* The k-th largest (k >= 1) of a (n), which is rearranged: Hoare's partition, descending. */
static real kth(spca_int n, real *a, spca_int k)
{
    spca_int low = 0, high = n - 1, target = k - 1;
    while (low < high) {
        spca_int i = low, j = high;
        real pivot = pivot_of(high - low + 1, a + low);
        while (i <= j) {
            while (a[i] > pivot) i++;
            while (a[j] < pivot) j--;
            if (i <= j) swap(a + i++, a + j--);
        }
        if (target <= j)
            high = j;
        else if (target >= i)
            low = i;
        else
            return a[target];
    }
    return a[target];
}

/* Collects |x| > level into out; without a branch, since it is taken at random. */
static spca_int collect(spca_int p, const real *x, real level, real *out)
{
    spca_int count = 0;
    for (spca_int j = 0; j < p; j++) {
        real a = fabs(x[j]);
        out[count] = a;
        count += a > level;
    }
    return count;
}

real SPCA(kth_largest)(spca_int p, const real *x, spca_int k, real *work, spca_int *ties)
{
    spca_int count = 0, above = 0;
    real level;
    if (p >= 4 * SAMPLE && k < p / 8) {
        real sample[SAMPLE], expected = (real)k * SAMPLE / (real)p;
        spca_int rank = (spca_int)(expected + 3 * sqrt(expected) + 4);
        for (spca_int s = 0; s < SAMPLE; s++) sample[s] = fabs(x[s * (p / SAMPLE)]);
        count = collect(p, x, kth(SAMPLE, sample, rank), work);
        if (count < k) count = 0;
    }
    if (count == 0)
        for (; count < p; count++) work[count] = fabs(x[count]);
    level = kth(count, work, k);
    for (spca_int j = 0; j < count; j++) above += work[j] > level;
    *ties = k - above;
    return level;
}

void SPCA(select_largest)(spca_int p, const real *x, spca_int k, real *work, spca_int *index)
{
    spca_int ties, found = 0;
    real level;
    if (k == 0) return;
    level = SPCA(kth_largest)(p, x, k, work, &ties);
    for (spca_int j = 0; j < p; j++) {
        real a = fabs(x[j]);
        if (a >= level && (a > level || ties-- > 0)) index[found++] = j;
    }
}

void SPCA(truncate)(spca_int p, spca_int k, real *x, real *work)
{
    spca_int ties = 0;
    real level = INFINITY;
    if (k == p) return;
    if (k > 0) level = SPCA(kth_largest)(p, x, k, work, &ties);
    for (spca_int j = 0; j < p; j++) {
        real a = fabs(x[j]);
        if (!(a > level || (a == level && ties-- > 0))) x[j] = 0;
    }
}
