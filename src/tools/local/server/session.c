/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/time_text.h"
#include "tools/local/base/clock.h"
#include "tools/local/ledger/ledger.h"
#include "tools/local/sample/record.h"
#include "tools/local/server/parts.h"
#include "tools/local/train/model.h"

/* ---- Sessions ---- */

/* A session is active until its client finishes it or its heartbeats stop. Its
 * id stays known, so that late requests get a specific error. */

#define SESSION(p) tnk__container_of(p, local_session_t, link)
#define MODEL(p) tnk__container_of(p, local_model_t, in_session)
#define SAMPLER(p) tnk__container_of(p, local_sampler_t, in_session)

/* End a session's models and samplers, and keep its id. `why` is static. */
static void finish(local_session_t *session, const char *why) {
  session->finished = 1;
  while (!tnk__list_empty(&session->models))
    local_model_end(MODEL(session->models.next), why);
  while (!tnk__list_empty(&session->samplers))
    local_sampler_free(SAMPLER(session->samplers.next));
  local_records_free(session->server, session->id);
}

void local_session_free(local_session_t *session) {
  local_server_t *server = session->server;

  local_table_remove(&server->sessions, &session->node);
  tnk__list_remove(&session->link);
  tnk__free(server->alloc, session->metadata);
  tnk__free(server->alloc, session->name);
  tnk__free(server->alloc, session->project);
  tnk__free(server->alloc, session);
}

/* ---- Sessions: expiry ---- */

static void end_silent(local_server_t *server, uint64_t now) {
  uint64_t timeout = server->options.session_timeout_ms;

  TNK__LIST_FOREACH_SAFE (node, next, &server->session_list) {
    local_session_t *session = SESSION(node);

    /* A session that never sent a heartbeat does not expire. */
    if (timeout > 0 && !session->finished && session->beat_ms != 0 &&
        now - session->beat_ms > timeout)
      finish(session, "The session's heartbeats stopped");
  }
}

static void on_reap(local_timer_t *timer) {
  local_server_t *server = tnk__container_of(timer, local_server_t, reaper);
  uint64_t idle = server->options.idle_ms;
  uint64_t now = uv_now(server->loop);

  end_silent(server, now);
  local_kept_sweep(server);
  local_ledger_save(server);
  /* The loop's clock may be smaller than the limit. */
  if (idle > 0 && now > idle)
    tnk__srv_sweep(&server->http, now - idle);
  local_reap_start(server);
}

/* Expired checkpoints are searched at least four times in this period. */
enum { EXPIRY_MS = 300000 };

void local_reap_start(local_server_t *server) {
  uint64_t wait = EXPIRY_MS;

  if (server->options.session_timeout_ms > 0 &&
      server->options.session_timeout_ms < wait)
    wait = server->options.session_timeout_ms;
  if (server->options.idle_ms > 0 && server->options.idle_ms < wait)
    wait = server->options.idle_ms;
  local_timer_start(&server->timers, &server->reaper,
                    wait / 4 > 0 ? wait / 4 : 1, on_reap);
}

/* ---- Sessions: creation ---- */

/* Make room for one more: the oldest finished session is dropped. */
static int make_room(local_server_t *server) {
  if (server->sessions.n < LOCAL_MAX_SESSIONS)
    return 1;
  TNK__LIST_FOREACH_SAFE (node, next, &server->session_list) {
    /* Only its id was left. */
    if (SESSION(node)->finished) {
      local_session_free(SESSION(node));
      return 1;
    }
  }
  return 0;
}

static local_session_t *session_new(local_server_t *server) {
  local_session_t *session;

  if (!make_room(server))
    return NULL;
  session = tnk__calloc(server->alloc, 1, sizeof(*session));
  if (session == NULL)
    return NULL;
  session->server = server;
  tnk__list_init(&session->models);
  tnk__list_init(&session->samplers);
  memcpy(session->id, "session-", sizeof("session-"));
  if (local_random_hex(session->id + strlen(session->id), 8) != 0 ||
      local_table_add(&server->sessions, &session->node, session->id) !=
          TNK_OK) {
    tnk__free(server->alloc, session);
    return NULL;
  }
  tnk__list_append(&server->session_list, &session->link);
  return session;
}

