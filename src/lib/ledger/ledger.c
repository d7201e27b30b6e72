/* SPDX-License-Identifier: MIT */
#include "lib/ledger/ledger.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/base/misuse.h"

enum { MAX_INTENTS = 1024 };

static const char *const op_name = "ledger_open";

/* ---- The end ---- */

static void free_rest(tnk_ledger_t *ledger, const tnk_allocator_t *alloc) {
  tnk__pen_deinit(&ledger->pen);
  tnk__free(alloc, ledger->data);
  tnk__free(alloc, ledger->entries);
  tnk__free(alloc, ledger->lost);
  tnk__free(alloc, ledger->intents);
  tnk__free(alloc, ledger->path);
  tnk__free(alloc, ledger->name);
  tnk__buf_deinit(&ledger->last_text);
  tnk__arena_deinit(&ledger->arena);
}

/* The value of a promise: it holds one reference, which hide() releases. */
static void *show(tnk_ledger_t *ledger) {
  ledger->refs++;
  return ledger;
}

static void hide(const tnk_allocator_t *alloc, void *value) {
  tnk_ledger_t *ledger = value;

  if (--ledger->refs > 0)
    return;
  tnk_promise_unref(ledger->kin);
  tnk__handle_end(ledger, sizeof(*ledger));
  tnk__free(alloc, ledger);
}

static void on_closed(tnk__deferred_t *closed) {
  tnk_ledger_t *ledger = tnk__container_of(closed, tnk_ledger_t, closed);
  const tnk_allocator_t *alloc = &ledger->session->context->alloc;
  tnk_close_cb cb = ledger->close_cb;
  void *user = ledger->close_user;

  /* The remaining operations have ended by now and are counted. */
  if (tnk__ledger_write_last(ledger))
    return;
  tnk__list_remove(&ledger->link);
  free_rest(ledger, alloc);
  ledger->n_entries = 0;
  ledger->ledgers = NULL;
  ledger->session = NULL;
  hide(alloc, ledger);
  if (cb != NULL) {
    tnk__callout_begin();
    cb(user);
    tnk__callout_end();
  }
}

static void wind_down(tnk_ledger_t *ledger) {
  if (ledger->closing && !ledger->is_reading && !ledger->pen.is_busy)
    tnk__defer(ledger->session->context, &ledger->closed);
}

static void on_idle(tnk__pen_t *pen) {
  wind_down(tnk__container_of(pen, tnk_ledger_t, pen));
}

void tnk__ledger_close(tnk_ledger_t *ledger, tnk_close_cb cb, void *user) {
  tnk__error_t *error = tnk__error_static(TNK_ECLOSED);
  tnk_promise_t *opening = ledger->opening;
  tnk__list_t *node;

  if (ledger->closing)
    return;
  ledger->closing = 1;
  ledger->close_cb = cb;
  ledger->close_user = user;
  ledger->opening = NULL;
  tnk__ledger_policy_end(ledger);
  tnk__timer_stop(&ledger->minute);
  if (opening != NULL)
    tnk__promise_reject(opening, error);
  while ((node = tnk__list_pop(&ledger->jobs)) != NULL) {
    tnk__ledger_job_t *job = tnk__container_of(node, tnk__ledger_job_t, link);
    job->abort(job, error);
  }
  wind_down(ledger);
}

void tnk__ledgers_init(tnk__ledgers_t *ledgers, tnk__session_t *session) {
  *ledgers = (tnk__ledgers_t){.session = session, .disk = &tnk__ledger_disk};
  tnk__list_init(&ledgers->open);
}

/* They stay in the list until the pool has released them. */
void tnk__ledgers_shut(tnk__ledgers_t *ledgers) {
  TNK__LIST_FOREACH_SAFE (node, next, &ledgers->open)
    tnk__ledger_close(tnk__container_of(node, tnk_ledger_t, link), NULL, NULL);
}

/* ---- Operations ---- */

void tnk__ledger_job_enter(tnk_ledger_t *ledger, tnk__ledger_job_t *job) {
  tnk__list_append(&ledger->jobs, &job->link);
}

void tnk__ledger_job_leave(tnk_ledger_t *ledger, tnk__ledger_job_t *job) {
  const int was_first = tnk__list_first(&ledger->jobs) == &job->link;
  tnk__list_t *node;

  tnk__list_remove(&job->link);
  node = tnk__list_first(&ledger->jobs);
  if (!was_first || node == NULL)
    return;
  job = tnk__container_of(node, tnk__ledger_job_t, link);
  if (job->first != NULL)
    job->first(job);
}

