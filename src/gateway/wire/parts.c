/* SPDX-License-Identifier: MIT */
#include "gateway/wire/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/number.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

enum { MAX_JOINED = 64 << 20 };

/* ---- Names ---- */

static const char *const prefixes[] = {[TNK__GW_CHAT] = "chatcmpl-",
                                       [TNK__GW_COMPLETION] = "cmpl-",
                                       [TNK__GW_RESPONSE] = "resp_",
                                       [TNK__GW_MESSAGE] = "msg_"};

void tnk__gw_name(tnk__gw_api_t api, uint64_t number, char *out) {
  (void)snprintf(out, TNK__GW_MAX_NAME, "%s%" PRIu64, prefixes[api], number);
}

int tnk__gw_name_read(const char *name, uint64_t *number) {
  for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
    size_t n = strlen(prefixes[i]);

    if (strncmp(name, prefixes[i], n) == 0)
      return tnk__text_u64(name + n, UINT64_MAX, number) == TNK_OK ? 0 : -1;
  }
  return tnk__text_u64(name, UINT64_MAX, number) == TNK_OK ? 0 : -1;
}

/* ---- Streams ---- */

void tnk__gw_event(tnk__gw_w_t *w, tnk__buf_t *out, const char *event) {
  if (event != NULL)
    tnk__buf_printf(out, "event: %s\n", event);
  tnk__buf_text(out, "data: ");
  tnk__json_writer_init(w, out);
  tnk__json_begin_object(w);
}

void tnk__gw_event_end(tnk__gw_w_t *w, tnk__buf_t *out) {
  tnk__json_end(w);
  /* The buffer keeps an error, so check it at the end. */
  (void)tnk__json_finish(w);
  tnk__buf_text(out, "\n\n");
}

/* ---- Texts ---- */

static void put_repaired(tnk__gw_w_t *w, const char *text, size_t n) {
  tnk__buf_t good;
  size_t at = 0;

  tnk__buf_init(&good, w->buf->alloc, MAX_JOINED);
  while (at < n) {
    size_t bad = 1;
    int cut;
    size_t len =
        tnk__utf8_check((const uint8_t *)text + at, n - at, &bad, &cut);

    if (len > 0)
      tnk__buf_append(&good, text + at, len);
    else
      tnk__buf_text(&good, "\xef\xbf\xbd");
    at += len > 0 ? len : bad;
  }
  if (good.err != TNK_OK)
    w->buf->err = good.err;
  else
    tnk__json_text_n(w, (const char *)good.data, good.len);
  tnk__buf_deinit(&good);
}

void tnk__gw_text(tnk__gw_w_t *w, const char *text, size_t n) {
  if (n == 0)
    tnk__json_text(w, "");
  else if (tnk__utf8_valid((const uint8_t *)text, n) == n)
    tnk__json_text_n(w, text, n);
  else
    put_repaired(w, text, n);
}

void tnk__gw_put_joined(tnk__gw_w_t *w, const char *key,
                        const tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                        int or_null) {
  tnk__buf_t text;

  tnk__json_key(w, key);
  tnk__buf_init(&text, w->buf->alloc, MAX_JOINED);
  if (tnk__gw_said_join(said, kind, 0, &text) != TNK_OK)
    w->buf->err = text.err;
  else if (text.len == 0 && or_null)
    tnk__json_null(w);
  else
    tnk__gw_text(w, (const char *)text.data, text.len);
  tnk__buf_deinit(&text);
}

/* ---- Calls ---- */

static int is_object(const tnk__buf_t *text) {
  json_t *root = NULL;
  int is = tnk__json_parse_object(&root, text->data, text->len) == TNK_OK;

  json_decref(root);
  return is;
}

void tnk__gw_put_arguments(tnk__gw_w_t *w, const char *key,
                           const tnk__gw_said_t *said, size_t i, int is_text) {
  tnk__buf_t text;

  tnk__json_key(w, key);
  tnk__buf_init(&text, w->buf->alloc, MAX_JOINED);
  (void)tnk__gw_said_join(said, TNK__GW_ARGUMENTS, i + 1, &text);
  if (text.err != TNK_OK)
    w->buf->err = text.err;
  else if (is_text)
    tnk__gw_text(w, text.len > 0 ? (const char *)text.data : "{}",
                 text.len > 0 ? text.len : 2);
  else if (text.len > 0 && is_object(&text))
    tnk__json_raw(w, text.data, text.len);
  else
    tnk__json_raw(w, "{}", 2);
  tnk__buf_deinit(&text);
}

