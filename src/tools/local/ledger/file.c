#include "tools/local/ledger/file.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/lm/file.h"

/* The ledger on the disk: one file, replaced each time. If the server crashes,
 * changes since the last write are lost. */

/* Size of a full ledger with the longest names. */
#define MAX_LEDGER ((size_t)16 << 20)

static int is_kept(const local_server_t *server) {
  return server->data != NULL && !server->data_is_temporary;
}

/* ---- Writing ---- */

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
  tnk__json_key(&w, "uses");
  tnk__json_begin_array(&w);
  TNK__LIST_FOREACH (node, &ledger->use_list) {
    put_use(&w, tnk__container_of(node, local_use_t, link));
  }
  tnk__json_end(&w);
  tnk__json_key(&w, "events");
  tnk__json_begin_array(&w);
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

/* ---- Reading ---- */

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
      local_ledger_add(server, hour, (local_use_kind_t)kind, session, amount);
  }
  list = tnk__json_arr(root, "events");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *from = json_array_get(list, i);
    const char *name = tnk__json_str(from, "event");
    const char *path = tnk__json_str(from, "path");
    int64_t time_ms = -1;

    tnk__json_get_int(from, "time_ms", 0, INT64_MAX, &time_ms);
    if (name != NULL && path != NULL && time_ms >= 0)
      local_ledger_add_event(server, time_ms, name, path);
  }
  json_decref(root);
  server->ledger->is_dirty = 0;
}
