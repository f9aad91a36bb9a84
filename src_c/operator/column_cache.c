/* column_cache.c - the columns of C-ordered data that were used last, each next to the other.
 *
 * A column of C order costs a line of memory for every entry; those of the support come back in
 * every step of a solver, and are copied once. */
#include "real.h"

spca_status SPCA(keep_columns)(const operator_t *A, spca_int count, const spca_int *list,
                               spca_stop stop, void *ctx)
{
    enum { ROWS = 8 };
    spca_column_cache *s = A->cache;
    real *kept = s->kept;
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
    for (spca_int i = 0; i < A->n; i += ROWS) {
        spca_int r = min_int(ROWS, A->n - i);
        const real *row = A->data + i * A->ld;
        if (absent && i % 4096 == 0 && asked_to_stop(stop, ctx)) {
            for (spca_int b = 0; b < absent; b++) s->slot[s->owner[s->missing[b]]] = -1;
            for (spca_int b = 0; b < absent; b++) s->owner[s->missing[b]] = -1;
            return SPCA_STOPPED;
        }
        for (spca_int b = 0; b < absent; b++) {
            spca_int place = s->missing[b], j = s->owner[place];
            for (spca_int l = 0; l < r; l++) kept[place * A->n + i + l] = row[l * A->ld + j];
        }
    }
    return SPCA_OK;
}
