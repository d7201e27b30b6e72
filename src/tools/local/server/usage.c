/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/time_text.h"
#include "tools/local/base/clock.h"
#include "tools/local/ledger/ledger.h"
#include "tools/local/server/parts.h"

/* ---- Usage ---- */

/*
 * Use as events: the entries of the ledger, and the storage of existing
 * checkpoints. Everything is free, so prices are 0 where the service has one.
 */

enum { MAX_DAYS = 14, DAY_HOURS = 24 };

/* ---- Usage: the query ---- */

typedef struct {
  int64_t first; /* hours since 1970 */
  int64_t end;
} window_t;

/* A full hour from the query; returns 0 if answered. */
static int read_hour(local_call_t *call, const char *name, int64_t *out) {
  const int64_t hour_us = LOCAL_HOUR_MS * 1000;
  char text[80];
  int64_t us;

  if (!tnk__srv_req_query(call->req, name, text, sizeof(text))) {
    local_reply_error(call->req, 400, "%s is missing, or too long", name);
    return 0;
  }
  /* An unescaped plus may have become a space. */
  for (char *at = strchr(text, 'T'); at != NULL && *at != '\0'; at++)
    if (*at == ' ')
      *at = '+';
  if (!tnk__time_read(&us, text, strlen(text)) || us < 0) {
    local_reply_error(call->req, 400, "%s is not a time: %s", name, text);
    return 0;
  }
  if (us % hour_us != 0) {
    local_reply_error(call->req, 400, "%s is not a whole hour: %s", name, text);
    return 0;
  }
  *out = us / hour_us;
  return 1;
}

static int read_window(local_call_t *call, window_t *out) {
  const char *wrong = NULL;

  if (!read_hour(call, "starting_on", &out->first) ||
      !read_hour(call, "ending_before", &out->end))
    return 0;
  if (out->end <= out->first)
    wrong = "ending_before must be after starting_on";
  else if (out->end - out->first > MAX_DAYS * DAY_HOURS)
    wrong = "At most 14 days can be asked for at a time";
  else if (out->first * LOCAL_HOUR_MS > local_now_ms(call->server))
    wrong = "starting_on is in the future";
  if (wrong != NULL)
    local_reply_error(call->req, 400, "%s", wrong);
  return wrong == NULL;
}

/* ---- Usage: events ---- */

/* An event of the answer; the session belongs to the ledger's entry. */
typedef struct {
  int64_t hour;
  local_use_kind_t kind;
  const char *session; /* "": none */
  double amount;
} event_t;

typedef struct {
  const local_server_t *server;
  event_t *events;
  size_t n;
} events_t;

/* Number of tokens; -1 for other kinds. */
static double tokens_of(const event_t *event) {
  return event->kind <= LOCAL_USE_SAMPLE ? event->amount : -1;
}

static int by_hour(const void *a, const void *b) {
  const event_t *x = a;
  const event_t *y = b;

  if (x->hour != y->hour)
    return x->hour < y->hour ? -1 : 1;
  if (tokens_of(x) != tokens_of(y))
    return tokens_of(x) > tokens_of(y) ? -1 : 1;
  if (x->kind != y->kind)
    return x->kind < y->kind ? -1 : 1;
  return strcmp(x->session, y->session);
}

static void add(events_t *events, event_t event) {
  if (event.amount > 0)
    events->events[events->n++] = event;
}

/* The storage by hour: of removed and of existing checkpoints. */
static void add_storage(events_t *events, const window_t *window,
                        const local_kept_t *list) {
  const int64_t now = local_now_ms(events->server);

  for (int64_t hour = window->first; hour < window->end; hour++) {
    event_t event = {hour, LOCAL_USE_STORAGE, "", 0};

    for (size_t i = 0; i < list->n; i++)
      event.amount += local_ledger_overlap(hour, list->metas[i].n_bytes,
                                           list->metas[i].time_ms, now);
    TNK__LIST_FOREACH (node, &events->server->ledger->use_list) {
      const local_use_t *use = tnk__container_of(node, local_use_t, link);

      if (use->hour == hour && use->kind == LOCAL_USE_STORAGE)
        event.amount += use->amount;
    }
    add(events, event);
  }
}

/* Returns TNK_OK or TNK_ENOMEM. */
static int collect(events_t *events, const window_t *window) {
  const local_ledger_t *ledger = events->server->ledger;
  /* Called first, because it removes expired checkpoints and changes the
   * ledger. */
  local_kept_t list = local_kept_read(events->server, NULL);
  size_t most = ledger->uses.n + (size_t)(window->end - window->first);

  events->n = 0;
  events->events =
      tnk__calloc(events->server->alloc, most, sizeof(*events->events));
  if (events->events == NULL) {
    local_kept_free(&list);
    return TNK_ENOMEM;
  }
  TNK__LIST_FOREACH (node, &ledger->use_list) {
    const local_use_t *use = tnk__container_of(node, local_use_t, link);

    if (use->hour >= window->first && use->hour < window->end &&
        use->kind != LOCAL_USE_STORAGE)
      add(events, (event_t){use->hour, use->kind, use->session, use->amount});
  }
  add_storage(events, window, &list);
  local_kept_free(&list);
  if (events->n > 0)
    qsort(events->events, events->n, sizeof(*events->events), by_hour);
  return TNK_OK;
}

