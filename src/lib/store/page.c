/* SPDX-License-Identifier: MIT */
#include "lib/store/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/store/shapes.h"
#include "tnk/error.h"

/* ---- Ids of the latest records ---- */

_Static_assert((TNK__SEEN_SLOTS & (TNK__SEEN_SLOTS - 1)) == 0 &&
                   TNK__SEEN_SLOTS >= 2 * TNK__SEEN_MIN,
               "a set is at most half full, and a mask finds a slot");

/* FNV-1a with an additional mixing step. Collisions are harmless: only the
 * server can cause them, and it can omit a record anyway. */
static uint64_t fingerprint(const char *id) {
  uint64_t hash = UINT64_C(14695981039346656037);

  for (; *id != '\0'; id++)
    hash = (hash ^ (uint8_t)*id) * UINT64_C(1099511628211);
  hash ^= hash >> 32;
  return hash != 0 ? hash : 1;
}

/* The slot of a fingerprint, or the free slot for it. */
static uint64_t *slot_of(uint64_t *set, uint64_t hash) {
  size_t i = (size_t)hash & (TNK__SEEN_SLOTS - 1);

  while (set[i] != 0 && set[i] != hash)
    i = (i + 1) & (TNK__SEEN_SLOTS - 1);
  return &set[i];
}

int tnk__seen_add(tnk__seen_t *seen, const char *id) {
  const uint64_t hash = fingerprint(id);

  if (*slot_of(seen->slots[0], hash) == hash ||
      *slot_of(seen->slots[1], hash) == hash)
    return 0;
  if (seen->n == TNK__SEEN_MIN) {
    memcpy(seen->slots[1], seen->slots[0], sizeof(seen->slots[0]));
    memset(seen->slots[0], 0, sizeof(seen->slots[0]));
    seen->n = 0;
  }
  *slot_of(seen->slots[0], hash) = hash;
  seen->n++;
  return 1;
}

/* ---- Pages ---- */

/* Memory for the records of an answer, in addition to its body. The worst case
 * is pairs with empty strings, which grow to five times their size. */
enum { MEMORY_FACTOR = 16, MEMORY_AT_LEAST = 65536 };

/* ---- The frame of a list ---- */

typedef struct {
  int64_t offset;
  int64_t limit;
  int64_t total;
} cursor_t;

typedef struct {
  const void *items;
  size_t n;
  const cursor_t *cursor;
  const char *next; /* cursor of a search */
  tnk__usage_session_t *sessions;
  size_t n_sessions;
  int64_t cost_through_us;
  double storage_rate;
} frame_t;

static const frame_t blank_frame = {.storage_rate = NAN};

static const tnk__field_t cursor_fields[] = {
    TNK__FIELD(INT, cursor_t, offset, "offset", 0),
    TNK__FIELD(INT, cursor_t, limit, "limit", 0),
    TNK__FIELD(INT, cursor_t, total, "total_count", 1),
};
static const tnk__shape_t cursor_shape = {
    .fields = cursor_fields, .n_fields = 3, .size = sizeof(cursor_t)};

static const tnk__field_t runs_fields[] = {
    TNK__FIELD_LIST(RECORDS, frame_t, items, n, "training_runs",
                    &tnk__shape_run, 1),
    TNK__FIELD_RECORD_AT(frame_t, cursor, "cursor", &cursor_shape, 1),
};
static const tnk__field_t checkpoints_fields[] = {
    TNK__FIELD_LIST(RECORDS, frame_t, items, n, "checkpoints",
                    &tnk__shape_checkpoint, 1),
    TNK__FIELD_RECORD_AT(frame_t, cursor, "cursor", &cursor_shape, 0),
};

static const tnk__field_t sessions_fields[] = {
    TNK__FIELD_LIST(TEXTS, frame_t, items, n, "sessions", NULL, 1),
};
static const tnk__field_t search_fields[] = {
    TNK__FIELD_LIST(RECORDS, frame_t, items, n, "sessions",
                    &tnk__shape_session_summary, 1),
    TNK__FIELD(JSON, frame_t, next, "next_cursor", 0),
};

