/* scatter.h - private: what the files of Gram matrices of compressed data share. */
#ifndef SPCA_SCATTER_H
#define SPCA_SCATTER_H
#include "gram.h"

enum {
    PLACES = 4096, /* rows at a time */
    SECTIONS = 4,  /* of the rows of a block, at most, */
    PARTS = 64,    /* of the variables of a block, */
    PAIR = 8,      /* and bytes of loops that do_parts knows which take as long as a pair */
    SLICE = SPCA_GROUP / 2, /* rows whose entries are in order of variables, */
    SLICES = 16,            /* of a block, at most */
    SHORT = 256,            /* rows of a block of strips: one stays in the first cache */
    WIDE = 16               /* variables made dense at a time, and the centers of rows */
};

typedef struct {
    spca_int capacity;          /* entries of a block */
    spca_int i0, rows, entries; /* the block, */
    spca_int step;              /* and rows of a section, but the last */
    double *total;              /* (k): t, */
    double *part;               /* (SECTIONS x k): and of a section */
    spca_int *next;    /* (k), of CSC: the first entry of each column that is not read yet */
    real *value;       /* (capacity): the entries of a block, row by row, */
    uint16_t *place;   /* and which of the k variables each is of */
    int32_t *first;    /* (2 PLACES + SECTIONS): of a row, and the end */
    int32_t *where;    /* (capacity): the entries of a section variable by variable, */
    int32_t *last;     /* and the end of the row of each */
    int32_t *start;    /* (SECTIONS x (k + 2)): of a variable, and the end */
    int32_t *position; /* (p): of a variable in the list, or -1 */
    int32_t *length;   /* (n), of CSC: entries of a row; 0 if none is of the first m variables */
    double *few;       /* (PLACES x WIDE), of CSC: a block of rows of few variables */
    double *strips;    /* (strips x SHORT x WIDE), of CSC: of all, WIDE of them in a strip */
    spca_int *end;     /* (k), of CSC: where the entries in the block end */
    real *work;        /* of products_of */
    spca_int stored, dense; /* variables of CSR, the first of all, that are made dense, and of these
                             * the first, for products of matrices */
    spca_int moved, *from;  /* so many changed places, in turn, with one behind (k), */
    spca_int *list;         /* (k): after which these are the columns */
    int32_t *begin;         /* (SLICES x (k + 1)): of its entries in each slice of the rows, */
    real *entry;            /* (capacity): which are these, */
    uint8_t *row;           /* and their rows in the slice */
} scatter_t;

/* Of all arrays that have places for the entries of a block, a section has those of its rows. */
typedef struct {
    spca_int r0, rows;      /* of the block */
    int32_t *first, *start; /* of its rows, and variables */
    double *total;
} section_t;

static inline spca_int sections_of(const scatter_t *s)
{
    return (s->rows - 1) / s->step + 1;
}

static inline section_t section_of(const scatter_t *s, spca_int part, spca_int k)
{
    spca_int r0 = part * s->step;
    section_t q = {r0, min_int(s->step, s->rows - r0), s->first + r0 + part,
                   s->start + part * (k + 2), s->part + part * k};
    return q;
}

static inline spca_int strips_of(spca_int k)
{
    return (k - 1) / WIDE + 1;
}

static inline spca_int entries_of(const operator_t *A)
{
    return at(A->indptr, A->wide, A->row_major ? A->n : A->p);
}

/* u_i x_ia of entry q of X, in row i and of variable a. */
static inline real scaled(const products_t *g, spca_int q, spca_int i, spca_int a)
{
    return g->A->data[q] * g->A->range * row_weight(g->A, i) * g->weight[a];
}

static inline void first_entries(const products_t *g, const scatter_t *s)
{
    for (spca_int a = 0; a < g->k; a++)
        s->next[a] = at(g->A->indptr, g->A->wide, g->index ? g->index[a] : a);
}

/* Which variables of CSR are made dense, none if it is no gain; then they are first.  Their rows.
 */
products_t SPCA(choose_dense)(products_t *g, scatter_t *s);
/* The entries of a section: of dense variables in W, of the others row by row, and of all by
 * slices. */
void SPCA(copy_slices)(const products_t *g, const products_t *dense, const scatter_t *s,
                       const section_t *f);
/* Sums of products of dense variables with each other and with the entries of all others. */
spca_status SPCA(add_dense)(products_t *dense, const products_t *g, const scatter_t *s,
                            spca_stop stop, void *ctx);
/* Rows and columns as they were before some were put first. */
void SPCA(restore_order)(const scatter_t *s, spca_int k, double *G);

/* Sums of the entries of few variables with those of all, of CSC. */
spca_status SPCA(multiply_few)(const products_t *g, const scatter_t *s, spca_stop stop, void *ctx);
/* Of all, of CSC. */
spca_status SPCA(multiply_strips)(const products_t *g, const scatter_t *s, spca_stop stop,
                                  void *ctx);
#endif
