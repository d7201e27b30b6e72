/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/saves.h"

#include <errno.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* A ledger counts money in units of 1/PARTS_OF_USD dollars. */
#define PARTS_OF_USD 1e12

static int64_t number(const json_t *line, const char *key, int64_t absent) {
  int64_t value = absent;

  (void)tnk__json_get_int(line, key, 0, INT64_MAX, &value);
  return value;
}

static int is_word(const json_t *line, const char *word) {
  const char *found = tnk__json_str(line, "tnk");

  return found != NULL && strcmp(found, word) == 0;
}

/* Lines of other programs have no use. */
static void read_used(report_used_t *used, const json_t *line) {
  if (json_object_get(line, "tnk_requests") == NULL)
    return;
  *used = (report_used_t){
      .n_prompt = number(line, "tnk_prompt_tokens", 0),
      .n_cached = number(line, "tnk_cached_tokens", 0),
      .n_sampled = number(line, "tnk_sampled_tokens", 0),
      .n_trained = number(line, "tnk_trained_tokens", 0),
      .n_unpriced = number(line, "tnk_unpriced_tokens", 0),
      .usd = (double)number(line, "tnk_cost", 0) / PARTS_OF_USD,
  };
}

static void read_common(report_saves_t *saves, const json_t *line) {
  const int64_t attempt = number(line, "tnk_attempt", 0);
  const int64_t time_s = number(line, "tnk_time", 0);

  if (attempt > saves->n_attempts)
    saves->n_attempts = attempt;
  if (time_s > 0 && saves->first_s == 0)
    saves->first_s = time_s;
  if (time_s > 0)
    saves->last_s = time_s;
  saves->n_failed += (size_t)is_word(line, "failed");
  read_used(&saves->used, line);
}

/* The state of a save was deleted. Its sampler weights were not. */
static void forget(report_saves_t *saves, const json_t *line) {
  const int64_t attempt = number(line, "tnk_attempt", 0);
  const int64_t save = number(line, "tnk_save", 0);

  for (size_t i = 0; i < saves->n; i++)
    if (saves->saves[i].attempt == attempt && saves->saves[i].save == save)
      saves->saves[i].state_path = NULL;
}

static void make_room(report_saves_t *saves) {
  if (saves->n < REPORT_MAX_SAVES)
    return;
  json_decref(saves->saves[0].line);
  memmove(&saves->saves[0], &saves->saves[1],
          (saves->n - 1) * sizeof(saves->saves[0]));
  saves->n--;
  saves->n_dropped++;
}

static void add(report_saves_t *saves, const json_t *line) {
  const int64_t ttl_s = number(line, "tnk_ttl", 0);
  const char *name = tnk__json_str(line, "name");
  int is_final = 0;
  report_save_t save = {
      .line = json_incref((json_t *)line),
      .name = name != NULL ? name : "",
      .state_path = tnk__json_str(line, "state_path"),
      .sampler_path = tnk__json_str(line, "sampler_path"),
      .step = number(line, "tnk_steps", number(line, "batch", -1)),
      .time_s = number(line, "tnk_time", 0),
      .attempt = number(line, "tnk_attempt", 0),
      .save = number(line, "tnk_save", 0),
  };

  if (ttl_s > 0 && save.time_s > 0 && ttl_s <= INT64_MAX - save.time_s)
    save.expires_s = save.time_s + ttl_s;
  (void)tnk__json_get_bool(line, "final", &is_final);
  save.is_final = is_final;
  saves->is_final |= is_final;
  make_room(saves);
  saves->saves[saves->n++] = save;
}

static int on_line(const json_t *line, void *user) {
  report_saves_t *saves = user;

  read_common(saves, line);
  if (is_word(line, "deleted"))
    forget(saves, line);
  /* An intent has no path. */
  else if (tnk__json_str(line, "state_path") != NULL ||
           tnk__json_str(line, "sampler_path") != NULL)
    add(saves, line);
  return TNK_OK;
}

int report_saves_read(report_saves_t *saves, const char *path) {
  int err;

  *saves = (report_saves_t){0};
  err = report_lines_read(&saves->lines, path, on_line, saves);
  return err == TNK_EFILE && errno == ENOENT ? TNK_OK : err;
}

void report_saves_free(report_saves_t *saves) {
  for (size_t i = 0; i < saves->n; i++)
    json_decref(saves->saves[i].line);
  saves->n = 0;
}
