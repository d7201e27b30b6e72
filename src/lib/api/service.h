/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_API_SERVICE_H
#define TNK_LIB_API_SERVICE_H

#include "lib/observe/dump_file.h"
#include "lib/api/root.h"
#include "lib/base/arena.h"
#include "lib/client/call/config.h"
#include "lib/ledger/ledger.h"
#include "lib/client/session/session.h"
#include "lib/client/recover/recover.h"
#include "lib/client/service/service.h"
#include "lib/files/weights/weights.h"

/*
 * A service: the shared state of its clients, in one allocation.
 *
 * States: open. Closing: all clients are closed and the end of the session is
 * reported. Then the connections and the context close. Gone, just before the
 * close callback is called.
 */
struct tnk_service {
  tnk__root_t root;
  tnk__config_t config;
  tnk__session_t session;
  tnk__recovery_t recovery;
  tnk__watch_t watch;
  tnk__weights_t weights;
  tnk__arena_t prices; /* prices of session.limits.allowance */
  tnk__ledgers_t ledgers;
  tnk__dump_file_t dump_file;
};

/* Write the dump; `out` is uninitialized, and the caller must free it in every
 * case. */
int tnk__dump_write(const tnk_service_t *service, tnk_dump_format_t format,
                    tnk__buf_t *out);

/* The data to refuse an operation of a client, in any state. */
typedef struct {
  tnk__session_t *session;
  tnk_promise_t *kin;
  int closing;
} tnk__client_t;

/* Check whether an operation may start. `err` is the result of the check of its
 * arguments, with a message in `text` or NULL. Returns NULL, or a rejected
 * promise. Errors of the service have priority over errors of the call. */
tnk_promise_t *tnk__service_refuses(tnk__session_t *session, const char *name,
                                    int err, const char *text);
/* As above, for an operation of a client. */
tnk_promise_t *tnk__client_refuses(const tnk__client_t *client,
                                   const char *name, int err, const char *text);
/* For a training or sampling client. */
#define TNK__CLIENT(handle)                                                    \
  (&(const tnk__client_t){.session = (handle)->session,                        \
                          .kin = (handle)->kin,                                \
                          .closing = (handle)->closing})

#endif
