#include "local/http/conn.h"

#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "tnk/error.h"

/*
 * A connection reads one request, hands it out, and reads on once it has been
 * answered:
 *
 *   READING --message complete--> HANDLING --answered--> READING
 *   READING --refused, answered--> DRAINING --end of stream--> CLOSING
 *   any --error, end of stream, answer without keep-alive--> CLOSING
 *
 * While a request is in hand the socket is still read, so that a peer that
 * leaves is noticed; what it sends meanwhile waits in `pending`, and reading
 * stops when that is full.
 */

/* The parser's callbacks want the connection reset. */
enum { RESET = -1 };

enum {
  MAX_PENDING = 64 * 1024,
  MAX_HEADERS = 128,
  /* Read and dropped behind a refusal, before the connection closes. */
  MAX_DRAINED = 16 << 20
};

#define CONN(p) ((local_conn_t *)(p)->data)

/* ---- Reading ---- */

static int refuse(local_conn_t *conn, int status) {
  conn->refuse = status;
  return HPE_USER;
}

static int on_begin(llhttp_t *parser) {
  local_conn_t *conn = CONN(parser);

  tnk__buf_clear(&conn->url);
  tnk__buf_clear(&conn->req.head);
  tnk__buf_clear(&conn->req.body);
  /* Those of the request before point into memory that the next one moves. */
  conn->req.method = conn->req.path = conn->req.query = "";
  conn->req.on_gone = NULL;
  conn->req.user = NULL;
  conn->begun = 1;
  conn->req.seq_id = -1;
  conn->req.is_head = 0;
  conn->req.tag = 0;
  conn->req.fault = (local_fault_t){0};
  conn->req.key_hash = 0;
  conn->n_headers = 0;
  return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t n) {
  local_conn_t *conn = CONN(parser);

  return tnk__buf_append(&conn->url, at, n) == TNK_OK ? 0 : refuse(conn, 414);
}

static int on_field(llhttp_t *parser, const char *at, size_t n) {
  local_conn_t *conn = CONN(parser);
  uint8_t *to = tnk__buf_reserve(&conn->req.head, n);

  if (to == NULL)
    return refuse(conn, 431);
  for (size_t i = 0; i < n; i++) {
    char c = at[i];

    to[i] = (uint8_t)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  }
  conn->req.head.len += n;
  return 0;
}

static int end_of_part(local_conn_t *conn) {
  return tnk__buf_byte(&conn->req.head, 0) == TNK_OK ? 0 : refuse(conn, 431);
}

/* The parser lets a line through that begins with its colon. */
static int is_nameless(const tnk__buf_t *head) {
  return head->len == 0 || head->data[head->len - 1] == '\0';
}

static int on_field_complete(llhttp_t *parser) {
  local_conn_t *conn = CONN(parser);

  if (++conn->n_headers > MAX_HEADERS)
    return refuse(conn, 431);
  if (is_nameless(&conn->req.head))
    return refuse(conn, 400);
  return end_of_part(conn);
}

static int on_value(llhttp_t *parser, const char *at, size_t n) {
  local_conn_t *conn = CONN(parser);

  /* The head is kept as a row of texts that end with one. */
  if (memchr(at, 0, n) != NULL)
    return refuse(conn, 400);
  return tnk__buf_append(&conn->req.head, at, n) == TNK_OK ? 0
                                                           : refuse(conn, 431);
}

static int on_value_complete(llhttp_t *parser) {
  return end_of_part(CONN(parser));
}

/* The fate of the request is decided before its body is read. */
static void decide(local_conn_t *conn) {
  local_http_t *http = conn->http;
  const char *url = tnk__buf_cstr(&conn->url);

  if (url != NULL)
    local_faults_decide(http->config.faults, url, &conn->req.fault);
  if (conn->req.fault.kind == LOCAL_FAULT_RESET)
    local_faults_note(http->config.faults, &conn->req.fault,
                      http->n_requests + 1, url, -1);
}

static int on_headers_complete(llhttp_t *parser) {
  local_conn_t *conn = CONN(parser);
  const char *expect = local_req_header(&conn->req, "expect");

  /* Offers to change the protocol are ignored, as the standard allows. */
  parser->upgrade = 0;
  if (parser->content_length > conn->http->config.max_body)
    return refuse(conn, 413);
  if (conn->http->config.faults != NULL)
    decide(conn);
  if (conn->req.fault.kind == LOCAL_FAULT_RESET)
    return refuse(conn, RESET);
  if (expect != NULL)
    local_conn_send_continue(conn);
  return 0;
}

