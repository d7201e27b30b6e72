#include "tools/local/server/search.h"

#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/time_text.h"
#include "tools/local/base/clock.h"
#include "tools/local/server/rest.h"

/*
 * The sessions that match a search, newest first. The cursor names the last
 * session of the previous page. The next page begins with older sessions, or
 * with those after it in the list.
 */
#define OWNER "local"
#define SESSION(p) tnk__container_of(p, local_session_t, link)

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

/* ---- The query ---- */

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

/* ---- Matching ---- */

static int has_text(const json_t *list, const char *text) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *one = json_string_value(json_array_get(list, i));

    if (one != NULL && strcmp(one, text) == 0)
      return 1;
  }
  return 0;
}

/* Whether n bytes of `word` occur in a string, ignoring case. */
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

/* ---- The answer ---- */

static void put_status(tnk__json_writer_t *w, const local_session_t *session) {
  tnk__json_key(w, "status");
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", local_session_state(session));
  if (session->reason != NULL) {
    tnk__json_key(w, "reason");
    tnk__json_begin_object(w);
    tnk__json_put_text(w, "type", session->reason);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

static void put_session(tnk__json_writer_t *w, const local_session_t *session) {
  char text[32];
  int64_t n_bytes;
  const size_t n = local_session_checkpoints(session, &n_bytes);

  local_time_text(session->created_ms, text);
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "session_id", session->id);
  tnk__json_put_text(w, "owner", OWNER);
  tnk__json_put_text(w, "project_id", local_session_project(session));
  tnk__json_put_text(w, "created_at", text);
  tnk__json_put_int(w, "checkpoints_count", (int64_t)n);
  tnk__json_put_int(w, "checkpoint_storage_bytes", n_bytes);
  tnk__json_put_text(w, "display_name", session->name);
  tnk__json_key(w, "user_metadata");
  if (session->metadata != NULL)
    tnk__json_raw(w, session->metadata, strlen(session->metadata));
  else
    tnk__json_null(w);
  put_status(w, session);
  tnk__json_end(w);
}

static void put_cursor(tnk__json_writer_t *w, const local_session_t *last) {
  char text[32];

  tnk__json_key(w, "next_cursor");
  if (last == NULL) {
    tnk__json_null(w);
    return;
  }
  local_time_text(last->created_ms, text);
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "last_created_at", text);
  tnk__json_put_text(w, "last_session_id", last->id);
  tnk__json_end(w);
}

/* Whether it follows the previous page. */
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
  local_out_init(&out, call->server->alloc);
  tnk__json_begin_object(&out.w);
  tnk__json_key(&out.w, "sessions");
  tnk__json_begin_array(&out.w);
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
  tnk__json_end(&out.w);
  local_out_reply(&out, call->req, 200);
}