/* ---- Reading lines ---- */

/* Copy a string into the arena. Sets *ok to 0 without memory. */
static const char *copy(tnk_ledger_t *ledger, const char *text, int *ok) {
  const char *own =
      text != NULL ? tnk__arena_strdup(&ledger->arena, text) : NULL;

  if (text != NULL && own == NULL)
    *ok = 0;
  return own;
}

/* A batch is a step in the recipes of the cookbook. */
static uint64_t steps_of(const tnk__ledger_line_t *line) {
  const int64_t n = line->n_steps >= 0 ? line->n_steps : line->batch;

  return n > 0 ? (uint64_t)n : 0;
}

/* Strings remain in the line. */
static int fill(tnk_ledger_t *ledger, tnk__ledger_entry_t *entry,
                const tnk__ledger_line_t *line) {
  const tnk__totals_t used = tnk__ledger_used(line);
  tnk_totals_t *totals = NULL;

  *entry = (tnk__ledger_entry_t){.attempt = line->attempt, .save = line->save};
  entry->pub = (tnk_ledger_entry_t){
      .name = line->name,
      .state_path = line->state_path,
      .sampler_path = line->sampler_path,
      .cursor = line->cursor,
      .json = line->json,
      .batch = line->batch,
      .epoch = line->epoch,
      .n_steps = steps_of(line),
      .n_passes = line->n_passes > 0 ? (uint64_t)line->n_passes : 0,
      .time_s = line->time_s,
      .is_final = line->is_final,
      .is_rolling = line->is_rolling};
  if (line->ttl_s > 0 && line->time_s > 0 &&
      line->ttl_s <= INT64_MAX - line->time_s)
    entry->pub.expires_s = line->time_s + line->ttl_s;
  if (!tnk__ledger_tells_used(line))
    return 1;
  totals = tnk__arena_alloc(&ledger->arena, sizeof(*totals));
  if (totals != NULL)
    tnk__totals_show(totals, &used);
  entry->pub.used = totals;
  return totals != NULL;
}

/* Make room for one more entry of a list. Returns 0 without memory. */
static int make_room(const tnk_allocator_t *alloc, tnk__ledger_entry_t ***list,
                     size_t n, size_t *cap) {
  const size_t more = *cap > 0 ? *cap * 2 : 16;
  tnk__ledger_entry_t **entries;

  if (n < *cap)
    return 1;
  entries = tnk__realloc(alloc, *list, more * sizeof(*entries));
  if (entries == NULL)
    return 0;
  *list = entries;
  *cap = more;
  return 1;
}

/* Add an entry with a stable address. Returns NULL without memory. */
static tnk__ledger_entry_t *add_entry(tnk_ledger_t *ledger,
                                      const tnk_allocator_t *alloc,
                                      const tnk__ledger_line_t *line) {
  tnk__ledger_entry_t *entry;

  if (!make_room(alloc, &ledger->entries, ledger->n_entries,
                 &ledger->cap_entries))
    return NULL;
  entry = tnk__arena_alloc(&ledger->arena, sizeof(*entry));
  if (entry == NULL || !fill(ledger, entry, line))
    return NULL;
  ledger->entries[ledger->n_entries++] = entry;
  return entry;
}

static tnk__ledger_entry_t *find_lost(const tnk_ledger_t *ledger,
                                      const tnk__ledger_line_t *line) {
  for (size_t i = ledger->n_lost; i-- > 0;)
    if (ledger->lost[i]->attempt == line->attempt &&
        ledger->lost[i]->save == line->save)
      return ledger->lost[i];
  return NULL;
}

static void add_lost(tnk_ledger_t *ledger, const tnk_allocator_t *alloc,
                     const tnk__ledger_line_t *line) {
  static const char form[] = "tinker://%s/weights/%s";
  tnk__ledger_entry_t *entry;
  char *path;
  size_t n;

  if (!line->is_rolling || line->run == NULL || line->attempt == 0 ||
      !(line->what & TNK__LEDGER_STATE) || find_lost(ledger, line) != NULL ||
      !make_room(alloc, &ledger->lost, ledger->n_lost, &ledger->cap_lost))
    return;
  n = sizeof(form) + strlen(line->run) + strlen(line->name);
  path = tnk__arena_alloc(&ledger->arena, n);
  entry = tnk__arena_calloc(&ledger->arena, 1, sizeof(*entry));
  if (path == NULL || entry == NULL)
    return;
  snprintf(path, n, form, line->run, line->name);
  entry->pub.state_path = path;
  entry->pub.name = path + strlen(path) - strlen(line->name);
  entry->attempt = line->attempt;
  entry->save = line->save;
  ledger->lost[ledger->n_lost++] = entry;
}