/* A chunk that cannot fit is refused when it is announced. */
static int on_chunk_header(llhttp_t *parser) {
  local_conn_t *conn = CONN(parser);
  size_t max = conn->http->config.max_body;

  return parser->content_length > max - conn->req.body.len ? refuse(conn, 413)
                                                           : 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t n) {
  local_conn_t *conn = CONN(parser);
  tnk__buf_t *body = &conn->req.body;

  /* Room for the announced length at once, unless it is large: a peer gets
   * memory for what it sends, not for what it announces. */
  if (body->len == 0 && parser->content_length < TNK__MIB &&
      tnk__buf_reserve(body, n + (size_t)parser->content_length) == NULL)
    return refuse(conn, body->err == TNK_ENOMEM ? 503 : 413);
  if (tnk__buf_append(body, at, n) == TNK_OK)
    return 0;
  return refuse(conn, body->err == TNK_ENOMEM ? 503 : 413);
}

static int on_complete(llhttp_t *parser) {
  local_conn_t *conn = CONN(parser);

  conn->keep_alive = llhttp_should_keep_alive(parser);
  conn->state = LOCAL_CONN_HANDLING;
  return HPE_PAUSED;
}

void local_conn_setup(llhttp_settings_t *settings) {
  llhttp_settings_init(settings);
  settings->on_message_begin = on_begin;
  settings->on_url = on_url;
  settings->on_header_field = on_field;
  settings->on_header_field_complete = on_field_complete;
  settings->on_header_value = on_value;
  settings->on_header_value_complete = on_value_complete;
  settings->on_headers_complete = on_headers_complete;
  settings->on_body = on_body;
  settings->on_chunk_header = on_chunk_header;
  settings->on_message_complete = on_complete;
}

/* ---- The complete request ---- */

/* Split the URL into path and query; 0 when it is not usable. */
static int take_url(local_conn_t *conn) {
  char *url;
  char *mark;

  if (tnk__buf_cstr(&conn->url) == NULL)
    return 0;
  url = (char *)conn->url.data;
  /* An absolute target, which a server must take as well. */
  if (strncmp(url, "http://", 7) == 0)
    url += 7 + strcspn(url + 7, "/?");
  mark = strchr(url, '?');
  if (mark != NULL)
    *mark++ = '\0';
  conn->req.query = mark != NULL ? mark : "";
  conn->req.path = url;
  return url[0] == '/' && local_url_decode(url);
}

/* What has come of the headers may end in the middle of one: forget it. What
 * was to go wrong with the request does not: it never came to be. */
static void refuse_now(local_conn_t *conn, int status, const char *detail) {
  tnk__buf_clear(&conn->req.head);
  conn->req.fault = (local_fault_t){0};
  conn->keep_alive = 0;
  conn->drains = 1;
  conn->state = LOCAL_CONN_HANDLING;
  local_req_reply_text(&conn->req, status, "application/json", detail);
}

static void dispatch(local_conn_t *conn) {
  local_http_t *http = conn->http;

  conn->req.n = ++http->n_requests;
  if (!take_url(conn)) {
    refuse_now(conn, 400, "{\"detail\":\"Malformed request target\"}");
    return;
  }
  conn->req.method =
      llhttp_method_name((llhttp_method_t)llhttp_get_method(&conn->parser));
  conn->req.is_head = llhttp_get_method(&conn->parser) == HTTP_HEAD;
  conn->req.n_bytes_sent = conn->req.body.len;
  http->config.handle(&conn->req, http->config.user);
}

static void parse_failed(local_conn_t *conn) {
  switch (conn->refuse) {
  case RESET:
    local_conn_reset(conn);
    break;
  case 413:
    refuse_now(conn, 413, "{\"detail\":\"Request body is too large\"}");
    break;
  case 414:
    refuse_now(conn, 414, "{\"detail\":\"Request target is too long\"}");
    break;
  case 431:
    refuse_now(conn, 431, "{\"detail\":\"Request headers are too large\"}");
    break;
  case 503:
    refuse_now(conn, 503, "{\"detail\":\"Out of memory\"}");
    break;
  default:
    refuse_now(conn, 400, "{\"detail\":\"Invalid HTTP request received.\"}");
  }
}

