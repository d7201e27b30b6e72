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

/* Send the bytes of a request. Returns 0 if the finding is recorded already. */
static int exchange(conform_t *c, conform_wire_t *wire, const char *method,
                    const char *path, const char *more, unsigned times,
                    conform_verdict_t *verdict) {
  tnk__buf_t out;

  memset(wire, 0, sizeof(*wire));
  if (!conform_wire_is_possible(c)) {
    *verdict = conform_tell(c, CONFORM_SKIPPED, "there is a proxy between");
    return 0;
  }
  tnk__buf_init(&out, tnk__allocator_default(), MAX_BYTES);
  for (unsigned i = 0; i < times; i++)
    conform_wire_head(c, &out, method, path, more);
  conform_wire(c, wire, out.data, out.len, 0, QUIET_MS);
  tnk__wipe(out.data, out.len);
  tnk__buf_deinit(&out);
  if (wire->in.len > 0 && tnk__buf_cstr(&wire->in) != NULL)
    return 1;
  *verdict = conform_tell(c, CONFORM_DIFFERS, "no answer: %s", wire->why);
  return 0;
}

static size_t count_of(const char *text, const char *what) {
  size_t n = 0;

  for (; (text = strstr(text, what)) != NULL; text += strlen(what))
    n++;
  return n;
}

static int status_of(const conform_wire_t *wire) {
  const char *text = (const char *)wire->in.data;
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

static conform_verdict_t one_answer(conform_t *c, const conform_rule_t *rule) {
  conform_wire_t wire;
  conform_verdict_t verdict = CONFORM_DIFFERS;

  (void)rule;
  if (exchange(c, &wire, "GET", healthz, "", 1, &verdict)) {
    const size_t n = count_of((const char *)wire.in.data, "HTTP/1.1 ");

    verdict = n == 1 ? conform_tell(c, CONFORM_HOLDS, "one")
                     : conform_tell(c, CONFORM_DIFFERS,
                                    "%zu answers to one request", n);
  }
  conform_wire_free(&wire);
  return verdict;
}

static conform_verdict_t keep_alive(conform_t *c, const conform_rule_t *rule) {
  conform_wire_t wire;
  conform_verdict_t verdict = CONFORM_DIFFERS;

  (void)rule;
  if (exchange(c, &wire, "GET", healthz, "", 2, &verdict)) {
    const size_t n = count_of((const char *)wire.in.data, "HTTP/1.1 ");

    if (n >= 2 && !wire.is_ended)
      verdict = conform_tell(c, CONFORM_HOLDS, "2 requests, and it stays open");
    else if (n >= 1 && wire.is_ended)
      verdict =
          conform_tell(c, CONFORM_ALLOWED, "closed after %zu of 2 requests", n);
    else if (n >= 1)
      verdict = conform_tell(c, CONFORM_ALLOWED, "1 of 2 that came together");
    else
      verdict = conform_tell(c, CONFORM_DIFFERS, "no answer of HTTP/1.1");
  }
  conform_wire_free(&wire);
  return verdict;
}

static conform_verdict_t headers_once(conform_t *c,
                                      const conform_rule_t *rule) {
  static const char *const names[] = {"content-type", "content-length",
                                      "retry-after", "date",
                                      "transfer-encoding"};
  conform_wire_t wire;
  conform_verdict_t verdict = CONFORM_DIFFERS;

  (void)rule;
  if (exchange(c, &wire, "GET", healthz, "", 1, &verdict)) {
    verdict = conform_tell(c, CONFORM_HOLDS, "none is there twice");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
      const char *at = line_of((const char *)wire.in.data, names[i]);

      if (at != NULL && line_of(at, names[i]) != NULL)
        verdict =
            conform_tell(c, CONFORM_DIFFERS, "%s is there twice", names[i]);
    }
  }
  conform_wire_free(&wire);
  return verdict;
}