void tnk__ledger_lose(tnk_ledger_t *ledger, const tnk__ledger_line_t *line) {
  add_lost(ledger, &ledger->session->context->alloc, line);
}

/* ---- Reading, in the pool ---- */

/* An intent is settled by the next line about the same save. */
static void settle_intent(tnk_ledger_t *ledger,
                          const tnk__ledger_line_t *line) {
  for (size_t i = ledger->n_intents; i-- > 0;) {
    const tnk__ledger_line_t *intent = &ledger->intents[i];

    if (intent->attempt != line->attempt || intent->save != line->save)
      continue;
    ledger->n_intents--;
    memmove(&ledger->intents[i], &ledger->intents[i + 1],
            (ledger->n_intents - i) * sizeof(*intent));
    return;
  }
}

static int is_newer(const tnk__ledger_line_t *line,
                    const tnk__ledger_line_t *other) {
  return line->attempt > other->attempt ||
         (line->attempt == other->attempt && line->save > other->save);
}

/* Intents before an existing state are obsolete, but the service may have made
 * their states. A line of another program is newer than all intents before
 * it. */
static void drop_older(tnk_ledger_t *ledger, const tnk_allocator_t *alloc,
                       const tnk__ledger_line_t *line) {
  size_t n = 0;

  for (size_t i = 0; i < ledger->n_intents; i++) {
    const tnk__ledger_line_t *intent = &ledger->intents[i];

    if (line->attempt > 0 && is_newer(intent, line))
      ledger->intents[n++] = *intent;
    else if (line->attempt > 0 && is_newer(line, intent))
      add_lost(ledger, alloc, intent);
  }
  ledger->n_intents = n;
}

static int take_intent(tnk_ledger_t *ledger, const tnk_allocator_t *alloc,
                       const tnk__ledger_line_t *line) {
  if (ledger->intents == NULL)
    ledger->intents = tnk__calloc(alloc, MAX_INTENTS, sizeof(*ledger->intents));
  if (ledger->intents == NULL)
    return UV_ENOMEM;
  if (ledger->n_intents == MAX_INTENTS)
    settle_intent(ledger, &ledger->intents[0]); /* too old to matter */
  ledger->intents[ledger->n_intents++] = *line;
  return 0;
}

/* Find the save of a line that reports the deletion of its state. Few lines
 * come between a save and its deletion, so the search is short. */
static void take_deleted(tnk_ledger_t *ledger, const tnk__ledger_line_t *line) {
  const size_t n = ledger->n_entries;
  const size_t n_looked_at = n < MAX_INTENTS ? n : MAX_INTENTS;
  tnk__ledger_entry_t *lost = find_lost(ledger, line);

  if (lost != NULL) {
    lost->pub.is_deleted = 1;
    return;
  }
  for (size_t i = n; i-- > n - n_looked_at;) {
    tnk__ledger_entry_t *entry = ledger->entries[i];

    if (!entry->pub.is_rolling || entry->attempt != line->attempt ||
        entry->save != line->save)
      continue;
    entry->pub.is_deleted = 1;
    return;
  }
}

static int take_line(tnk_ledger_t *ledger, const tnk_allocator_t *alloc,
                     const tnk__ledger_line_t *line) {
  if (line->attempt > ledger->attempt)
    ledger->attempt = line->attempt;
  if (tnk__ledger_tells_used(line))
    ledger->used = tnk__ledger_used(line);
  if (line->event == TNK__LEDGER_USED)
    return 0;
  if (line->event == TNK__LEDGER_INTENT)
    return take_intent(ledger, alloc, line);
  if (line->event == TNK__LEDGER_DELETED)
    take_deleted(ledger, line);
  else if (line->event != TNK__LEDGER_OTHER)
    settle_intent(ledger, line);
  if (line->event == TNK__LEDGER_FAILED)
    add_lost(ledger, alloc, line);
  if (line->state_path != NULL)
    drop_older(ledger, alloc, line);
  if (line->state_path == NULL && line->sampler_path == NULL)
    return 0;
  return add_entry(ledger, alloc, line) != NULL ? 0 : UV_ENOMEM;
}

static int read_lines(tnk_ledger_t *ledger, const tnk_allocator_t *alloc,
                      size_t n) {
  uint8_t *at = ledger->data;
  uint8_t *const end = at + n;
  int err = 0;

  while (err == 0 && at < end) {
    uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
    const size_t len = (size_t)((stop != NULL ? stop : end) - at);
    tnk__ledger_line_t line;
    const int status = tnk__ledger_read(&line, &ledger->arena, at, len);

    if (status == TNK_ENOMEM)
      err = UV_ENOMEM;
    else if (status == TNK_OK)
      err = take_line(ledger, alloc, &line);
    else
      ledger->n_bad += len > 0;
    at += len + 1;
  }
  return err;
}

