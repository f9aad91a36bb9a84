/* joint.c - several sparse loadings that explain much together.
 *
 * A move changes one of the best loadings known, or begins anew; then each loading in turn ascends
 * given the others (joint_column.c), until none gains.  These are the moves:
 *     - loadings are sought again from single variables;
 *     - some variables of a support are replaced;
 *     - some loadings are rotated within their span and truncated, after which one may be sought
 *       again, so that another has what both had;
 *     - the loadings of two members of the population are combined.
 * The first moves begin from loadings sought in turn, from the leading subspace after varimax, and
 * from random rotations of it. */
#include "joint.h"

#define RISE 1e-7         /* share of what is explained by which loadings count as different */
#define BEHIND 2e-2       /* share below the best from which on an ascent is given up */
#define SLOW 1e-3         /* share that a sweep must gain, or its step goes on (joint_further) */
#define DRIFT 1e-7        /* a loading is skipped where the others moved by less (squared sines) */
#define OVERHEAD 3000     /* multiplications that take as long as an ascent beside its products */
#define HOPE 20           /* later sweeps may gain HOPE times what this one did */
#define FIRST_PENALTY 0.1 /* over the mean variance of the loadings */
#define LAST_PENALTY 5
#define GROWTH 1.7
enum { SWEEPS = 60, LAST_SWEEPS = 3, FIRST_MOVES = 15, GREEDY_STARTS = 16, APART_STARTS = 64 };

/* The loadings at a place of the population. */
static loadings_t member(const joint_search_t *s, spca_int place)
{
    spca_int r = s->o.r, room = s->o.room;
    loadings_t V = s->population;
    V.nnz += place * r;
    V.index += place * r * room;
    V.value += place * r * room;
    return V;
}

/* Copies all loadings. */
static void copy_all(const joint_search_t *s, loadings_t from, loadings_t to)
{
    for (spca_int t = 0; t < s->o.r; t++) joint_copy(&s->o, &from, t, &to, t);
}

/* The image A v of loading t. */
static void renew_image(joint_search_t *s, spca_int t)
{
    joint_t *o = &s->o;
    SPCA(joint_image)(o, o->V.nnz[t], o->V.index + t * o->room, o->V.value + t * o->room,
                      o->image + t * o->p);
}

/* ---- ascent --------------------------------------------------------------------------------- */

/* Raises loading t given the others; returns what all explain. */
static double ascend_one(joint_search_t *s, spca_int t, int thorough)
{
    joint_t *o = &s->o;
    spca_int *nnz = o->V.nnz + t, *index = o->V.index + t * o->room;
    double *x = o->V.value + t * o->room, value;
    SPCA(joint_given)(o, t);
    value = *nnz > 0 ? SPCA(joint_ascend)(o, o->size[t], thorough, nnz, index, x) : -1;
    if (value <= 0) { /* it lies in the span of the others: begin with the variable that alone has
                         the largest quotient */
        double most = -1;
        for (spca_int i = 0; i < o->p; i++) {
            double alone = o->left[i] > JOINT_SPAN ? o->variance[i] / o->left[i] : 0;
            if (!(alone > most * (1 + RISE))) continue;
            most = alone;
            index[0] = i;
        }
        *nnz = 1;
        x[0] = joint_sign(o, index[0]);
        value = fmax(SPCA(joint_ascend)(o, o->size[t], thorough, nnz, index, x), 0);
    }
    renew_image(s, t);
    o->spent += OVERHEAD;
    return o->rest + value;
}

/* Sets the penalty on what the constraint forbids, as a share of the mean variance of the loadings.
 */
static void penalize(joint_search_t *s, double share)
{
    joint_t *o = &s->o;
    double sum = 0;
    for (spca_int t = 0; t < o->r; t++)
        for (spca_int a = 0; a < o->V.nnz[t]; a++)
            sum += o->V.value[t * o->room + a] * o->image[t * o->p + o->V.index[t * o->room + a]];
    if (sum > 0) o->scale = sum / (double)o->r;
    o->penalty = share * o->scale;
}