static conform_verdict_t plain_answer(conform_t *c,
                                      const conform_rule_t *rule) {
  conform_wire_t wire;
  conform_verdict_t verdict = CONFORM_DIFFERS;

  (void)rule;
  if (exchange(c, &wire, "GET", healthz, "", 1, &verdict))
    verdict = line_of((const char *)wire.in.data, "content-encoding") == NULL
                  ? conform_tell(c, CONFORM_HOLDS, "not compressed")
                  : conform_tell(c, CONFORM_DIFFERS,
                                 "compressed, though nobody asked for it");
  conform_wire_free(&wire);
  return verdict;
}

/* An answer in progress must keep arriving: within 250 ms plus 1 s per KiB. */
static conform_verdict_t speed(conform_t *c, const conform_rule_t *rule) {
  conform_wire_t wire;
  conform_verdict_t verdict = CONFORM_DIFFERS;

  (void)rule;
  if (exchange(c, &wire, "GET", "get_server_capabilities", "", 1, &verdict)) {
    const uint64_t took = wire.last_ms - wire.head_ms;

    verdict = took <= 250 + wire.in.len
                  ? conform_tell(c, CONFORM_HOLDS, "it comes in one go")
                  : conform_tell(c, CONFORM_DIFFERS, "%zu bytes took %u ms",
                                 wire.in.len, (unsigned)took);
  }
  conform_wire_free(&wire);
  return verdict;
}

/* ---- Limits ---- */

static conform_verdict_t limit_header(conform_t *c,
                                      const conform_rule_t *rule) {
  enum { SIZE = 256 * 1024 };
  tnk__buf_t more;
  conform_wire_t wire;
  conform_verdict_t verdict = CONFORM_DIFFERS;
  int status;

  (void)rule;
  tnk__buf_init(&more, tnk__allocator_default(), MAX_BYTES);
  tnk__buf_text(&more, "X-Tnk-Conform: ");
  for (size_t i = 0; i < SIZE; i++)
    tnk__buf_byte(&more, 'x');
  tnk__buf_text(&more, "\r\n");
  if (tnk__buf_cstr(&more) == NULL)
    verdict = conform_tell(c, CONFORM_SKIPPED, "out of memory");
  else if (exchange(c, &wire, "GET", healthz, (const char *)more.data, 1,
                    &verdict)) {
    status = status_of(&wire);
    verdict = status >= 400 && status < 500
                  ? conform_tell(c, CONFORM_HOLDS, "256 KiB: %d", status)
                  : conform_tell(c, CONFORM_ALLOWED, "256 KiB: %d", status);
    conform_wire_free(&wire);
  } else {
    /* Closing the connection counts as an answer. */
    if (wire.is_ended)
      verdict = conform_tell(c, CONFORM_HOLDS, "256 KiB: it hangs up");
    conform_wire_free(&wire);
  }
  tnk__buf_deinit(&more);
  return verdict;
}

static conform_verdict_t limit_body(conform_t *c, const conform_rule_t *rule) {
  static const char more[] = "Content-Type: application/json\r\n"
                             "Content-Length: 1099511627776\r\n";
  conform_wire_t wire;
  conform_verdict_t verdict = CONFORM_DIFFERS;
  int status;

  (void)rule;
  if (exchange(c, &wire, "POST", "session_heartbeat", more, 1, &verdict)) {
    status = status_of(&wire);
    verdict =
        status >= 400 && status < 500
            ? conform_tell(c, CONFORM_HOLDS, "1 TiB announced: %d", status)
            : conform_tell(c, CONFORM_DIFFERS, "1 TiB announced: %d", status);
  } else if (wire.is_open) {
    verdict = conform_tell(c, CONFORM_ALLOWED, "1 TiB announced: %s",
                           wire.is_ended ? "it hangs up" : "it waits for it");
  }
  conform_wire_free(&wire);
  return verdict;
}

static conform_verdict_t limit_connections(conform_t *c,
                                           const conform_rule_t *rule) {
  enum { N = 64 };
  tnk__buf_t out;
  size_t n;

  (void)rule;
  if (!conform_wire_is_possible(c))
    return conform_tell(c, CONFORM_SKIPPED, "there is a proxy between");
  tnk__buf_init(&out, tnk__allocator_default(), MAX_BYTES);
  conform_wire_head(c, &out, "GET", healthz, "");
  n = conform_wire_many(c, N, out.data, out.len);
  tnk__wipe(out.data, out.len);
  tnk__buf_deinit(&out);
  if (n == N)
    return conform_tell(c, CONFORM_HOLDS, "%zu side by side", n);
  return conform_tell(c, n > 0 ? CONFORM_ALLOWED : CONFORM_DIFFERS,
                      "%zu of %d side by side", n, N);
}

