/* SPDX-License-Identifier: MIT */
/*
 * Saves a checkpoint.
 *
 *   NOTING its intent (pool) --> SAVING --> READY, until the earlier saves are
 *     noted --> WRITING its result (pool) --> over
 *
 * The requests have their places in the model's queue from the beginning;
 * SAVING releases them. If the service refuses a name that exists already, the
 * checkpoint is looked up.
 *
 * A disk error for the intent, a cancel and the end of the ledger also lead to
 * over. The memory is freed when no pending promise refers to it.
 */
#include "lib/ledger/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/train/op.h"
#include "lib/client/train/operations.h"
#include "lib/ledger/find.h"
#include "lib/store/rest.h"

enum { MAX_NAME = 192, N_PARTS = 2, MAX_LINE = 64 * 1024 };

static const char *const op_name = "ledger_save";

typedef enum {
  NOTING = 0, /* the intent is being written */
  SAVING,     /* the requests are sent or queued */
  READY,      /* the requests have settled; an earlier save is not noted yet */
  WRITING     /* the result is being written */
} state_t;

/* One of the two requests: for the state, or for the sampler weights. */
struct save;

typedef struct {
  struct save *save;
  tnk_promise_t *promise; /* NULL: not requested, or settled */
  tnk__then_t then;
  int is_state;
  int is_taken; /* refused, because its name exists already */
} part_t;

typedef struct save {
  tnk__ledger_job_t job;
  tnk_ledger_t *ledger;
  tnk__context_t *context;
  tnk_promise_t *promise; /* NULL: the operation is over */
  state_t state;
  tnk__arena_t arena; /* for the line */
  tnk__ledger_line_t line;
  tnk__buf_t text;
  tnk__pen_line_t pen_line;
  part_t parts[N_PARTS];
  size_t n_waiting;    /* requests that have not settled */
  tnk__error_t *error; /* error of the first failed request */
  int has_run;         /* the failed request may have been run */
  size_t n_failed;
  tnk_promise_t *list; /* pending list of checkpoints */
  tnk__then_t then;
} save_t;

static save_t *save_of(tnk__ledger_job_t *job) {
  return tnk__container_of(job, save_t, job);
}

/* ---- The end ---- */

static void forget(save_t *save) {
  const tnk_allocator_t *alloc = &save->context->alloc;

  if (save->promise != NULL || save->n_waiting > 0)
    return;
  tnk__error_unref(save->error);
  tnk__buf_deinit(&save->text);
  tnk__arena_deinit(&save->arena);
  tnk__free(alloc, save);
}

/* End the operation: requests that have not reached the service yet will not be
 * sent. */
static tnk_promise_t *end(save_t *save) {
  tnk_promise_t *promise = save->promise;

  save->promise = NULL;
  tnk__pen_forget(&save->pen_line);
  for (size_t i = 0; i < N_PARTS; i++)
    tnk_promise_cancel(save->parts[i].promise);
  tnk_promise_cancel(save->list);
  return promise;
}

/* Takes ownership of `error`. The next save may then write its result. */
static void fail(save_t *save, tnk__error_t *error) {
  tnk_ledger_t *ledger = save->ledger;

  ledger->policy.has_failed = 1;
  tnk__promise_reject(end(save), error);
  tnk__ledger_job_leave(ledger, &save->job);
  forget(save);
}

static void on_abort(tnk__ledger_job_t *job, tnk__error_t *error) {
  save_t *save = save_of(job);

  tnk__promise_reject(end(save), tnk__error_ref(error));
  forget(save);
}

/* A save that the service has made is noted even if the caller has canceled. */
static void on_cancel(void *arg) {
  save_t *save = arg;

  if (save->state == SAVING)
    tnk__ledger_doubt(save->ledger, &save->line);
  if (save->state < READY)
    fail(save, tnk__error_static(TNK_ECANCELED));
}

static void on_explain(const void *arg, tnk__text_t *out) {
  const save_t *save = arg;
  const part_t *part = &save->parts[save->parts[0].promise == NULL];

  tnk__text_printf(out, "%s: ", op_name);
  if (save->state == SAVING && part->promise != NULL)
    tnk__promise_explain(part->promise, out);
  else if (save->state == READY)
    tnk__text_printf(out, "waits until earlier saves are recorded");
  else
    tnk__text_printf(out, "waits until the entry is on the disk");
}

