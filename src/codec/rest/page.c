#include "codec/rest/page.h"

#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "codec/rest/shapes.h"
#include "tnk/error.h"

/* What the records of an answer may need beside it: the costliest are pairs
 * with empty texts, which grow to five times their size. */
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
} frame_t;

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

/* ---- The answers, by what was asked ---- */

typedef struct {
  tnk__page_kind_t kind;
  const tnk__shape_t *single; /* the answer is one record; or NULL */
  tnk__shape_t frame;         /* else it is a list */
  int has_pages;
} answer_t;

#define FRAME(fields_)                                                         \
  .frame = {.fields = (fields_),                                               \
            .n_fields = sizeof(fields_) / sizeof((fields_)[0]),                \
            .size = sizeof(frame_t)}

static const answer_t answers[TNK__N_ASKS] = {
    [TNK__ASK_LIST_RUNS] = {.kind = TNK__PAGE_RUNS,
                            FRAME(runs_fields),
                            .has_pages = 1},
    [TNK__ASK_GET_RUN] = {.kind = TNK__PAGE_RUNS, .single = &tnk__shape_run},
    [TNK__ASK_LIST_RUN_CHECKPOINTS] = {.kind = TNK__PAGE_CHECKPOINTS,
                                       FRAME(checkpoints_fields)},
    [TNK__ASK_LIST_CHECKPOINTS] = {.kind = TNK__PAGE_CHECKPOINTS,
                                   FRAME(checkpoints_fields),
                                   .has_pages = 1},
};

static size_t size_of(tnk__page_kind_t kind) {
  switch (kind) {
  case TNK__PAGE_RUNS:
    return sizeof(tnk_run_t);
  case TNK__PAGE_CHECKPOINTS:
    break;
  }
  return sizeof(tnk_checkpoint_t);
}

static const char *id_of(const tnk_page_t *page, const void *item) {
  if (page->kind == TNK__PAGE_RUNS)
    return ((const tnk_run_t *)item)->id;
  return ((const tnk_checkpoint_t *)item)->path;
}

/* ---- Reading ---- */

static void read_single(tnk_page_t *page, tnk__record_reader_t *reader,
                        const tnk__shape_t *shape) {
  void *record = tnk__arena_alloc(&page->arena, shape->size);

  page->total = -1;
  page->is_last = 1;
  if (record == NULL) {
    reader->err = TNK_ENOMEM;
    return;
  }
  tnk__record_read(reader, shape, record);
  page->items = record;
  page->n = page->n_received = 1;
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
  /* A page that is merely short is not the last one: the server may give fewer
   * than it was asked for. */
  page->is_last =
      !answer->has_pages || frame.cursor == NULL || frame.n == 0 ||
      (page->total >= 0 && page->ask.offset >= (uint64_t)page->total);
}

/* ---- What comes twice ---- */

static int drop_seen(tnk_page_t *page, const tnk_allocator_t *alloc,
                     const tnk__seen_t *before) {
  const size_t size = size_of(page->kind);
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

/* ---- Life ---- */

/* The texts of what was asked for live in the page. */
static int keep_ask(tnk_page_t *page, const tnk__ask_t *ask) {
  page->ask = *ask;
  page->ask.id = NULL; /* lists have none */
  if (ask->project_id == NULL)
    return TNK_OK;
  page->ask.project_id = tnk__arena_strdup(&page->arena, ask->project_id);
  return page->ask.project_id != NULL ? TNK_OK : TNK_ENOMEM;
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
    read_single(page, &reader, answer->single);
  else
    read_list(page, &reader, answer);
  *what = reader.what;
  if (reader.err != TNK_OK)
    return reader.err;
  err = tnk__json_pull_finish(&reader.pull);
  /* What one answer has twice, it means so. */
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
  tnk__arena_init(&page->arena, alloc, MEMORY_AT_LEAST + MEMORY_FACTOR * n);
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

  page->arena.alloc = alloc; /* the service may be gone */
  tnk__arena_deinit(&page->arena);
  tnk__free(alloc, page->seen);
  tnk__free(alloc, page->body);
  tnk__free(alloc, page);
}

/* ---- Accessors ---- */

size_t tnk_page_count(const tnk_page_t *page) {
  return page != NULL ? page->n : 0;
}

int tnk_page_is_last(const tnk_page_t *page) {
  return page == NULL || page->is_last;
}

int64_t tnk_page_total(const tnk_page_t *page) {
  return page != NULL ? page->total : -1;
}

uint64_t tnk_page_end(const tnk_page_t *page) {
  return page != NULL ? page->ask.offset : 0;
}

static const void *item(const tnk_page_t *page, tnk__page_kind_t kind,
                        size_t index) {
  if (page == NULL || page->kind != kind || index >= page->n)
    return NULL;
  return (const char *)page->items + index * size_of(kind);
}

const tnk_run_t *tnk_page_run(const tnk_page_t *page, size_t index) {
  return item(page, TNK__PAGE_RUNS, index);
}

const tnk_checkpoint_t *tnk_page_checkpoint(const tnk_page_t *page,
                                            size_t index) {
  return item(page, TNK__PAGE_CHECKPOINTS, index);
}
