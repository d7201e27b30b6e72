/* SPDX-License-Identifier: MIT */
#include "lib/store/ask.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/format/json_write.h"
#include "lib/wire/format/time_text.h"
#include "lib/wire/format/url.h"
#include "tnk/error.h"

/* Target of a call. */
typedef struct {
  const char *path; /* "%i": the id, "%c": the checkpoint */
  int has_part;
  int has_scope;
  int has_project;
} target_t;

static const target_t targets[TNK__N_ASKS] = {
    [TNK__ASK_LIST_RUNS] = {"training_runs", 1, 1, 1},
    [TNK__ASK_GET_RUN] = {"training_runs/%i", 0, 1, 0},
    [TNK__ASK_LIST_RUN_CHECKPOINTS] = {"training_runs/%i/checkpoints", 0, 0, 0},
    [TNK__ASK_LIST_CHECKPOINTS] = {"checkpoints", 1, 0, 0},
    [TNK__ASK_WEIGHTS_INFO] = {"weights_info", 0, 0, 0},
    [TNK__ASK_EXTERNAL_FILES] = {"training_runs/%c/external_weights_urls", 0, 0,
                                 0},
    [TNK__ASK_ARCHIVE] = {"training_runs/%c/archive", 0, 0, 0},
    [TNK__ASK_DELETE] = {"training_runs/%c", 0, 0, 0},
    [TNK__ASK_PUBLISH] = {"training_runs/%c/publish", 0, 0, 0},
    [TNK__ASK_UNPUBLISH] = {"training_runs/%c/publish", 0, 0, 0},
    [TNK__ASK_SET_TTL] = {"training_runs/%c/ttl", 0, 0, 0},
    [TNK__ASK_COPY] = {"copy_weights", 0, 0, 0},
    [TNK__ASK_GET_SESSION] = {"sessions/%i", 0, 1, 0},
    [TNK__ASK_LIST_SESSIONS] = {"sessions", 1, 1, 0},
    [TNK__ASK_SEARCH_SESSIONS] = {"sessions/search", 0, 0, 0},
    [TNK__ASK_MOVE_SESSION] = {"sessions/%i/project", 0, 0, 0},
    [TNK__ASK_EXPORT_TRACE] = {"sessions/%i/trace_export", 0, 0, 0},
    [TNK__ASK_GET_SAMPLER] = {"samplers/%i", 0, 0, 0},
    [TNK__ASK_USAGE] = {"billing/usage/events", 0, 0, 0},
    [TNK__ASK_STORAGE] = {"billing/usage/checkpoints/current", 0, 0, 1},
    [TNK__ASK_AUDIT] = {"audit", 0, 0, 0},
    [TNK__ASK_GET_KEY] = {"auth/apikey/me", 0, 0, 0},
    [TNK__ASK_REVOKE_KEY] = {"auth/apikey/me", 0, 0, 0},
};

/* ---- Targets ---- */

/* Write "tinker://run/kind/name" as "run/checkpoints/kind/name". */
static void put_checkpoint(tnk__buf_t *out, const char *text) {
  tnk_path_t path = TNK_PATH_INIT;

  if (tnk_path_parse(&path, text) != TNK_OK) {
    out->err = TNK_EINVAL;
    return;
  }
  tnk__url_put_segment_n(out, path.run, path.run_length);
  tnk__buf_text(out, "/checkpoints/");
  tnk__url_put_segments(out, path.run + path.run_length + 1);
}

static void put_path(tnk__buf_t *out, const char *pattern,
                     const tnk__ask_t *ask) {
  const char *hole = strchr(pattern, '%');

  if (hole == NULL) {
    tnk__buf_text(out, pattern);
    return;
  }
  tnk__buf_append(out, pattern, (size_t)(hole - pattern));
  if (hole[1] == 'c')
    put_checkpoint(out, ask->path);
  else
    tnk__url_put_segment(out, ask->id);
  tnk__buf_text(out, hole + 2);
}

static void put_parameter(tnk__buf_t *out, const char *name,
                          const char *value) {
  tnk__buf_text(out, name);
  tnk__url_put_query(out, value);
}

static void put_hours(tnk__buf_t *out, const tnk__ask_t *ask) {
  char text[TNK__TIME_TEXT];

  tnk__time_write(text, ask->start_us);
  put_parameter(out, "?starting_on=", text);
  tnk__time_write(text, ask->end_us);
  put_parameter(out, "&ending_before=", text);
}