/* ---- Usage: the answer ---- */

static const local_session_t *find_session(const local_server_t *server,
                                           const char *id) {
  local_node_t *node = local_table_find(&server->sessions, id);

  return node != NULL ? tnk__container_of(node, local_session_t, node) : NULL;
}

static void put_info(tnk__json_writer_t *w, const event_t *event) {
  static const char *const types[] = {"training", "sampling_prefill",
                                      "sampling_sample", "checkpoint",
                                      "storage"};

  tnk__json_put_object(w, "event_info");
  tnk__json_put_text(w, "type", types[event->kind]);
  if (event->kind == LOCAL_USE_PREFILL)
    tnk__json_put_bool(w, "cached", 0);
  if (event->kind == LOCAL_USE_STORAGE) {
    tnk__json_put_bool(w, "free", 1);
    tnk__json_put_double(w, "gigabyte_hours", event->amount);
  } else {
    tnk__json_put_int(
        w, event->kind == LOCAL_USE_CHECKPOINT ? "count" : "token_count",
        (int64_t)event->amount);
  }
  tnk__json_end(w);
}

static void put_event(tnk__json_writer_t *w, const local_server_t *server,
                      const event_t *event) {
  const local_session_t *session = find_session(server, event->session);
  const int has_tokens = event->kind <= LOCAL_USE_SAMPLE;

  tnk__json_begin_object(w);
  local_put_time(w, "bucket_start", event->hour * LOCAL_HOUR_MS);
  local_put_time(w, "bucket_end", (event->hour + 1) * LOCAL_HOUR_MS);
  tnk__json_put_text(w, "base_model",
                     has_tokens ? local_base_name(server) : NULL);
  tnk__json_put_text(w, "user_id", LOCAL_USER);
  tnk__json_put_text(w, "user_name", "local");
  tnk__json_put_text(w, "session_id",
                     event->session[0] != '\0' ? event->session : NULL);
  tnk__json_put_text(w, "project_id",
                     session != NULL ? local_session_project(session) : NULL);
  if (event->kind != LOCAL_USE_CHECKPOINT)
    tnk__json_put_double(w, "estimated_cost_usd", 0);
  if (has_tokens)
    tnk__json_put_double(w, "effective_rate_usd_per_million_tokens", 0);
  if (event->kind == LOCAL_USE_STORAGE)
    tnk__json_put_double(w, "effective_rate_usd_per_gigabyte_month", 0);
  put_info(w, event);
  tnk__json_end(w);
}

static int by_session(const void *a, const void *b) {
  return strcmp(((const event_t *)a)->session, ((const event_t *)b)->session);
}

/* Each session once; unknown sessions have no metadata. */
static void put_sessions(tnk__json_writer_t *w, events_t *events) {
  const char *last = "";

  if (events->n > 0)
    qsort(events->events, events->n, sizeof(*events->events), by_session);
  tnk__json_put_object(w, "sessions");
  for (size_t i = 0; i < events->n; i++) {
    const char *id = events->events[i].session;
    const local_session_t *session = find_session(events->server, id);

    if (strcmp(id, last) == 0)
      continue;
    last = id;
    tnk__json_put_object(w, id);
    tnk__json_put_raw(w, "user_metadata",
                      session != NULL ? session->metadata : NULL);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

void local_usage(local_call_t *call) {
  events_t events = {.server = call->server};
  window_t window;
  local_out_t out;

  if (!read_window(call, &window))
    return;
  if (collect(&events, &window) != TNK_OK) {
    local_reply_error(call->req, 503, "Out of memory");
    return;
  }
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_array(&out.w, "data");
  for (size_t i = 0; i < events.n; i++)
    put_event(&out.w, call->server, &events.events[i]);
  tnk__json_end(&out.w);
  put_sessions(&out.w, &events);
  /* This server has no invoices. */
  tnk__json_put_text(&out.w, "cost_data_through", NULL);
  tnk__free(call->server->alloc, events.events);
  local_out_reply(&out, call->req, 200);
}

/* ---- The audit log ---- */

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
                    "event_type must be all, checkpoints, projects, teams "
                    "or organizations: %s",
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

  tnk__json_begin_object(w);
  local_put_time(w, "timestamp", entry->time_ms);
  tnk__json_put_text(w, "event", entry->event);
  tnk__json_put_object(w, "event_details");
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
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_array(&out.w, "entries");
  for (size_t i = 0; (entry = local_ledger_event(call->server, i)) != NULL; i++)
    if (fits(&query, entry))
      put_entry(&out.w, entry);
  tnk__json_end(&out.w);
  local_out_reply(&out, call->req, 200);
}