/* Raises all loadings in turn while the penalty grows, and then moves them to where they meet the
 * constraint; *explained = -1 where that fails. */
static spca_status ascend_constrained(joint_search_t *s, double bar, double share,
                                      double *explained)
{
    joint_t *o = &s->o;
    double before = 0, value = 0;
    int last = 0, empty = 0;
    for (spca_int t = 0; t < o->r; t++) renew_image(s, t);
    for (penalize(s, share); last < LAST_SWEEPS; share *= GROWTH) {
        if (share >= LAST_PENALTY) last++;
        o->penalty = fmin(share, LAST_PENALTY) * o->scale;
        joint_permute(s, o->r);
        for (spca_int a = 0; a < o->r; a++) {
            if (asked_to_stop(o->stop, o->ctx)) return SPCA_STOPPED;
            value = ascend_one(s, s->order[a], last > 0);
        }
        if (last > 1 && !(value > before * (1 + RISE))) break;
        before = value;
    }
    for (spca_int t = 0; t < o->r; t++) empty |= o->V.nnz[t] == 0;
    *explained = -1;
    return empty ? SPCA_OK : SPCA(joint_settle)(o, bar, explained);
}

/* Raises the given loadings where they nearly meet the constraint; else all ascend by penalties. */
static spca_status settle_given(joint_search_t *s, double *explained)
{
    joint_t *o = &s->o;
    spca_int r = o->r;
    for (spca_int t = 0; t < r; t++) renew_image(s, t);
    penalize(s, 1);
    for (spca_int t = 0; t < r; t++) joint_copy(&s->o, &o->V, t, &o->V, r + t);
    spca_status status = SPCA(joint_settle)(o, 0, explained);
    if (status < 0 || *explained >= 0) return status;
    for (spca_int t = 0; t < r; t++) joint_copy(&s->o, &o->V, r + t, &o->V, t);
    return ascend_constrained(s, 0, FIRST_PENALTY, explained);
}

/* Whether the loadings have the supports of a member of the population, in any order. */
static int known(const joint_search_t *s)
{
    const joint_t *o = &s->o;
    for (spca_int place = 0; place < *s->held; place++) {
        loadings_t other = member(s, place);
        spca_int t = 0;
        for (int found = 1; t < o->r && found; t += found) {
            found = 0;
            for (spca_int u = 0; u < o->r && !found; u++)
                found = joint_same(o->V.nnz[t], o->V.index + t * o->room, other.nnz[u],
                                   other.index + u * o->room);
        }
        if (t == o->r) return 1;
    }
    return 0;
}

/* Loading t has ascended: adds how far it went since the sweep began (the squared sine) to the
 * drift of the others. */
static void tell_others(joint_t *o, spca_int t)
{
    const spca_int *index = o->V.index + t * o->room, n = o->V.nnz[t];
    const double *x = o->V.value + t * o->room, *before = x + o->r * o->room;
    double along = 0, moved = 1;
    if (joint_same(n, index, o->V.nnz[o->r + t], index + o->r * o->room)) {
        for (spca_int a = 0; a < n; a++) along += x[a] * before[a];
        moved = fmax(1 - along * along, 0);
    }
    for (spca_int s = 0; s < o->r; s++) o->drift[s] += moved;
    o->drift[t] = 0;
}

/* Raises all loadings in turn until none gains, then with exchanges, and so on until these gain
 * nothing.  It gives up where that stays behind the bar.  *explained = -1 where the loadings became
 * a member's. */
