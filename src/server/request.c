#include "server/request.h"

#include <string.h>

#include "lib/base/limits.h"
#include "tnk/error.h"

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

void tnk__srv_req_forget(tnk__srv_req_t *req) {
  const tnk__srv_config_t *config = &req->http->config;

  if (req->fate != NULL)
    config->hooks->forget(req, config->hooks_user);
  req->fate = NULL;
  req->end = (tnk__srv_end_t){TNK__SRV_END_NOT, 0};
}

void tnk__srv_req_deinit(tnk__srv_req_t *req) {
  tnk__srv_req_forget(req);
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
  req->tag = 0;
  tnk__srv_req_forget(req);
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

/* ---- The head ---- */

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
  if (n_body > config->max_body)
    return 413;
  if (config->hooks == NULL)
    return 0;
  url = tnk__buf_cstr(&req->url);
  if (url != NULL)
    req->end = config->hooks->on_head(req, url, config->hooks_user);
  return req->end.how == TNK__SRV_END_NOT ? 0 : TNK__SRV_REFUSE_END;
}

/* ---- The body ---- */

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

/* ---- The complete request ---- */

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

void tnk__srv_req_take_path(tnk__srv_req_t *req) {
  if (req->path[0] == '\0')
    (void)take_url(req);
}

int tnk__srv_req_dispatch(tnk__srv_req_t *req, const char *method) {
  tnk__srv_t *http = req->http;

  req->n = ++http->n_requests;
  if (!take_url(req))
    return TNK__SRV_REFUSE_TARGET;
  req->method = method;
  req->is_head = strcmp(method, "HEAD") == 0;
  req->n_bytes_sent = req->body.len;
  http->config.handle(req, http->config.user);
  return 0;
}

/* ---- Reading a request ---- */

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
