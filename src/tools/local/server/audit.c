#include <string.h>

#include "lib/wire/format/time_text.h"
#include "tools/local/base/clock.h"
#include "tools/local/ledger/ledger.h"
#include "tools/local/server/usage.h"

/* The audit log: events about checkpoints and projects on one day. */

#define DAY_MS (24 * LOCAL_HOUR_MS)

typedef struct {
  const char *resource; /* NULL: all */
  int64_t first_ms;
} query_t;

/* Returns 0 if answered. */
static int read_type(local_call_t *call, query_t *query) {
  static const char *const types[] = {"checkpoints", "projects", "teams",
                                      "organizations"};
  /* The prefixes of their events; the last two have no events here. */
  static const char *const resources[] = {"checkpoint_", "project_", "team_",
                                          "organization_"};
  char text[40];

  if (!tnk__srv_req_query(call->req, "event_type", text, sizeof(text)) ||
      text[0] == '\0' || strcmp(text, "all") == 0)
    return 1;
  for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
    if (strcmp(text, types[i]) == 0) {
      query->resource = resources[i];
      return 1;
    }
  local_reply_error(call->req, 422,
                    "event_type is neither all, checkpoints, projects, teams "
                    "nor organizations: %s",
                    text);
  return 0;
}

static int read_day(local_call_t *call, query_t *query) {
  char text[40];
  int64_t us;

  query->first_ms = local_now_ms(call->server) / DAY_MS * DAY_MS;
  if (!tnk__srv_req_query(call->req, "day", text, sizeof(text)) ||
      text[0] == '\0')
    return 1;
  if (strlen(text) != strlen("2026-01-02") ||
      !tnk__time_read(&us, text, strlen(text))) {
    local_reply_error(call->req, 422, "day is not like 2026-01-02: %s", text);
    return 0;
  }
  query->first_ms = us / 1000;
  return 1;
}

static int fits(const query_t *query, const local_audit_t *entry) {
  return entry->time_ms >= query->first_ms &&
         entry->time_ms < query->first_ms + DAY_MS &&
         (query->resource == NULL ||
          strncmp(entry->event, query->resource, strlen(query->resource)) == 0);
}

/* The run of "tinker://<run>/...", which older clients expect. */
static void put_run(tnk__json_writer_t *w, const char *path) {
  char run[LOCAL_ID] = "";
  const char *at = strstr(path, "://");
  size_t n = at != NULL ? strcspn(at + 3, "/") : 0;

  if (n > 0 && n < sizeof(run))
    memcpy(run, at + 3, n);
  tnk__json_put_text(w, "model_id", run);
}

static void put_entry(tnk__json_writer_t *w, const local_audit_t *entry) {
  const int is_checkpoint = strncmp(entry->event, "checkpoint_", 11) == 0;
  char text[32];

  tnk__json_begin_object(w);
  local_time_text(entry->time_ms, text);
  tnk__json_put_text(w, "timestamp", text);
  tnk__json_put_text(w, "event", entry->event);
  tnk__json_key(w, "event_details");
  tnk__json_begin_object(w);
  tnk__json_put_text(w, is_checkpoint ? "tinker_path" : "project_id",
                     entry->path);
  tnk__json_end(w);
  if (is_checkpoint) {
    put_run(w, entry->path);
    tnk__json_put_text(w, "tinker_path", entry->path);
  }
  tnk__json_end(w);
}

void local_audit(local_call_t *call) {
  const local_audit_t *entry;
  query_t query = {0};
  local_out_t out;

  if (!read_type(call, &query) || !read_day(call, &query))
    return;
  local_out_init(&out, call->server->alloc);
  tnk__json_begin_object(&out.w);
  tnk__json_key(&out.w, "entries");
  tnk__json_begin_array(&out.w);
  for (size_t i = 0; (entry = local_ledger_event(call->server, i)) != NULL; i++)
    if (fits(&query, entry))
      put_entry(&out.w, entry);
  tnk__json_end(&out.w);
  tnk__json_end(&out.w);
  local_out_reply(&out, call->req, 200);
}
