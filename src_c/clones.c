/* clones.c - which clone of the kernels runs. */
#include "clones.h"
#include <string.h>

int spca_clone = SPCA_GENERIC;

const char *spca_clone_name(int clone)
{
    static const char *const names[] = {"generic", "avx2", "avx512"};
    return names[clone];
}

int spca_last_clone(void)
{
#ifdef SPCA_CLONES
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return SPCA_GENERIC;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return SPCA_AVX512;
    return SPCA_AVX2;
#else
    return SPCA_GENERIC;
#endif
}

int spca_choose_clone(const char *name)
{
    int last = spca_last_clone(), clone = 0;
    if (!name || !*name) name = spca_clone_name(last);
    while (clone < SPCA_CLONES_IN_ALL && strcmp(name, spca_clone_name(clone)) != 0) clone++;
    if (clone == SPCA_CLONES_IN_ALL) return 0;
    if (clone > last) return -1;
    spca_clone = clone;
    return 1;
}
