/* gram.h - private: products of groups of rows, which gram.c adds up. */
#ifndef SPCA_GRAM_H
#define SPCA_GRAM_H
#include "centring.h"
#include "products.h"

/* Another layout of W: of each group of rows, strips of columns, each ACROSS. */
enum { IN_STRIPS = IN_GROUPS + 1, STRIP = 6 * TOGETHER };
enum { SPCA_GROUP = SPCA_LEAST(2048 / sizeof(real)) }; /* rows whose products are summed in real */

typedef struct {
    const operator_t *A;
    spca_int m, k; /* rows and columns of G */
    const spca_int *index;
    double *G;
    real *mean, *weight; /* (k): range mean, range weight; and zeros */
    real *W;             /* rows x k; or by groups of rows, of columns */
    spca_int i0, rows;   /* of F in W */
    int layout;
    spca_int width, side, ld; /* numbers of a row in W; columns of a tile; numbers of a row of G */
} products_t;

/* Reals: mean, weight and W. */
spca_int SPCA(products_work)(const operator_t *A, spca_int k);
/* G = 0, and `rows` says for how many there is room. */
products_t SPCA(products_of)(const operator_t *A, spca_int m, spca_int k, const spca_int *index,
                             real *work, double *G);
/* G_ab += sum_i w_ia w_ib of the rows in W, b >= a. */
spca_status SPCA(add_products)(products_t *g, spca_stop stop, void *ctx);
/* Times factor, and both triangles of the first columns. */
spca_status SPCA(finish_products)(const products_t *g);
#endif
