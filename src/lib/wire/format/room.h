#ifndef TNK_LIB_WIRE_FORMAT_ROOM_H
#define TNK_LIB_WIRE_FORMAT_ROOM_H

#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "lib/base/arena.h"

/*
 * Where a decoder puts what it reads: an arena whose ceiling follows from the
 * size of the body, so that a few bytes cannot ask for gigabytes. The first
 * failure sticks: TNK_ENOMEM, or TNK_EPROTO for a body that wants too much or
 * is malformed.
 */
typedef struct {
  tnk__arena_t arena;
  int err;
} tnk__room_t;

void tnk__room_init(tnk__room_t *room, const tnk_allocator_t *alloc,
                    size_t n_body);
/* Get n elements, not zeroed; NULL after a failure, also an earlier one. */
void *tnk__room_get(tnk__room_t *room, size_t n, size_t size);
void *tnk__room_zeroed(tnk__room_t *room, size_t n, size_t size);
char *tnk__room_text(tnk__room_t *room, const char *text);
/* Note that the body is malformed. */
void tnk__room_bad(tnk__room_t *room);
/* An allocator for protobuf-c; what it frees stays until the arena ends. */
ProtobufCAllocator tnk__room_protobuf(tnk__room_t *room);

#endif
