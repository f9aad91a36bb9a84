/* select.c - the k largest entries in magnitude, ties to the lower index.
 *
 * Two entries of a sample enclose the k-th largest with high probability.  One pass counts the
 * entries above and collects those within, and partition finds the k-th among these (Floyd & Rivest
 * 1975, Comm. ACM 18(3)).  Where k is a large share of p, a sample leaves many entries within.
 * Then a pass that only counts comes first, at a level of the sample, and the sample only tells how
 * far that level is from the k-th largest.  If the sample misled, all entries are collected: the
 * answer never depends on it.  Of few entries, the largest of groups of them bound the k-th from
 * below. */
#include "pivot.h"
#include <assert.h>
#include <string.h>

enum {
    LANES = 64 / sizeof(real),
    BLOCK = 16 * LANES,
    LEAST = 1024, /* the sample has at least LEAST entries, and at most MOST */
    MOST = 4 * LEAST,
    FEW = 32,    /* an interval of FEW ranks of the sample is worth collecting */
    ROOM = 1024, /* entries above a level that are kept with their places */
    FIRST_BIT = 8 * sizeof(real) - 2, /* the highest bit after the sign */
    /* bits of a rough level: the exponent and a few more */
    ROUGH_BITS = 4 + 10 * sizeof(real) / sizeof(float),
    /* BY_BITS numbers or fewer are counted bit by bit sooner than they are partitioned; time grows
     * with bits, and falls with lanes */
    BY_BITS = 65536 / (sizeof(real) * sizeof(real)),
    GROUPED = 32768 /* up to GROUPED entries, the maxima of BLOCK groups bound the k-th well */
};

/* Exchanges a and b. */
static inline void swap(real *a, real *b)
{
    real t = *a;
    *a = *b;
    *b = t;
}

/* The largest number that at least k of a (n, not negative) reach, among numbers with zeros after
 * their first `places` bits.  Numbers that are not negative have the order of their bits, so each
 * bit from the first on is set where k numbers still reach the result. */
VECTORIZED_TO(real, reached_by_bits, (spca_int n, const real *a, spca_int k, int places),
              (n, a, k, places))
{
    whole level = 0;
    real value;
    for (int place = FIRST_BIT; place > FIRST_BIT - places; place--) {
        whole next = level | (whole)1 << place, many = 0;
        for (spca_int i = 0; i < n; i++) {
            whole bits;
            memcpy(&bits, a + i, sizeof bits);
            many += bits >= next;
        }
        if ((spca_int)many >= k) level = next;
    }
    memcpy(&value, &level, sizeof value);
    return value;
}

