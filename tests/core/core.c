/* core.c - trials: where their numbers come from, their memory, and what they compare with. */
#include "core.h"
#include <inttypes.h>

_Thread_local spca_int lapack_fails = -1;

static void keep(arrays_t *a, void *p, size_t bytes)
{
    if (a->count == a->room) {
        a->room = a->room ? 2 * a->room : 64;
        a->at = realloc(a->at, a->room * sizeof *a->at);
        a->bytes = realloc(a->bytes, a->room * sizeof *a->bytes);
    }
    a->bytes[a->count] = bytes;
    a->at[a->count++] = p;
}

static void free_arrays(arrays_t *a)
{
    for (size_t i = 0; i < a->count; i++) free(a->at[i]);
    free(a->at);
    free(a->bytes);
    *a = (arrays_t){0};
}

void trial_end(trial_t *t)
{
    free_arrays(&t->own);
}

void trial_release(trial_t *t, size_t kept)
{
    while (t->own.count > kept) free(t->own.at[--t->own.count]);
}

void inputs_free(trial_t *t)
{
    free_arrays(&t->inputs);
}

void failed(const trial_t *t, const char *file, int line, const char *what)
{
    fprintf(stderr, "%s, trial %" PRIu64 ": %s:%d: not so: %s\n", t->name, t->seed, file, line,
            what);
    abort();
}

