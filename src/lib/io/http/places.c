#include "lib/io/http/places.h"

#include "lib/base/alloc.h"

void tnk__places_close(tnk__conn_t *conn) {
  conn->pool->n_conns--;
  conn->pool->n_mute -= conn->is_mute != 0;
  tnk__conn_close(conn);
}

void tnk__places_put(tnk__conn_t *conn) {
  tnk__pool_t *pool = conn->pool;

  if (conn->state == TNK__CONN_ENDED && conn->n_on == 0) {
    tnk__places_close(conn);
    return;
  }
  tnk__list_remove(&conn->link);
  if (tnk__conn_room(conn) == 0)
    tnk__list_append(&pool->full, &conn->link);
  else if (conn->n_on > 0)
    tnk__list_append(&pool->shared, &conn->link);
  else
    tnk__list_prepend(&pool->idle, &conn->link);
}

void tnk__places_left(tnk__pool_t *pool, const tnk__exchange_t *ex) {
  pool->line.n_on[tnk__line_rank(ex)]--;
}

void tnk__places_take_off(tnk__exchange_t *ex) {
  tnk__conn_t *conn = ex->conn;

  tnk__conn_abort(conn, ex);
  tnk__places_left(conn->pool, ex);
  tnk__places_put(conn);
}