static tnk__error_t *disk_error(const save_t *save, int cause) {
  const char *path = save->line.state_path;
  tnk__error_t *plain;
  tnk__error_t *error;

  plain = tnk__ledger_disk_error(save->ledger, op_name, cause);
  if (plain->refs == 0)
    return plain;
  error = tnk__error_new(
      &save->context->alloc, plain->pub.code, "%s; %s%.256s", plain->pub.text,
      path != NULL ? "saved, but not recorded there: " : "nothing was saved",
      path != NULL ? path : "");
  if (error->refs > 0)
    error->pub.cause = cause;
  tnk__error_unref(plain);
  return error;
}

/* ---- The result ---- */

/* The value is allocated separately, so that it can outlive the ledger. */
typedef struct {
  tnk_ledger_entry_t pub;
  tnk_totals_t used;
  tnk__arena_t arena;
  tnk_allocator_t alloc;
} kept_t;

static void free_kept(const tnk_allocator_t *alloc, void *value) {
  kept_t *kept = value;

  tnk__arena_deinit(&kept->arena);
  tnk__free(alloc, kept);
}

const tnk_ledger_entry_t *tnk__ledger_entry_value(const void *value) {
  return value;
}

static int copy_text(kept_t *kept, const char **text) {
  if (*text == NULL)
    return 1;
  *text = tnk__arena_strdup(&kept->arena, *text);
  return *text != NULL;
}

static kept_t *keep(const save_t *save, const tnk_ledger_entry_t *entry) {
  const tnk_allocator_t *alloc = &save->context->alloc;
  kept_t *kept = tnk__calloc(alloc, 1, sizeof(*kept));

  if (kept == NULL)
    return NULL;
  kept->pub = *entry;
  if (entry->used != NULL) {
    kept->used = *entry->used;
    kept->pub.used = &kept->used;
  }
  kept->alloc = *alloc;
  tnk__arena_init(&kept->arena, &kept->alloc, MAX_LINE);
  if (copy_text(kept, &kept->pub.name) &&
      copy_text(kept, &kept->pub.state_path) &&
      copy_text(kept, &kept->pub.sampler_path) &&
      copy_text(kept, &kept->pub.cursor))
    return kept;
  free_kept(alloc, kept);
  return NULL;
}

static void succeed(save_t *save) {
  tnk_ledger_t *ledger = save->ledger;
  tnk__ledger_entry_t *entry = tnk__ledger_keep(ledger, &save->line);
  kept_t *kept = entry != NULL ? keep(save, &entry->pub) : NULL;

  if (kept == NULL) {
    fail(save, tnk__error_static(TNK_ENOMEM));
    return;
  }
  tnk__ledger_noted(ledger, entry);
  tnk__promise_resolve(end(save), TNK__RESULT_ENTRY, kept, free_kept);
  tnk__ledger_job_leave(ledger, &save->job);
  forget(save);
}

/* Keep the request that succeeded when the other one failed. Returns 0 without
 * memory. */
static int keep_part(save_t *save) {
  tnk__ledger_entry_t *entry;

  if (save->line.event != TNK__LEDGER_SAVED)
    return 1;
  entry = tnk__ledger_keep(save->ledger, &save->line);
  if (entry != NULL)
    tnk__ledger_noted(save->ledger, entry);
  return entry != NULL;
}

static void on_noted(tnk__pen_line_t *pen_line, int cause) {
  save_t *save = tnk__container_of(pen_line, save_t, pen_line);

  if (cause != 0)
    tnk__ledger_forget_told(save->ledger);
  if (cause != 0 && save->line.event != TNK__LEDGER_FAILED)
    tnk__ledger_doubt(save->ledger, &save->line);
  if (cause != 0)
    fail(save, save->line.event == TNK__LEDGER_FAILED
                   ? tnk__error_ref(save->error)
                   : disk_error(save, cause));
  else if (save->error == NULL)
    succeed(save);
  else
    fail(save, keep_part(save) ? tnk__error_ref(save->error)
                               : tnk__error_static(TNK_ENOMEM));
}