/* NULL for NULL, or without memory. */
static char *copy_of(const local_server_t *server, const char *text) {
  return text != NULL ? tnk__strdup(server->alloc, text) : NULL;
}

void local_create_session(local_call_t *call) {
  const char *sdk_version = NULL;
  const char *project = NULL;
  const char *name = NULL;
  local_session_t *session;
  local_out_t out;

  if (!local_need_text(call, "sdk_version", &sdk_version) ||
      !local_want_text(call, "project_id", &project) ||
      !local_want_text(call, "display_name", &name))
    return;
  if (call->server->options.sequence == LOCAL_STRICT &&
      tnk__json_obj(call->body, "user_metadata") == NULL) {
    local_reply_invalid(call->req, "missing", "user_metadata",
                        "Field required");
    return;
  }
  session = session_new(call->server);
  if (session == NULL) {
    local_reply_error(call->req, 429, "Too many sessions");
    return;
  }
  session->metadata = local_metadata(call);
  session->project = copy_of(call->server, project);
  session->name = copy_of(call->server, name);
  session->created_ms = local_now_ms(call->server);
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "session_id", session->id);
  tnk__json_put_text(&out.w, "type", "create_session");
  tnk__json_put_text(&out.w, "info_message", NULL);
  tnk__json_put_text(&out.w, "warning_message", NULL);
  tnk__json_put_text(&out.w, "error_message", NULL);
  local_out_reply(&out, call->req, local_status_created(call->server));
}

/* ---- Sessions: lifetime ---- */

void local_session_heartbeat(local_call_t *call) {
  local_session_t *session = local_need_session(call);

  if (session == NULL)
    return;
  session->beat_ms = uv_now(call->server->loop);
  /* 0 would mean no heartbeat, and the loop's clock may be 0. */
  if (session->beat_ms == 0)
    session->beat_ms = 1;
  local_reply_text(call->req, 200, "{\"type\":\"session_heartbeat\"}");
}

static local_session_t *session_of_path(local_call_t *call) {
  local_node_t *node = local_table_find(&call->server->sessions, call->args[0]);

  if (node == NULL) {
    local_reply_error(call->req, 404, "Session not found: %s", call->args[0]);
    return NULL;
  }
  return tnk__container_of(node, local_session_t, node);
}

static const char *reason_of(const local_call_t *call) {
  static const char *const words[] = {"success", "errored", "interrupted"};
  const char *word = tnk__json_str(tnk__json_obj(call->body, "reason"), "type");

  for (size_t i = 0; word != NULL && i < 3; i++)
    if (strcmp(word, words[i]) == 0)
      return words[i];
  return NULL;
}

void local_finish_session(local_call_t *call) {
  local_session_t *session = session_of_path(call);

  if (session == NULL)
    return;
  if (!session->finished)
    session->reason = reason_of(call);
  if (!session->finished)
    finish(session, "The session is finished");
  local_reply_text(call->req, 200, "{\"type\":\"finish_session\"}");
}

void local_get_session(local_call_t *call) {
  const local_session_t *session = session_of_path(call);
  local_out_t out;

  if (session == NULL)
    return;
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_array(&out.w, "training_run_ids");
  TNK__LIST_FOREACH (node, &session->models) {
    tnk__json_text(&out.w, MODEL(node)->id);
  }
  tnk__json_end(&out.w);
  tnk__json_put_array(&out.w, "sampler_ids");
  TNK__LIST_FOREACH (node, &session->samplers) {
    tnk__json_text(&out.w, SAMPLER(node)->id);
  }
  tnk__json_end(&out.w);
  tnk__json_put_raw(&out.w, "user_metadata", session->metadata);
  tnk__json_put_text(&out.w, "display_name", session->name);
  local_out_reply(&out, call->req, 200);
}

void local_move_session(local_call_t *call) {
  local_session_t *session = session_of_path(call);
  const char *project = NULL;
  char *copy;

  if (session == NULL || !local_need_text(call, "project_id", &project))
    return;
  copy = copy_of(call->server, project);
  if (copy == NULL) {
    local_reply_error(call->req, 500, "Out of memory");
    return;
  }
  if (local_kept_move(session, project) != TNK_OK) {
    tnk__free(call->server->alloc, copy);
    local_reply_error(call->req, 500, "Cannot write a checkpoint's file");
    return;
  }
  local_ledger_note(call->server, "project_move_session", project);
  tnk__free(call->server->alloc, session->project);
  session->project = copy;
  local_reply_text(call->req, 200, "{}");
}