static void run_read(tnk__work_t *work) {
  tnk_ledger_t *ledger = tnk__container_of(work, tnk_ledger_t, work);
  const tnk_allocator_t *alloc = ledger->arena.alloc;
  size_t n;

  ledger->cause = tnk__ledger_file_open(&ledger->pen.file, ledger->path, alloc,
                                        &ledger->data, &n);
  if (ledger->cause == 0)
    ledger->cause = read_lines(ledger, alloc, n);
}

/* ---- Adding lines ---- */

tnk__ledger_entry_t *tnk__ledger_keep(tnk_ledger_t *ledger,
                                      const tnk__ledger_line_t *line) {
  tnk__ledger_line_t own = *line;
  tnk__ledger_entry_t *entry;
  int ok = 1;

  own.name = copy(ledger, line->name, &ok);
  own.state_path = copy(ledger, line->state_path, &ok);
  own.sampler_path = copy(ledger, line->sampler_path, &ok);
  own.cursor = copy(ledger, line->cursor, &ok);
  own.json = NULL;
  entry = ok ? add_entry(ledger, &ledger->session->context->alloc, &own) : NULL;
  if (entry != NULL && own.state_path != NULL)
    drop_older(ledger, &ledger->session->context->alloc, &own);
  return entry;
}

/* Insert it after the older intents. */
static void move_intent(tnk_ledger_t *ledger) {
  tnk__ledger_line_t *intents = ledger->intents;
  const tnk__ledger_line_t last = intents[ledger->n_intents - 1];
  size_t i = ledger->n_intents - 1;

  for (; i > 0 && intents[i - 1].attempt == last.attempt &&
         intents[i - 1].save > last.save;
       i--)
    intents[i] = intents[i - 1];
  intents[i] = last;
}

void tnk__ledger_doubt(tnk_ledger_t *ledger, const tnk__ledger_line_t *line) {
  tnk__ledger_name_t *name = tnk__arena_alloc(&ledger->arena, sizeof(*name));
  tnk__ledger_line_t own = *line;
  int ok = name != NULL;

  own.event = TNK__LEDGER_INTENT;
  own.name = copy(ledger, line->name, &ok);
  own.run = copy(ledger, line->run, &ok);
  own.cursor = copy(ledger, line->cursor, &ok);
  own.state_path = own.sampler_path = own.json = NULL;
  if (!ok)
    return;
  *name = (tnk__ledger_name_t){.next = ledger->names, .text = own.name};
  ledger->names = name;
  if (take_intent(ledger, &ledger->session->context->alloc, &own) == 0)
    move_intent(ledger);
}

/* ---- Opening ---- */

tnk__error_t *tnk__ledger_disk_error(const tnk_ledger_t *ledger, const char *op,
                                     int cause) {
  const tnk_allocator_t *alloc = &ledger->session->context->alloc;
  tnk__error_t *error;

  if (cause == UV_ENOMEM)
    return tnk__error_static(TNK_ENOMEM);
  if (cause == UV_EBUSY)
    return tnk__error_new(alloc, TNK_ECONFLICT,
                          "%s: %.512s: the run is open in another program, or "
                          "twice in this one",
                          op, ledger->path);
  error = tnk__error_new(alloc, TNK_EFILE, "%s: %.512s: %s", op, ledger->path,
                         uv_strerror(cause));
  if (error->refs > 0)
    error->pub.cause = cause;
  return error;
}

static void tell(const tnk_ledger_t *ledger) {
  const tnk_logger_t *logger = &ledger->session->context->logger;

  if (ledger->pen.file.was_mended)
    tnk__log(logger, TNK_LOG_WARN, "ledger",
             "%s: the last line was incomplete, probably because the program "
             "was killed; it was repaired",
             ledger->path);
  if (ledger->n_bad > 0)
    tnk__log(logger, TNK_LOG_WARN, "ledger",
             "%s: %zu lines cannot be read and are skipped", ledger->path,
             ledger->n_bad);
}

/* The expiry of the last state is checked when the run resumes from it. */
static void begin(tnk_ledger_t *ledger) {
  tell(ledger);
  tnk__ledger_policy_begin(ledger, 0);
  ledger->is_open = 1;
  ledger->told = ledger->session->limits.allowance.used;
  tnk__ledger_note_used(ledger);
  tnk__ledger_begin_used(ledger);
  tnk__ledger_policy_open(ledger);
}