static void write_line(save_t *save,
                       void (*done)(tnk__pen_line_t *line, int cause)) {
  tnk__ledger_tell_used(&save->line, save->ledger);
  tnk__buf_clear(&save->text);
  (void)tnk__ledger_write(&save->text, &save->line);
  tnk__pen_line_init(&save->pen_line, done);
  tnk__pen_write(&save->ledger->pen, &save->pen_line, &save->text);
}

/* Called when all earlier saves are noted. */
static void write_result(tnk__ledger_job_t *job) {
  save_t *save = save_of(job);
  const int has_path =
      save->line.state_path != NULL || save->line.sampler_path != NULL;

  if (save->state != READY)
    return;
  /* The intent of a state that may have been saved stays open: no line settles
   * it. */
  if (save->line.state_path == NULL && save->has_run) {
    tnk__ledger_doubt(save->ledger, &save->line);
    fail(save, tnk__error_ref(save->error));
    return;
  }
  save->state = WRITING;
  save->line.event = has_path ? TNK__LEDGER_SAVED : TNK__LEDGER_FAILED;
  if (save->line.batch < 0 && has_path)
    save->line.batch = save->line.n_steps;
  write_line(save, on_noted);
}

static void take_error(part_t *part, tnk_promise_t *promise) {
  tnk__error_t *error = tnk__promise_error(promise);
  save_t *save = part->save;

  part->is_taken = error->pub.code == TNK_ECONFLICT;
  save->n_failed++;
  if (error->pub.ran != TNK_RAN_NO)
    save->has_run = 1;
  if (save->error == NULL)
    save->error = tnk__error_ref(error);
}

static void take_saved(save_t *save, const tnk_saved_t *saved, int is_state) {
  const char *path = tnk__arena_strdup(&save->arena, saved->path);

  if (path == NULL && save->error == NULL) {
    save->n_failed++;
    save->has_run = 1;
    save->error = tnk__error_static(TNK_ENOMEM);
  }
  if (is_state)
    save->line.state_path = path;
  else
    save->line.sampler_path = path;
  /* The step count of the state has priority, because a run resumes from it. */
  if (is_state || save->line.state_path == NULL) {
    save->line.n_steps = (int64_t)saved->n_steps;
    save->line.n_passes = (int64_t)saved->n_passes;
  }
}

/* Requests may fail before the intent is written, for example when the model
 * closes. on_announced() continues then. */
static void be_ready(save_t *save) {
  if (save->state == NOTING)
    return;
  save->state = READY;
  if (tnk__list_first(&save->ledger->jobs) == &save->job.link)
    write_result(&save->job);
}

/* ---- Existing names ---- */

/* No other client uses this name for a checkpoint of this model, and its
 * requests are repeated in their place. An existing checkpoint is therefore
 * this save. */
static void take_found(part_t *part, const tnk_page_t *page) {
  save_t *save = part->save;
  const tnk_checkpoint_t *found =
      part->is_taken ? tnk__ledger_find(page, &save->line,
                                        part->is_state ? TNK__LEDGER_STATE
                                                       : TNK__LEDGER_SAMPLER)
                     : NULL;
  tnk__ledger_line_t told = tnk__ledger_blank;
  tnk_saved_t saved;

  if (found == NULL)
    return;
  tnk__ledger_learn(&told, found);
  if (told.n_steps < 0)
    told.n_steps = save->line.n_steps;
  if (told.n_passes < 0)
    told.n_passes = save->line.n_passes;
  saved = (tnk_saved_t){.path = found->path,
                        .n_steps = (uint64_t)told.n_steps,
                        .n_passes = (uint64_t)told.n_passes};
  save->n_failed--;
  take_saved(save, &saved, part->is_state);
}

static void on_list(tnk_promise_t *promise, int status, void *arg) {
  save_t *save = arg;

  save->list = NULL;
  save->n_waiting--;
  if (save->promise == NULL) {
    forget(save);
  } else {
    for (size_t i = 0; i < N_PARTS && status == TNK_OK; i++)
      take_found(&save->parts[i],
                 tnk__promise_value(promise, TNK__RESULT_PAGE));
    if (save->n_failed == 0) {
      tnk__error_unref(save->error);
      save->error = NULL;
    }
    be_ready(save);
  }
  tnk_promise_unref(promise);
}

