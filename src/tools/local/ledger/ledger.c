/* SPDX-License-Identifier: MIT */
#include "tools/local/ledger/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/lm/file.h"

/* ---- The ledger ---- */

/*
 * A record of the server's work: use by hour and session, events about
 * checkpoints and projects, and the times of requests. It contains only real
 * events. Each list has a limit; beyond it the oldest entry is dropped. The
 * first two are stored with the checkpoints, if those are kept. Only the loop's
 * thread uses the ledger.
 */
enum {
  LOCAL_USE_DAYS = 15, /* retention; clients ask for 14 days */
  LOCAL_MAX_USES = 16384,
  LOCAL_MAX_AUDIT = 4096,
  LOCAL_MAX_SPANS = 16384
};

/* The file of the ledger, in the directory of the runs. */
#define LOCAL_LEDGER_FILE ".ledger.json"

#define USE(p) tnk__container_of(p, local_use_t, link)

/* ---- The ledger: use ---- */

static void drop(local_ledger_t *ledger, local_use_t *use) {
  local_table_remove(&ledger->uses, &use->node);
  tnk__list_remove(&use->link);
  tnk__free(ledger->alloc, use);
}

/* Storage entries may be for earlier hours than the last entry. */
static void put_in_order(local_ledger_t *ledger, local_use_t *use) {
  tnk__list_t *before = ledger->use_list.prev;

  while (before != &ledger->use_list && USE(before)->hour > use->hour)
    before = before->prev;
  tnk__list_prepend(before, &use->link);
}

/* As above, for any hour. */
static void ledger_add(const local_server_t *server, int64_t hour,
                       local_use_kind_t kind, const char *session,
                       double amount) {
  local_ledger_t *ledger = server->ledger;
  char key[sizeof(((local_use_t *)0)->key)];
  local_use_t *use;
  local_node_t *node;

  snprintf(key, sizeof(key), "%" PRId64 "/%d/%.39s", hour, (int)kind,
           session != NULL ? session : "");
  node = local_table_find(&ledger->uses, key);
  ledger->is_dirty = 1;
  if (node != NULL) {
    tnk__container_of(node, local_use_t, node)->amount += amount;
    return;
  }
  use = tnk__calloc(ledger->alloc, 1, sizeof(*use));
  if (use == NULL)
    return;
  use->hour = hour;
  use->kind = kind;
  use->amount = amount;
  memcpy(use->key, key, sizeof(key));
  snprintf(use->session, sizeof(use->session), "%.39s",
           session != NULL ? session : "");
  if (local_table_add(&ledger->uses, &use->node, use->key) != TNK_OK) {
    tnk__free(ledger->alloc, use);
    return;
  }
  put_in_order(ledger, use);
  if (ledger->uses.n > LOCAL_MAX_USES)
    drop(ledger, USE(ledger->use_list.next));
}

static int64_t oldest_hour(const local_server_t *server) {
  return local_now_ms(server) / LOCAL_HOUR_MS - LOCAL_USE_DAYS * 24;
}

static void forget_old(const local_server_t *server) {
  local_ledger_t *ledger = server->ledger;
  const int64_t oldest = oldest_hour(server);

  while (!tnk__list_empty(&ledger->use_list) &&
         USE(ledger->use_list.next)->hour < oldest)
    drop(ledger, USE(ledger->use_list.next));
}

void local_ledger_use(const local_server_t *server, local_use_kind_t kind,
                      const char *session, double amount) {
  if (amount <= 0)
    return;
  forget_old(server);
  ledger_add(server, local_now_ms(server) / LOCAL_HOUR_MS, kind, session,
             amount);
}

double local_ledger_overlap(int64_t hour, int64_t n_bytes, int64_t from_ms,
                            int64_t until_ms) {
  const int64_t begin = hour * LOCAL_HOUR_MS;
  const int64_t end = begin + LOCAL_HOUR_MS;
  const int64_t first = from_ms > begin ? from_ms : begin;
  const int64_t last = until_ms < end ? until_ms : end;

  return last > first ? (double)n_bytes / 1e9 * (double)(last - first) /
                            (double)LOCAL_HOUR_MS
                      : 0;
}

