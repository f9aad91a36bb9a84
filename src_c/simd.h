/* simd.h - private: what the kernels ask of the compiler and of the processor. */
#ifndef SPCA_SIMD_H
#define SPCA_SIMD_H

#include "clones.h"

/* A static function whose loops the compiler vectorizes.  It is compiled once for each clone
 * (clones.h), and a call runs the clone of this processor:
 *     VECTORIZED(name, (type x, ...), (x, ...))
 *     {...}
 * VECTORIZED_TO(result, name, ...) is for one that returns something.  VECTORIZED_WIDE has a clone
 * for AVX-512 as well.  That pays where 32 registers or narrowing to bytes help; elsewhere it only
 * lowers the pace of the processor. */
#ifdef SPCA_CLONES
#define FOR_AVX2 __attribute__((target("avx2,fma")))
#define FOR_AVX512 __attribute__((target("avx2,fma,avx512f,avx512cd,avx512bw,avx512dq,avx512vl")))
/* The clone of `name` for a target; its body, name_loops, is inlined.  give: "return" or nothing.
 */
#define CLONE_OF(target, suffix, result, give, name, parameters, arguments)                        \
    target static result name##suffix parameters                                                   \
    {                                                                                              \
        give name##_loops arguments;                                                               \
    }
/* The function `name`, which calls the clone that runs; then comes the head of name_loops, whose
 * body follows where the macro is used. */
#define CHOSEN(widest, result, give, name, parameters, arguments)                                  \
    static result name parameters                                                                  \
    {                                                                                              \
        static result(*const clones[]) parameters = {name##_generic, name##_avx2, name##widest};   \
        give clones[spca_clone] arguments;                                                         \
    }                                                                                              \
    INLINE result name##_loops parameters
#define CLONED(...)                                                                                \
    CLONE_OF(, _generic, __VA_ARGS__)                                                              \
    CLONE_OF(FOR_AVX2, _avx2, __VA_ARGS__)
#define VECTORIZED_TO(result, name, parameters, arguments)                                         \
    INLINE result name##_loops parameters;                                                         \
    CLONED(result, return, name, parameters, arguments)                                            \
    CHOSEN(_avx2, result, return, name, parameters, arguments)
#define VECTORIZED(name, parameters, arguments)                                                    \
    INLINE void name##_loops parameters;                                                           \
    CLONED(void, , name, parameters, arguments)                                                    \
    CHOSEN(_avx2, void, , name, parameters, arguments)
#define VECTORIZED_WIDE(name, parameters, arguments)                                               \
    INLINE void name##_loops parameters;                                                           \
    CLONED(void, , name, parameters, arguments)                                                    \
    CLONE_OF(FOR_AVX512, _avx512, void, , name, parameters, arguments)                             \
    CHOSEN(_avx512, void, , name, parameters, arguments)
#else
#define VECTORIZED_TO(result, name, parameters, arguments) static result name parameters
#define VECTORIZED(name, parameters, arguments) static void name parameters
#define VECTORIZED_WIDE VECTORIZED
#endif

#ifdef __GNUC__ /* vectors of 32 bytes; of another compiler the same code runs with one number at  \
                   a time */
typedef real lanes_t __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));
typedef double doubles_t __attribute__((vector_size(32), aligned(sizeof(double)), may_alias));
#define FETCH(address) __builtin_prefetch((const void *)(address), 0, 2)
#define FETCH_CLOSE(address) __builtin_prefetch((const void *)(address), 0, 3)
#define FETCH_TO_WRITE(address) __builtin_prefetch((const void *)(address), 1, 3)
/* A vector of entry(0), entry(1), ...: of numbers that are not side by side in memory. */
#ifdef SPCA_SINGLE
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

#ifdef __OPTIMIZE__ /* inlined always, so that constant arguments are known to the compiler */
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
#endif