static void put_day(tnk__buf_t *out, const tnk__ask_t *ask) {
  put_parameter(
      out, "?event_type=", ask->event_type != NULL ? ask->event_type : "all");
  if (ask->day != NULL)
    put_parameter(out, "&day=", ask->day);
}

void tnk__ask_write_target(tnk__buf_t *out, const tnk__ask_t *ask) {
  const target_t *target = &targets[ask->kind];
  const char *mark = "?";

  put_path(out, target->path, ask);
  if (target->has_part) {
    tnk__buf_printf(out, "?limit=%lu&offset=%llu", (unsigned long)ask->limit,
                    (unsigned long long)ask->offset);
    mark = "&";
  }
  if (target->has_scope) {
    tnk__buf_printf(out, "%saccess_scope=%s", mark,
                    ask->scope == TNK_SCOPE_ACCESSIBLE ? "accessible"
                                                       : "owned");
    mark = "&";
  }
  if (target->has_project && ask->project_id != NULL) {
    tnk__buf_text(out, mark);
    put_parameter(out, "project_id=", ask->project_id);
  }
  if (ask->kind == TNK__ASK_USAGE)
    put_hours(out, ask);
  if (ask->kind == TNK__ASK_AUDIT)
    put_day(out, ask);
}

/* ---- Bodies ---- */

/* Numbers that a copy does not have are omitted. A null removes a time to
 * live. */
static void put_ttl(tnk__json_writer_t *w, const tnk__ask_t *ask) {
  if (ask->ttl_seconds != 0) {
    tnk__json_put_int(w, "ttl_seconds", ask->ttl_seconds);
  } else if (ask->kind == TNK__ASK_SET_TTL) {
    tnk__json_key(w, "ttl_seconds");
    tnk__json_null(w);
  }
}

static void put_members(tnk__json_writer_t *w, const tnk__ask_t *ask) {
  switch (ask->kind) {
  case TNK__ASK_WEIGHTS_INFO:
    tnk__json_put_text(w, "tinker_path", ask->path);
    return;
  case TNK__ASK_COPY:
    tnk__json_put_text(w, "destination_project_id", ask->project_id);
    tnk__json_put_text(w, "source_path", ask->path);
    break;
  case TNK__ASK_MOVE_SESSION:
    tnk__json_put_text(w, "project_id", ask->project_id);
    return;
  default:
    break;
  }
  put_ttl(w, ask);
}

static void write_search(tnk__buf_t *out, const tnk__ask_t *ask) {
  tnk__buf_text(out, ask->search);
  if (ask->cursor != NULL) {
    tnk__buf_text(out, ",\"cursor\":");
    tnk__buf_text(out, ask->cursor);
  }
  tnk__buf_byte(out, '}');
}

void tnk__ask_write_body(tnk__buf_t *out, const tnk__ask_t *ask) {
  tnk__json_writer_t w;

  switch (ask->kind) {
  case TNK__ASK_SEARCH_SESSIONS:
    write_search(out, ask);
    return;
  case TNK__ASK_WEIGHTS_INFO:
  case TNK__ASK_COPY:
  case TNK__ASK_MOVE_SESSION:
  case TNK__ASK_SET_TTL:
    tnk__json_writer_init(&w, out);
    tnk__json_begin_object(&w);
    put_members(&w, ask);
    tnk__json_end(&w);
    tnk__json_finish(&w);
    return;
  default:
    return;
  }
}

/* ---- Searches ---- */

static void put_texts(tnk__json_writer_t *w, const char *key,
                      const char *const *texts, size_t n) {
  tnk__json_key(w, key);
  tnk__json_begin_array(w);
  for (size_t i = 0; i < n; i++)
    tnk__json_text(w, texts[i]);
  tnk__json_end(w);
}

static void put_owner(tnk__json_writer_t *w,
                      const tnk_search_options_t *options) {
  static const char *const words[] = {[TNK_OWNER_SELF] = "own",
                                      [TNK_OWNER_ANY] = "accessible",
                                      [TNK_OWNER_USERS] = "user"};

  tnk__json_key(w, "owner");
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", words[options->owner]);
  if (options->owner == TNK_OWNER_USERS)
    put_texts(w, "owner_urns", options->owner_urns, options->n_owner_urns);
  tnk__json_end(w);
}

static void put_state(tnk__json_writer_t *w, uint32_t states,
                      tnk_session_state_t state, const char *word) {
  if (!(states & (uint32_t)state))
    return;
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", word);
  tnk__json_end(w);
}