void local_ledger_stored(const local_server_t *server, int64_t n_bytes,
                         int64_t from_ms, int64_t until_ms) {
  const int64_t now = local_now_ms(server);
  int64_t hour = from_ms / LOCAL_HOUR_MS;

  if (until_ms > now)
    until_ms = now;
  if (hour < oldest_hour(server))
    hour = oldest_hour(server);
  forget_old(server);
  for (; hour * LOCAL_HOUR_MS < until_ms; hour++) {
    double amount = local_ledger_overlap(hour, n_bytes, from_ms, until_ms);

    if (amount > 0)
      ledger_add(server, hour, LOCAL_USE_STORAGE, NULL, amount);
  }
}

/* ---- The ledger: events ---- */

/* `event` and `path` are copied. */
static void ledger_add_event(const local_server_t *server, int64_t time_ms,
                             const char *event, const char *path) {
  local_ledger_t *ledger = server->ledger;
  local_audit_t *entry = &ledger->audit[ledger->n_audit % LOCAL_MAX_AUDIT];
  char *copy = tnk__strdup(ledger->alloc, path);

  if (copy == NULL)
    return;
  tnk__free(ledger->alloc, entry->path);
  *entry = (local_audit_t){.time_ms = time_ms, .path = copy};
  snprintf(entry->event, sizeof(entry->event), "%s", event);
  ledger->n_audit++;
  ledger->is_dirty = 1;
}

void local_ledger_note(const local_server_t *server, const char *event,
                       const char *path) {
  ledger_add_event(server, local_now_ms(server), event, path);
}

const local_audit_t *local_ledger_event(const local_server_t *server,
                                        size_t i) {
  const local_ledger_t *ledger = server->ledger;
  size_t oldest =
      ledger->n_audit > LOCAL_MAX_AUDIT ? ledger->n_audit - LOCAL_MAX_AUDIT : 0;

  return i < ledger->n_audit - oldest
             ? &ledger->audit[(oldest + i) % LOCAL_MAX_AUDIT]
             : NULL;
}

/* ---- The ledger: requests ---- */

void local_ledger_span(const local_server_t *server, const local_span_t *span) {
  local_ledger_t *ledger = server->ledger;

  if (ledger->spans == NULL)
    ledger->spans =
        tnk__calloc(ledger->alloc, LOCAL_MAX_SPANS, sizeof(*ledger->spans));
  if (ledger->spans != NULL)
    ledger->spans[ledger->n_spans++ % LOCAL_MAX_SPANS] = *span;
}

const local_span_t *local_ledger_ran(const local_server_t *server, size_t i) {
  const local_ledger_t *ledger = server->ledger;
  size_t oldest =
      ledger->n_spans > LOCAL_MAX_SPANS ? ledger->n_spans - LOCAL_MAX_SPANS : 0;

  return ledger->spans != NULL && i < ledger->n_spans - oldest
             ? &ledger->spans[(oldest + i) % LOCAL_MAX_SPANS]
             : NULL;
}

/* ---- The ledger: lifetime ---- */

int local_ledger_open(local_server_t *server) {
  local_ledger_t *ledger = tnk__calloc(server->alloc, 1, sizeof(*ledger));

  if (ledger == NULL)
    return TNK_ENOMEM;
  ledger->alloc = server->alloc;
  local_table_init(&ledger->uses, server->alloc);
  tnk__list_init(&ledger->use_list);
  ledger->audit =
      tnk__calloc(server->alloc, LOCAL_MAX_AUDIT, sizeof(*ledger->audit));
  server->ledger = ledger;
  if (ledger->audit == NULL)
    return TNK_ENOMEM;
  return TNK_OK;
}

void local_ledger_close(local_server_t *server) {
  local_ledger_t *ledger = server->ledger;

  if (ledger == NULL)
    return;
  while (!tnk__list_empty(&ledger->use_list))
    drop(ledger, USE(ledger->use_list.next));
  local_table_deinit(&ledger->uses);
  for (size_t i = 0; ledger->audit != NULL && i < LOCAL_MAX_AUDIT; i++)
    tnk__free(ledger->alloc, ledger->audit[i].path);
  tnk__free(ledger->alloc, ledger->audit);
  tnk__free(ledger->alloc, ledger->spans);
  tnk__free(ledger->alloc, ledger);
  server->ledger = NULL;
}

