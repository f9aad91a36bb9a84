/* room.h - private: parts of the scratch that a caller gives as bytes. */
#ifndef SPCA_ROOM_H
#define SPCA_ROOM_H
#include "spca.h"

typedef struct {
    char *begin; /* NULL: what is taken is only counted */
    size_t used;
} room_t;

static inline void *take(room_t *room, spca_int count, size_t size)
{
    char *part = room->begin ? room->begin + room->used : NULL;
    room->used += ((size_t)count * size + 63) / 64 * 64;
    return part;
}
#define TAKE(room, count, type) ((type *)take(room, count, sizeof(type)))
#endif
