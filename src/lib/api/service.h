#ifndef TNK_LIB_API_SERVICE_H
#define TNK_LIB_API_SERVICE_H

#include "lib/observe/dump_file.h"
#include "lib/api/root.h"
#include "lib/base/arena.h"
#include "lib/client/call/config.h"
#include "lib/ledger/ledger.h"
#include "lib/client/session/session.h"
#include "lib/client/recover/recover.h"
#include "lib/files/weights/weights.h"

/*
 * A service: everything that its clients share, in one piece of memory.
 *
 * Open. Closing: all clients are closed and the end of the session is being
 * reported; then connections and the context wind down. Gone, right before the
 * caller is told.
 */
struct tnk_service {
  tnk__root_t root;
  tnk__config_t config;
  tnk__session_t session;
  tnk__recovery_t recovery;
  tnk__weights_t weights;
  tnk__arena_t prices; /* of session.purse */
  tnk__ledgers_t ledgers;
  tnk__dump_file_t dump_file;
};

/* Write what tnk_service_dump() tells; `out` is new, and to be freed whatever
 * becomes of it. */
int tnk__dump_write(const tnk_service_t *service, tnk_dump_format_t format,
                    tnk__buf_t *out);

/* What it takes to refuse an operation of a client, in whatever state. */
typedef struct {
  tnk__session_t *session;
  tnk_promise_t *kin;
  int closing;
} tnk__client_t;

/* Whether an operation may begin, given what the check of its arguments found
 * (`err`, with a sentence in `text` or NULL): NULL, or the promise of why not.
 * What is wrong with the service comes before what is wrong with the call. */
tnk_promise_t *tnk__service_refuses(tnk__session_t *session, const char *name,
                                    int err, const char *text);
/* The same for an operation of a client. */
tnk_promise_t *tnk__client_refuses(const tnk__client_t *client,
                                   const char *name, int err, const char *text);
/* Of a training or a sampling client. */
#define TNK__CLIENT(handle)                                                    \
  (&(const tnk__client_t){.session = (handle)->session,                        \
                          .kin = (handle)->kin,                                \
                          .closing = (handle)->closing})

#endif