void local_list_sessions(local_call_t *call) {
  size_t offset = local_query_number(call->req, "offset", 0);
  size_t limit = local_query_number(call->req, "limit", 20);
  size_t i = 0;
  local_out_t out;

  local_out_begin(&out, call->server->alloc);
  tnk__json_put_array(&out.w, "sessions");
  TNK__LIST_FOREACH (node, &call->server->session_list) {
    if (i >= offset && i - offset < limit)
      tnk__json_text(&out.w, SESSION(node)->id);
    i++;
  }
  tnk__json_end(&out.w);
  local_out_reply(&out, call->req, 200);
}

/* ---- Searches ---- */

/*
 * The sessions that match a search, newest first. The cursor names the last
 * session of the previous page. The next page begins with older sessions, or
 * with those after it in the list.
 */
#define OWNER "local"

enum { DEFAULT_LIMIT = 50, MAX_LIMIT = 200 };

typedef struct {
  const json_t *body;
  const char *id;   /* or NULL */
  const char *name; /* or NULL */
  int64_t limit;
  int64_t cursor_ms;
  const char *cursor_id; /* NULL: from the start */
  int passed;            /* the cursor's session was passed */
} search_t;

/* ---- Searches: the query ---- */

/* Returns 0 if answered. */
static int read_cursor(local_call_t *call, search_t *search) {
  const json_t *cursor = tnk__json_obj(call->body, "cursor");
  const char *time = tnk__json_str(cursor, "last_created_at");
  int64_t us;

  if (cursor == NULL)
    return 1;
  search->cursor_id = tnk__json_str(cursor, "last_session_id");
  if (search->cursor_id == NULL || time == NULL ||
      !tnk__time_read(&us, time, strlen(time))) {
    local_reply_invalid(call->req, "value_error", "cursor",
                        "Not a cursor of this server");
    return 0;
  }
  search->cursor_ms = us / 1000;
  return 1;
}

static int read_search(local_call_t *call, search_t *search) {
  *search = (search_t){.body = call->body, .limit = DEFAULT_LIMIT};
  return local_want_text(call, "session_id", &search->id) &&
         local_want_text(call, "display_name", &search->name) &&
         local_want_int(call, "limit", 1, MAX_LIMIT, &search->limit) &&
         read_cursor(call, search);
}

/* ---- Searches: matching ---- */

static int has_text(const json_t *list, const char *text) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *one = json_string_value(json_array_get(list, i));

    if (one != NULL && strcmp(one, text) == 0)
      return 1;
  }
  return 0;
}

/* Returns whether n bytes of `word` occur in a string, ignoring case. */
static int occurs(const char *text, const char *word, size_t n) {
  for (; strlen(text) >= n; text++)
    if (strncasecmp(text, word, n) == 0)
      return 1;
  return 0;
}

static int fits_name(const char *name, const char *words) {
  size_t n;

  for (; *words != '\0'; words += n + strspn(words + n, " ")) {
    n = strcspn(words, " ");
    if (n > 0 && (name == NULL || !occurs(name, words, n)))
      return 0;
  }
  return 1;
}

/* If both are given, either may match. */
static int fits_id_or_name(const local_session_t *session,
                           const search_t *search) {
  if (search->id == NULL && search->name == NULL)
    return 1;
  return (search->id != NULL && strcmp(search->id, session->id) == 0) ||
         (search->name != NULL && fits_name(session->name, search->name));
}

static int fits_metadata(const local_session_t *session,
                         const search_t *search) {
  const json_t *wanted = tnk__json_obj(search->body, "user_metadata");
  json_t *metadata = NULL;
  const char *key;
  json_t *value;
  int fits = 1;

  if (json_object_size(wanted) == 0)
    return 1;
  if (session->metadata == NULL ||
      tnk__json_parse_object(&metadata, session->metadata,
                             strlen(session->metadata)) != TNK_OK)
    return 0;
  json_object_foreach((json_t *)(uintptr_t)wanted, key, value) {
    fits = fits && json_equal(json_object_get(metadata, key), value);
  }
  json_decref(metadata);
  return fits;
}