static spca_status ascend_all(joint_search_t *s, double bar, double *explained)
{
    joint_t *o = &s->o;
    spca_int r = o->r;
    int thorough = 0, signs = o->of && o->of->signs;
    *explained = 0;
    for (spca_int t = 0; t < r; t++) {
        renew_image(s, t);
        o->drift[t] = 1;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double before = *explained, gain;
        for (spca_int t = 0; t < r; t++) {
            joint_copy(&s->o, &o->V, t, &o->V, r + t);
            for (spca_int i = 0; i < o->p; i++)
                o->image[(r + t) * o->p + i] = o->image[t * o->p + i];
        }
        joint_permute(s, r);
        for (spca_int a = 0; a < r; a++) {
            spca_int t = s->order[a];
            if (asked_to_stop(o->stop, o->ctx)) return SPCA_STOPPED;
            if (o->drift[t] < DRIFT && (!thorough || s->thorough[t])) continue;
            *explained = ascend_one(s, t, thorough);
            tell_others(o, t);
            s->thorough[t] = thorough;
        }
        if (sweep > 0 && !signs && *explained - before < SLOW * *explained)
            *explained = SPCA(joint_further)(s, *explained);
        gain = *explained - before;
        if (sweep > 0 && *explained < bar * (1 - BEHIND)) break;
        if (*explained < bar && known(s)) {
            *explained = -1;
            break;
        }
        if (thorough && !(gain > RISE * *explained)) break;
        if (thorough && *explained + HOPE * gain < bar) break;
        thorough = !(gain > RISE * *explained) || (sweep > 1 && *explained + HOPE * gain < bar);
    }
    return SPCA_OK;
}

/* Adds the loadings to the population, in their place by what they explain, unless a member
 * explains the same; returns whether they are the best. */
