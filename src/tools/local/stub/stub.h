/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_STUB_STUB_H
#define TNK_TOOLS_LOCAL_STUB_STUB_H

#include <stdint.h>
#include <uv.h>

#include "lib/base/arena.h"
#include "server/full.h"
#include "tnk/common.h"
#include "tools/local/base/drawn.h"
#include "tools/local/fault/fault.h"

/*
 * The contents of samples, read from lines. Each line is a JSON string, whose
 * bytes become tokens, or a list of token ids. Blank lines are ignored.
 */
enum { LOCAL_STUB_MAX_ANSWERS = 65536, LOCAL_STUB_MAX_TOKENS = 65536 };

typedef struct {
  const int32_t *tokens;
  size_t n;
} local_stub_answer_t;

typedef struct {
  tnk__arena_t arena;
  local_stub_answer_t *list;
  size_t n; /* at least one after reading */
} local_stub_answers_t;

/* Converts a text to at most `max` tokens. Returns their number, or a negative
 * code of tnk/error.h. */
typedef int64_t (*local_stub_encode_fn)(void *user, const char *text, size_t n,
                                        int32_t *tokens, size_t max);

/* Parse the answers. Returns TNK_OK, TNK_EINVAL with a message in `why` that
 * names the line, or TNK_ENOMEM. If `encode` is NULL, bytes are tokens. */
int local_stub_answers_read(local_stub_answers_t *out, const char *text,
                            size_t n, const tnk_allocator_t *alloc,
                            local_stub_encode_fn encode, void *user, char *why,
                            size_t n_why);
/* Free the answers; allowed after a failure too. */
void local_stub_answers_free(local_stub_answers_t *answers);

/*
 * A server with canned, valid answers, as fast as possible, for measuring
 * clients. It keeps no objects and checks nothing.
 *
 * A sample has as many tokens as its request allows. The first three tokens
 * encode the time at which its result was available: nanoseconds of the
 * monotonic clock, 21 bits each, the lowest first. With canned answers or a
 * sample log they do not. With canned answers each sequence is the next answer,
 * truncated at max_tokens. Passes return no outputs and two metrics. One of
 * them is the arrival time of the request's last byte, "arrived_ns:max".
 *
 * Batched polls report the samples since the last sampling session was created.
 * GET /api/v1/stub/counts returns the accepted requests, how often and how long
 * the stub had no request whose result it had not sent (if clients repeat no
 * polls), the polls held now, the cut polls, the current and maximum number of
 * connections, and the requests over HTTP/2.
 */
typedef struct local_stub local_stub_t;

typedef struct {
  const char *host;     /* numeric; NULL: 127.0.0.1 */
  int port;             /* 0: any free port */
  const char *tls_cert; /* file names, as in local_options_t; */
  const char *tls_key;  /* both NULL: no TLS */
  size_t max_conns;     /* 0: 65,536; for more, see `full` */
  tnk__srv_full_t full;
  uint32_t max_streams; /* concurrent requests per HTTP/2 connection; 0: 128 */
  uint64_t latency_ms;  /* from a request to its result */
  uint64_t spread_ms;   /* maximum random addition */
  uint64_t hold_ms;     /* maximum time for a held poll; 0: 20,000 */
  /* Close the connection of a held poll after this time: of the first poll for
   * each sample, and of every other batched poll. 0: never. */
  uint64_t cut_ms;
  /* Members of client/config; values in JSON. */
  const tnk_pair_t *flags;
  size_t n_flags;
  local_faults_t *faults; /* to inject; NULL: none. Must outlive the stub. */
  /* The canned answers of samples, and the log that is written before an
   * answer. Both must outlive the stub. NULL: the tokens above, and no log. */
  const local_stub_answers_t *answers;
  local_drawn_t *sample_log;
  /* Receives a message if opening fails and the code is not sufficient. May be
   * NULL. */
  char *why;
  size_t n_why;
} local_stub_options_t;

/* Open a stub. Returns TNK_OK, TNK_ENOMEM or libuv's error code. After a
 * failure the loop must still run so that handles can close. */
int local_stub_open(local_stub_t **out, uv_loop_t *loop,
                    const local_stub_options_t *options);
uint16_t local_stub_port(const local_stub_t *stub);
/* Like local_server_drain() and local_server_is_drained(). */
void local_stub_drain(local_stub_t *stub, uint64_t absence_ms);
int local_stub_is_drained(local_stub_t *stub);
void local_stub_close(local_stub_t *stub);

#endif
