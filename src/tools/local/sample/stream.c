#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/json_write.h"
#include "tools/local/sample/sampler.h"

/*
 * Samples as streams of events: one event for each token, and one for the end.
 * All events are sent when the sample is complete.
 */

/* U+FFFD, in place of bytes that are no character. */
static const char replacement[] = "\xef\xbf\xbd";

/* A client that waits for its stream. */
typedef struct {
  local_waiter_t waiter;
  local_future_t *future;
  tnk__srv_req_t *req;
} held_t;

/* ---- Text ---- */

static size_t put(char *out, size_t n, const void *bytes, size_t n_bytes) {
  memcpy(out + n, bytes, n_bytes);
  return n + n_bytes;
}

size_t local_text_add(local_text_t *text, int32_t token, int is_last,
                      char out[LOCAL_TEXT_MAX]) {
  const int is_byte = token < TNK__LM_BOS;
  const char *name = is_byte                ? ""
                     : token == TNK__LM_BOS ? TNK__LM_BOS_TEXT
                                            : TNK__LM_EOS_TEXT;
  size_t at = 0;
  size_t n = 0;

  if (is_byte)
    text->bytes[text->n++] = (uint8_t)token;
  while (at < text->n) {
    size_t bad;
    int is_cut;
    const size_t length =
        tnk__utf8_check(text->bytes + at, text->n - at, &bad, &is_cut);

    if (is_cut && is_byte && !is_last)
      break;
    if (length > 0 && text->bytes[at] != 0) {
      n = put(out, n, text->bytes + at, length);
      at += length;
    } else {
      n = put(out, n, replacement, sizeof(replacement) - 1);
      at += bad;
    }
  }
  text->n -= at;
  memmove(text->bytes, text->bytes + at, text->n);
  return put(out, n, name, strlen(name));
}

/* ---- Writing ---- */

static void begin(tnk__json_writer_t *w, tnk__buf_t *out) {
  tnk__buf_text(out, "data: ");
  tnk__json_writer_init(w, out);
  tnk__json_begin_object(w);
}

static void end(tnk__json_writer_t *w, tnk__buf_t *out) {
  tnk__json_end(w);
  tnk__json_finish(w);
  tnk__buf_text(out, "\n\n");
}

/* Without a tokenizer, only bytes have a known text. */
static int has_text(const local_sample_t *sample) {
  const local_options_t *options = &sample->server->options;

  return options->n_vocab == 0 && !options->has_tokenizer;
}

void local_stream_write(tnk__buf_t *out, const local_sample_t *sample) {
  const tnk__lm_sample_t drawn = tnk__lm_draw_sample(sample->draw, 0);
  const int is_told = has_text(sample);
  local_text_t text = {.n = 0};
  tnk__json_writer_t w;
  char piece[LOCAL_TEXT_MAX];

  for (size_t i = 0; i < drawn.n_tokens; i++) {
    begin(&w, out);
    if (is_told) {
      const int is_last = i + 1 == drawn.n_tokens;

      tnk__json_key(&w, "token");
      tnk__json_text_n(&w, piece,
                       local_text_add(&text, drawn.tokens[i], is_last, piece));
    }
    tnk__json_put_int(&w, "token_id", drawn.tokens[i]);
    tnk__json_put_int(&w, "index", (int64_t)i);
    tnk__json_key(&w, "logprob");
    tnk__json_float(&w, drawn.logprobs[i]);
    end(&w, out);
  }
  begin(&w, out);
  tnk__json_put_text(&w, "finish_reason",
                     drawn.reason == TNK__LM_LENGTH ? "length" : "stop");
  tnk__json_put_int(&w, "total_tokens", (int64_t)drawn.n_tokens);
  end(&w, out);
  tnk__buf_text(out, "data: [DONE]\n\n");
}

/* ---- Waiting ---- */

static void reply(const local_future_t *future, tnk__srv_req_t *req) {
  uint8_t *copy;

  if (future->status != 200) {
    local_reply_error(req, future->status, "%s",
                      future->result != NULL ? (const char *)future->result
                                             : "Request failed");
    return;
  }
  copy = tnk__malloc(future->server->alloc, future->n_result);
  if (copy == NULL) {
    local_reply_error(req, 503, "Out of memory");
    return;
  }
  memcpy(copy, future->result, future->n_result);
  tnk__srv_req_reply(req, 200, "text/event-stream",
                     "Cache-Control: no-cache\r\n", copy, future->n_result);
}

static held_t end_wait(held_t *held) {
  const held_t was = *held;

  tnk__list_remove(&held->waiter.link);
  tnk__free(was.future->server->alloc, held);
  return was;
}

static void on_settled(local_waiter_t *waiter) {
  const held_t was = end_wait(tnk__container_of(waiter, held_t, waiter));

  reply(was.future, was.req);
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  local_future_t *future = end_wait(user).future;

  (void)req;
  if (future->server->closing || future->state != LOCAL_FUTURE_PENDING ||
      future->cancel == NULL || !tnk__list_empty(&future->waiters))
    return;
  future->is_cancelled = 1;
  future->cancel(future->owner);
}

void local_stream_answer(tnk__srv_req_t *req, local_future_t *future) {
  held_t *held;

  if (future->state == LOCAL_FUTURE_SETTLED) {
    reply(future, req);
    return;
  }
  held = tnk__calloc(future->server->alloc, 1, sizeof(*held));
  if (held == NULL) {
    local_reply_error(req, 503, "Out of memory");
    return;
  }
  held->waiter.wake = on_settled;
  held->future = future;
  held->req = req;
  tnk__list_append(&future->waiters, &held->waiter.link);
  tnk__srv_req_park(req, on_gone, held);
}
