#ifndef TNK_LOCAL_STUB_H
#define TNK_LOCAL_STUB_H

#include <stdint.h>

#include <uv.h>

#include "local/fault.h"
#include "tnk/common.h"

/*
 * A server with nothing behind it: valid, canned answers, as fast as they can
 * be given, for measuring clients. A sample has as many tokens as its request
 * allows; passes return one metric and no outputs. It keeps no objects and
 * checks nothing.
 */
typedef struct local_stub local_stub_t;

typedef struct {
  const char *host;    /* numeric; NULL: 127.0.0.1 */
  int port;            /* 0: any free port */
  uint64_t latency_ms; /* a result is there so long after its request */
  /* Members of client/config; values in JSON. */
  const tnk_pair_t *flags;
  size_t n_flags;
  local_faults_t *faults; /* to inject; NULL: none. Outlives the stub. */
} local_stub_options_t;

/* TNK_OK, TNK_ENOMEM or a code of libuv; on failure the loop must be run for
 * the handles to go away. */
int local_stub_open(local_stub_t **out, uv_loop_t *loop,
                    const local_stub_options_t *options);
uint16_t local_stub_port(const local_stub_t *stub);
void local_stub_close(local_stub_t *stub);

#endif