/* splitmix64 (Steele, Lea & Flood 2014, OOPSLA) */
uint64_t scramble(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static uint64_t bits(trial_t *t, int bytes)
{
    uint64_t value = 0;
    if (!t->left) return scramble(&t->state);
    for (int i = 0; i < bytes && t->left; i++, t->left--) value = value << 8 | *t->bytes++;
    t->state ^= value; /* what follows the last byte depends on all */
    (void)scramble(&t->state);
    return value;
}

spca_int below(trial_t *t, spca_int n)
{
    return n > 1 ? (spca_int)(bits(t, n > 256 ? 3 : 1) % (uint64_t)n) : 0;
}

spca_int between(trial_t *t, spca_int low, spca_int high)
{
    return low + below(t, high - low + 1);
}

int chance(trial_t *t, int percent)
{
    return below(t, 100) < percent;
}

void digest(trial_t *t, const void *data, size_t size)
{
    const uint8_t *b = data;
    for (size_t i = 0; i < size; i++) t->digest = (t->digest ^ b[i]) * 0x100000001b3U; /* FNV-1a */
}

void digest_int(trial_t *t, spca_int value)
{
    digest(t, &value, sizeof value);
}

void *scratch(trial_t *t, spca_int n, size_t size)
{
    size_t bytes = (size_t)n * size;
    void *p = malloc(bytes);
    if (t->poison >= 0 && bytes) memset(p, t->poison, bytes);
    keep(&t->own, p, bytes);
    return p;
}

void *input(trial_t *t, spca_int n, size_t size, int *fill)
{
    *fill = !t->shared;
    if (!t->shared) keep(&t->inputs, malloc((size_t)n * size), (size_t)n * size);
    return t->inputs.at[t->next++];
}

double *zeros(trial_t *t, spca_int n)
{
    double *x = calloc((size_t)n + 1, sizeof *x);
    keep(&t->own, x, (size_t)n * sizeof *x);
    return x;
}

int stop_at(void *ctx)
{
    stop_t *s = ctx;
    if (s->at >= 0 && s->asked > s->at) abort(); /* once it has said so it is not asked again */
    return s->asked++ == s->at;
}

int backwards(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx)
{
    if (count == 0) return 3; /* threads */
    while (count-- > 0) {
        if (stop && stop(ctx)) return 1;
        task(context, count);
    }
    return 0;
}

static _Thread_local const trial_t *watched;

/* After a part: `before` has the arrays as they were before the loop, and as they are again then;
 * `after` gets what the part has changed. */
static void note_changes(const uint8_t *before, uint8_t *after)
{
    const arrays_t *a = &watched->own;
    for (size_t i = 0; i < a->count; before += a->bytes[i], after += a->bytes[i], i++) {
        uint8_t *now = a->at[i];
        if (a->bytes[i] == 0 || memcmp(now, before, a->bytes[i]) == 0) continue;
        for (size_t b = 0; b < a->bytes[i]; b++) {
            if (now[b] == before[b]) continue;
            CHECK(watched, after[b] == before[b]); /* else parts write to one place */
            after[b] = now[b];
        }
        memcpy(now, before, a->bytes[i]);
    }
}

static int apart_run(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx)
{
    const arrays_t *a = &watched->own;
    size_t total = 1, at = 0;
    uint8_t *before, *after;
    int stopped = 0;
    if (count == 0) return 3; /* threads */
    for (size_t i = 0; i < a->count; i++) total += a->bytes[i];
    before = malloc(total);
    for (size_t i = 0; i < a->count; at += a->bytes[i++])
        if (a->bytes[i]) memcpy(before + at, a->at[i], a->bytes[i]);
    after = malloc(total);
    memcpy(after, before, total - 1);
    for (spca_int part = 0; part < count && !stopped; part++) {
        stopped = stop && stop(ctx);
        if (!stopped) task(context, part);
        note_changes(before, after);
    }
    at = 0;
    for (size_t i = 0; i < a->count; at += a->bytes[i++])
        if (a->bytes[i]) memcpy(a->at[i], after + at, a->bytes[i]);
    free(before);
    free(after);
    return stopped;
}

#ifdef __SANITIZE_THREAD__ /* which sees races by itself, and would take an hour */
enum { SEEN = 1 };
#else
enum { SEEN = 0 };
#endif

spca_run apart(trial_t *t)
{
    watched = t;
    return SEEN || t->poison < 0 ? backwards : apart_run;
}

double number(style_t style, uint64_t b, int single)
{
    static const double odd[] = {(double)NAN, HUGE_VAL, -HUGE_VAL, 0, -0.0, 1, -1, DBL_MAX};
    int most = single ? FLT_MAX_EXP : DBL_MAX_EXP, least = single ? FLT_MIN_EXP : DBL_MIN_EXP;
    int digits = single ? FLT_MANT_DIG : DBL_MANT_DIG;
    double x = (double)(b >> 11) * 0x1p-52 - 1;
    int spin = (int)(b & 2047);
    switch (style) {
    case TIES:
        return spin % 5 - 2;
    case SPARSE:
        return spin % 4 ? 0 : x;
    case SPREAD:
        return ldexp(x, spin % 121 - 60);
    case LARGE:
        return ldexp(x, most - spin % 4);
    case SMALL:
        return ldexp(x, least - spin % (digits + 2) + 2);
    case ANY:
        if (spin % 32 < 8) return spin % 32 == 7 && single ? (double)FLT_MAX : odd[spin % 32];
        return spin % 32 < 20 ? x : ldexp(x, least + spin * (most - least) / 2048);
    default:
        return x;
    }
}

int jacobi(spca_int n, double *G, double *values, double *vectors)
{
    double most = 0, unit;
    int exponent;
    for (spca_int b = 0; b < n; b++)
        for (spca_int a = 0; a < n; a++) {
            if (!isfinite(G[a + b * n])) return 0;
            most = fmax(most, fabs(G[a + b * n]));
            vectors[a + b * n] = a == b;
        }
    (void)frexp(most, &exponent);
    unit = ldexp(1, exponent < -1000 ? 1000 : exponent > 1000 ? -1000 : -exponent);
    for (spca_int a = 0; a < n * n; a++) G[a] *= unit;
    for (int sweep = 0, turned = 1; sweep < 60 && turned; sweep++) {
        turned = 0;
        for (spca_int a = 0; a < n; a++)
            for (spca_int b = a + 1; b < n; b++) {
                double g = G[a + b * n], h = G[b + b * n] - G[a + a * n], theta, c, s;
                if (fabs(g) <= 1e-17 * (fabs(G[a + a * n]) + fabs(G[b + b * n])) ||
                    fabs(g) < 1e-300)
                    continue;
                turned = 1;
                theta = 0.5 * atan2(2 * g, -h);
                if (fabs(theta) > 0.7853981633974484) theta -= copysign(1.5707963267948966, theta);
                c = cos(theta);
                s = sin(theta);
                for (spca_int i = 0; i < n; i++) {
                    double x = G[i + a * n], y = G[i + b * n];
                    G[i + a * n] = c * x + s * y;
                    G[i + b * n] = c * y - s * x;
                    x = vectors[i + a * n];
                    y = vectors[i + b * n];
                    vectors[i + a * n] = c * x + s * y;
                    vectors[i + b * n] = c * y - s * x;
                }
                for (spca_int i = 0; i < n; i++) {
                    double x = G[a + i * n], y = G[b + i * n];
                    G[a + i * n] = c * x + s * y;
                    G[b + i * n] = c * y - s * x;
                }
            }
    }
    for (spca_int a = 0; a < n; a++) values[a] = G[a + a * n] / unit;
    for (spca_int a = 0; a < n; a++) {
        spca_int first = a;
        double x;
        for (spca_int b = a + 1; b < n; b++)
            if (values[b] < values[first]) first = b;
        x = values[a];
        values[a] = values[first];
        values[first] = x;
        for (spca_int i = 0; i < n; i++) {
            x = vectors[i + a * n];
            vectors[i + a * n] = vectors[i + first * n];
            vectors[i + first * n] = x;
        }
    }
    return 1;
}

double largest_eigenvalue(trial_t *t, spca_int p, const double *A, const double *B, spca_int k,
                          const spca_int *index)
{
    double *G = zeros(t, 3 * k * k + k), *L = G + k * k, *V = L + k * k, *values = V + k * k;
    for (spca_int b = 0; b < k; b++)
        for (spca_int a = 0; a < k; a++) {
            G[a + b * k] = A[index[a] + index[b] * p];
            L[a + b * k] = B ? B[index[a] + index[b] * p] : a == b;
        }
    for (spca_int b = 0; b < k; b++) { /* Cholesky: L in the lower triangle */
        for (spca_int l = 0; l < b; l++)
            for (spca_int a = b; a < k; a++) L[a + b * k] -= L[a + l * k] * L[b + l * k];
        L[b + b * k] = sqrt(L[b + b * k]);
        for (spca_int a = b + 1; a < k; a++) L[a + b * k] /= L[b + b * k];
    }
    for (int side = 0; side < 2; side++) /* L^-1 G, transposed: twice */
    {
        for (spca_int b = 0; b < k; b++)
            for (spca_int a = 0; a < k; a++) {
                for (spca_int l = 0; l < a; l++) G[a + b * k] -= L[a + l * k] * G[l + b * k];
                G[a + b * k] /= L[a + a * k];
            }
        for (spca_int b = 0; b < k; b++)
            for (spca_int a = 0; a < b; a++) {
                double x = G[a + b * k];
                G[a + b * k] = G[b + a * k];
                G[b + a * k] = x;
            }
    }
    CHECK(t, jacobi(k, G, values, V));
    return values[k - 1];
}

int next_support(spca_int p, spca_int k, spca_int *index)
{
    spca_int a = k - 1;
    while (a >= 0 && index[a] == p - k + a) a--;
    if (a < 0) return 0;
    index[a]++;
    for (spca_int b = a + 1; b < k; b++) index[b] = index[b - 1] + 1;
    return 1;
}