/* ---- Versions ---- */

static const char preface[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0";

static conform_verdict_t http2(conform_t *c, const conform_rule_t *rule) {
  const int is_tls = c->config.url.is_tls;
  conform_wire_t wire;
  int speaks;

  (void)rule;
  if (!conform_wire_is_possible(c))
    return conform_tell(c, CONFORM_SKIPPED, "there is a proxy between");
  conform_wire(c, &wire, preface, sizeof(preface), 1, QUIET_MS);
  /* The first frame of the server is its SETTINGS. */
  speaks = wire.in.len >= 9 && wire.in.data[3] == 4 &&
           (!is_tls || strcmp(wire.alpn, "h2") == 0);
  conform_wire_free(&wire);
  if (speaks)
    return conform_tell(c, CONFORM_HOLDS, "%s",
                        is_tls ? "over TLS, by ALPN" : "with prior knowledge");
  return conform_tell(c, CONFORM_ABSENT, "HTTP/1.1 only");
}

/* ---- Malformed requests ---- */

static conform_verdict_t judge_refusal(conform_t *c, const conform_call_t *call,
                                       const char *what) {
  if (conform_is_refusal(call))
    return call->body.len > 0
               ? conform_tell(c, CONFORM_HOLDS, "%d", call->status)
               : conform_tell(c, CONFORM_DIFFERS,
                              "%d with an empty body, which clients take for "
                              "one of the network's edge",
                              call->status);
  return conform_other(c, call, what);
}

static conform_verdict_t unknown_path(conform_t *c,
                                      const conform_rule_t *rule) {
  const conform_call_t *call = conform_get(c, "tnk-conform-no-such-call");

  (void)rule;
  if (call->status != 404)
    return conform_other(c, call, "404");
  return judge_refusal(c, call, "404");
}

static conform_verdict_t wrong_method(conform_t *c,
                                      const conform_rule_t *rule) {
  const conform_call_t *call = conform_get(c, "create_session");

  (void)rule;
  if (call->status == 405 || call->status == 404)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "405");
}

/* A body that is not JSON, not an object, or missing. */
static conform_verdict_t bad_json(conform_t *c, const conform_rule_t *rule) {
  const char *body = rule->about;
  const conform_ask_t ask = {.method = "POST",
                             .path = "session_heartbeat",
                             .body = body,
                             .n_body = strlen(body)};

  return judge_refusal(c, conform_ask(c, &ask), "a 4xx");
}

static conform_verdict_t unknown_member(conform_t *c,
                                        const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  const conform_call_t *call;

  (void)rule;
  if (session == NULL)
    return conform_skip(c);
  call = conform_post(
      c, "session_heartbeat",
      json_pack("{s:s,s:{s:i}}", "session_id", session, "tnk_conform", "x", 1));
  if (conform_is_ok(call))
    return conform_tell(c, CONFORM_HOLDS, "ignored");
  if (call->status == 422 || call->status == 400)
    return conform_tell(c, CONFORM_ALLOWED, "%d: it reads requests strictly",
                        call->status);
  return conform_other(c, call, "a 2xx");
}

/* ---- Encodings of a request ---- */

/* Request a pass of a model that does not exist. A server that can decode the
 * body answers that the model is unknown. */
