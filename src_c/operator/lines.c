/* lines.c - whether kernels may follow the lines of compressed storage, which is asked before any
 * kernel does. */
#include "../centring.h"

/* 0 where an index is not in [0, length); 2 where indices ascend in each line, 1 where they do not.
 */
INLINE int order_of(spca_int lines, spca_int length, const void *indptr, const void *indices,
                    const int wide)
{
    int order = 2;
    for (spca_int l = 0, q = 0; l < lines; l++)
        for (spca_int before = -1, last = at(indptr, wide, l + 1); q < last; q++) {
            spca_int j = at(indices, wide, q);
            if (j < 0 || j >= length) return 0;
            if (j <= before) order = 1;
            before = j;
        }
    return order;
}

int spca_line_order(spca_int lines, spca_int length, spca_int stored, const void *indptr,
                    const void *indices, int wide)
{
    if (at(indptr, wide, 0) != 0 || at(indptr, wide, lines) > stored) return 0;
    for (spca_int l = 0; l < lines; l++)
        if (at(indptr, wide, l + 1) < at(indptr, wide, l)) return 0;
    return wide ? order_of(lines, length, indptr, indices, 1)
                : order_of(lines, length, indptr, indices, 0);
}
