/* SPDX-License-Identifier: MIT */
#include "server/request.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "server/tls.h"
#include "tnk/error.h"

/* ---- Requests ---- */

/*
 * Requests. A version of HTTP puts a request together, and handlers read it.
 * The limits here, and the responses to requests beyond them, are the same for
 * both versions.
 */

enum {
  MAX_HEADERS = 128,
  /* A larger buffer is not kept for the next request. */
  KEEP_CAPACITY = 16 * 1024
};

void tnk__srv_req_init(tnk__srv_req_t *req, tnk__srv_t *http,
                       const tnk__srv_req_ops_t *ops) {
  const tnk_allocator_t *alloc = http->config.alloc;

  req->http = http;
  req->ops = ops;
  tnk__buf_init(&req->url, alloc, TNK__MAX_URL);
  tnk__buf_init(&req->head, alloc, TNK__MAX_REQUEST_HEAD);
  tnk__buf_init(&req->body, alloc, http->config.max_body);
  tnk__srv_req_begin(req);
}

/* Drop the decisions of hooks about the request. */
static void srv_req_forget(tnk__srv_req_t *req) {
  const tnk__srv_config_t *config = &req->http->config;

  if (req->fate != NULL)
    config->hooks->forget(req, config->hooks_user);
  req->fate = NULL;
  req->end = (tnk__srv_end_t){TNK__SRV_END_NOT, 0};
}

static void end_owner(tnk__srv_req_t *req) {
  void *owner = req->owner;

  req->owner = NULL;
  if (owner != NULL)
    req->http->config.on_end(owner, req->http->config.user);
}

void tnk__srv_req_deinit(tnk__srv_req_t *req) {
  end_owner(req);
  srv_req_forget(req);
  tnk__buf_deinit(&req->url);
  tnk__buf_deinit(&req->head);
  tnk__buf_deinit(&req->body);
}

void tnk__srv_req_begin(tnk__srv_req_t *req) {
  tnk__buf_clear(&req->url);
  tnk__buf_clear(&req->head);
  tnk__buf_clear(&req->body);
  /* The old values point into buffers that the next request may move. */
  req->method = req->path = req->query = "";
  req->on_gone = NULL;
  req->user = NULL;
  req->n_headers = 0;
  req->seq_id = -1;
  req->is_head = 0;
  req->is_framed = 1;
  req->tag = 0;
  req->note = 0;
  end_owner(req);
  req->max_body = req->body.max = req->http->config.max_body;
  srv_req_forget(req);
  req->key_hash = 0;
}

/* A connection may stay open for long after one large request. */
static void shrink(tnk__buf_t *buf) {
  if (buf->cap > KEEP_CAPACITY)
    tnk__buf_deinit(buf);
  else
    tnk__buf_clear(buf);
}

void tnk__srv_req_shrink(tnk__srv_req_t *req) {
  shrink(&req->head);
  shrink(&req->body);
}

/* ---- Requests: the head ---- */

int tnk__srv_req_add_name(tnk__srv_req_t *req, const char *at, size_t n) {
  uint8_t *to = tnk__buf_reserve(&req->head, n);

  if (to == NULL)
    return 431;
  for (size_t i = 0; i < n; i++) {
    char c = at[i];

    to[i] = (uint8_t)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  }
  req->head.len += n;
  return 0;
}

/* llhttp accepts a header line that starts with a colon. */
static int is_nameless(const tnk__buf_t *head) {
  return head->len == 0 || head->data[head->len - 1] == '\0';
}

int tnk__srv_req_end_name(tnk__srv_req_t *req) {
  if (++req->n_headers > MAX_HEADERS)
    return 431;
  if (is_nameless(&req->head))
    return 400;
  return tnk__buf_byte(&req->head, 0) == TNK_OK ? 0 : 431;
}

int tnk__srv_req_add_value(tnk__srv_req_t *req, const char *at, size_t n) {
  /* NUL separates the strings in `head`. */
  if (memchr(at, 0, n) != NULL)
    return 400;
  return tnk__buf_append(&req->head, at, n) == TNK_OK ? 0 : 431;
}

int tnk__srv_req_end_value(tnk__srv_req_t *req) {
  return tnk__buf_byte(&req->head, 0) == TNK_OK ? 0 : 431;
}

/* Hooks decide about the request before its body is read. */
int tnk__srv_req_end_head(tnk__srv_req_t *req, uint64_t n_body) {
  const tnk__srv_config_t *config = &req->http->config;
  const char *url;
  int refusal = config->admit != NULL ? config->admit(req, config->user) : 0;

  if (refusal != 0)
    return refusal;
  if (n_body > req->max_body)
    return 413;
  req->body.max = req->max_body;
  if (config->hooks == NULL)
    return 0;
  url = tnk__buf_cstr(&req->url);
  if (url != NULL)
    req->end = config->hooks->on_head(req, url, config->hooks_user);
  return req->end.how == TNK__SRV_END_NOT ? 0 : TNK__SRV_REFUSE_END;
}