static const conform_call_t *encoded_pass(conform_t *c, const void *body,
                                          size_t n, const char *encoding) {
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

static conform_verdict_t zstd_body(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *plain = encoded_pass(c, pass, sizeof(pass) - 1, NULL);
  const conform_call_t *call;
  tnk__buf_t packed;

  (void)rule;
  if (!conform_is_refusal(plain))
    return conform_other(c, plain, "404, for there is no such model");
  tnk__buf_init(&packed, tnk__allocator_default(), MAX_BYTES);
  if (conform_zstd(&packed, pass, sizeof(pass) - 1) != TNK_OK) {
    tnk__buf_deinit(&packed);
    return conform_tell(c, CONFORM_SKIPPED, "out of memory");
  }
  call = encoded_pass(c, packed.data, packed.len, "zstd");
  tnk__buf_deinit(&packed);
  if (call->status == plain->status)
    return conform_tell(c, CONFORM_HOLDS, "read like the plain one");
  if (conform_is_refusal(call))
    return json_is_true(json_object_get(c->flags, "proto_compress_fwdbwd"))
               ? conform_other(c, call, "what the plain one gets")
               : conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  return conform_other(c, call, "what the plain one gets");
}

static conform_verdict_t bad_zstd(conform_t *c, const conform_rule_t *rule) {
  (void)rule;
  return judge_refusal(
      c, encoded_pass(c, "\x28\xb5\x2f\xfdgarbage", 11, "zstd"), "a 4xx");
}

static conform_verdict_t gzip_body(conform_t *c, const conform_rule_t *rule) {
  /* The same body as a stored block of deflate. */
  static const char packed[] =
      "\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x1e\0\xe1\xff\n\x0btnk-conform\x10\x01"
      "\"\rcross_entropy\0\0\0\0\x1e\0\0\0";
  const conform_call_t *call =
      encoded_pass(c, packed, sizeof(packed) - 1, "gzip");

  (void)rule;
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "a 4xx");
}

static const conform_rule_t rules[] = {
    {"http-one-answer", "a request gets one answer", "transport 2.4",
     CONFORM_FREE, one_answer, NULL},
    {"http-keep-alive", "a connection takes one request after the other",
     "transport 2.4", CONFORM_FREE, keep_alive, NULL},
    {"http-headers-once", "headers that frame an answer are there once",
     "transport 2.1", CONFORM_FREE, headers_once, NULL},
    {"http-plain", "who accepts no encoding gets none", "transport 2.1",
     CONFORM_FREE, plain_answer, NULL},
    {"http-speed", "an answer that has begun comes at once", "transport 2.3",
     CONFORM_FREE, speed, NULL},
    {"http-2", "HTTP/2 is spoken", "transport 2.4", CONFORM_FREE, http2, NULL},
    {"http-unknown-path", "an unknown call is a 404 with words",
     "reference 12.3", CONFORM_FREE, unknown_path, NULL},
    {"http-wrong-method", "a wrong method is refused", "reference 12.3",
     CONFORM_FREE, wrong_method, NULL},
    {"http-no-json", "a body that is no JSON is refused with words",
     "transport 2.6", CONFORM_FREE, bad_json, "{\"session_id\":"},
    {"http-no-object", "a body that is no object is refused with words",
     "transport 2.6", CONFORM_FREE, bad_json, "[1]"},
    {"http-missing-member", "a body without what it must have is refused",
     "transport 2.6", CONFORM_FREE, bad_json, "{}"},
    {"http-wrong-member", "a member of a wrong type is refused",
     "transport 2.6", CONFORM_FREE, bad_json, "{\"session_id\":7}"},
    {"http-unknown-member", "an unknown member is ignored", "reference 14",
     CONFORM_FREE, unknown_member, NULL},
    {"http-zstd", "a body in zstd is read", "training 5.1", CONFORM_FREE,
     zstd_body, NULL},
    {"http-bad-zstd", "a body that only claims to be zstd is refused",
     "training 5.1", CONFORM_FREE, bad_zstd, NULL},
    {"http-gzip", "a body in an encoding nobody offered is refused",
     "training 5.1", CONFORM_FREE, gzip_body, NULL},
    {"limit-connections", "64 connections are served side by side",
     "transport 2.4", CONFORM_FREE, limit_connections, NULL},
    {"limit-header", "a header without end is refused", "transport 2.1",
     CONFORM_FREE, limit_header, NULL},
    {"limit-body", "a body without end is refused when it is announced",
     "transport 2.1", CONFORM_FREE, limit_body, NULL},
};

const conform_group_t conform_http = {"HTTP", rules,
                                      sizeof(rules) / sizeof(*rules)};
