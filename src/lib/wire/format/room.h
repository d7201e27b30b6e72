/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_ROOM_H
#define TNK_LIB_WIRE_FORMAT_ROOM_H

#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "lib/base/arena.h"

/*
 * The memory for decoded results: an arena with a limit that follows from the
 * size of the body. A few bytes therefore cannot request gigabytes. The first
 * failure is kept: TNK_ENOMEM, or TNK_EPROTO for a body that is malformed or
 * exceeds the limit.
 */
typedef struct {
  tnk__arena_t arena;
  int err;
} tnk__room_t;

void tnk__room_init(tnk__room_t *room, const tnk_allocator_t *alloc,
                    size_t n_body);
/* Allocate n elements, not zeroed. NULL after a failure, including an earlier
 * one. */
void *tnk__room_get(tnk__room_t *room, size_t n, size_t size);
void *tnk__room_zeroed(tnk__room_t *room, size_t n, size_t size);
char *tnk__room_text(tnk__room_t *room, const char *text);
/* Note that the body is malformed. */
void tnk__room_bad(tnk__room_t *room);
/* An allocator for protobuf-c. Freed blocks stay until the arena is freed. */
ProtobufCAllocator tnk__room_protobuf(tnk__room_t *room);

#endif
