/* tree.h - private: branch and bound of a matrix in memory, with a limit of nodes. */
#ifndef SPCA_TREE_H
#define SPCA_TREE_H
#include "room.h"

/* A node that waits. */
typedef struct {
    double bound;        /* no support of the node has a larger value */
    spca_int turn, slot; /* when it came, and its row of the pool */
} spca_node;

/* The tree.  p, k, most and hopeless are given before spca_tree_room. */
typedef struct {
    spca_int p, k;
    spca_int most, divided; /* nodes that may be divided, and that have been */
    double *N, *diagonal;   /* N (p x p) = level I - A, whose diagonal is set anew for a level;
                               diagonal (p): of A */
    double level;           /* nodes whose bound is no larger are left out; value and rounding */
    double value;           /* the best value, on the support index (k, ascending) */
    double hopeless;        /* a bound that exceeds it by a larger share is of no use */
    spca_int *index;
    spca_node *heap; /* the nodes that wait, the largest bound first */
    spca_int waiting, unused, turn;
    spca_int *rows; /* rows of the pool that no node has, `unused` of them */
    uint8_t *pool;
    double *work, *eigen;
    spca_int *iwork;
    blas_int *blas_work;
} spca_tree;

/* Room for the arrays of a tree of p, k and `most`. */
void spca_tree_room(spca_tree *tree, room_t *room);

/* Begins with one node, all supports.  Off its diagonal, N is -A, and diagonal is that of A;
 * nothing has been found. */
void spca_tree_begin(spca_tree *tree);

/* Offers a support and its value, which is kept if it is better than the best so far by more than
 * rounding. */
void spca_tree_offer(spca_tree *tree, const spca_int *index, double value);

/* Divides up to `count` nodes, those of largest bounds. */
spca_status spca_tree_divide(spca_tree *tree, spca_int count, spca_stop stop, void *ctx);

/* No support has a larger value than this.  It is the tree's own level where nothing waits above
 * that: then the best value is the largest, to rounding. */
double spca_tree_upper(const spca_tree *tree);
#endif
