/* SPDX-License-Identifier: MIT */
/* Rules about HTTP: connections, lengths, encodings, errors, limits. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "tools/conform/state.h"

/* An answer is over when no byte arrives for this time. */
enum { QUIET_MS = 300, MAX_BYTES = 1 << 20 };

static const char healthz[] = "healthz";

/* ---- Direct connections ---- */

static int is_direct(conform_t *c) {
  if (!conform_wire_is_possible(c))
    conform_tell(c, CONFORM_SKIPPED, "the connection goes through a proxy");
  return conform_wire_is_possible(c);
}

/* Send the bytes of a request. Returns 0 if the finding is recorded already. */
static int exchange(conform_t *c, const char *method, const char *path,
                    const char *more, unsigned times) {
  conform_wire_t *wire = &c->wire;
  tnk__buf_t out;

  if (!is_direct(c))
    return 0;
  tnk__buf_init(&out, tnk__allocator_default(), MAX_BYTES);
  for (unsigned i = 0; i < times; i++)
    conform_wire_head(c, &out, method, path, more);
  conform_wire(c, wire, out.data, out.len, 0, QUIET_MS);
  tnk__wipe(out.data, out.len);
  tnk__buf_deinit(&out);
  if (wire->in.len > 0 && tnk__buf_cstr(&wire->in) != NULL)
    return 1;
  conform_tell(c, CONFORM_DIFFERS, "no response: %s", wire->why);
  return 0;
}

static int one_request(conform_t *c) {
  return exchange(c, "GET", healthz, "", 1);
}

static int two_requests(conform_t *c) {
  return exchange(c, "GET", healthz, "", 2);
}

static int long_answer(conform_t *c) {
  return exchange(c, "GET", "get_server_capabilities", "", 1);
}

static const char *received(const conform_t *c) {
  return (const char *)c->wire.in.data;
}

static size_t count_of(const char *text, const char *what) {
  size_t n = 0;

  for (; (text = strstr(text, what)) != NULL; text += strlen(what))
    n++;
  return n;
}

static int status_of(const conform_t *c) {
  const char *text = received(c);
  int status = 0;

  if (strncmp(text, "HTTP/1.", 7) != 0 || strlen(text) < 12)
    return 0;
  for (int i = 9; i < 12 && text[i] >= '0' && text[i] <= '9'; i++)
    status = status * 10 + (text[i] - '0');
  return status;
}

/* The line of a header in the head, or NULL. */
static const char *line_of(const char *head, const char *name) {
  const size_t n = strlen(name);

  for (; (head = strstr(head, "\r\n")) != NULL &&
         strncmp(head, "\r\n\r\n", 4) != 0;
       head += 2)
    if (strncasecmp(head + 2, name, n) == 0 && head[2 + n] == ':')
      return head + 2;
  return NULL;
}

static conform_verdict_t one_answer(conform_t *c) {
  const size_t n = count_of(received(c), "HTTP/1.1 ");

  if (n == 1)
    return conform_tell(c, CONFORM_HOLDS, "one response");
  return conform_tell(c, CONFORM_DIFFERS, "%zu responses to one request", n);
}

static conform_verdict_t keep_alive(conform_t *c) {
  const size_t n = count_of(received(c), "HTTP/1.1 ");

  if (n == 0)
    return conform_tell(c, CONFORM_DIFFERS, "no HTTP/1.1 response");
  if (c->wire.is_ended)
    return conform_tell(c, CONFORM_ALLOWED, "closed after %zu of 2 requests",
                        n);
  if (n == 1)
    return conform_tell(c, CONFORM_ALLOWED, "1 of 2 pipelined requests");
  return conform_tell(c, CONFORM_HOLDS, "2 requests, and it stays open");
}

