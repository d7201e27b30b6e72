/* SPDX-License-Identifier: MIT */
#include "lib/ledger/line.h"

#include <string.h>

#include "lib/store/record.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

#define USED(what, name)                                                       \
  TNK__FIELD(INT, tnk__ledger_line_t, used[TNK__LEDGER_##what], name, 0)

/* In the order of the members in a line, so that each lookup succeeds at
 * once. */
static const tnk__field_t fields[] = {
    TNK__FIELD(ID, tnk__ledger_line_t, name, "name", 1),
    TNK__FIELD(INT, tnk__ledger_line_t, batch, "batch", 0),
    TNK__FIELD(INT, tnk__ledger_line_t, epoch, "epoch", 0),
    TNK__FIELD(BOOL, tnk__ledger_line_t, is_final, "final", 0),
    TNK__FIELD(TEXT, tnk__ledger_line_t, state_path, "state_path", 0),
    TNK__FIELD(TEXT, tnk__ledger_line_t, sampler_path, "sampler_path", 0),
    TNK__FIELD(BOOL, tnk__ledger_line_t, is_rolling, "rolling", 0),
    TNK__FIELD(TEXT, tnk__ledger_line_t, word, "tnk", 0),
    TNK__FIELD(INT, tnk__ledger_line_t, attempt, "tnk_attempt", 0),
    TNK__FIELD(INT, tnk__ledger_line_t, save, "tnk_save", 0),
    TNK__FIELD(INT, tnk__ledger_line_t, what, "tnk_what", 0),
    TNK__FIELD(TEXT, tnk__ledger_line_t, run, "tnk_run", 0),
    TNK__FIELD(INT, tnk__ledger_line_t, n_steps, "tnk_steps", 0),
    TNK__FIELD(INT, tnk__ledger_line_t, n_passes, "tnk_passes", 0),
    TNK__FIELD(INT, tnk__ledger_line_t, time_s, "tnk_time", 0),
    TNK__FIELD(INT, tnk__ledger_line_t, ttl_s, "tnk_ttl", 0),
    TNK__FIELD(TEXT, tnk__ledger_line_t, cursor, "tnk_cursor", 0),
    USED(PROMPT, "tnk_prompt_tokens"),
    USED(CACHED, "tnk_cached_tokens"),
    USED(SAMPLED, "tnk_sampled_tokens"),
    USED(TRAINED, "tnk_trained_tokens"),
    USED(UNPRICED, "tnk_unpriced_tokens"),
    USED(DOUBTFUL, "tnk_doubtful_tokens"),
    USED(COST, "tnk_cost"),
    USED(DOUBTFUL_COST, "tnk_doubtful_cost"),
    USED(REQUESTS, "tnk_requests"),
    USED(SENT, "tnk_bytes_sent"),
    USED(RECEIVED, "tnk_bytes_received"),
};
enum {
  N_FIELDS = sizeof(fields) / sizeof(fields[0]),
  FIRST_USED = N_FIELDS - TNK__LEDGER_N_USED
};

const tnk__ledger_line_t tnk__ledger_blank = {
    .batch = -1, .epoch = -1, .n_steps = -1, .n_passes = -1};

static const char *const words[] = {
    [TNK__LEDGER_OTHER] = NULL,        [TNK__LEDGER_INTENT] = "intent",
    [TNK__LEDGER_SAVED] = "saved",     [TNK__LEDGER_FAILED] = "failed",
    [TNK__LEDGER_DELETED] = "deleted", [TNK__LEDGER_USED] = "used"};
enum { N_WORDS = sizeof(words) / sizeof(words[0]) };

static const char *finish(void *record) {
  tnk__ledger_line_t *line = record;

  for (size_t i = TNK__LEDGER_INTENT; line->word != NULL && i < N_WORDS; i++)
    if (strcmp(line->word, words[i]) == 0)
      line->event = (tnk__ledger_event_t)i;
  for (size_t i = 0; i < TNK__LEDGER_N_USED; i++)
    if (line->used[i] < 0)
      line->used[i] = 0;
  return NULL;
}

static const tnk__shape_t shape = {
    TNK__FIELDS(fields), .size = sizeof(tnk__ledger_line_t),
    .blank = &tnk__ledger_blank, .finish = finish};

int tnk__ledger_read(tnk__ledger_line_t *out, tnk__arena_t *arena,
                     uint8_t *data, size_t n) {
  tnk__record_reader_t reader = {.arena = arena};
  const char *json = tnk__arena_strndup(arena, (const char *)data, n);
  int err;

  if (json == NULL)
    return TNK_ENOMEM;
  tnk__json_pull_init(&reader.pull, data, n);
  tnk__record_read(&reader, &shape, out);
  err = tnk__json_pull_finish(&reader.pull);
  out->json = json;
  return reader.err != TNK_OK ? reader.err : err;
}

static void put_int(tnk__json_writer_t *w, const char *key, int64_t value,
                    int64_t none) {
  if (value != none)
    tnk__json_put_int(w, key, value);
}

static void put_text(tnk__json_writer_t *w, const char *key,
                     const char *value) {
  if (value != NULL)
    tnk__json_put_text(w, key, value);
}

int tnk__ledger_write(tnk__buf_t *out, const tnk__ledger_line_t *line) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "name", line->name);
  put_int(&w, "batch", line->batch, -1);
  put_int(&w, "epoch", line->epoch, -1);
  if (line->is_final)
    tnk__json_put_bool(&w, "final", 1);
  put_text(&w, "state_path", line->state_path);
  put_text(&w, "sampler_path", line->sampler_path);
  if (line->is_rolling)
    tnk__json_put_bool(&w, "rolling", 1);
  put_text(&w, "tnk", words[line->event]);
  put_int(&w, "tnk_attempt", line->attempt, 0);
  put_int(&w, "tnk_save", line->save, 0);
  put_int(&w, "tnk_what", line->what, 0);
  put_text(&w, "tnk_run", line->run);
  put_int(&w, "tnk_steps", line->n_steps, -1);
  put_int(&w, "tnk_passes", line->n_passes, -1);
  put_int(&w, "tnk_time", line->time_s, 0);
  put_int(&w, "tnk_ttl", line->ttl_s, 0);
  put_text(&w, "tnk_cursor", line->cursor);
  for (size_t i = 0; i < TNK__LEDGER_N_USED; i++)
    put_int(&w, fields[FIRST_USED + i].key, line->used[i], 0);
  tnk__json_end(&w);
  (void)tnk__json_finish(&w);
  tnk__buf_byte(out, '\n');
  return out->err;
}
