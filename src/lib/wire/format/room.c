/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/room.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/limits.h"
#include "tnk/error.h"

/* Memory that any result may use in addition to its share. It is larger than
 * the arena's largest step, so a small body is never rejected because of
 * rounding. */
enum { SLACK = 256 * 1024, ARENA_STEP = 64 * 1024 };

void tnk__room_init(tnk__room_t *room, const tnk_allocator_t *alloc,
                    size_t n_body) {
  size_t max = SIZE_MAX;

  if (n_body < (SIZE_MAX - SLACK) / TNK__MAX_PROTO_FACTOR)
    max = SLACK + n_body * TNK__MAX_PROTO_FACTOR;
  room->err = TNK_OK;
  tnk__arena_init(&room->arena, alloc, max);
}

void *tnk__room_get(tnk__room_t *room, size_t n, size_t size) {
  const tnk__arena_t *arena = &room->arena;
  /* Computed before, to distinguish the arena's limit from a lack of memory. */
  size_t left = arena->max - arena->total;
  void *ptr;

  if (room->err != TNK_OK)
    return NULL;
  /* The number comes from the peer and cannot be valid. */
  if (n > SIZE_MAX / size) {
    room->err = TNK_EPROTO;
    return NULL;
  }
  ptr = tnk__arena_alloc(&room->arena, n * size);
  if (ptr == NULL)
    room->err = left < ARENA_STEP || n * size > left - ARENA_STEP ? TNK_EPROTO
                                                                  : TNK_ENOMEM;
  return ptr;
}

void *tnk__room_zeroed(tnk__room_t *room, size_t n, size_t size) {
  void *ptr = tnk__room_get(room, n, size);

  if (ptr != NULL)
    memset(ptr, 0, n * size);
  return ptr;
}

char *tnk__room_text(tnk__room_t *room, const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = tnk__room_get(room, size, 1);

  if (copy != NULL)
    memcpy(copy, text, size);
  return copy;
}

void tnk__room_bad(tnk__room_t *room) {
  if (room->err == TNK_OK)
    room->err = TNK_EPROTO;
}

static void *protobuf_alloc(void *data, size_t size) {
  return tnk__room_get(data, size, 1);
}

static void protobuf_free(void *data, void *ptr) {
  (void)data;
  (void)ptr;
}

ProtobufCAllocator tnk__room_protobuf(tnk__room_t *room) {
  return (ProtobufCAllocator){protobuf_alloc, protobuf_free, room};
}