/* ---- Requests: the body ---- */

int tnk__srv_req_add_body(tnk__srv_req_t *req, const void *at, size_t n,
                          uint64_t announced) {
  tnk__buf_t *body = &req->body;

  /* Reserve the announced length, unless it is large: a peer gets memory for
   * bytes that it sends, not for bytes that it announces. */
  if (body->len == 0 && announced < TNK__MIB &&
      tnk__buf_reserve(body, n + (size_t)announced) == NULL)
    return body->err == TNK_ENOMEM ? 503 : 413;
  if (tnk__buf_append(body, at, n) == TNK_OK)
    return 0;
  return body->err == TNK_ENOMEM ? 503 : 413;
}

/* ---- Requests: the complete request ---- */

static int hex(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/* Percent-decode in place. Returns 0 if malformed, or if the result would have
 * a NUL. */
static int url_decode(char *text) {
  char *to = text;

  for (const char *p = text; *p != '\0'; p++) {
    if (*p != '%') {
      *to++ = *p;
      continue;
    }
    if (hex(p[1]) < 0 || hex(p[2]) < 0 || (p[1] == '0' && p[2] == '0'))
      return 0;
    *to++ = (char)(hex(p[1]) * 16 + hex(p[2]));
    p += 2;
  }
  *to = '\0';
  return 1;
}

/* Split the URL into path and query. Returns 0 if it is invalid. */
static int take_url(tnk__srv_req_t *req) {
  char *url;
  char *mark;

  if (tnk__buf_cstr(&req->url) == NULL)
    return 0;
  url = (char *)req->url.data;
  /* The absolute form of a target, which servers must accept (RFC 9112, section
   * 3.2.2). */
  if (strncmp(url, "http://", 7) == 0)
    url += 7 + strcspn(url + 7, "/?");
  mark = strchr(url, '?');
  if (mark != NULL)
    *mark++ = '\0';
  req->query = mark != NULL ? mark : "";
  req->path = url;
  return url[0] == '/' && url_decode(url);
}

/* Set the path of an incomplete request, as far as it has arrived. */
static void srv_req_take_path(tnk__srv_req_t *req) {
  if (req->path[0] == '\0')
    (void)take_url(req);
}

void tnk__srv_req_set_method(tnk__srv_req_t *req, const char *method) {
  req->method = method;
  req->is_head = strcmp(method, "HEAD") == 0;
}

int tnk__srv_req_dispatch(tnk__srv_req_t *req) {
  tnk__srv_t *http = req->http;

  req->n = ++http->n_requests;
  if (!take_url(req))
    return TNK__SRV_REFUSE_TARGET;
  req->n_bytes_sent = req->body.len;
  http->config.handle(req, http->config.user);
  return 0;
}

/* ---- Requests: reading a request ---- */

/* Get the next value of the header `name`, or NULL. *at is NULL at first, and
 * is moved to the following header. */
static const char *next_value(const tnk__srv_req_t *req, const char *name,
                              const char **at) {
  const char *end;

  if (req->head.len == 0)
    return NULL;
  end = (const char *)req->head.data + req->head.len;
  if (*at == NULL)
    *at = (const char *)req->head.data;
  while (*at < end) {
    const char *header = *at;
    const char *value = header + strlen(header) + 1;

    if (value > end)
      break;
    *at = value + strlen(value) + 1;
    if (strcmp(header, name) == 0)
      return value;
  }
  return NULL;
}

const char *tnk__srv_req_header(const tnk__srv_req_t *req, const char *name) {
  const char *at = NULL;

  return next_value(req, name, &at);
}

size_t tnk__srv_req_count(const tnk__srv_req_t *req, const char *name) {
  const char *at = NULL;
  size_t n = 0;

  while (next_value(req, name, &at) != NULL)
    n++;
  return n;
}

tnk__srv_certificate_t tnk__srv_req_certificate(const tnk__srv_req_t *req,
                                                const char *name) {
  return tnk__srv_certificate_is(tnk__srv_tls_client(req->tls), name);
}

void tnk__srv_req_subject(const tnk__srv_req_t *req,
                          char out[TNK__SRV_SUBJECT]) {
  tnk__srv_certificate_subject(tnk__srv_tls_client(req->tls), out);
}

int tnk__srv_req_query(const tnk__srv_req_t *req, const char *name, char *out,
                       size_t size) {
  size_t n_name = strlen(name);
  const char *at = req->query;

  while (*at != '\0') {
    size_t n = strcspn(at, "&");

    if (n > n_name && at[n_name] == '=' && memcmp(at, name, n_name) == 0) {
      size_t n_value = n - n_name - 1;

      if (n_value >= size)
        return 0;
      memcpy(out, at + n_name + 1, n_value);
      out[n_value] = '\0';
      return url_decode(out);
    }
    at += n;
    if (*at == '&')
      at++;
  }
  return 0;
}

/* ---- Answers ---- */

/* Operations of handlers on a request of any version: answer it, now or
 * later. */

void tnk__srv_req_reply(tnk__srv_req_t *req, int status,
                        const char *content_type, const char *extra,
                        uint8_t *body, size_t len) {
  const tnk__srv_config_t *config = &req->http->config;
  tnk__srv_answer_t answer = {.status = status,
                              .content_type = content_type,
                              .extra = extra,
                              .body = body,
                              .len = len,
                              .announced = len,
                              .n_sent = len};

  req->on_gone = NULL;
  end_owner(req);
  if (config->on_answer != NULL)
    config->on_answer(req, status, body, len, config->user);
  if (config->hooks != NULL)
    config->hooks->shape(req, &answer, config->hooks_user);
  if (config->on_reply != NULL)
    config->on_reply(req, answer.status, config->user);
  req->ops->answer(req, &answer);
}

void tnk__srv_req_reply_text(tnk__srv_req_t *req, int status,
                             const char *content_type, const char *text) {
  size_t len = strlen(text);
  char *copy = tnk__strndup(req->http->config.alloc, text, len);

  if (copy == NULL) {
    tnk__srv_req_drop(req);
    return;
  }
  tnk__srv_req_reply(req, status, content_type, NULL, (uint8_t *)copy, len);
}

void tnk__srv_req_open(tnk__srv_req_t *req, int status,
                       const char *content_type, const char *extra) {
  const tnk__srv_answer_t head = {
      .status = status, .content_type = content_type, .extra = extra};

  req->ops->begin(req, &head);
}

void tnk__srv_req_keep(tnk__srv_req_t *req, const char *text) {
  req->ops->keep(req, text);
}

void tnk__srv_req_finish(tnk__srv_req_t *req, uint8_t *body, size_t len) {
  req->on_gone = NULL;
  end_owner(req);
  req->ops->finish(req, body, len);
}

void tnk__srv_req_drop(tnk__srv_req_t *req) {
  req->on_gone = NULL;
  end_owner(req);
  req->ops->drop(req);
}

void tnk__srv_req_park(tnk__srv_req_t *req,
                       void (*on_gone)(tnk__srv_req_t *req, void *user),
                       void *user) {
  req->on_gone = on_gone;
  req->user = user;
}

void tnk__srv_req_gone(tnk__srv_req_t *req) {
  void (*on_gone)(tnk__srv_req_t *, void *) = req->on_gone;

  req->on_gone = NULL;
  end_owner(req);
  if (on_gone != NULL)
    on_gone(req, req->user);
}

static const char *text_of(int refusal) {
  static const struct {
    int refusal;
    const char *text;
  } known[] = {
      {400, "Invalid HTTP request received."},
      {413, "Request body is too large"},
      {414, "Request target is too long"},
      {431, "Request headers are too large"},
      {503, "Out of memory"},
      {TNK__SRV_REFUSE_TARGET, "Malformed request target"},
      {TNK__SRV_REFUSE_FULL, "Too many connections"},
  };

  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (known[i].refusal == refusal)
      return known[i].text;
  return "";
}

/* Drop the headers, because the last one may be incomplete. Drop the decision
 * of hooks too, because the request never became complete. */
void tnk__srv_req_refuse(tnk__srv_req_t *req, int refusal) {
  const tnk__srv_config_t *config = &req->http->config;
  const char *text = text_of(refusal);
  int status = refusal > 0                         ? refusal
               : refusal == TNK__SRV_REFUSE_TARGET ? 400
                                                   : 503;
  char detail[128];

  tnk__buf_clear(&req->head);
  srv_req_forget(req);
  if (config->refuse != NULL) {
    /* A complete request has its number already. */
    if (refusal != TNK__SRV_REFUSE_TARGET)
      req->n = ++req->http->n_requests;
    srv_req_take_path(req);
    config->refuse(req, status, text, config->user);
    return;
  }
  /* The format of the load balancers in front of servers. */
  if (refusal == TNK__SRV_REFUSE_FULL) {
    tnk__srv_req_reply_text(
        req, status, "text/html",
        "<html><head><title>503 Service Unavailable</title></head>\r\n"
        "<body><h1>503 Service Unavailable</h1>"
        "<p>Too many connections.</p></body></html>\r\n");
    return;
  }
  (void)snprintf(detail, sizeof(detail), "{\"detail\":\"%s\"}", text);
  tnk__srv_req_reply_text(req, status, "application/json", detail);
}
