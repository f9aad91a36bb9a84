/* room.h - private: cuts scratch that a caller gives as bytes into arrays. */
#ifndef SPCA_ROOM_H
#define SPCA_ROOM_H
#include "spca.h"

typedef struct {
    char *begin; /* NULL: bytes are counted, and nothing is given */
    size_t used;
} room_t;

/* The next array, of `count` entries, at a multiple of 64 bytes from the begin. */
static inline void *take(room_t *room, spca_int count, size_t size)
{
    char *part = room->begin ? room->begin + room->used : NULL;
    room->used += ((size_t)count * size + 63) / 64 * 64;
    return part;
}
#define TAKE(room, count, type) ((type *)take(room, count, sizeof(type)))
#endif
