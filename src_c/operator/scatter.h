/* scatter.h - private: what the files of Gram matrices of compressed data share (compressed_gram.c,
 * column_products.c, dense_columns.c). */
#ifndef SPCA_SCATTER_H
#define SPCA_SCATTER_H
#include "gram.h"

enum {
    PLACES = 4096,           /* rows made dense at a time for few variables */
    SECTIONS = 4,            /* sections of the rows of a block, at most */
    PARTS = SPCA_LEAST(64),  /* parts of the variables, among threads */
    PAIR = 8,                /* bytes, for do_parts, that take as long as a pair of entries */
    SLICE = SPCA_GROUP / 2,  /* rows of a slice, whose entries are in order of variables */
    SLICES = 16,             /* slices of a block, at most */
    SHORT = SPCA_LEAST(256), /* rows of a block, a strip of which stays in the first cache */
    WIDE = 16 /* variables made dense at a time; for few variables, one place of them has the
                 centers of rows */
};

/* The arrays of one Gram matrix of k variables, in the caller's work.  Rows are taken by blocks,
 * and a block is divided into sections, one for each part of the copying. */
typedef struct {
    int full;                   /* whether all rows are made dense */
    spca_int capacity;          /* entries that a block has room for */
    spca_int i0, rows, entries; /* the block: its first row, rows and entries */
    spca_int step;              /* rows of a section; the last may have fewer */
    double *total;              /* (k): t_a = sum of s_i x_ia over the rows so far */
    double *part;               /* (SECTIONS x k): t_a of each section */
    spca_int *next;             /* (k), CSC: the first entry of each column that is not read yet */
    real *value;       /* (capacity): the entries of a block, row by row; full: not weighted yet */
    uint16_t *place;   /* (capacity): the variable, 0 .. k - 1, of each of these */
    int32_t *first;    /* (2 PLACES + SECTIONS): where each row begins in them, and the end */
    int32_t *where;    /* (capacity): the places of a section's entries, variable by variable */
    int32_t *last;     /* (capacity): where the row of each of these ends */
    int32_t *start;    /* (SECTIONS x (k + 2)): where each variable begins in them, and the end */
    int32_t *position; /* (p): the place of a variable in the list, or -1 */
    int32_t *length;   /* (n), CSC: entries of a row; 0 if none is of the first m variables */
    double *few;       /* (PLACES x WIDE), CSC: some rows of few variables, dense */
    double *strips; /* (strips x SHORT x WIDE), CSC: some rows of all variables, WIDE in a strip */
    spca_int *end;  /* (k), CSC: where the entries of each column in the block end */
    real *work;     /* scratch of products_of */
    /* CSR: the first `stored` variables are made dense, and the first `dense` of these go through
     * matrix products. */
    spca_int stored, dense;
    /* They came first by `moved` exchanges of places: t with from_t (k), for t = 0, 1, ... */
    spca_int moved, *from;
    spca_int *list; /* (k): the columns in their new order */
    int32_t *begin; /* (SLICES x (k + 1)): where a variable begins in each slice */
    real *entry;    /* (capacity): the entries by slices and variables */
    uint8_t *row;   /* (capacity): the row of each in its slice */
} scatter_t;

/* A section of the rows of a block.  In the arrays with places for the entries of a block, it has
 * the places of its rows. */
typedef struct {
    spca_int r0, rows;      /* its rows in the block */
    int32_t *first, *start; /* of scatter_t, from this section on */
    double *total;
} section_t;

/* How many sections the block has. */
static inline spca_int sections_of(const scatter_t *s)
{
    return (s->rows - 1) / s->step + 1;
}

/* Section `part` of the block; each has one more place in `first` than rows, for the end. */
static inline section_t section_of(const scatter_t *s, spca_int part, spca_int k)
{
    spca_int r0 = part * s->step;
    section_t q = {r0, min_int(s->step, s->rows - r0), s->first + r0 + part,
                   s->start + part * (k + 2), s->part + part * k};
    return q;
}

/* How many strips k variables have. */
static inline spca_int strips_of(spca_int k)
{
    return (k - 1) / WIDE + 1;
}

/* How many entries are stored. */
static inline spca_int entries_of(const operator_t *A)
{
    return at(A->indptr, A->wide, A->row_major ? A->n : A->p);
}

/* x_ia = range^2 weight_a u_i X_ia of entry q of X, in row i and of variable a. */
static inline real scaled(const products_t *g, spca_int q, spca_int i, spca_int a)
{
    return g->A->data[q] * g->A->range * row_weight(g->A, i) * g->weight[a];
}

/* Sets `next` to where each column begins. */
static inline void first_entries(const products_t *g, const scatter_t *s)
{
    for (spca_int a = 0; a < g->k; a++)
        s->next[a] = at(g->A->indptr, g->A->wide, g->index ? g->index[a] : a);
}

/* Chooses the variables of CSR that are made dense, none where that is no gain, and puts them first
 * in the list and in *g.  Returns the products of those that go through matrix products. */
products_t SPCA(choose_dense)(products_t *g, scatter_t *s);
/* Copies the entries of a section: dense variables into W, the others row by row, and all of them
 * by slices. */
void SPCA(copy_slices)(const products_t *g, const products_t *dense, const scatter_t *s,
                       const section_t *f);
/* G += products of dense variables with each other and with the entries of all variables. */
spca_status SPCA(add_dense)(products_t *dense, const products_t *g, const scatter_t *s,
                            spca_stop stop, void *ctx);
/* Puts rows and columns of G (k x k) in the order that they had before choose_dense. */
void SPCA(restore_order)(const scatter_t *s, spca_int k, double *G);

/* CSC: G += the products of a few variables with all of them. */
spca_status SPCA(multiply_few)(const products_t *g, const scatter_t *s, spca_stop stop, void *ctx);
/* CSC: G += the products of all variables, by strips. */
spca_status SPCA(multiply_strips)(const products_t *g, const scatter_t *s, spca_stop stop,
                                  void *ctx);
#endif
