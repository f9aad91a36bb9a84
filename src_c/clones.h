/* clones.h - private: the kernels are compiled for several processors.  Which of these clones runs
 * is one number, set while nothing else runs. */
#ifndef SPCA_CLONES_H
#define SPCA_CLONES_H

enum {
    SPCA_GENERIC, /* what every processor of the kind has, and no fused multiply-add */
    SPCA_AVX2,    /* with fused multiply-adds in tile.c */
    SPCA_AVX512,  /* that of x86-64-v4 */
    SPCA_CLONES_IN_ALL
};

extern int spca_clone; /* SPCA_GENERIC at first */

const char *spca_clone_name(int clone);
/* The last that is compiled and that the processor can run. */
int spca_last_clone(void);
/* Runs the clone of this name from now on, or the last with NULL or "".  0: no clone is called so;
 * -1: it is not compiled, or the processor lacks it.  Then nothing changes. */
int spca_choose_clone(const char *name);
#endif