static void look_for(save_t *save) {
  const tnk__ask_t what = {.kind = TNK__ASK_LIST_RUN_CHECKPOINTS,
                           .id = save->line.run};

  save->list = tnk__rest_ask(save->ledger->session, &what, NULL);
  save->n_waiting++;
  tnk__promise_watch(tnk_promise_ref(save->list), &save->then, on_list, save);
}

static void on_part(tnk_promise_t *promise, int status, void *arg) {
  part_t *part = arg;
  save_t *save = part->save;

  part->promise = NULL;
  save->n_waiting--;
  if (save->promise == NULL) {
    forget(save);
  } else {
    if (status == TNK_OK)
      take_saved(save, tnk__promise_value(promise, TNK__RESULT_SAVED),
                 part->is_state);
    else
      take_error(part, promise);
    if (save->n_waiting == 0 &&
        (save->parts[0].is_taken || save->parts[1].is_taken))
      look_for(save);
    else if (save->n_waiting == 0)
      be_ready(save);
  }
  tnk_promise_unref(promise);
}

/* ---- The beginning ---- */

static void on_announced(tnk__pen_line_t *pen_line, int cause) {
  save_t *save = tnk__container_of(pen_line, save_t, pen_line);

  if (cause != 0) {
    tnk__ledger_forget_told(save->ledger);
    fail(save, disk_error(save, cause));
    return;
  }
  save->state = SAVING;
  if (save->n_waiting == 0) {
    be_ready(save);
    return;
  }
  for (size_t i = 0; i < N_PARTS; i++)
    if (save->parts[i].promise != NULL)
      tnk__op_let_go(save->parts[i].promise);
}

static int is_taken(const tnk_ledger_t *ledger, const char *name) {
  for (size_t i = 0; i < ledger->n_entries; i++)
    if (strcmp(ledger->entries[i]->pub.name, name) == 0)
      return 1;
  for (size_t i = 0; i < ledger->n_intents; i++)
    if (strcmp(ledger->intents[i].name, name) == 0)
      return 1;
  for (const tnk__ledger_name_t *other = ledger->names; other != NULL;
       other = other->next)
    if (strcmp(other->text, name) == 0)
      return 1;
  TNK__LIST_FOREACH_SAFE (node, next, &ledger->jobs) {
    const tnk__ledger_job_t *job =
        tnk__container_of(node, tnk__ledger_job_t, link);
    if (job->name != NULL && strcmp(job->name, name) == 0)
      return 1;
  }
  return 0;
}

/* A name that no other attempt and no other save has. */
static void make_name(const tnk_ledger_t *ledger, const char *wanted,
                      char out[MAX_NAME]) {
  char base[MAX_NAME - 48];

  if (wanted != NULL)
    snprintf(base, sizeof(base), "%s", wanted);
  else
    snprintf(base, sizeof(base), "save-%" PRId64, ledger->n_saves);
  if (ledger->attempt > 1)
    snprintf(out, MAX_NAME, "%s-a%" PRId64, base, ledger->attempt);
  else
    snprintf(out, MAX_NAME, "%s", base);
  if (is_taken(ledger, out))
    snprintf(out, MAX_NAME, "%s-a%" PRId64 "-%" PRId64, base, ledger->attempt,
             ledger->n_saves);
}

static int make_line(save_t *save, const tnk_training_t *training,
                     const tnk_ledger_save_t *how) {
  tnk_ledger_t *ledger = save->ledger;
  tnk__ledger_line_t *line = &save->line;
  tnk__tally_t expected;
  char name[MAX_NAME];

  *line = tnk__ledger_blank;
  line->event = TNK__LEDGER_INTENT;
  line->attempt = ledger->attempt;
  line->save = ++ledger->n_saves;
  make_name(ledger, how->name, name);
  line->name = tnk__arena_strdup(&save->arena, name);
  line->run = tnk__arena_strdup(&save->arena, training->info.model_id);
  if (how->cursor != NULL)
    line->cursor = tnk__arena_strdup(&save->arena, how->cursor);
  line->batch = how->batch > 0 ? (int64_t)how->batch : -1;
  line->epoch = (int64_t)how->epoch;
  line->what = TNK__LEDGER_STATE;
  if (how->with_sampler == TNK_YES)
    line->what |= TNK__LEDGER_SAMPLER;
  expected = tnk__tally_expected(training);
  line->n_steps = (int64_t)expected.n_steps;
  line->n_passes = (int64_t)expected.n_passes;
  line->time_s = tnk__context_wall_s(save->context);
  tnk__ledger_policy_begin(ledger, expected.n_steps);
  tnk__ledger_policy_apply(&ledger->policy, line, how);
  tnk__ledger_tell_used(line, ledger);
  return line->name != NULL && line->run != NULL &&
         (how->cursor == NULL || line->cursor != NULL);
}

