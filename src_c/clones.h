/* clones.h - private: the kernels are compiled for several processors.  One number says which of
 * these clones runs; it is set while nothing else runs. */
#ifndef SPCA_CLONES_H
#define SPCA_CLONES_H

enum {
    SPCA_GENERIC, /* the instructions that all processors of this architecture have; no fused
                     multiply-add */
    SPCA_AVX2,    /* with fused multiply-adds in tile.c */
    SPCA_AVX512,  /* the AVX-512 of x86-64-v4 */
    SPCA_CLONES_IN_ALL
};

extern int spca_clone; /* the clone that runs; SPCA_GENERIC until spca_choose_clone is called */

/* "generic", "avx2" or "avx512". */
const char *spca_clone_name(int clone);
/* The last clone that is compiled and that the processor can run. */
int spca_last_clone(void);
/* Runs the clone of this name from now on or, with NULL or "", the last one that can run.  Returns
 * 1; 0 where no clone has the name, and -1 where it is not compiled or the processor cannot run it:
 * then nothing changes. */
int spca_choose_clone(const char *name);
#endif