static conform_verdict_t headers_once(conform_t *c) {
  static const char *const names[] = {"content-type", "content-length",
                                      "retry-after", "date",
                                      "transfer-encoding"};

  conform_tell(c, CONFORM_HOLDS, "no duplicates");
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
    const char *at = line_of(received(c), names[i]);

    if (at != NULL && line_of(at, names[i]) != NULL)
      conform_tell(c, CONFORM_DIFFERS, "%s occurs twice", names[i]);
  }
  return conform_told(c);
}

static conform_verdict_t plain_answer(conform_t *c) {
  if (line_of(received(c), "content-encoding") == NULL)
    return conform_tell(c, CONFORM_HOLDS, "not compressed");
  return conform_tell(c, CONFORM_DIFFERS, "compressed without a request");
}

/* An answer in progress must keep arriving: within 250 ms plus 1 s per KiB. */
static conform_verdict_t speed(conform_t *c) {
  const uint64_t took = c->wire.last_ms - c->wire.head_ms;

  if (took <= 250 + c->wire.in.len)
    return conform_tell(c, CONFORM_HOLDS, "no pauses");
  return conform_tell(c, CONFORM_DIFFERS, "%zu bytes took %u ms",
                      c->wire.in.len, (unsigned)took);
}

/* ---- Limits ---- */

static conform_verdict_t limit_header(conform_t *c) {
  enum { SIZE = 256 * 1024 };
  tnk__buf_t more;

  tnk__buf_init(&more, tnk__allocator_default(), MAX_BYTES);
  tnk__buf_text(&more, "X-Tnk-Conform: ");
  for (size_t i = 0; i < SIZE; i++)
    tnk__buf_byte(&more, 'x');
  tnk__buf_text(&more, "\r\n");
  if (tnk__buf_cstr(&more) == NULL) {
    conform_tell(c, CONFORM_SKIPPED, "out of memory");
  } else if (exchange(c, "GET", healthz, (const char *)more.data, 1)) {
    const int status = status_of(c);

    conform_tell(
        c, status >= 400 && status < 500 ? CONFORM_HOLDS : CONFORM_ALLOWED,
        "256 KiB: %d", status);
  } else if (c->wire.is_ended) { /* that counts as an answer */
    conform_tell(c, CONFORM_HOLDS, "256 KiB: connection closed");
  }
  tnk__buf_deinit(&more);
  return conform_told(c);
}

static conform_verdict_t limit_body(conform_t *c) {
  static const char more[] = "Content-Type: application/json\r\n"
                             "Content-Length: 1099511627776\r\n";

  if (exchange(c, "POST", "session_heartbeat", more, 1)) {
    const int status = status_of(c);

    conform_tell(
        c, status >= 400 && status < 500 ? CONFORM_HOLDS : CONFORM_DIFFERS,
        "1 TiB announced: %d", status);
  } else if (c->wire.is_open) {
    conform_tell(c, CONFORM_ALLOWED, "1 TiB announced: %s",
                 c->wire.is_ended ? "connection closed"
                                  : "the server waits for the body");
  }
  return conform_told(c);
}

static conform_verdict_t limit_connections(conform_t *c) {
  enum { N = 64 };
  tnk__buf_t out;
  size_t n;

  tnk__buf_init(&out, tnk__allocator_default(), MAX_BYTES);
  conform_wire_head(c, &out, "GET", healthz, "");
  n = conform_wire_many(c, N, out.data, out.len);
  tnk__wipe(out.data, out.len);
  tnk__buf_deinit(&out);
  if (n == N)
    return conform_tell(c, CONFORM_HOLDS, "%zu connections", n);
  return conform_tell(c, n > 0 ? CONFORM_ALLOWED : CONFORM_DIFFERS,
                      "%zu of %d connections", n, N);
}

/* ---- Versions ---- */