static int join(joint_search_t *s, double explained)
{
    spca_int place = *s->held;
    for (spca_int a = 0; a < *s->held; a++)
        if (fabs(s->explained[a] - explained) <= RISE * s->explained[0]) {
            if (!(explained > s->explained[a])) return 0;
            copy_all(s, s->o.V, member(s, a)); /* the same loadings, but for their last digits */
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

/* promise_i, computed once: the squared norm of the largest covariances of variable i, over its
 * squared variance. */
static void promise(joint_search_t *s)
{
    joint_t *o = &s->o;
    for (spca_int i = 0; i < o->p; i++)
        if (s->promise[i] > 0) return; /* they are known */
    for (spca_int i = 0; i < o->p; i++) {
        double *x = o->entry, square = 0;
        spca_int n;
        for (spca_int j = 0; j < o->p; j++) o->score[j] = (double)o->A[i * o->p + j];
        n = SPCA(joint_select)(o, o->size[0], o->score, o->trial, x);
        for (spca_int a = 0; a < n; a++) square += x[a] * x[a];
        s->promise[i] = o->diagonal[i] > 0 ? square / (o->diagonal[i] * o->diagonal[i]) : 0;
    }
    o->spent += 4 * (double)o->p * (double)o->p;
}

/* A random variable.  It is the more likely, the larger its variance; beside: the larger its
 * variance given the others and, without a constraint, its promise. */
static spca_int drawn(joint_search_t *s, int beside)
{
    joint_t *o = &s->o;
    double total = 0, at;
    for (spca_int i = 0; i < o->p; i++) {
        double w = o->diagonal[i];
        if (beside) {
            w = o->left[i] > JOINT_SPAN ? o->variance[i] / o->left[i] : 0;
            w = w > 0 ? w * w : 0;
            if (!o->constraint) w *= s->promise[i] * s->promise[i];
        }
        total += fmax(w, 0.0);
        o->gain[i] = total;
    }
    at = joint_uniform(s) * total;
    for (spca_int i = 0; i < o->p - 1; i++)
        if (at < o->gain[i]) return i;
    return o->p - 1;
}

/* Seeks the first `count` loadings of the order again, one after another, each from `starts` random
 * variables, and keeps the best.  Under a constraint it is sought apart from the others, and from
 * random vectors, too. */
static void regrow(joint_search_t *s, spca_int count, spca_int starts)
{
    joint_t *o = &s->o;
    for (spca_int a = 0; a < count; a++) o->V.nnz[s->order[a]] = 0;
    for (spca_int a = 0; a < count; a++) {
        spca_int t = s->order[a], nnz, found = 0, *index = o->V.index + t * o->room;
        double *x = o->V.value + t * o->room, most = -1;
        spca_int *best = o->list;
        double *entries = o->entry + 2 * o->room;
        if (o->constraint)
            SPCA(joint_apart)(o, t);
        else
            SPCA(joint_given)(o, t);
        for (spca_int b = 0; b < starts; b++) {
            double value;
            nnz = 1;
            if (o->constraint && joint_below(s, 2)) {
                for (spca_int i = 0; i < o->p; i++) o->score[i] = joint_centered(s);
                SPCA(joint_truncate)(s, t, o->score);
                nnz = o->V.nnz[t];
            } else {
                index[0] = drawn(s, 1);
                x[0] = joint_sign(o, index[0]);
            }
            value = SPCA(joint_ascend)(o, o->size[t], 0, &nnz, index, x);
            if (!(value > most * (1 + RISE))) continue;
            most = value;
            found = nnz;
            joint_take(nnz, index, x, best, entries);
        }
        o->V.nnz[t] = found;
        joint_take(found, best, entries, index, x);
        if (o->constraint && starts > GREEDY_STARTS)
            (void)SPCA(joint_ascend)(o, o->size[t], 1, o->V.nnz + t, index, x);
        renew_image(s, t);
    }
}

/* Replaces up to a third of the variables of some loadings by random ones. */
static void replace_some(joint_search_t *s)
{
    joint_t *o = &s->o;
    spca_int count;
    joint_permute(s, o->r);
    count = 1 + joint_below(s, o->r);
    for (spca_int a = 0; a < count; a++) {
        spca_int t = s->order[a], n = o->V.nnz[t], some = 1 + joint_below(s, n / 3 > 1 ? n / 3 : 1);
        const spca_int *index = o->V.index + t * o->room;
        for (spca_int i = 0; i < o->p; i++) o->score[i] = 0;
        for (spca_int b = 0; b < n; b++) o->score[index[b]] = o->V.value[t * o->room + b];
        for (spca_int b = 0; b < some && n > 0; b++) {
            spca_int i = drawn(s, 0);
            o->score[index[joint_below(s, n)]] = 0;
            if (o->score[i] == 0) o->score[i] = 0.2 * joint_centered(s);
        }
        SPCA(joint_truncate)(s, t, o->score);
    }
}

/* Two or three loadings become random rotations of their images, truncated. */
static void rotate(joint_search_t *s)
{
    joint_t *o = &s->o;
    spca_int n = o->r > 2 && joint_below(s, 4) == 0 ? 3 : 2;
    joint_permute(s, o->r);
    SPCA(joint_rotation)(s, n, s->T);
    for (spca_int a = 0; a < n; a++) renew_image(s, s->order[a]);
    for (spca_int a = 0; a < n; a++) {
        for (spca_int i = 0; i < o->p; i++) {
            o->score[i] = 0;
            for (spca_int b = 0; b < n; b++)
                o->score[i] += s->T[a * n + b] * o->image[s->order[b] * o->p + i];
        }
        SPCA(joint_truncate)(s, s->order[a], o->score);
    }
}

/* Makes the loadings that move number `number` begins from. */
static spca_status move(joint_search_t *s, spca_int number)
{
    joint_t *o = &s->o;
    spca_int r = o->r, l = min_int(o->p, 2 * r), held = *s->held, which, parent, count;
    /* one more chance for replaced variables, which gain most often */
    spca_int more = o->constraint ? 0 : 1;
    o->apart = 0;
    if (number == 0) {
        spca_status status = SPCA(joint_subspace)(s, l, o->image);
        if (status < 0) return status;
    }
    /* the first moves begin anew: from single variables, or from the leading subspace */
    if (number < FIRST_MOVES || held == 0) {
        joint_permute(s, r);
        if (o->constraint) {
            for (spca_int t = 0; t < r; t++) o->V.nnz[t] = 0;
            if (s->eigenvalue[0] > 0) o->scale = s->eigenvalue[0];
            o->penalty = o->scale;
        }
        if (number == 0 || (number > 2 && (number % 3 == 2 || o->constraint))) {
            regrow(s, r, number > 0 ? 1 : o->constraint ? APART_STARTS : GREEDY_STARTS);
            return SPCA_OK;
        }
        return SPCA(joint_from_subspace)(s, number < 2 || number % 3 == 1, number < 3, l);
    }
    /* the others begin from a member, the better ones more often, and change it */
    for (parent = 0; parent < held - 1 && joint_uniform(s) < 0.6;) parent++;
    which = joint_below(s, (held > 1 ? 5 : 4) + more) - more;
    if (which < 0) which = 2;
    copy_all(s, member(s, parent), o->V);
    for (spca_int t = 0; t < r && (which < 2 || o->constraint); t++) renew_image(s, t);
    joint_permute(s, r);
    count = r > 2 ? 2 + joint_below(s, (r > 3 ? r / 2 + 1 : 3) - 2) : r;
    if (o->constraint) penalize(s, 1);
    if (which == 0)
        regrow(s, 1, 1 + joint_below(s, 4));
    else if (which == 1)
        regrow(s, count, 1 + joint_below(s, 3));
    else if (which == 2)
        replace_some(s);
    else if (which == 3 && r > 1) {
        rotate(s);
        if (r < 3 || o->constraint || joint_below(s, 2)) return SPCA_OK;
        for (spca_int t = 0; t < r; t++) renew_image(s, t);
        regrow(s, 1, 1 + joint_below(s, 4));
    } else if (which == 4)
        SPCA(joint_combine)(s, member(s, (parent + 1 + joint_below(s, held - 1)) % held));
    return SPCA_OK;
}

spca_int SPCA(joint_work)(spca_int p, spca_int r, spca_int room, int constraint,
                          const spca_supports *of)
{
    spca_int m = constraint ? r * (r + 1) / 2 : 0, n = constraint ? joint_within(p, r, room) : 0;
    return n * n + (m + 3) * m + (constraint ? 4 * r * room : 0) + (5 * r + 5) * p + 14 * r * r +
           9 * r + (room + 4 * r + 13) * room + (of ? 2 * p + spca_unit_work(of, p) : 0);
}

spca_int SPCA(joint_iwork)(spca_int p, spca_int r, spca_int room)
{
    return 3 * p + 7 * r + (3 * r + 4) * room + r * (r + 1) / 2;
}

/* The first penalty of a move: small for loadings that begin anew, else FIRST_PENALTY times 1, 3, 9
 * or 27. */
static double first_penalty(joint_search_t *s)
{
    double share = FIRST_PENALTY;
    for (spca_int a = *s->held > 0 ? joint_below(s, 4) : 0; a > 0; a--) share *= 3;
    return share;
}

/* Cuts the caller's scratch into arrays. */
static void divide(joint_search_t *s, double *work, spca_int *iwork)
{
    joint_t *o = &s->o;
    spca_int p = o->p, r = o->r, room = o->room;
    /* one loading given others */
    o->image = work, work += 2 * r * p;
    o->Q = work, work += r * p;
    o->F = work, work += r * p;
    o->compact = work, work += r * p;
    o->variance = work, work += p;
    o->left = work, work += p;
    o->score = work, work += p;
    o->row = work, work += p;
    o->gain = work, work += p;
    o->C = work, work += r * r;
    o->L = work, work += r * r;
    /* pools of 2r loadings */
    s->G = work, work += 4 * r * r;
    s->H = work, work += 4 * r * r;
    s->T = work, work += 4 * r * r + 8 * r;
    /* loadings, and supports that are tried */
    o->drift = work, work += r;
    o->V.value = work, work += 2 * r * room;
    o->entry = work, work += 3 * room;
    o->fit = work, work += (room + 2 * r + 9) * room;
    o->signed_x = work, work += room;
    /* what a constraint needs */
    if (o->constraint) {
        spca_int m = r * (r + 1) / 2;
        o->K = work, work += m * m;
        o->error = work, work += m;
        o->multiplier = work, work += m;
        o->gradient = work, work += r * room;
        o->direction = work, work += r * room;
        o->earlier = work, work += r * room;
        o->moved = work, work += r * room;
        o->within = (real *)work;
        work += joint_within(o->p, r, room) * joint_within(o->p, r, room);
    }
    o->norm = work, work += p;
    o->kept = (uint8_t *)work;
    o->unit_work = work + p;
    o->V.nnz = iwork, iwork += 2 * r;
    o->V.index = iwork, iwork += 2 * r * room;
    o->inside = iwork, iwork += p;
    o->used = iwork, iwork += p;
    o->list = iwork, iwork += room;
    o->trial = iwork, iwork += 2 * room + r;
    o->unit_iwork = iwork, iwork += p;
    o->signed_index = iwork, iwork += room;
    o->place = iwork, iwork += r * room;
    o->first = iwork, iwork += r * (r + 1) / 2;
    s->order = iwork, iwork += 2 * r;
    s->thorough = iwork;
}

spca_status SPCA(joint)(spca_int p, spca_int r, spca_int room, const real *A,
                        const double *diagonal, const spca_int *size, int constraint,
                        const spca_supports *of, spca_int members, spca_int given, spca_int moves,
                        spca_int patience, double limit, spca_stop stop, void *ctx,
                        uint64_t *random, spca_int *state, double *spent, double *subspace,
                        spca_int *nnz, spca_int *index, double *value, double *explained,
                        double *work, spca_int *iwork, real *turned)
{
    joint_search_t s = {.o = {.p = p,
                              .r = r,
                              .room = room,
                              .A = A,
                              .diagonal = diagonal,
                              .size = size,
                              .of = of,
                              .constraint = constraint,
                              .projected = !constraint,
                              .scale = 1},
                        .members = members,
                        .held = state + 2,
                        .population = {nnz, index, value},
                        .explained = explained,
                        .random = random,
                        .U = subspace,
                        .eigenvalue = subspace + 2 * r * p,
                        .promise = subspace + 2 * r * (p + 1),
                        .turned = turned};
    spca_status status = SPCA_OK;
    s.o.stop = stop;
    s.o.ctx = ctx;
    /* given loadings first, then moves; each is followed by an ascent, and may join the population
     */
    divide(&s, work, iwork);
    s.o.spent = *spent;
    if (moves > 0 && !constraint) promise(&s);
    for (spca_int a = 0; a < given + moves && status >= 0; a++) {
        double found, bar = *s.held > 0 ? explained[0] : 0;
        if (a < given)
            copy_all(&s, member(&s, a), s.o.V);
        else if (state[1] >= patience || *spent >= limit)
            break;
        else
            status = move(&s, state[0]++);
        if (status >= 0 && constraint)
            status = a < given || s.o.apart
                         ? settle_given(&s, &found)
                         : ascend_constrained(&s, bar, first_penalty(&s), &found);
        else if (status >= 0)
            status = ascend_all(&s, a < given ? 0 : bar, &found);
        if (status < 0) break;
        if (found < 0) {
            state[1] += a >= given;
            *spent = s.o.spent;
            continue;
        }
        state[1] = join(&s, found) && found > bar * (1 + RISE) ? 0 : state[1] + (a >= given);
        *spent = s.o.spent;
    }
    return status;
}
