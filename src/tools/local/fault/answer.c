/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "tools/local/fault/calls.h"
#include "tools/local/fault/state.h"

/* ---- The answer ---- */

/*
 * Injects the faults that the plan has chosen. A fault replaces the handling of
 * a request, or changes its answer. In both cases fault_shape() sees the
 * answer last.
 */

enum { N_OVERSIZED_SENT = 64 * 1024 };

/* ---- The answer: retry headers ---- */

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static void write_date(local_fault_retry_t form, time_t when, char *out,
                       size_t size) {
  struct tm tm;
  const char *day;
  const char *month;

  gmtime_r(&when, &tm);
  day = days[tm.tm_wday];
  month = months[tm.tm_mon];
  if (form == LOCAL_RETRY_ASCTIME)
    snprintf(out, size, "%.3s %s %2d %02d:%02d:%02d %d", day, month, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec, tm.tm_year + 1900);
  else if (form == LOCAL_RETRY_RFC850)
    snprintf(out, size, "%s, %02d-%s-%02d %02d:%02d:%02d GMT", day, tm.tm_mday,
             month, tm.tm_year % 100, tm.tm_hour, tm.tm_min, tm.tm_sec);
  else
    snprintf(out, size, "%.3s, %02d %s %d %02d:%02d:%02d GMT", day, tm.tm_mday,
             month, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void put_retry(const local_fault_t *fault, tnk__srv_answer_t *answer) {
  char date[64];

  switch (fault->retry) {
  case LOCAL_RETRY_NONE:
    break;
  case LOCAL_RETRY_MS:
    snprintf(answer->line, sizeof(answer->line), "retry-after-ms: %" PRId64,
             fault->n);
    break;
  case LOCAL_RETRY_SECONDS:
    snprintf(answer->line, sizeof(answer->line), "Retry-After: %" PRId64,
             fault->n);
    break;
  default:
    write_date(fault->retry, time(NULL) + (time_t)fault->n, date, sizeof(date));
    snprintf(answer->line, sizeof(answer->line), "Retry-After: %s", date);
  }
}

/* ---- The answer: other answers ---- */

/* Without memory the answer has no body. */
static void set_body(const tnk__srv_req_t *req, tnk__srv_answer_t *answer,
                     const char *content_type, const void *body, size_t len) {
  const tnk_allocator_t *alloc = req->http->config.alloc;

  tnk__free(alloc, answer->body);
  answer->body = len > 0 ? tnk__malloc(alloc, len) : NULL;
  answer->len = answer->body != NULL ? len : 0;
  if (answer->body != NULL)
    memcpy(answer->body, body, len);
  answer->content_type = content_type;
  answer->extra = NULL;
}

static void set_text(const tnk__srv_req_t *req, tnk__srv_answer_t *answer,
                     const char *content_type, const char *text) {
  set_body(req, answer, content_type, text, strlen(text));
}

/* The sequence number of the request, as far as it was parsed. */
static void write_conflict(const tnk__srv_req_t *req,
                           const local_fault_t *fault, char *out, size_t size) {
  int64_t expected = fault->expected;

  if (fault->expect == LOCAL_EXPECT_RELATIVE && req->seq_id >= 0)
    expected =
        expected > INT64_MAX - req->seq_id ? INT64_MAX : expected + req->seq_id;
  if (fault->expect == LOCAL_EXPECT_NONE || req->seq_id < 0)
    snprintf(out, size, "{\"detail\":\"Conflict, as an injected fault\"}");
  else
    snprintf(out, size,
             "{\"detail\":\"Sequence conflict: expected %" PRId64
             ", got %" PRId64 "\"}",
             expected, req->seq_id);
}

static void set_status(const tnk__srv_req_t *req, const local_fault_t *fault,
                       tnk__srv_answer_t *answer) {
  char text[256];

  answer->status = fault->status;
  put_retry(fault, answer);
  if (fault->body == LOCAL_BODY_EMPTY) {
    set_body(req, answer, "text/plain", NULL, 0);
  } else if (fault->body == LOCAL_BODY_HTML) {
    snprintf(text, sizeof(text),
             "<html><head><title>%d</title></head>\r\n<body><h1>%d</h1>"
             "<p>An injected fault.</p></body></html>\r\n",
             fault->status, fault->status);
    set_text(req, answer, "text/html; charset=utf-8", text);
  } else {
    if (fault->status == 409)
      write_conflict(req, fault, text, sizeof(text));
    else
      snprintf(text, sizeof(text), "{\"detail\":\"An injected fault: %d\"}",
               fault->status);
    set_text(req, answer, "application/json", text);
  }
}

static void set_try_again(const tnk__srv_req_t *req, const local_fault_t *fault,
                          tnk__srv_answer_t *answer) {
  char text[256];

  snprintf(text, sizeof(text),
           "{\"type\":\"try_again\",\"request_id\":\"injected\","
           "\"queue_state\":\"%s\",\"queue_state_reason\":"
           "\"an injected fault\"}",
           fault->arg);
  answer->status = 200;
  set_text(req, answer, "application/json", text);
}

static void set_bad_proto(const tnk__srv_req_t *req,
                          tnk__srv_answer_t *answer) {
  /* A field with a length that exceeds the remaining bytes. */
  static const uint8_t bytes[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00};

  answer->status = 200;
  set_body(req, answer, "application/x-protobuf", bytes, sizeof(bytes));
}

static void set_other_answer(const tnk__srv_req_t *req,
                             tnk__srv_answer_t *answer) {
  const local_faults_t *faults = req->http->config.hooks_user;

  answer->status = 200;
  if (faults->n_kept > 0)
    set_body(req, answer,
             faults->kept_is_proto ? "application/x-protobuf"
                                   : "application/json",
             faults->kept, faults->n_kept);
  else
    set_text(req, answer, "application/json", "{\"status\":\"ok\"}");
}

static void add_line(const local_fault_t *fault, tnk__srv_answer_t *answer) {
  char date[64];

  if (strcmp(fault->arg, "content-length") == 0) {
    snprintf(answer->line, sizeof(answer->line), "Content-Length: %zu",
             answer->len);
  } else if (strcmp(fault->arg, "retry-after") == 0) {
    snprintf(answer->line, sizeof(answer->line),
             "Retry-After: 1\r\nRetry-After: 2");
  } else if (strcmp(fault->arg, "date") == 0) {
    write_date(LOCAL_RETRY_DATE, time(NULL), date, sizeof(date));
    snprintf(answer->line, sizeof(answer->line), "Date: %s\r\nDate: %s", date,
             date);
  } else {
    snprintf(answer->line, sizeof(answer->line), "Content-Type: text/plain");
  }
}

/* Returns whether a string may appear in a header line. */
static int is_plain(const char *text) {
  while (*text > ' ' && *text <= '~')
    text++;
  return *text == '\0';
}

/* The other origin is this machine under its other name. The contents are the
 * same, so a client that follows gets the file. */
static void set_redirect(const tnk__srv_req_t *req, const local_fault_t *fault,
                         tnk__srv_answer_t *answer) {
  const char *host = tnk__srv_req_header(req, "host");
  const char *scheme =
      req->http->config.tls_cert != NULL &&
              !local_fault_is(fault, LOCAL_FAULT_REDIRECT, LOCAL_TO_HTTP)
          ? "https"
          : "http";
  char name[160];

  answer->status = 302;
  set_body(req, answer, "text/plain", NULL, 0);
  if (host == NULL || strlen(host) >= sizeof(name) || !is_plain(host) ||
      !is_plain(req->path) || !is_plain(req->query))
    return;
  snprintf(name, sizeof(name), "%s", host);
  if (local_fault_is(fault, LOCAL_FAULT_REDIRECT, LOCAL_TO_ORIGIN))
    snprintf(name, sizeof(name), "%s:%d",
             strncmp(host, "localhost", 9) == 0 ? "127.0.0.1" : "localhost",
             req->http->port);
  if (local_fault_is(fault, LOCAL_FAULT_REDIRECT, LOCAL_TO_FILE))
    snprintf(answer->line, sizeof(answer->line), "Location: file://%s",
             req->path);
  else
    snprintf(answer->line, sizeof(answer->line), "Location: %s://%s%s%s%s",
             scheme, name, req->path, req->query[0] != '\0' ? "?" : "",
             req->query);
}

/* Remove the last bytes; the length in the header is that of the rest. */
static void cut_off(const local_fault_t *fault, tnk__srv_answer_t *answer) {
  answer->len -=
      (uint64_t)fault->n < answer->len ? (size_t)fault->n : answer->len;
}

static void set_oversized(const tnk__srv_req_t *req, const local_fault_t *fault,
                          tnk__srv_answer_t *answer) {
  static const char blanks[1024] = " ";
  const tnk_allocator_t *alloc = req->http->config.alloc;
  size_t n = fault->n < N_OVERSIZED_SENT ? (size_t)fault->n : N_OVERSIZED_SENT;

  tnk__free(alloc, answer->body);
  answer->body = tnk__malloc(alloc, n);
  answer->len = answer->body != NULL ? n : 0;
  if (answer->body != NULL)
    memset(answer->body, blanks[0], n);
  answer->n_sent = answer->len;
  answer->announced = (uint64_t)fault->n;
}

/* ---- The answer: entry points ---- */

/* Keep successful answers only, because a foreign failure would be
 * recognized. */
static void keep(local_faults_t *faults, const tnk__srv_answer_t *answer) {
  if (answer->status / 100 != 2 || answer->len == 0 ||
      answer->len > sizeof(faults->kept))
    return;
  memcpy(faults->kept, answer->body, answer->len);
  faults->n_kept = answer->len;
  faults->kept_is_proto = strstr(answer->content_type, "protobuf") != NULL;
}

static void act(const tnk__srv_req_t *req, const local_fault_t *fault,
                tnk__srv_answer_t *answer) {
  switch (fault->kind) {
  case LOCAL_FAULT_DROP:
    answer->status = -1;
    answer->ends_conn = fault->arg != NULL;
    break;
  case LOCAL_FAULT_GOAWAY:
    answer->is_goodbye = 1;
    break;
  case LOCAL_FAULT_STATUS:
    set_status(req, fault, answer);
    break;
  case LOCAL_FAULT_TRY_AGAIN:
    set_try_again(req, fault, answer);
    break;
  case LOCAL_FAULT_BAD_JSON:
    answer->status = 200;
    set_text(req, answer, "application/json", "{\"request_id\":\"x\",");
    break;
  case LOCAL_FAULT_BAD_PROTO:
    set_bad_proto(req, answer);
    break;
  case LOCAL_FAULT_WRONG_TYPE:
    answer->content_type = "text/html; charset=utf-8";
    break;
  case LOCAL_FAULT_OTHER_ANSWER:
    set_other_answer(req, answer);
    break;
  case LOCAL_FAULT_EXTRA_ANSWER:
    answer->is_twice = 1;
    break;
  case LOCAL_FAULT_TWICE_HEADER:
    add_line(fault, answer);
    break;
  case LOCAL_FAULT_PENDING:
    answer->status = 200;
    set_text(req, answer, "application/json",
             "{\"status\":\"pending\",\"url\":null,\"error\":null}");
    break;
  case LOCAL_FAULT_REDIRECT:
    set_redirect(req, fault, answer);
    break;
  case LOCAL_FAULT_SHORT:
    cut_off(fault, answer);
    break;
  default:
    break;
  }
  answer->announced = answer->n_sent = answer->len;
  if (fault->kind == LOCAL_FAULT_CUT && answer->len > 0)
    answer->n_sent =
        (size_t)fault->n < answer->len ? (size_t)fault->n : answer->len - 1;
  else if (fault->kind == LOCAL_FAULT_SLOW)
    answer->rate = (uint64_t)fault->n;
  else if (fault->kind == LOCAL_FAULT_OVERSIZED)
    set_oversized(req, fault, answer);
}

const local_fault_t *local_fault_of(const tnk__srv_req_t *req) {
  static const local_fault_t none = {0};

  return req->fate != NULL ? req->fate : &none;
}

/* Change the answer according to the request's fault, and log the fault. */
static void fault_shape(tnk__srv_req_t *req, tnk__srv_answer_t *answer,
                        void *user) {
  const local_fault_t *fault = local_fault_of(req);
  local_faults_t *faults = user;
  const tnk__srv_answer_t own = *answer;

  if (fault->kind == LOCAL_FAULT_NONE) {
    if (faults->spec.n_rules > 0)
      keep(faults, &own);
    return;
  }
  act(req, fault, answer);
  local_faults_note(faults, fault, req->n, req->path, req->seq_id);
}

/* ---- The hooks ---- */

/* The hooks of the HTTP server that select and inject faults. */

/* Codes of HTTP/2, which are the same in a build without it. */
static uint32_t code_of(const local_fault_t *fault) {
  static const struct {
    const char *arg;
    uint32_t code;
  } known[] = {{LOCAL_RESET_REFUSED, 0x7},
               {LOCAL_RESET_CALM, 0xb},
               {LOCAL_RESET_CANCEL, 0x8},
               {LOCAL_RESET_PROTOCOL, 0x1},
               {LOCAL_RESET_HTTP_1_1, 0xd}};
  enum { INTERNAL_ERROR = 0x2 };

  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (fault->arg != NULL && strcmp(fault->arg, known[i].arg) == 0)
      return known[i].code;
  return INTERNAL_ERROR;
}

static int refuses(void *user) {
  return local_faults_refuses(user);
}

/* The fault is chosen before the body is read. Without memory there is no
 * fault. */
static tnk__srv_end_t on_head(tnk__srv_req_t *req, const char *url,
                              void *user) {
  tnk__srv_end_t end = {TNK__SRV_END_NOT, 0};
  local_fault_t fault;
  local_fault_t *kept;

  local_faults_decide(user, url, &fault);
  if (fault.kind == LOCAL_FAULT_NONE)
    return end;
  kept = tnk__malloc(req->http->config.alloc, sizeof(*kept));
  if (kept == NULL)
    return end;
  *kept = fault;
  req->fate = kept;
  if (!local_fault_is_at_head(&fault))
    return end;
  local_faults_note(user, &fault, req->http->n_requests + 1, url, -1);
  end.code = code_of(&fault);
  if (fault.kind == LOCAL_FAULT_GOAWAY)
    end.how = TNK__SRV_END_AWAY;
  else if (local_fault_is(&fault, fault.kind, LOCAL_ARG_CONNECTION))
    end.how = TNK__SRV_END_CONN;
  else
    end.how = TNK__SRV_END_RESET;
  return end;
}

static void forget(tnk__srv_req_t *req, void *user) {
  (void)user;
  tnk__free(req->http->config.alloc, req->fate);
}

const tnk__srv_hooks_t local_fault_hooks = {refuses, on_head, fault_shape,
                                            forget};

/* This answer is never sent: fault_shape() replaces it, as it sees all
 * answers. */
int local_fault_answers(tnk__srv_req_t *req) {
  const local_fault_t *fault = local_fault_of(req);

  if (fault->kind == LOCAL_FAULT_NONE || fault->after)
    return 0;
  tnk__srv_req_reply(req, 500, "application/json", NULL, NULL, 0);
  return 1;
}
