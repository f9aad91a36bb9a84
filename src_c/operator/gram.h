/* gram.h - private: products of groups of rows, which gram.c adds up. */
#ifndef SPCA_GRAM_H
#define SPCA_GRAM_H
#include "centring.h"
#include "products.h"

/* One more layout of W: each group of rows has strips of STRIP columns, and each strip is ACROSS.
 */
enum { IN_STRIPS = IN_GROUPS + 1, STRIP = 6 * TOGETHER };
/* rows of a group, whose products are summed in REAL before they are added in double */
enum { SPCA_GROUP = SPCA_LEAST(2048 / sizeof(real)) };

/* Products of rows of F, W (rows x k), that are added to G (m x k). */
typedef struct {
    const operator_t *A;
    spca_int m, k; /* rows and columns of G: the first m variables with all k */
    const spca_int *index;
    double *G;
    real *mean, *weight; /* (k, and zeros up to whole groups): range mean, range weight */
    real *W;             /* the rows, in this layout */
    spca_int i0, rows;   /* the rows of F that are in W now */
    int layout;
    spca_int width, side, ld; /* numbers of a row in W; columns of a tile; numbers of a row of G */
} products_t;

/* How many reals mean, weight and W take. */
spca_int SPCA(products_work)(const operator_t *A, spca_int k);
/* Begins: G = 0, mean and weight are set, and `rows` says how many rows W has room for. */
products_t SPCA(products_of)(const operator_t *A, spca_int m, spca_int k, const spca_int *index,
                             real *work, double *G);
/* G_ab += sum_i w_ia w_ib over the rows in W, for b >= a. */
spca_status SPCA(add_products)(products_t *g, spca_stop stop, void *ctx);
/* G <- G factor, and the upper triangle of the first m columns is copied below.  SPCA_NONFINITE
 * where an entry is not finite in REAL. */
spca_status SPCA(finish_products)(const products_t *g);
#endif