static const tnk__field_t usages_fields[] = {
    TNK__FIELD_LIST(RECORDS, frame_t, items, n, "data", &tnk__shape_usage, 1),
    TNK__FIELD_LIST(MAP, frame_t, sessions, n_sessions, "sessions",
                    &tnk__shape_usage_session, 0),
    TNK__FIELD(TIME, frame_t, cost_through_us, "cost_data_through", 0),
};
static const tnk__field_t storages_fields[] = {
    TNK__FIELD(NUMBER, frame_t, storage_rate,
               "effective_rate_usd_per_gigabyte_month", 0),
    TNK__FIELD_LIST(RECORDS, frame_t, items, n, "data", &tnk__shape_storage, 1),
};
static const tnk__field_t audit_fields[] = {
    TNK__FIELD_LIST(RECORDS, frame_t, items, n, "entries",
                    &tnk__shape_audit_entry, 1),
};

/* ---- The answers, by call ---- */

/* The end of a list: after one answer, or by a total, an empty page, or a
 * missing cursor. */
typedef enum {
  END_AT_ONCE = 0,
  END_BY_TOTAL,
  END_BY_EMPTY,
  END_BY_CURSOR
} end_t;

typedef struct {
  tnk__page_kind_t kind;
  end_t end;
  const tnk__shape_t *single; /* shape of an answer with one record; or NULL */
  tnk__shape_t frame;         /* shape of a list */
} answer_t;

#define FRAME(fields_)                                                         \
  .frame = {.fields = (fields_),                                               \
            .n_fields = sizeof(fields_) / sizeof((fields_)[0]),                \
            .size = sizeof(frame_t),                                           \
            .blank = &blank_frame}