static const char preface[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0";

static conform_verdict_t http2(conform_t *c) {
  const int is_tls = c->config.url.is_tls;
  const conform_wire_t *wire = &c->wire;

  conform_wire(c, &c->wire, preface, sizeof(preface), 1, QUIET_MS);
  /* The first frame of the server is its SETTINGS. */
  if (wire->in.len >= 9 && wire->in.data[3] == 4 &&
      (!is_tls || strcmp(wire->alpn, "h2") == 0))
    return conform_tell(c, CONFORM_HOLDS, "%s",
                        is_tls ? "over TLS, by ALPN" : "with prior knowledge");
  return conform_tell(c, CONFORM_ABSENT, "HTTP/1.1 only");
}

/* ---- Malformed requests ---- */

/* A refusal with words. */
static conform_verdict_t refused(conform_t *c) {
  if (!conform_is_refusal(c->call))
    return conform_other(c, c->call, "a 4xx");
  if (c->call->body.len > 0)
    return conform_tell(c, CONFORM_HOLDS, "%d", c->call->status);
  return conform_tell(c, CONFORM_DIFFERS,
                      "%d with an empty body, which clients attribute to "
                      "a proxy",
                      c->call->status);
}

static conform_verdict_t unknown_path(conform_t *c) {
  return c->call->status == 404 ? refused(c) : conform_other(c, c->call, "404");
}

static conform_verdict_t wrong_method(conform_t *c) {
  if (c->call->status == 405 || c->call->status == 404)
    return conform_tell(c, CONFORM_HOLDS, "%d", c->call->status);
  return conform_other(c, c->call, "405");
}

/* A body that is not JSON, not an object, or missing. */
static conform_call_t *bad_json(conform_t *c) {
  const char *body = c->about;
  const conform_ask_t ask = {.method = "POST",
                             .path = "session_heartbeat",
                             .body = body,
                             .n_body = strlen(body)};

  return conform_ask(c, &ask);
}

static conform_call_t *unknown_member(conform_t *c) {
  return conform_post(c, "session_heartbeat", "{s:s,s:{s:i}}", "session_id",
                      c->session, "tnk_conform", "x", 1);
}

static conform_verdict_t ignored(conform_t *c) {
  if (conform_is_ok(c->call))
    return conform_tell(c, CONFORM_HOLDS, "ignored");
  if (c->call->status == 422 || c->call->status == 400)
    return conform_tell(c, CONFORM_ALLOWED, "%d: the server parses strictly",
                        c->call->status);
  return conform_other(c, c->call, "a 2xx");
}

/* ---- Encodings of a request ---- */

/* Request a pass of a model that does not exist. A server that can decode the
 * body answers that the model is unknown. */
static conform_call_t *encoded_pass(conform_t *c, const void *body, size_t n,
                                    const char *encoding) {
  const conform_ask_t ask = {.method = "POST",
                             .path = "forward_backward",
                             .body = body,
                             .n_body = n,
                             .type = "application/x-protobuf",
                             .encoding = encoding};

  return conform_ask(c, &ask);
}

/* A ForwardBackwardRequest of the model "tnk-conform", number 1, no data,
 * cross_entropy. */
static const char pass[] = "\n\x0btnk-conform\x10\x01\"\rcross_entropy";

static conform_call_t *plain_body(conform_t *c) {
  return encoded_pass(c, pass, sizeof(pass) - 1, NULL);
}

static conform_verdict_t zstd_body(conform_t *c) {
  const conform_call_t *plain = c->call;
  const conform_call_t *call;
  tnk__buf_t packed;

  if (!conform_is_refusal(plain))
    return conform_other(c, plain, "404, because there is no such model");
  tnk__buf_init(&packed, tnk__allocator_default(), MAX_BYTES);
  if (conform_zstd(&packed, pass, sizeof(pass) - 1) != TNK_OK) {
    tnk__buf_deinit(&packed);
    return conform_tell(c, CONFORM_SKIPPED, "out of memory");
  }
  call = encoded_pass(c, packed.data, packed.len, "zstd");
  tnk__buf_deinit(&packed);
  if (call->status == plain->status)
    return conform_tell(c, CONFORM_HOLDS, "same response as uncompressed");
  if (conform_is_refusal(call) && !conform_flag(c, "proto_compress_fwdbwd"))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  return conform_other(c, call, "the response to the uncompressed body");
}

static conform_call_t *bad_zstd(conform_t *c) {
  return encoded_pass(c, "\x28\xb5\x2f\xfdgarbage", 11, "zstd");
}

static conform_call_t *gzip_body(conform_t *c) {
  /* The same body as a stored block of deflate. */
  static const char packed[] =
      "\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x1e\0\xe1\xff\n\x0btnk-conform\x10\x01"
      "\"\rcross_entropy\0\0\0\0\x1e\0\0\0";

  return encoded_pass(c, packed, sizeof(packed) - 1, "gzip");
}

static const conform_rule_t rules[] = {
    {"http-one-answer", "a request gets exactly one response", "transport 2.4",
     CONFORM_FREE, one_request, NULL, one_answer, NULL},
    {"http-keep-alive", "a connection serves several requests", "transport 2.4",
     CONFORM_FREE, two_requests, NULL, keep_alive, NULL},
    {"http-headers-once", "headers that frame a response occur once",
     "transport 2.1", CONFORM_FREE, one_request, NULL, headers_once, NULL},
    {"http-plain", "a response is compressed only on request", "transport 2.1",
     CONFORM_FREE, one_request, NULL, plain_answer, NULL},
    {"http-speed", "a response arrives without pauses", "transport 2.3",
     CONFORM_FREE, long_answer, NULL, speed, NULL},
    {"http-2", "HTTP/2 is supported", "transport 2.4", CONFORM_FREE, is_direct,
     NULL, http2, NULL},
    {"http-unknown-path", "an unknown call gets 404 with a message",
     "reference 12.3", CONFORM_FREE, NULL, conform_get_about, unknown_path,
     "tnk-conform-no-such-call"},
    {"http-wrong-method", "a wrong method is rejected", "reference 12.3",
     CONFORM_FREE, NULL, conform_get_about, wrong_method, "create_session"},
    {"http-no-json", "a body that is not JSON is rejected with a message",
     "transport 2.6", CONFORM_FREE, NULL, bad_json, refused,
     "{\"session_id\":"},
    {"http-no-object",
     "a body that is not an object is rejected with a message", "transport 2.6",
     CONFORM_FREE, NULL, bad_json, refused, "[1]"},
    {"http-missing-member", "a body without a required member is rejected",
     "transport 2.6", CONFORM_FREE, NULL, bad_json, refused, "{}"},
    {"http-wrong-member", "a member of the wrong type is rejected",
     "transport 2.6", CONFORM_FREE, NULL, bad_json, refused,
     "{\"session_id\":7}"},
    {"http-unknown-member", "an unknown member is ignored", "reference 14",
     CONFORM_FREE, conform_needs_session, unknown_member, ignored, NULL},
    {"http-zstd", "a body in zstd is decompressed", "training 5.1",
     CONFORM_FREE, NULL, plain_body, zstd_body, NULL},
    {"http-bad-zstd", "an invalid zstd body is rejected", "training 5.1",
     CONFORM_FREE, NULL, bad_zstd, refused, NULL},
    {"http-gzip", "an unsupported content encoding is rejected", "training 5.1",
     CONFORM_FREE, NULL, gzip_body, conform_refused, NULL},
    {"limit-connections", "64 parallel connections are served", "transport 2.4",
     CONFORM_FREE, is_direct, NULL, limit_connections, NULL},
    {"limit-header", "an oversized header is rejected", "transport 2.1",
     CONFORM_FREE, NULL, NULL, limit_header, NULL},
    {"limit-body", "an oversized body is rejected when it is announced",
     "transport 2.1", CONFORM_FREE, NULL, NULL, limit_body, NULL},
};

const conform_group_t conform_http = {"HTTP", rules,
                                      sizeof(rules) / sizeof(*rules)};
