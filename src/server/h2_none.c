/* SPDX-License-Identifier: MIT */
#include "server/state.h"
#include "tnk/error.h"

/* A build without nghttp2 supports only HTTP/1.1. Without a shared object no
 * connection looks for the preface of HTTP/2. */

int tnk__srv_has_h2(void) {
  return 0;
}

int tnk__srv_h2_setup(struct tnk__srv_h2_shared **out,
                      const tnk_allocator_t *alloc) {
  (void)alloc;
  *out = NULL;
  return TNK_OK;
}

void tnk__srv_h2_teardown(struct tnk__srv_h2_shared *shared) {
  (void)shared;
}

int tnk__srv_h2_start(tnk__srv_conn_t *conn) {
  (void)conn;
  return TNK_EUNSUPPORTED;
}