/* Keep what belongs to later requests. */
static void set_aside(local_conn_t *conn, const char *data, size_t n) {
  /* After a refusal the rest of what the peer sends is only drained. */
  if (n == 0 || !conn->keep_alive)
    return;
  if (tnk__buf_append(&conn->pending, data, n) != TNK_OK) {
    local_conn_close(conn);
    return;
  }
  if (conn->pending.len >= MAX_PENDING && !conn->paused) {
    conn->paused = 1;
    uv_read_stop((uv_stream_t *)&conn->tcp);
  }
}

static void feed(local_conn_t *conn, const char *data, size_t n) {
  llhttp_errno_t err;
  size_t used;

  if (conn->state != LOCAL_CONN_READING || conn->pending.len > 0) {
    set_aside(conn, data, n);
    return;
  }
  err = llhttp_execute(&conn->parser, data, n);
  if (err == HPE_OK)
    return;
  if (err != HPE_PAUSED) {
    parse_failed(conn);
    return;
  }
  used = (size_t)(llhttp_get_error_pos(&conn->parser) - data);
  set_aside(conn, data + used, n - used);
  if (conn->state != LOCAL_CONN_CLOSING)
    dispatch(conn);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  local_conn_t *conn = tnk__container_of(handle, local_conn_t, tcp);

  (void)hint;
  *buf = uv_buf_init(conn->http->scratch, LOCAL_HTTP_SCRATCH);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

/* Go on with what has arrived behind the last request. One loop rather than
 * answers that start the next request, so that a peer with many requests in
 * one packet cannot pile up stack frames. */
static void pump(local_conn_t *conn) {
  while (conn->state == LOCAL_CONN_READING && conn->pending.len > 0) {
    /* Taken out first: what is not used of it goes back to the connection's own
     * buffer, by way of set_aside(). */
    tnk__buf_t pending = conn->pending;

    tnk__buf_init(&conn->pending, pending.alloc, pending.max);
    feed(conn, (const char *)pending.data, pending.len);
    tnk__buf_deinit(&pending);
  }
  if (conn->state == LOCAL_CONN_READING && conn->paused) {
    conn->paused = 0;
    uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
  }
}

void local_conn_on_resume(uv_idle_t *idle) {
  local_http_t *http = tnk__container_of(idle, local_http_t, resumer);
  tnk__list_t *node = tnk__list_pop(&http->resuming);
  local_conn_t *conn;

  if (tnk__list_empty(&http->resuming))
    uv_idle_stop(idle);
  if (node == NULL)
    return;
  conn = tnk__container_of(node, local_conn_t, resume);
  conn->pumping = 1;
  pump(conn);
  conn->pumping = 0;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  local_conn_t *conn = tnk__container_of(stream, local_conn_t, tcp);

  if (n < 0) {
    local_conn_close(conn);
    return;
  }
  conn->active_ms = uv_now(stream->loop);
  if (conn->state == LOCAL_CONN_DRAINING) {
    conn->n_drained += (size_t)n;
    if (conn->n_drained > MAX_DRAINED)
      local_conn_close(conn);
    return;
  }
  conn->pumping = 1;
  feed(conn, buf->base, (size_t)n);
  pump(conn);
  conn->pumping = 0;
}

int local_conn_init(local_conn_t *conn, local_http_t *http, uv_loop_t *loop) {
  const tnk_allocator_t *alloc = http->config.alloc;

  conn->http = http;
  conn->req.http = http;
  conn->active_ms = uv_now(loop);
  tnk__list_init(&conn->link);
  tnk__list_init(&conn->resume);
  llhttp_init(&conn->parser, HTTP_REQUEST, &http->settings);
  conn->parser.data = conn;
  tnk__buf_init(&conn->url, alloc, TNK__MAX_URL);
  tnk__buf_init(&conn->req.head, alloc, TNK__MAX_REQUEST_HEAD);
  tnk__buf_init(&conn->req.body, alloc, http->config.max_body);
  tnk__buf_init(&conn->pending, alloc, MAX_PENDING + LOCAL_HTTP_SCRATCH);
  return uv_tcp_init(loop, &conn->tcp);
}

void local_conn_start(local_conn_t *conn) {
  uv_tcp_nodelay(&conn->tcp, 1);
  if (uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read) != 0)
    local_conn_close(conn);
}