#define SINGLE(kind_, shape_)                                                  \
  { .kind = TNK__PAGE_##kind_, .single = &tnk__shape_##shape_ }
#define NO_PAGE                                                                \
  { .kind = TNK__PAGE_NONE }

static const answer_t answers[TNK__N_ASKS] = {
    [TNK__ASK_LIST_RUNS] = {.kind = TNK__PAGE_RUNS,
                            FRAME(runs_fields),
                            .end = END_BY_TOTAL},
    [TNK__ASK_GET_RUN] = SINGLE(RUNS, run),
    [TNK__ASK_LIST_RUN_CHECKPOINTS] = {.kind = TNK__PAGE_CHECKPOINTS,
                                       FRAME(checkpoints_fields)},
    [TNK__ASK_LIST_CHECKPOINTS] = {.kind = TNK__PAGE_CHECKPOINTS,
                                   FRAME(checkpoints_fields),
                                   .end = END_BY_TOTAL},
    [TNK__ASK_WEIGHTS_INFO] = SINGLE(WEIGHTS_INFO, weights_info),
    [TNK__ASK_EXTERNAL_FILES] = SINGLE(EXTERNAL_FILES, external_files),
    [TNK__ASK_ARCHIVE] = NO_PAGE,
    [TNK__ASK_DELETE] = NO_PAGE,
    [TNK__ASK_PUBLISH] = NO_PAGE,
    [TNK__ASK_UNPUBLISH] = NO_PAGE,
    [TNK__ASK_SET_TTL] = NO_PAGE,
    [TNK__ASK_COPY] = NO_PAGE,
    [TNK__ASK_GET_SESSION] = SINGLE(SESSIONS, session),
    [TNK__ASK_LIST_SESSIONS] = {.kind = TNK__PAGE_SESSIONS,
                                FRAME(sessions_fields),
                                .end = END_BY_EMPTY},
    [TNK__ASK_SEARCH_SESSIONS] = {.kind = TNK__PAGE_SESSIONS,
                                  FRAME(search_fields),
                                  .end = END_BY_CURSOR},
    [TNK__ASK_MOVE_SESSION] = NO_PAGE,
    [TNK__ASK_EXPORT_TRACE] = NO_PAGE,
    [TNK__ASK_GET_SAMPLER] = SINGLE(SAMPLERS, sampler),
    [TNK__ASK_USAGE] = {.kind = TNK__PAGE_USAGES, FRAME(usages_fields)},
    [TNK__ASK_STORAGE] = {.kind = TNK__PAGE_STORAGES, FRAME(storages_fields)},
    [TNK__ASK_AUDIT] = {.kind = TNK__PAGE_AUDIT_ENTRIES, FRAME(audit_fields)},
    [TNK__ASK_GET_KEY] = SINGLE(KEYS, api_key),
    [TNK__ASK_REVOKE_KEY] = NO_PAGE,
};

size_t tnk__page_item_size(tnk__page_kind_t kind) {
  static const size_t sizes[] = {
      [TNK__PAGE_RUNS] = sizeof(tnk_run_t),
      [TNK__PAGE_CHECKPOINTS] = sizeof(tnk_checkpoint_t),
      [TNK__PAGE_WEIGHTS_INFO] = sizeof(tnk_weights_info_t),
      [TNK__PAGE_EXTERNAL_FILES] = sizeof(tnk_external_files_t),
      [TNK__PAGE_SESSIONS] = sizeof(tnk_session_t),
      [TNK__PAGE_SAMPLERS] = sizeof(tnk_sampler_t),
      [TNK__PAGE_IDENTITIES] = sizeof(tnk_identity_t),
      [TNK__PAGE_USAGES] = sizeof(tnk_usage_t),
      [TNK__PAGE_STORAGES] = sizeof(tnk_storage_t),
      [TNK__PAGE_AUDIT_ENTRIES] = sizeof(tnk_audit_entry_t),
      [TNK__PAGE_KEYS] = sizeof(tnk_api_key_t),
      [TNK__PAGE_NONE] = 0};

  return sizes[kind];
}

/* The id that distinguishes the records of a list. */
static const char *id_of(const tnk_page_t *page, const void *item) {
  if (page->kind == TNK__PAGE_RUNS)
    return ((const tnk_run_t *)item)->id;
  if (page->kind == TNK__PAGE_SESSIONS)
    return ((const tnk_session_t *)item)->id;
  return ((const tnk_checkpoint_t *)item)->path;
}

/* ---- Reading ---- */

static void read_single(tnk_page_t *page, tnk__record_reader_t *reader,
                        const tnk__shape_t *shape, const tnk__ask_t *ask) {
  void *record = tnk__arena_alloc(&page->arena, shape->size);

  page->total = -1;
  page->is_last = 1;
  if (record == NULL) {
    reader->err = TNK_ENOMEM;
    return;
  }
  tnk__record_read(reader, shape, record);
  if (ask->kind == TNK__ASK_GET_SESSION) /* the answer does not contain it */
    ((tnk_session_t *)record)->id = page->ask.id;
  page->items = record;
  page->n = page->n_received = 1;
}

/* A list of sessions has only their ids. */
static void make_sessions(tnk_page_t *page, tnk__record_reader_t *reader) {
  const char *const *ids = page->items;
  tnk_session_t *sessions =
      tnk__arena_calloc(&page->arena, page->n, sizeof(*sessions));

  if (sessions == NULL) {
    reader->err = TNK_ENOMEM;
    return;
  }
  for (size_t i = 0; i < page->n; i++)
    sessions[i] = (tnk_session_t){
        .id = ids[i], .n_checkpoints = -1, .checkpoint_bytes = -1};
  page->items = sessions;
}

static int by_id(const void *a, const void *b) {
  return strcmp(((const tnk__usage_session_t *)a)->id,
                ((const tnk__usage_session_t *)b)->id);
}

/* Copy the session's data into each use. */
static void join_sessions(tnk_page_t *page, const frame_t *frame) {
  tnk_usage_t *usages = (tnk_usage_t *)(uintptr_t)page->items;

  if (frame->n_sessions == 0)
    return;
  qsort(frame->sessions, frame->n_sessions, sizeof(*frame->sessions), by_id);
  for (size_t i = 0; i < page->n; i++) {
    const tnk__usage_session_t key = {.id = usages[i].session_id};
    const tnk__usage_session_t *found;

    if (key.id == NULL)
      continue;
    found = bsearch(&key, frame->sessions, frame->n_sessions,
                    sizeof(*frame->sessions), by_id);
    if (found == NULL)
      continue;
    usages[i].user_metadata = found->user_metadata;
    usages[i].n_user_metadata = found->n_user_metadata;
  }
}

/* A short page is not necessarily the last one: the server may return fewer
 * records than requested. A cursor that equals the last one ends the list. */
static int ends(const tnk_page_t *page, end_t end, const frame_t *frame) {
  switch (end) {
  case END_BY_TOTAL:
    return frame->cursor == NULL || frame->n == 0 ||
           (page->total >= 0 && page->ask.offset >= (uint64_t)page->total);
  case END_BY_EMPTY:
    return frame->n == 0;
  case END_BY_CURSOR:
    return frame->next == NULL || (page->ask.cursor != NULL &&
                                   strcmp(frame->next, page->ask.cursor) == 0);
  case END_AT_ONCE:
    break;
  }
  return 1;
}

static void read_list(tnk_page_t *page, tnk__record_reader_t *reader,
                      const answer_t *answer) {
  frame_t frame;

  tnk__record_read(reader, &answer->frame, &frame);
  if (reader->err != TNK_OK)
    return;
  page->items = frame.items;
  page->n = page->n_received = frame.n;
  page->total = frame.cursor != NULL ? frame.cursor->total : -1;
  page->ask.offset += frame.n;
  page->is_last = ends(page, answer->end, &frame);
  page->ask.cursor = frame.next;
  page->cost_through_us = frame.cost_through_us;
  page->storage_rate = frame.storage_rate;
  if (page->kind == TNK__PAGE_USAGES)
    join_sessions(page, &frame);
  if (page->ask.kind == TNK__ASK_LIST_SESSIONS)
    make_sessions(page, reader);
}

/* ---- Duplicates ---- */

static int drop_seen(tnk_page_t *page, const tnk_allocator_t *alloc,
                     const tnk__seen_t *before) {
  const size_t size = tnk__page_item_size(page->kind);
  char *items = (char *)(uintptr_t)page->items;
  size_t kept = 0;

  page->seen = tnk__calloc(alloc, 1, sizeof(*page->seen));
  if (page->seen == NULL)
    return TNK_ENOMEM;
  if (before != NULL)
    *page->seen = *before;
  for (size_t i = 0; i < page->n; i++) {
    if (!tnk__seen_add(page->seen, id_of(page, items + i * size)))
      continue;
    if (kept < i)
      memcpy(items + kept * size, items + i * size, size);
    kept++;
  }
  page->n = kept;
  return TNK_OK;
}

/* ---- Lifetime ---- */

/* The strings of the request are stored in the page. */
static int keep_ask(tnk_page_t *page, const tnk__ask_t *ask) {
  const char **texts[] = {&page->ask.id, &page->ask.project_id,
                          &page->ask.search, &page->ask.cursor};

  page->ask = *ask;
  page->ask.path = page->ask.access_token = NULL; /* lists do not use them */
  page->ask.event_type = page->ask.day = NULL;
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
    if (*texts[i] != NULL) {
      *texts[i] = tnk__arena_strdup(&page->arena, *texts[i]);
      if (*texts[i] == NULL)
        return TNK_ENOMEM;
    }
  return TNK_OK;
}

static int read_all(tnk_page_t *page, const tnk_allocator_t *alloc,
                    const tnk__ask_t *ask, const tnk__seen_t *seen, size_t n,
                    const char **what) {
  const answer_t *answer = &answers[ask->kind];
  tnk__record_reader_t reader = {.arena = &page->arena};
  int err = keep_ask(page, ask);

  if (err != TNK_OK)
    return err;
  page->kind = answer->kind;
  tnk__json_pull_init(&reader.pull, page->body, n);
  if (answer->single != NULL)
    read_single(page, &reader, answer->single, ask);
  else
    read_list(page, &reader, answer);
  *what = reader.what;
  if (reader.err != TNK_OK)
    return reader.err;
  err = tnk__json_pull_finish(&reader.pull);
  /* Duplicates within one answer are kept. */
  if (err == TNK_OK && (seen != NULL || !page->is_last))
    err = drop_seen(page, alloc, seen);
  return err;
}

int tnk__page_read(tnk_page_t **out, const tnk_allocator_t *alloc,
                   const tnk__ask_t *ask, const tnk__seen_t *seen,
                   uint8_t *body, size_t n, const char **what) {
  tnk_page_t *page = tnk__calloc(alloc, 1, sizeof(*page));
  int err;

  *what = NULL;
  if (page == NULL) {
    tnk__free(alloc, body);
    return TNK_ENOMEM;
  }
  page->body = body;
  page->storage_rate = NAN;
  tnk__arena_init(&page->arena, alloc,
                  MEMORY_AT_LEAST + MEMORY_FACTOR * n +
                      (ask->search != NULL ? strlen(ask->search) : 0));
  err = read_all(page, alloc, ask, seen, n, what);
  if (err != TNK_OK) {
    tnk__page_free(alloc, page);
    return err;
  }
  *out = page;
  return TNK_OK;
}

void tnk__page_free(const tnk_allocator_t *alloc, void *value) {
  tnk_page_t *page = value;

  page->arena.alloc = alloc; /* the page may outlive the service */
  tnk__arena_deinit(&page->arena);
  tnk__free(alloc, page->seen);
  tnk__free(alloc, page->body);
  tnk__free(alloc, page);
}
