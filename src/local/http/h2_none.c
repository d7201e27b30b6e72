#include "local/http/state.h"
#include "tnk/error.h"

/* A build without nghttp2 speaks HTTP/1.1 alone: no connection looks for more,
 * as there is nothing to share. */

int local_http_has_h2(void) {
  return 0;
}

int local_h2_setup(struct local_h2_shared **out, const tnk_allocator_t *alloc) {
  (void)alloc;
  *out = NULL;
  return TNK_OK;
}

void local_h2_teardown(struct local_h2_shared *shared) {
  (void)shared;
}

int local_h2_start(local_conn_t *conn) {
  (void)conn;
  return TNK_EUNSUPPORTED;
}
