/* simd.h - private: what the kernels ask of the compiler and of the processor. */
#ifndef SPCA_SIMD_H
#define SPCA_SIMD_H

/* For loops that compilers vectorize: compiled for AVX2 too, and chosen when the library is loaded.
 * VECTORIZED_WIDE: for AVX-512 too, where 32 registers and narrowing to bytes pay. */
#ifdef SPCA_CLONES
#define VECTORIZED __attribute__((target_clones("avx2", "default")))
#else
#define VECTORIZED
#endif
#ifdef SPCA_WIDE_CLONES
#define VECTORIZED_WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define VECTORIZED_WIDE VECTORIZED
#endif

#ifdef __GNUC__ /* else the same code, a number at a time */
typedef real lanes_t __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));
typedef double doubles_t __attribute__((vector_size(32), aligned(sizeof(double)), may_alias));
#define FETCH(address) __builtin_prefetch((const void *)(address), 0, 2)
#define FETCH_CLOSE(address) __builtin_prefetch((const void *)(address), 0, 3)
#define FETCH_TO_WRITE(address) __builtin_prefetch((const void *)(address), 1, 3)
#ifdef SPCA_SINGLE /* entry(0), entry(1), ...: of lanes that are not side by side in memory */
#define LANES_OF(entry)                                                                            \
    ((lanes_t){entry(0), entry(1), entry(2), entry(3), entry(4), entry(5), entry(6), entry(7)})
#else
#define LANES_OF(entry) ((lanes_t){entry(0), entry(1), entry(2), entry(3)})
#endif
#else
typedef real lanes_t;
typedef double doubles_t;
#define LANES_OF(entry) (entry(0))
#define FETCH(address) ((void)(address))
#define FETCH_CLOSE(address) ((void)(address))
#define FETCH_TO_WRITE(address) ((void)(address))
#endif

#ifdef __OPTIMIZE__ /* so that what is constant is known where it is used */
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
#endif