static void on_read(tnk__work_t *work) {
  tnk_ledger_t *ledger = tnk__container_of(work, tnk_ledger_t, work);
  tnk_promise_t *promise = ledger->opening;

  ledger->is_reading = 0;
  if (ledger->closing) {
    wind_down(ledger);
    return;
  }
  ledger->opening = NULL;
  ledger->attempt++;
  if (ledger->cause == 0)
    begin(ledger);
  if (ledger->cause == 0)
    tnk__promise_resolve(promise, TNK__RESULT_LEDGER, show(ledger), hide);
  else
    tnk__promise_reject(promise,
                        tnk__ledger_disk_error(ledger, op_name, ledger->cause));
  if (ledger->cause != 0)
    tnk__ledger_close(ledger, NULL, NULL);
}

static void on_cancel(void *arg) {
  tnk_ledger_t *ledger = arg;
  tnk_promise_t *promise = ledger->opening;

  ledger->opening = NULL;
  tnk__promise_reject(promise, tnk__error_static(TNK_ECANCELED));
  tnk__ledger_close(ledger, NULL, NULL);
}

static void explain(const void *arg, tnk__text_t *out) {
  const tnk_ledger_t *ledger = arg;

  tnk__text_printf(out, "%s: waits for the disk to read %s", op_name,
                   ledger->path);
}

static char *path_of(const tnk_allocator_t *alloc, const char *directory) {
  const size_t n = strlen(directory) + sizeof("/checkpoints.jsonl");
  char *path = tnk__malloc(alloc, n);

  if (path != NULL)
    snprintf(path, n, "%s/checkpoints.jsonl", directory);
  return path;
}

static tnk__ledger_policy_t policy_of(const tnk_ledger_options_t *options) {
  return (tnk__ledger_policy_t){.every_steps = options->every_steps,
                                .every_ms = options->every_seconds * 1000,
                                .ttl_s = options->ttl_seconds,
                                .n_rolling = options->n_rolling};
}

static tnk_ledger_t *new_ledger(tnk__ledgers_t *ledgers, const char *directory,
                                const tnk_ledger_options_t *options) {
  tnk__context_t *context = ledgers->session->context;
  tnk_ledger_t *ledger = tnk__calloc(&context->alloc, 1, sizeof(*ledger));

  if (ledger == NULL)
    return NULL;
  ledger->magic = TNK__MAGIC_LEDGER;
  ledger->refs = 1;
  ledger->ledgers = ledgers;
  ledger->session = ledgers->session;
  tnk__list_init(&ledger->jobs);
  tnk__deferred_init(&ledger->closed, on_closed);
  tnk__pen_init(&ledger->pen, context, ledgers->disk, on_idle);
  tnk__arena_init(&ledger->arena, &context->alloc,
                  (size_t)TNK__LEDGER_MAX_FILE * 4);
  ledger->policy = policy_of(options);
  ledger->path = path_of(&context->alloc, directory);
  if (options->run != NULL)
    ledger->name = tnk__strdup(&context->alloc, options->run);
  if (tnk__ledger_prepare_last(ledger) && ledger->path != NULL &&
      (options->run == NULL || ledger->name != NULL))
    return ledger;
  free_rest(ledger, &context->alloc);
  tnk__free(&context->alloc, ledger);
  return NULL;
}

tnk_promise_t *tnk__ledger_open(tnk__ledgers_t *ledgers, const char *directory,
                                const tnk_ledger_options_t *options) {
  tnk__context_t *context = ledgers->session->context;
  tnk_ledger_t *ledger = new_ledger(ledgers, directory, options);
  tnk_promise_t *promise;

  if (ledger == NULL)
    return tnk__promise_rejected(context, tnk__error_static(TNK_ENOMEM));
  promise = tnk__promise_new(context, NULL, NULL);
  if (tnk__promise_is_oom(promise)) {
    free_rest(ledger, &context->alloc);
    tnk__free(&context->alloc, ledger);
    return promise;
  }
  tnk__promise_bind(promise, on_cancel, explain, ledger);
  tnk__promise_enter(promise, op_name, NULL);
  ledger->kin = tnk_promise_ref(context->oom);
  ledger->opening = promise;
  ledger->is_reading = 1;
  tnk__list_append(&ledgers->open, &ledger->link);
  /* Cannot fail: libuv rejects only a job without a function. */
  (void)tnk__work_start(context, &ledger->work, run_read, on_read);
  return promise;
}