/* Filter finished sessions by the reasons that the caller selects. */
static void put_finished(tnk__json_writer_t *w, uint32_t states) {
  static const char *const words[] = {"success", "errored", "interrupted"};

  states /= (uint32_t)TNK_SESSION_SUCCESS;
  if (states == 0)
    return;
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", "client_finished");
  if (states != 7) {
    tnk__json_key(w, "reasons");
    tnk__json_begin_array(w);
    for (int i = 0; i < 3; i++)
      if (states & (uint32_t)1 << i)
        tnk__json_text(w, words[i]);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

static void put_states(tnk__json_writer_t *w, uint32_t states) {
  if (states == 0)
    return;
  tnk__json_key(w, "statuses");
  tnk__json_begin_array(w);
  put_state(w, states, TNK_SESSION_ACTIVE, "active");
  put_state(w, states, TNK_SESSION_CANCELED, "cancelled");
  put_state(w, states, TNK_SESSION_FAILED, "failed");
  put_finished(w, states);
  tnk__json_end(w);
}

void tnk__ask_write_search(tnk__buf_t *out,
                           const tnk_search_options_t *options) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  if (options->session_id != NULL)
    tnk__json_put_text(&w, "session_id", options->session_id);
  if (options->n_project_ids > 0)
    put_texts(&w, "project_ids", options->project_ids, options->n_project_ids);
  tnk__json_key(&w, "user_metadata");
  tnk__json_begin_object(&w);
  for (size_t i = 0; i < options->n_user_metadata; i++)
    tnk__json_put_text(&w, options->user_metadata[i].name,
                       options->user_metadata[i].value);
  tnk__json_end(&w);
  if (options->display_name != NULL)
    tnk__json_put_text(&w, "display_name", options->display_name);
  put_owner(&w, options);
  put_states(&w, options->states);
  tnk__json_put_int(&w, "limit", options->limit);
  tnk__json_end(&w);
  if (tnk__json_finish(&w) == TNK_OK)
    out->len--; /* a cursor may follow */
}

/* ---- Ids ---- */

/* The first character that is not allowed in an id, or NULL. */
static const char *odd_char(const char *id, size_t n) {
  for (const char *end = id + n; id < end; id++)
    if ((unsigned char)*id <= ' ' || *id == 0x7f ||
        strchr("?#%/\\", *id) != NULL)
      return id;
  return NULL;
}

/* Check n bytes of a string. */
static int check_part(const char *what, const char *id, size_t n, char *why,
                      size_t size) {
  const char *odd = odd_char(id, n);

  if (n == 0)
    snprintf(why, size, "%s is empty", what);
  else if (odd != NULL && (unsigned char)*odd > ' ' && *odd != 0x7f)
    snprintf(why, size, "%s has '%c' in it, which would change the address",
             what, *odd);
  else if (odd != NULL)
    snprintf(why, size, "%s has %s in it", what,
             *odd == ' ' ? "a blank" : "a control character");
  else if ((n == 1 || n == 2) && memcmp(id, "..", n) == 0)
    snprintf(why, size, "%s is \"%.*s\", which would change the address", what,
             (int)n, id);
  else if (tnk__utf8_valid((const uint8_t *)id, n) != n)
    snprintf(why, size, "%s is not UTF-8", what);
  else
    return TNK_OK;
  return TNK_EINVAL;
}

int tnk__ask_check_id(const char *what, const char *id, char *why,
                      size_t size) {
  if (id != NULL)
    return check_part(what, id, strlen(id), why, size);
  snprintf(why, size, "%s is NULL", what);
  return TNK_EINVAL;
}

int tnk__ask_check_path(const char *path, tnk_path_kind_t kind, char *why,
                        size_t size) {
  tnk_path_t parts = TNK_PATH_INIT;
  int err;

  if (path == NULL) {
    snprintf(why, size, "path is NULL");
    return TNK_EINVAL;
  }
  if (tnk_path_parse(&parts, path) != TNK_OK) {
    snprintf(why, size,
             "path is not tinker://<run>/<kind>/<name>, where the kind is "
             "weights, sampler_weights or external_weights");
    return TNK_EINVAL;
  }
  err = check_part("the run in path", parts.run, parts.run_length, why, size);
  if (err == TNK_OK)
    err = check_part("the name in path", parts.name, strlen(parts.name), why,
                     size);
  if (err == TNK_OK && kind != 0 && parts.kind != kind) {
    snprintf(why, size,
             "path is not of external_weights, the only kind that "
             "has files");
    err = TNK_EINVAL;
  }
  return err;
}