/* ---- The file ---- */

/* The ledger on the disk: one file, replaced each time. If the server crashes,
 * changes since the last write are lost. */

/* Size of a full ledger with the longest names. */
#define MAX_LEDGER ((size_t)16 << 20)

static int is_kept(const local_server_t *server) {
  return server->data != NULL && !server->data_is_temporary;
}

/* ---- The file: writing ---- */

static void put_use(tnk__json_writer_t *w, const local_use_t *use) {
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "hour", use->hour);
  tnk__json_put_int(w, "kind", (int64_t)use->kind);
  tnk__json_put_text(w, "session", use->session);
  tnk__json_put_double(w, "amount", use->amount);
  tnk__json_end(w);
}

static void put_event(tnk__json_writer_t *w, const local_audit_t *entry) {
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "time_ms", entry->time_ms);
  tnk__json_put_text(w, "event", entry->event);
  tnk__json_put_text(w, "path", entry->path);
  tnk__json_end(w);
}

void local_ledger_save(local_server_t *server) {
  local_ledger_t *ledger = server->ledger;
  const local_audit_t *entry;
  tnk__json_writer_t w;
  tnk__buf_t buf;

  if (!ledger->is_dirty || !is_kept(server))
    return;
  tnk__buf_init(&buf, server->alloc, MAX_LEDGER);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  tnk__json_put_array(&w, "uses");
  TNK__LIST_FOREACH (node, &ledger->use_list) {
    put_use(&w, tnk__container_of(node, local_use_t, link));
  }
  tnk__json_end(&w);
  tnk__json_put_array(&w, "events");
  for (size_t i = 0; (entry = local_ledger_event(server, i)) != NULL; i++)
    put_event(&w, entry);
  tnk__json_end(&w);
  tnk__json_end(&w);
  /* A full disk may have space later, so the write is retried. */
  if (tnk__json_finish(&w) == TNK_OK &&
      tnk__lm_file_write(server->data, LOCAL_LEDGER_FILE, &buf, NULL) == TNK_OK)
    ledger->is_dirty = 0;
  tnk__buf_deinit(&buf);
}

/* ---- The file: reading ---- */

void local_ledger_load(local_server_t *server) {
  json_t *root = NULL;
  const json_t *list;
  tnk__buf_t buf;

  if (!is_kept(server))
    return;
  tnk__buf_init(&buf, server->alloc, 2 * MAX_LEDGER);
  if (tnk__lm_file_read(server->data, LOCAL_LEDGER_FILE, &buf, NULL) ==
          TNK_OK &&
      tnk__json_parse_object(&root, buf.data, buf.len) != TNK_OK)
    root = NULL;
  tnk__buf_deinit(&buf);
  list = tnk__json_arr(root, "uses");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *from = json_array_get(list, i);
    const char *session = tnk__json_str(from, "session");
    int64_t hour = -1;
    int64_t kind = -1;
    double amount = 0;

    tnk__json_get_int(from, "hour", 0, INT32_MAX, &hour);
    tnk__json_get_int(from, "kind", 0, LOCAL_USE_STORAGE, &kind);
    tnk__json_get_double(from, "amount", &amount);
    if (hour >= 0 && kind >= 0 && session != NULL && amount > 0)
      ledger_add(server, hour, (local_use_kind_t)kind, session, amount);
  }
  list = tnk__json_arr(root, "events");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *from = json_array_get(list, i);
    const char *name = tnk__json_str(from, "event");
    const char *path = tnk__json_str(from, "path");
    int64_t time_ms = -1;

    tnk__json_get_int(from, "time_ms", 0, INT64_MAX, &time_ms);
    if (name != NULL && path != NULL && time_ms >= 0)
      ledger_add_event(server, time_ms, name, path);
  }
  json_decref(root);
  server->ledger->is_dirty = 0;
}
