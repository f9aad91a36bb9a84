/* tree.h - private: branch and bound of a matrix in memory, within some nodes. */
#ifndef SPCA_TREE_H
#define SPCA_TREE_H
#include "room.h"

typedef struct {
    double bound;
    spca_int turn, slot; /* when it came, and its row of the pool */
} spca_node;

typedef struct {
    spca_int p, k;
    spca_int most, divided; /* nodes that may be divided, and that have been */
    double *N, *diagonal;   /* p x p: level I - A, and (p) of A; that of N is written for a level */
    double level;           /* what has no larger bound is left out */
    double value;           /* the best, on the variables of index (k, ascending) */
    double hopeless;        /* share by which a bound may exceed it and be of use */
    spca_int *index;
    spca_node *heap; /* that wait, the largest bound first */
    spca_int waiting, unused, turn;
    spca_int *rows; /* of the pool that no node has */
    uint8_t *pool;
    double *work, *eigen;
    spca_int *iwork;
    blas_int *blas_work;
} spca_tree;

/* The arrays of a tree of p, k and `most`. */
void spca_tree_room(spca_tree *tree, room_t *room);

/* All supports wait; -N and the diagonal are those of A, and nothing has been found. */
void spca_tree_begin(spca_tree *tree);

/* What a support has, if it is better than the best so far by more than rounding. */
void spca_tree_offer(spca_tree *tree, const spca_int *index, double value);

/* Divides up to so many nodes. */
spca_status spca_tree_divide(spca_tree *tree, spca_int count, spca_stop stop, void *ctx);

/* No support has a larger value; the tree's own level where that is the best value to rounding. */
double spca_tree_upper(const spca_tree *tree);
#endif
