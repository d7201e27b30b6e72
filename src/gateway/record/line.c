/* SPDX-License-Identifier: MIT */
#include "gateway/record/line.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/number.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

/*
 * Numbers of turns are below 2^63, and are written as JSON numbers. Keys are
 * 64-bit hashes, and are written as decimal strings, because many JSON readers
 * lose the low bits of large numbers.
 */

/* ---- Writing ---- */

static int put_json(tnk__json_writer_t *w, const char *key,
                    const json_t *value) {
  char *text;

  if (value == NULL)
    return TNK_OK;
  text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
  if (text == NULL)
    return TNK_ENOMEM;
  tnk__json_key(w, key);
  tnk__json_raw(w, text, strlen(text));
  tnk__json_free_string(text);
  return TNK_OK;
}

static void put_floats(tnk__json_writer_t *w, const char *key,
                       const float *values, size_t n) {
  tnk__json_key(w, key);
  if (values == NULL) {
    tnk__json_null(w);
    return;
  }
  tnk__json_begin_array(w);
  for (size_t i = 0; i < n; i++)
    tnk__json_float(w, values[i]);
  tnk__json_end(w);
}

static void put_fit(tnk__json_writer_t *w, const tnk__gw_turn_new_t *turn) {
  if (turn->attempt > 0)
    tnk__json_put_int(w, "attempt", turn->attempt);
  if (turn->fits != 0)
    tnk__json_put_bool(w, "fits", turn->fits > 0);
  if (turn->fits < 0) {
    size_t n = strlen(turn->misfit);

    tnk__json_key(w, "misfit");
    tnk__json_text_n(w, turn->misfit,
                     tnk__utf8_valid((const uint8_t *)turn->misfit, n));
  }
}

int tnk__gw_line_turn(const tnk__gw_turn_new_t *turn, uint64_t number,
                      tnk__buf_t *out) {
  tnk__json_writer_t w;
  char key[24];
  int err;

  (void)snprintf(key, sizeof(key), "%" PRIu64, turn->key);
  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "turn");
  tnk__json_put_int(&w, "turn", (int64_t)number);
  tnk__json_put_int(&w, "request", (int64_t)turn->request);
  tnk__json_put_text(&w, "session", turn->session);
  if (turn->parent != NULL)
    tnk__json_put_int(&w, "parent", (int64_t)turn->parent->by_number.key);
  tnk__json_put_text(&w, "key", key);
  tnk__json_put_text(&w, "api", turn->api);
  tnk__json_put_int(&w, "made", turn->made_s);
  tnk__json_put_int(&w, "version", turn->version);
  tnk__json_put_text(&w, "sequence", turn->sequence);
  tnk__json_put_text(&w, "end", turn->end);
  put_fit(&w, turn);
  tnk__json_key(&w, "prompt");
  tnk__json_int32s(&w, turn->prompt, turn->n_prompt);
  if (turn->n_forced > 0)
    tnk__json_put_int(&w, "forced", (int64_t)turn->n_forced);
  tnk__json_key(&w, "sampled");
  tnk__json_int32s(&w, turn->sampled, turn->n_sampled);
  put_floats(&w, "logprobs", turn->logprobs, turn->n_sampled);
  err = put_json(&w, "messages", turn->messages);
  if (err == TNK_OK)
    err = put_json(&w, "tools", turn->tools);
  tnk__json_end(&w);
  return err != TNK_OK ? err : tnk__json_finish(&w);
}

int tnk__gw_line_reward(uint64_t number, double reward, tnk__buf_t *out) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "reward");
  tnk__json_put_int(&w, "turn", (int64_t)number);
  tnk__json_put_double(&w, "reward", reward);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

int tnk__gw_line_exported(const char *session, const uint64_t *leaves, size_t n,
                          tnk__buf_t *out) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "exported");
  tnk__json_put_text(&w, "session", session);
  tnk__json_key(&w, "turns");
  tnk__json_begin_array(&w);
  for (size_t i = 0; i < n; i++)
    tnk__json_int(&w, (int64_t)leaves[i]);
  tnk__json_end(&w);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

int tnk__gw_line_note(const char *type, const char *name, const char *value,
                      uint64_t number, tnk__buf_t *out) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", type);
  tnk__json_put_int(&w, "number", (int64_t)number);
  if (name != NULL)
    tnk__json_put_text(&w, name, value);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

/* ---- Reading ---- */

static int get_number(const json_t *line, const char *key, uint64_t *out) {
  int64_t value = 0;
  tnk__json_has_t has = tnk__json_get_int(line, key, 1, INT64_MAX, &value);

  if (has == TNK__JSON_WRONG)
    return -1;
  *out = (uint64_t)value;
  return 0;
}

int tnk__gw_line_read(const json_t *line, tnk__gw_line_t *out) {
  const json_t *prompt = tnk__json_arr(line, "prompt");
  const json_t *sampled = tnk__json_arr(line, "sampled");
  const char *key = tnk__json_str(line, "key");

  *out = (tnk__gw_line_t){.session = tnk__json_str(line, "session")};
  if (get_number(line, "turn", &out->number) != 0 || out->number == 0 ||
      get_number(line, "request", &out->request) != 0 ||
      get_number(line, "parent", &out->parent) != 0 || out->session == NULL ||
      prompt == NULL || sampled == NULL || key == NULL ||
      tnk__text_u64(key, UINT64_MAX, &out->key) != TNK_OK ||
      json_array_size(prompt) > INT32_MAX ||
      json_array_size(sampled) > INT32_MAX ||
      tnk__json_get_int(line, "version", 0, UINT32_MAX, &out->version) !=
          TNK__JSON_FOUND)
    return -1;
  out->n_prompt = json_array_size(prompt);
  out->n_sampled = json_array_size(sampled);
  return 0;
}

int tnk__gw_line_reward_read(const json_t *line, uint64_t *number,
                             double *reward) {
  return get_number(line, "turn", number) == 0 && *number != 0 &&
                 tnk__json_get_double(line, "reward", reward) == TNK__JSON_FOUND
             ? 0
             : -1;
}

int tnk__gw_line_ids(const json_t *line, const char *key, int32_t *out,
                     size_t n) {
  const json_t *ids = tnk__json_arr(line, key);

  if (ids == NULL || json_array_size(ids) != n)
    return -1;
  for (size_t i = 0; i < n; i++) {
    const json_t *id = json_array_get(ids, i);
    json_int_t value = json_integer_value(id);

    if (!json_is_integer(id) || value < 0 || value > INT32_MAX)
      return -1;
    out[i] = (int32_t)value;
  }
  return 0;
}
