/* SPDX-License-Identifier: MIT */
#include "gateway/stop.h"

#include <string.h>

#include "lib/base/buf.h"
#include "tnk/error.h"

/* ---- Finding the stops ---- */

/* The ids of a stop string. */
typedef struct {
  int32_t first;
  size_t n;
} ids_t;

static int take_id(const int32_t *ids, size_t n, void *user) {
  ids_t *found = user;

  if (n > 0 && found->n == 0)
    found->first = ids[0];
  found->n += n;
  return TNK_OK;
}

/* Add a stop string. Returns whether it is one token. */
static int add(const tnk__gw_job_t *job, tnk__gw_stops_t *stops,
               const char *text) {
  const tnk_chat_tokenizer_t *tokenizer = &job->gateway->tokenizer;
  ids_t found = {0};

  if (stops->n_texts == TNK__GW_MAX_ALL_STOPS)
    return 0;
  if (tokenizer->plugin->encode(tokenizer->tokenizer, text, strlen(text), 0,
                                take_id, &found, NULL, 0) != TNK_OK)
    found.n = 0;
  stops->ids[stops->n_texts] = found.first;
  stops->texts[stops->n_texts++] = text;
  return found.n == 1;
}

void tnk__gw_stops_find(const tnk__gw_job_t *job, tnk__gw_stops_t *stops) {
  const char *const *own = tnk_chat_template_stops(job->gateway->template_);
  int is_tokens = 1;

  stops->n_texts = stops->n_ids = 0;
  for (size_t i = 0; job->ask.api != TNK__GW_COMPLETION && own[i] != NULL; i++)
    is_tokens &= add(job, stops, own[i]);
  for (size_t i = 0; i < job->ask.n_stops; i++)
    is_tokens &= add(job, stops, job->ask.stops[i]);
  if (!is_tokens)
    return;
  stops->n_ids = stops->n_texts;
  stops->n_texts = 0;
}

/* ---- Cutting at the first stop ---- */

static int take_bytes(const char *bytes, size_t n, void *user) {
  return tnk__buf_append(user, bytes, n);
}

static int decode(const tnk__gw_job_t *job, const int32_t *ids, size_t n,
                  tnk__buf_t *text) {
  const tnk_chat_tokenizer_t *tokenizer = &job->gateway->tokenizer;

  return tokenizer->plugin->decode(tokenizer->tokenizer, ids, n, 0, take_bytes,
                                   text, NULL, 0);
}

/* Find the end of the first occurrence of a string. SIZE_MAX: not found. */
static size_t end_of(const tnk__buf_t *text, const char *what) {
  size_t n = strlen(what);
  const uint8_t *at = text->data;
  size_t left = text->len;

  while (left >= n &&
         (at = memchr(at, (unsigned char)what[0], left - n + 1)) != NULL) {
    left = text->len - (size_t)(at - text->data);
    if (memcmp(at, what, n) == 0)
      return text->len - left + n;
    at++;
    left--;
  }
  return SIZE_MAX;
}

static size_t first_end(const tnk__buf_t *text, const tnk__gw_stops_t *stops) {
  size_t first = SIZE_MAX;

  for (size_t i = 0; i < stops->n_texts; i++) {
    size_t end = end_of(text, stops->texts[i]);

    if (end < first)
      first = end;
  }
  return first;
}

static int cut_at_text(const tnk__gw_job_t *job, const tnk__gw_stops_t *stops,
                       const int32_t *ids, size_t *n) {
  tnk__buf_t text;
  size_t end;
  int err;

  tnk__buf_init(&text, &job->gateway->alloc, SIZE_MAX);
  err = decode(job, ids, *n, &text);
  end = err == TNK_OK ? first_end(&text, stops) : SIZE_MAX;
  if (end < text.len) {
    tnk__buf_clear(&text);
    for (size_t i = 0; err == TNK_OK && i < *n; i++) {
      err = decode(job, ids + i, 1, &text);
      if (text.len >= end)
        *n = i + 1;
    }
  }
  tnk__buf_deinit(&text);
  return err;
}

int tnk__gw_stops_cut(const tnk__gw_job_t *job, const int32_t *ids, size_t *n) {
  tnk__gw_stops_t stops;

  tnk__gw_stops_find(job, &stops);
  for (size_t i = 0; i < *n; i++)
    for (size_t k = 0; k < stops.n_ids; k++)
      if (ids[i] == stops.ids[k])
        *n = i + 1;
  return stops.n_texts == 0 || *n == 0 ? TNK_OK
                                       : cut_at_text(job, &stops, ids, n);
}
