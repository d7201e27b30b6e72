#include "lib/io/http/room.h"

#include "lib/base/alloc.h"
#include "lib/io/http/speak.h"

static tnk__conn_t *conn_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__conn_t, link);
}

tnk__conn_t *tnk__room_find(const tnk__pool_t *pool, int is_poll) {
  const tnk__list_t *const lists[] = {&pool->shared, &pool->idle};

  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
    TNK__LIST_FOREACH (node, lists[i]) {
      tnk__conn_t *conn = conn_at(node);
      const size_t spare =
          is_poll ? tnk__speak_spare(tnk__conn_capacity(conn)) : 0;
      if (tnk__conn_room(conn) > spare)
        return conn;
    }
  return NULL;
}

tnk__rank_t tnk__room_rank(const tnk__conn_t *conn) {
  return tnk__conn_room(conn) > tnk__speak_spare(tnk__conn_capacity(conn))
             ? TNK__RANK_POLL
             : TNK__RANK_TRAIN_POLL;
}

size_t tnk__room_total(const tnk__pool_t *pool, size_t enough) {
  const tnk__list_t *const lists[] = {&pool->idle, &pool->shared};
  size_t n = 0;

  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
    TNK__LIST_FOREACH (node, lists[i]) {
      n += tnk__conn_room(conn_at(node));
      if (n >= enough)
        return n;
    }
  return n;
}
