/* SPDX-License-Identifier: MIT */
/* Direct connections. The HTTP client would hide details: it opens and closes
 * connections on its own and expects one answer to a request. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/io/net/net.h"
#include "lib/io/net/stream.h"
#include "tools/conform/state.h"

enum { CONNECT_MS = 5000, WIRE_MS = 20000, MAX_IN = 1 << 20 };

/* One connection. It is over after the peer's close, an error or the timeout.
 * It is freed when the stream is closed. */
typedef struct {
  conform_t *c;
  conform_wire_t *out;
  tnk__stream_t *stream;
  tnk__timer_t timer;
  const void *data;
  size_t n;
  uint64_t quiet_ms;
  uint64_t since_ms;
  uint64_t until_ms;
  int is_over;
  int is_gone;
} link_t;

static void end(link_t *link, int err, const char *why) {
  tnk__text_t text;

  if (link->is_over)
    return;
  link->is_over = 1;
  link->out->err = err;
  tnk__text_init(&text, link->out->why, sizeof(link->out->why));
  tnk__text_printf(&text, "%s", why);
  tnk__timer_stop(&link->timer);
}

static void on_quiet(tnk__timer_t *timer) {
  end(tnk__container_of(timer, link_t, timer), TNK_ETIMEDOUT,
      "the connection stays open");
}

static void wait_for_more(link_t *link) {
  const uint64_t now = tnk__context_now_ms(&link->c->context);
  uint64_t left = link->until_ms > now ? link->until_ms - now : 0;

  if (link->out->in.len > 0 && left > link->quiet_ms)
    left = link->quiet_ms;
  tnk__timer_start(&link->c->context, &link->timer, left, on_quiet);
}

static void on_open(tnk__stream_t *stream) {
  link_t *link = stream->user;
  const uv_buf_t buf =
      uv_buf_init((char *)(uintptr_t)link->data, (unsigned)link->n);
  const char *chosen = tnk__stream_chosen(stream);

  link->out->is_open = 1;
  snprintf(link->out->alpn, sizeof(link->out->alpn), "%s",
           chosen != NULL ? chosen : "");
  if (link->n > 0)
    tnk__stream_write(stream, &buf, 1);
}

static void on_read(tnk__stream_t *stream, const uint8_t *data, size_t n) {
  link_t *link = stream->user;
  const uint64_t now = tnk__context_now_ms(&link->c->context);

  if (link->is_over)
    return;
  if (link->out->in.len == 0)
    link->out->head_ms = now - link->since_ms;
  link->out->last_ms = now - link->since_ms;
  if (tnk__buf_append(&link->out->in, data, n) != TNK_OK)
    end(link, TNK_ETOOBIG, "more data than requested");
  else
    wait_for_more(link);
}

static void on_written(tnk__stream_t *stream, int cause) {
  (void)stream;
  (void)cause; /* on_end() reports what follows a failure */
}

static void on_end(tnk__stream_t *stream, const tnk__net_error_t *error) {
  link_t *link = stream->user;

  link->out->is_ended = 1;
  end(link, error->code, error->text);
}

static void on_closed(void *user) {
  ((link_t *)user)->is_gone = 1;
}

static const tnk__stream_events_t events = {.on_open = on_open,
                                            .on_read = on_read,
                                            .on_written = on_written,
                                            .on_end = on_end,
                                            .on_closed = on_closed};

static void open_link(link_t *link, int offers_h2) {
  conform_t *c = link->c;
  const tnk__origin_t origin = {c->config.url.host, c->config.url.port,
                                c->config.url.is_tls};

  tnk__buf_init(&link->out->in, tnk__allocator_default(), MAX_IN);
  link->since_ms = tnk__context_now_ms(&c->context);
  link->until_ms =
      link->since_ms +
      (c->options.timeout_ms != 0 ? c->options.timeout_ms : WIRE_MS);
  if (tnk__stream_open(&link->stream, c->net, &origin, NULL, CONNECT_MS,
                       &events, link) != TNK_OK) {
    link->is_gone = 1;
    end(link, TNK_ENOMEM, "out of memory");
    return;
  }
  if (offers_h2)
    tnk__stream_offer(link->stream, TNK__ALPN_BOTH);
  wait_for_more(link);
}

static void close_link(link_t *link) {
  end(link, TNK_ECANCELED, "interrupted");
  if (!link->is_gone)
    tnk__stream_close(link->stream);
  while (!link->is_gone)
    uv_run(&link->c->loop, UV_RUN_ONCE);
}

void conform_wire(conform_t *c, conform_wire_t *out, const void *data, size_t n,
                  int offers_h2, uint64_t quiet_ms) {
  link_t link = {
      .c = c, .out = out, .data = data, .n = n, .quiet_ms = quiet_ms};

  memset(out, 0, sizeof(*out));
  open_link(&link, offers_h2);
  while (!link.is_over && !c->is_interrupted)
    uv_run(&c->loop, UV_RUN_ONCE);
  close_link(&link);
  c->n_silent = out->in.len > 0 ? 0 : c->n_silent + 1;
}

void conform_wire_free(conform_wire_t *wire) {
  tnk__buf_deinit(&wire->in);
}

/* Returns whether it is an HTTP answer that is not a refusal. */
static int is_answered(const conform_wire_t *wire) {
  return wire->in.len > 12 && memcmp(wire->in.data, "HTTP/1.", 7) == 0 &&
         memcmp(wire->in.data + 8, " 503", 4) != 0;
}

size_t conform_wire_many(conform_t *c, size_t n, const void *data,
                         size_t n_data) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  link_t *links = tnk__calloc(alloc, n, sizeof(*links));
  conform_wire_t *outs = tnk__calloc(alloc, n, sizeof(*outs));
  size_t n_answered = 0;

  if (links == NULL || outs == NULL)
    n = 0;
  for (size_t i = 0; i < n; i++) {
    links[i] = (link_t){.c = c, .out = &outs[i], .data = data, .n = n_data};
    /* The answer does not end the wait, so that all connections are open
     * together. */
    links[i].quiet_ms = 1000;
    open_link(&links[i], 0);
  }
  for (size_t i = 0; i < n; i++)
    while (!links[i].is_over && !c->is_interrupted)
      uv_run(&c->loop, UV_RUN_ONCE);
  for (size_t i = 0; i < n; i++) {
    close_link(&links[i]);
    n_answered += is_answered(&outs[i]) != 0;
    conform_wire_free(&outs[i]);
  }
  tnk__free(alloc, links);
  tnk__free(alloc, outs);
  return n_answered;
}

void conform_wire_head(conform_t *c, tnk__buf_t *out, const char *method,
                       const char *path, const char *more) {
  const char *key = c->token != NULL ? c->token : c->config.api_key;

  tnk__buf_printf(out, "%s %s/api/v1/%s HTTP/1.1\r\nHost: %s\r\n", method,
                  c->config.url.path, path, c->config.url.authority);
  tnk__buf_printf(out, "X-API-Key: %s\r\nAccept: application/json\r\n%s\r\n",
                  key, more);
}

int conform_wire_is_possible(conform_t *c) {
  const tnk__url_t *url = &c->config.url;

  return tnk__proxies_find(&c->config.proxies, url->host, url->port,
                           url->is_tls) == NULL;
}
