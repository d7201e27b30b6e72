#ifndef TNK_TOOLS_LOCAL_STUB_STUB_H
#define TNK_TOOLS_LOCAL_STUB_STUB_H

#include <stdint.h>

#include <uv.h>

#include "tools/local/base/drawn.h"
#include "server/full.h"
#include "tools/local/fault/fault.h"
#include "tools/local/stub/answers.h"
#include "tnk/common.h"

/*
 * A server with nothing behind it: valid, canned answers, as fast as they can
 * be given, for measuring clients. It keeps no objects and checks nothing.
 *
 * A sample has as many tokens as its request allows. The first three tell when
 * its result was there: nanoseconds of the monotonic clock, 21 bits each, the
 * lowest first; with answers or a sample log they do not, and with answers they
 * say those in turn, one a sequence, cut off at max_tokens. Passes return no
 * outputs and two metrics, one of which is the moment at which the last byte of
 * the request had come, "arrived_ns:max".
 *
 * Batched polls tell of the samples since the last sampling session was made.
 * GET /api/v1/stub/counts: requests accepted, polls held now, polls cut,
 * connections now and at most, requests that came by HTTP/2.
 */
typedef struct local_stub local_stub_t;

typedef struct {
  const char *host;     /* numeric; NULL: 127.0.0.1 */
  int port;             /* 0: any free port */
  const char *tls_cert; /* files, as local_options_t has them; */
  const char *tls_key;  /* NULL, both: no TLS */
  size_t max_conns;     /* 0: 65,536; for more, see `full` */
  tnk__srv_full_t full;
  uint32_t max_streams; /* requests at a time on one of HTTP/2; 0: 128 */
  uint64_t latency_ms;  /* from a request to its result, */
  uint64_t spread_ms;   /* and at most so much more */
  uint64_t hold_ms;     /* the longest that a poll is held; 0: 20,000 */
  /* Break the connection of a held poll after this time: of the first one for
   * each sample, and of every other batched one. 0: never. */
  uint64_t cut_ms;
  /* Members of client/config; values in JSON. */
  const tnk_pair_t *flags;
  size_t n_flags;
  local_faults_t *faults; /* to inject; NULL: none. Outlives the stub. */
  /* What samples say, and where that is written before it is answered. Both
   * outlive the stub; NULL: see above, and nowhere. */
  const local_stub_answers_t *answers;
  local_drawn_t *sample_log;
  /* Gets a sentence when opening fails and the code does not say it all. May
   * be NULL. */
  char *why;
  size_t n_why;
} local_stub_options_t;

/* Open a stub. TNK_OK, TNK_ENOMEM or a code of libuv; on failure the loop must
 * be run for the handles to be closed. */
int local_stub_open(local_stub_t **out, uv_loop_t *loop,
                    const local_stub_options_t *options);
uint16_t local_stub_port(const local_stub_t *stub);
/* Take no further connections, and close each one after the answers to its
 * requests. Results that no poll waits for are not kept. */
void local_stub_drain(local_stub_t *stub);
/* Whether no connections are left. */
int local_stub_is_drained(const local_stub_t *stub);
void local_stub_close(local_stub_t *stub);

#endif