void tnk__gw_put_call_id(tnk__gw_w_t *w, const char *key,
                         const tnk__gw_said_t *said,
                         const tnk__gw_piece_t *piece) {
  tnk__json_key(w, key);
  tnk__gw_text(w, tnk__gw_said_text(said, piece) + piece->n, piece->n_id);
}

/* ---- Tokens ---- */

static void put_token(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                      int32_t id, float logprob) {
  tnk__buf_t text;

  tnk__buf_init(&text, w->buf->alloc, MAX_JOINED);
  if (answer->text_of(answer->user, id, &text) != TNK_OK && text.err != TNK_OK)
    w->buf->err = text.err;
  tnk__json_key(w, "token");
  tnk__gw_text(w, (const char *)text.data, text.len);
  tnk__json_key(w, "logprob");
  tnk__json_float(w, logprob);
  tnk__json_key(w, "bytes");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < text.len; i++)
    tnk__json_int(w, text.data[i]);
  tnk__json_end(w);
  tnk__buf_deinit(&text);
}

void tnk__gw_token(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                   const tnk__gw_choice_t *choice, size_t i, int with_top) {
  const tnk_topk_t *top = choice->top;

  tnk__json_begin_object(w);
  put_token(w, answer, choice->ids[i],
            choice->logprobs != NULL ? choice->logprobs[i] : 0);
  if (with_top) {
    tnk__json_key(w, "top_logprobs");
    tnk__json_begin_array(w);
    for (size_t k = 0; top != NULL && i < top->length && k < top->k; k++) {
      size_t at = i * top->k + k;

      if (top->ids[at] == 0 && top->logprobs[at] == -99999.0f)
        break; /* the rest of the row is unused */
      tnk__json_begin_object(w);
      put_token(w, answer, top->ids[at], top->logprobs[at]);
      tnk__json_end(w);
    }
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

size_t tnk__gw_n_sampled(const tnk__gw_answer_t *answer) {
  size_t n = 0;

  for (size_t i = 0; i < answer->n_choices; i++)
    n += answer->choices[i].n_ids;
  return n;
}

void tnk__gw_put_head(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                      tnk__gw_api_t api, const char *object) {
  char name[TNK__GW_MAX_NAME];

  tnk__gw_name(api, answer->number, name);
  tnk__json_put_text(w, "id", name);
  tnk__json_put_text(w, "object", object);
  tnk__json_put_int(w, "created", answer->made_s);
  tnk__json_put_text(w, "model", answer->model);
}

void tnk__gw_put_usage(tnk__gw_w_t *w, const tnk__gw_answer_t *answer) {
  size_t n = tnk__gw_n_sampled(answer);

  tnk__json_key(w, "usage");
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "prompt_tokens", (int64_t)answer->n_prompt);
  tnk__json_put_int(w, "completion_tokens", (int64_t)n);
  tnk__json_put_int(w, "total_tokens", (int64_t)(answer->n_prompt + n));
  tnk__json_key(w, "prompt_tokens_details");
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "cached_tokens", (int64_t)answer->n_cached);
  tnk__json_end(w);
  tnk__json_end(w);
}

int tnk__gw_put_last(tnk__buf_t *out, const tnk__gw_answer_t *answer,
                     tnk__gw_api_t api, const char *object) {
  tnk__gw_w_t w;

  if (answer->ask->with_usage) {
    tnk__gw_event(&w, out, NULL);
    tnk__gw_put_head(&w, answer, api, object);
    tnk__json_key(&w, "choices");
    tnk__json_begin_array(&w);
    tnk__json_end(&w);
    tnk__gw_put_usage(&w, answer);
    tnk__gw_event_end(&w, out);
  }
  return tnk__buf_text(out, "data: [DONE]\n\n");
}