/* Metadata of the checkpoint, for a caller who has lost the file. */
static void ask(save_t *save, tnk_training_t *training, int is_state) {
  part_t *part = &save->parts[!is_state];
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;
  tnk_pair_t pairs[TNK__SAVE_MAX_KEPT];
  char number[48];
  char epoch[24];
  char batch[24];
  char used[TNK__LEDGER_USED_TEXT];
  size_t n = 0;

  snprintf(number, sizeof(number), "%" PRId64 ".%" PRId64, save->line.attempt,
           save->line.save);
  snprintf(epoch, sizeof(epoch), "%" PRId64, save->line.epoch);
  snprintf(batch, sizeof(batch), "%" PRId64, save->line.batch);
  tnk__ledger_write_used(used, &save->line);
  pairs[n++] = (tnk_pair_t){"tnk_save", number};
  pairs[n++] = (tnk_pair_t){"tnk_used", used};
  pairs[n++] = (tnk_pair_t){"tnk_epoch", epoch};
  if (save->line.batch >= 0)
    pairs[n++] = (tnk_pair_t){"tnk_batch", batch};
  if (save->line.cursor != NULL)
    pairs[n++] = (tnk_pair_t){"tnk_cursor", save->line.cursor};
  if (save->ledger->name != NULL)
    pairs[n++] = (tnk_pair_t){"tnk_run", save->ledger->name};
  options.ttl_seconds = (uint64_t)save->line.ttl_s;
  options.user_metadata = pairs;
  options.n_user_metadata = n;
  part->save = save;
  part->is_state = is_state;
  part->promise = tnk__save_start_kept(
      training, is_state ? TNK__SAVE_STATE : TNK__SAVE_SAMPLER, save->line.name,
      &options);
  save->n_waiting++;
  tnk__promise_watch(tnk_promise_ref(part->promise), &part->then, on_part,
                     part);
}

static save_t *new_save(tnk_ledger_t *ledger) {
  tnk__context_t *context = ledger->session->context;
  save_t *save = tnk__calloc(&context->alloc, 1, sizeof(*save));

  if (save == NULL)
    return NULL;
  tnk__list_init(&save->job.link);
  save->job.abort = on_abort;
  save->job.first = write_result;
  save->ledger = ledger;
  save->context = context;
  tnk__pen_line_init(&save->pen_line, on_announced);
  tnk__arena_init(&save->arena, &context->alloc, MAX_LINE);
  tnk__buf_init(&save->text, &context->alloc, MAX_LINE);
  return save;
}

tnk_promise_t *tnk__ledger_save(tnk_ledger_t *ledger, tnk_training_t *training,
                                const tnk_ledger_save_t *how) {
  tnk__context_t *context = ledger->session->context;
  save_t *save = new_save(ledger);
  tnk_promise_t *promise;

  if (save == NULL)
    return tnk__promise_rejected(context, tnk__error_static(TNK_ENOMEM));
  promise = tnk__promise_new(context, NULL, NULL);
  if (tnk__promise_is_oom(promise)) {
    forget(save);
    return promise;
  }
  tnk__promise_bind(promise, on_cancel, on_explain, save);
  tnk__promise_enter(promise, op_name, NULL);
  save->promise = promise;
  if (!make_line(save, training, how)) {
    tnk__ledger_forget_told(ledger);
    fail(save, tnk__error_static(TNK_ENOMEM));
    return promise;
  }
  save->job.name = save->line.name;
  tnk__ledger_job_enter(ledger, &save->job);
  ask(save, training, 1);
  if (how->with_sampler == TNK_YES)
    ask(save, training, 0);
  write_line(save, on_announced);
  return promise;
}
