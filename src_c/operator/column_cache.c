/* column_cache.c - the columns of C-ordered data that were used last, each next to the other.
 *
 * A column of C order costs a line of memory for every entry.  The columns of the support come back
 * in every step of a solver, so they are copied once. */
#include "real.h"

enum { ROWS = 8, MORE = SPCA_LEAST(64) }; /* rows that are copied together, and rows of a part */
enum { LINE = 4 * 64 }; /* for do_parts: bytes read in a row in the time of one entry */

typedef struct {
    const operator_t *A;
    spca_int absent;
} copy_t;

/* Copies the rows of a part of all missing columns. */
static void copy_part(void *context, spca_int part)
{
    const copy_t *t = context;
    const operator_t *A = t->A;
    const spca_column_cache *s = A->cache;
    real *kept = s->kept;
    spca_int end = min_int(A->n, (part + 1) * MORE);
    for (spca_int i = part * MORE; i < end; i += ROWS) {
        spca_int r = min_int(ROWS, end - i);
        const real *row = A->data + i * A->ld;
        for (spca_int b = 0; b < t->absent; b++) {
            spca_int place = s->missing[b], j = s->owner[place];
            for (spca_int l = 0; l < r; l++) kept[place * A->n + i + l] = row[l * A->ld + j];
        }
    }
}

spca_status SPCA(keep_columns)(const operator_t *A, spca_int count, const spca_int *list,
                               spca_stop stop, void *ctx)
{
    spca_column_cache *s = A->cache;
    /* stamp = batch: a place that this call uses, and that no other column may take */
    spca_int absent = 0, batch = ++s->batch;
    if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
    for (spca_int a = 0; a < count; a++) {
        spca_int place = s->slot[list[a]];
        if (place >= 0) s->stamp[place] = batch;
    }
    for (spca_int a = 0; a < count; a++) {
        spca_int place = s->slot[list[a]];
        if (place < 0) { /* the next place that this batch does not use */
            do s->cursor = s->cursor + 1 < s->capacity ? s->cursor + 1 : 0;
            while (s->stamp[s->cursor] == batch);
            place = s->cursor;
            if (s->owner[place] >= 0) s->slot[s->owner[place]] = -1;
            s->owner[place] = list[a];
            s->slot[list[a]] = place;
            s->stamp[place] = batch;
            s->missing[absent++] = place;
        }
        s->slot_list[a] = place;
    }
    /* the copies; where it is stopped, the places are free again */
    copy_t copy = {A, absent};
    spca_int parts = absent ? (A->n + MORE - 1) / MORE : 0;
    spca_status status =
        do_parts(A->run, (double)absent * (double)A->n * LINE, copy_part, &copy, parts, stop, ctx);
    for (spca_int b = 0; status < 0 && b < absent; b++) s->slot[s->owner[s->missing[b]]] = -1;
    for (spca_int b = 0; status < 0 && b < absent; b++) s->owner[s->missing[b]] = -1;
    return status;
}