/* The k-th largest (1 <= k <= n) of a, which is rearranged: Hoare's partition, descending. */
static real kth(spca_int n, real *a, spca_int k)
{
    spca_int low = 0, high = n - 1, target = k - 1;
    assert(k >= 1 && k <= n);
    if (n <= BY_BITS) return reached_by_bits(n, a, k, FIRST_BIT + 1);
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

/* BLOCK entries of x from start on.  Where x ends before, they are in room[BLOCK] with NaN after
 * them, which is in no interval. */
static inline const real *block(spca_int p, const real *x, spca_int start, real *room)
{
    if (p - start >= BLOCK) return x + start;
    for (int i = 0; i < BLOCK; i++) room[i] = i < p - start ? x[start + i] : (real)NAN;
    return room;
}

/* Adds the number of |x| > level to *above and of |x| == level to *equal.  Ends at the block in
 * which *equal would reach `enough`, without it, and returns where that begins. */
VECTORIZED_TO(spca_int, count,
              (spca_int p, const real *x, real level, spca_int enough, spca_int *above,
               spca_int *equal),
              (p, x, level, enough, above, equal))
{
    spca_int start = 0;
    for (; start < p; start += BLOCK) {
        real room[BLOCK];
        const real *y = block(p, x, start, room);
        whole more[LANES] = {0}, same[LANES] = {0}, a = 0, b = 0;
        for (int i = 0; i < BLOCK; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) {
                more[l] += fabs(y[i + l]) > level;
                same[l] += fabs(y[i + l]) == level;
            }
        for (int l = 0; l < LANES; l++) {
            a += more[l];
            b += same[l];
        }
        if (*equal + b >= enough) break;
        *above += (spca_int)a;
        *equal += (spca_int)b;
    }
    return start;
}

/* Writes the |x| with low < |x| < high to out and returns how many; adds the number of |x| >= high
 * to *above. */
VECTORIZED_TO(spca_int, collect,
              (spca_int p, const real *x, real low, real high, real *out, spca_int *above),
              (p, x, low, high, out, above))
{
    spca_int found = 0;
    for (spca_int start = 0; start < p; start += BLOCK) {
        real room[BLOCK];
        const real *y = block(p, x, start, room);
        whole more[LANES] = {0}, within[LANES] = {0}, a = 0, any = 0;
        for (int i = 0; i < BLOCK; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) {
                real b = fabs(y[i + l]);
                more[l] += b >= high;
                within[l] += (b > low) & (b < high);
            }
        for (int l = 0; l < LANES; l++) {
            a += more[l];
            any |= within[l];
        }
        *above += (spca_int)a;
        if (!any) continue;
        for (int l = 0; l < LANES; l++) {
            if (!within[l]) continue;
            for (int i = l; i < min_int(BLOCK, p - start);
                 i += LANES) { /* without a branch, which nobody could predict */
                real b = fabs(y[i]);
                out[found] = b;
                found += (b > low) & (b < high);
            }
        }
    }
    return found;
}

/* Entries *low <= *high of a sample that most likely enclose the k-th largest; an end that the
 * sample does not have stays as it was.  sample (MOST). */
static void enclose(spca_int p, const real *x, spca_int k, real *sample, real *low, real *high)
{
    /* ranks in a sample vary by the root of rank (1 - k/p): the margin is 4 plus three times that
     */
    spca_int wanted = p / 64 < LEAST ? LEAST : min_int(p / 64, MOST);
    spca_int stride = (p + wanted - 1) / wanted, size = p / stride, above = 0, equal = 0;
    double share = (double)size / (double)p, rank = share * (double)k;
    double margin = 4 + 3 * sqrt(rank * (1 - (double)k / (double)p));
    for (spca_int s = 0; s < size; s++) sample[s] = fabs(x[s * stride + s % stride]);
    if (margin > FEW) {
        real level = kth(size, sample, (spca_int)rank);
        count(p, x, level, p + 1, &above, &equal);
        rank = (double)(k - above) * share;
        margin = 4 + 2 * sqrt(fabs(rank));
        for (spca_int s = 0; s < size; s++) rank += sample[s] > level;
        /* a sample that misleads may leave the rank outside */
        rank = fmin(fmax(rank, 1), (double)size);
    }
    if (rank + margin <= (double)size) *low = kth(size, sample, (spca_int)(rank + margin));
    if (rank - margin >= 1) *high = kth(size, sample, (spca_int)(rank - margin));
}

/* A level that at least k of |x| reach: nearly the k-th largest of the maxima of at least 4k
 * groups, since each of the k groups has an entry that reaches it.  most (max(4k, BLOCK)): scratch.
 */
VECTORIZED_TO(real, reached_by, (spca_int p, const real *x, spca_int k, real *restrict most),
              (p, x, k, most))
{
    spca_int groups = 4 * k, start = 0;
    if (groups < BLOCK && p >= 8 * BLOCK) groups = BLOCK;
    for (spca_int g = 0; g < groups; g++) most[g] = -1;
    for (; groups == BLOCK && start + BLOCK <= p; start += BLOCK)
#pragma omp simd
        for (int g = 0; g < BLOCK; g++) {
            real size = fabs(x[start + g]);
            most[g] = size > most[g] ? size : most[g];
        }
    for (; start < p; start += groups)
        for (spca_int g = 0; g < min_int(groups, p - start); g++) {
            real size = fabs(x[start + g]);
            most[g] = size > most[g] ? size : most[g];
        }
    return reached_by_bits(groups, most, k, ROUGH_BITS);
}

real SPCA(kth_largest)(spca_int p, const real *x, spca_int k, real *work, spca_int *ties)
{
    real low = -1, high = (real)INFINITY, level;
    spca_int above = 0, within, more = 0, equal = 0;
    if (p >= 4 * LEAST)
        enclose(p, x, k, work, &low, &high); /* p >= MOST */
    else if (p >= 8 * k)
        low = reached_by(p, x, k, work);
    within = collect(p, x, low, high, work, &above);
    /* the k-th ties with an end of the interval, or the sample misled */
    if (k <= above || k > above + within) {
        level = k <= above ? high : low;
        count(p, x, level, p + 1, &more, &equal);
        if (k > more && k <= more + equal) {
            *ties = k - more;
            return level;
        }
        above = 0;
        within = collect(p, x, -1, (real)INFINITY, work, &above);
    }
    *ties = 0;
    /* NaN is in no interval, so all others are among the largest */
    if (k > above + within) return -1;
    level = kth(within, work, k - above);
    *ties = k - above;
    for (spca_int j = 0; j < within; j++) *ties -= work[j] > level;
    return level;
}

/* Whether any |x| >= level; n <= BLOCK. */
VECTORIZED_TO(int, reached, (spca_int n, const real *x, real level), (n, x, level))
{
    whole hits = 0;
    for (spca_int i = 0; i < n; i++) hits |= fabs(x[i]) >= level;
    return hits != 0;
}

/* hit_i: whether |x_i| >= level; returns whether any is; n <= BLOCK. */
VECTORIZED_TO(int, hits, (spca_int n, const real *x, real level, uint8_t *hit), (n, x, level, hit))
{
    uint8_t any = 0;
    for (spca_int i = 0; i < n; i++) {
        hit[i] = fabs(x[i]) >= level;
        any |= hit[i];
    }
    return any;
}

/* The place after the first `ties` entries with |x| == level. */
static spca_int end_of_ties(spca_int p, const real *x, real level, spca_int ties)
{
    spca_int above = 0, equal = 0, j = count(p, x, level, ties, &above, &equal);
    for (; j < p && equal < ties; j++) equal += fabs(x[j]) == level;
    return j;
}

/* select_largest by the level of the k-th largest, then another pass: all above the level, and the
 * first of those at it. */
static void select_by_level(spca_int p, const real *x, spca_int k, real *work, spca_int *index)
{
    spca_int ties, end, found = 0;
    real level = SPCA(kth_largest)(p, x, k, work, &ties);
    end = end_of_ties(p, x, level, ties);
    for (spca_int start = 0; start < p && found < k; start += BLOCK) {
        spca_int stop = min_int(start + BLOCK, p);
        if (!reached(stop - start, x + start, level)) continue;
        for (spca_int j = start; j < stop && found < k; j++) {
            real size = fabs(x[j]);
            index[found] = j;
            found += (size > level) | ((size == level) & (j < end));
        }
    }
    for (spca_int j = 0; found < k; j++) { /* the others are NaN */
        index[found] = j;
        found += isnan(x[j]) != 0;
    }
}

/* Keeps the entries that reach the level, most often few more than k, with their places, and takes
 * the largest of them.  A level that too many or too few entries reach costs only time. */
void SPCA(select_reaching)(spca_int p, const real *x, spca_int k, real level, real *work,
                           spca_int *index)
{
    spca_int place[ROOM], n = 0, ties = k, found = 0;
    if (k == 0) return;
    for (spca_int start = 0; start < p; start += BLOCK) {
        spca_int length = min_int(BLOCK, p - start);
        uint8_t hit[BLOCK] = {0};
        if (!hits(length, x + start, level, hit)) continue;
        if (n + length > ROOM) n = p + 1; /* more than there is room for */
        if (n > p) break;
        for (spca_int i = 0; i < length; i += 8) {
            uint64_t any;
            memcpy(&any, hit + i, 8);
            if (any == 0) continue;
            /* without a branch, which nobody could predict */
            for (spca_int j = i; j < min_int(i + 8, length); j++) {
                work[n] = fabs(x[start + j]);
                place[n] = start + j;
                n += hit[j];
            }
        }
    }
    if (n < k || n > p) {
        select_by_level(p, x, k, work, index);
        return;
    }
    if (n > k) {
        level = kth(n, work, k);
        for (spca_int a = 0; a < n; a++) ties -= work[a] > level;
    }
    /* the largest, and the first of those that tie */
    for (spca_int a = 0; a < n && found < k; a++) {
        real size = fabs(x[place[a]]);
        spca_int tied = n > k && size == level;
        index[found] = place[a];
        found += n == k || size > level || (tied && ties > 0);
        ties -= tied;
    }
}

/* Where few are wanted of few entries, a rough level comes sooner than the k-th largest. */
void SPCA(select_largest)(spca_int p, const real *x, spca_int k, real *work, spca_int *index)
{
    if (k == 0) return;
    if (p >= 8 * k && (p < 4 * LEAST || (4 * k <= BLOCK && p <= GROUPED)))
        SPCA(select_reaching)(p, x, k, reached_by(p, x, k, work), work, index);
    else
        select_by_level(p, x, k, work, index);
}

/* norm_i = ||T_k(a_j)|| for j = row_i: the norm of the k entries of row j of A that are largest in
 * magnitude. */
void SPCA(largest_norms)(spca_int p, spca_int k, spca_int rows, const spca_int *row, const real *A,
                         real *work, spca_int *iwork, real *norm)
{
    for (spca_int i = 0; i < rows; i++) {
        const real *a = A + row[i] * p;
        real square = 0;
        SPCA(select_largest)(p, a, k, work, iwork);
        for (spca_int j = 0; j < k; j++) square += a[iwork[j]] * a[iwork[j]];
        norm[i] = sqrt(square);
    }
}

/* x_j <- 0 where |x_j| is below the level and, from `end` on, where it is at the level. */
VECTORIZED(keep_above, (spca_int p, spca_int end, real level, real *x), (p, end, level, x))
{
    for (spca_int j = 0; j < end; j++) x[j] = fabs(x[j]) >= level ? x[j] : 0;
    for (spca_int j = end; j < p; j++) x[j] = fabs(x[j]) > level ? x[j] : 0;
}

void SPCA(truncate)(spca_int p, spca_int k, real *x, real *work)
{
    spca_int ties = 0;
    real level = (real)INFINITY;
    if (k == p) return;
    if (k > 0) level = SPCA(kth_largest)(p, x, k, work, &ties);
    keep_above(p, end_of_ties(p, x, level, ties), level, x);
}