static int fits_status(const local_session_t *session, const search_t *search) {
  const json_t *wanted = tnk__json_arr(search->body, "statuses");
  const char *state = local_session_state(session);

  if (wanted == NULL)
    return 1;
  for (size_t i = 0; i < json_array_size(wanted); i++) {
    const json_t *one = json_array_get(wanted, i);
    const json_t *reasons = tnk__json_arr(one, "reasons");
    const char *type = tnk__json_str(one, "type");

    if (type != NULL && strcmp(type, state) == 0 &&
        (reasons == NULL ||
         (session->reason != NULL && has_text(reasons, session->reason))))
      return 1;
  }
  return 0;
}

static int fits_owner(const search_t *search) {
  const json_t *owner = tnk__json_obj(search->body, "owner");
  const char *type = tnk__json_str(owner, "type");

  return type == NULL || strcmp(type, "user") != 0 ||
         has_text(tnk__json_arr(owner, "owner_urns"), OWNER);
}

static int fits(const local_session_t *session, const search_t *search) {
  const json_t *projects = tnk__json_arr(search->body, "project_ids");

  return fits_id_or_name(session, search) && fits_owner(search) &&
         (projects == NULL ||
          has_text(projects, local_session_project(session))) &&
         fits_metadata(session, search) && fits_status(session, search);
}

/* ---- Searches: the answer ---- */

static void put_status(tnk__json_writer_t *w, const local_session_t *session) {
  tnk__json_put_object(w, "status");
  tnk__json_put_text(w, "type", local_session_state(session));
  if (session->reason != NULL) {
    tnk__json_put_object(w, "reason");
    tnk__json_put_text(w, "type", session->reason);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

static void put_session(tnk__json_writer_t *w, const local_session_t *session) {
  int64_t n_bytes;
  const size_t n = local_session_checkpoints(session, &n_bytes);

  tnk__json_begin_object(w);
  tnk__json_put_text(w, "session_id", session->id);
  tnk__json_put_text(w, "owner", OWNER);
  tnk__json_put_text(w, "project_id", local_session_project(session));
  local_put_time(w, "created_at", session->created_ms);
  tnk__json_put_int(w, "checkpoints_count", (int64_t)n);
  tnk__json_put_int(w, "checkpoint_storage_bytes", n_bytes);
  tnk__json_put_text(w, "display_name", session->name);
  tnk__json_put_raw(w, "user_metadata", session->metadata);
  put_status(w, session);
  tnk__json_end(w);
}

static void put_cursor(tnk__json_writer_t *w, const local_session_t *last) {
  if (last == NULL) {
    tnk__json_put_text(w, "next_cursor", NULL);
    return;
  }
  tnk__json_put_object(w, "next_cursor");
  local_put_time(w, "last_created_at", last->created_ms);
  tnk__json_put_text(w, "last_session_id", last->id);
  tnk__json_end(w);
}

/* Returns whether it follows the previous page. */
static int is_due(search_t *search, const local_session_t *session) {
  if (search->cursor_id == NULL || search->passed)
    return 1;
  if (strcmp(session->id, search->cursor_id) == 0) {
    search->passed = 1;
    return 0;
  }
  return session->created_ms < search->cursor_ms;
}

void local_search_sessions(local_call_t *call) {
  const tnk__list_t *list = &call->server->session_list;
  const local_session_t *last = NULL;
  int has_more = 0;
  search_t search;
  int64_t n = 0;
  local_out_t out;

  if (!read_search(call, &search))
    return;
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_array(&out.w, "sessions");
  for (tnk__list_t *node = list->prev; node != list && !has_more;
       node = node->prev) {
    if (!is_due(&search, SESSION(node)) || !fits(SESSION(node), &search))
      continue;
    has_more = n++ == search.limit;
    if (has_more)
      break;
    last = SESSION(node);
    put_session(&out.w, last);
  }
  tnk__json_end(&out.w);
  put_cursor(&out.w, has_more ? last : NULL);
  local_out_reply(&out, call->req, 200);
}
