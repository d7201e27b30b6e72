/* SPDX-License-Identifier: MIT */
/*
 * Resumes a run.
 *
 *   LISTING the service's checkpoints of the next candidate's run -->
 *     NOTING (pool) a save that a killed program did not note -->
 *     RESTORING --> over
 *   LISTING --it is not there--> the next candidate
 *   FINDING the run at the service, if the file has no candidate and the run
 *     has a name --> NOTING
 *
 *   any candidate that is older than passed-over intents --> GIVING_UP (pool)
 *     these intents --> the candidate
 *
 * The candidates are the intents that are newer than the last state, then the
 * states, both from the latest to the earliest. An intent that the service does
 * not list is passed over, and the file says so: its save may be complete
 * later, but then the run has continued from an older state. An unrelated
 * failure, a cancel and the end of the ledger also lead to over.
 */
#include "lib/ledger/ledger.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/service/service.h"
#include "lib/ledger/find.h"
#include "lib/store/ask.h"
#include "lib/store/rest.h"

enum {
  MAX_TEXTS = 64 * 1024,
  /* Saves that were under way when a program was killed. */
  MAX_OLDER = 32,
  /* Limit on pages when a run is looked for by name among all checkpoints. No
   * account has more. */
  MAX_PAGES = 10000,
  PAGE = 100
};

static const char *const op_name = "ledger_resume";

typedef struct resume {
  tnk__ledger_job_t job;
  tnk_ledger_t *ledger;
  tnk__context_t *context;
  tnk_promise_t *promise; /* NULL: the operation is over */
  int without_optimizer;
  tnk__arena_t arena;        /* for the members that follow */
  size_t n_intents;          /* intents that were not examined yet */
  size_t n_entries;          /* entries that were not examined yet */
  tnk__ledger_line_t *older; /* saves before `line` that were not noted
                                either */
  size_t n_older;
  tnk__ledger_line_t line;
  tnk__ledger_entry_t *entry; /* the entry to restore; NULL: the run is found
                                 by its name */
  int is_new;                 /* the entry was found in the service's list */
  char *run;                  /* the run that `list` belongs to */
  tnk_promise_t *list;        /* NULL: no list is available */
  size_t n_pages;
  tnk__ledger_line_t tried; /* last candidate found by the run's name */
  tnk__buf_t text;
  tnk__buf_t passed; /* lines of the intents that were passed over */
  tnk__pen_line_t pen_line;
  /* The pending request to the service. */
  tnk_promise_t *asked;
  tnk__then_t then;
  void (*answered)(struct resume *self, tnk_promise_t *promise, int status);
  int is_answered;
} resume_t;

static void look_at_next(resume_t *resume);
static const tnk__ledger_line_t *next_intent(const resume_t *resume);

static resume_t *resume_of(tnk__ledger_job_t *job) {
  return tnk__container_of(job, resume_t, job);
}

/* ---- The end ---- */

static void forget(resume_t *resume) {
  const tnk_allocator_t *alloc = &resume->context->alloc;

  if (resume->promise != NULL || resume->asked != NULL || resume->is_answered)
    return;
  tnk_promise_unref(resume->list);
  tnk__buf_deinit(&resume->text);
  tnk__buf_deinit(&resume->passed);
  tnk__arena_deinit(&resume->arena);
  tnk__free(alloc, resume);
}

static tnk_promise_t *end(resume_t *resume) {
  tnk_promise_t *promise = resume->promise;

  resume->promise = NULL;
  tnk__pen_forget(&resume->pen_line);
  tnk_promise_cancel(resume->asked);
  return promise;
}

/* Takes ownership of `error`. */
static void fail(resume_t *resume, tnk__error_t *error) {
  tnk_ledger_t *ledger = resume->ledger;

  tnk__promise_reject(end(resume), error);
  tnk__ledger_job_leave(ledger, &resume->job);
  forget(resume);
}

static void on_abort(tnk__ledger_job_t *job, tnk__error_t *error) {
  resume_t *resume = resume_of(job);

  tnk__promise_reject(end(resume), tnk__error_ref(error));
  forget(resume);
}

static void on_cancel(void *arg) {
  fail(arg, tnk__error_static(TNK_ECANCELED));
}

static void on_explain(const void *arg, tnk__text_t *out) {
  const resume_t *resume = arg;

  tnk__text_printf(out, "%s: ", op_name);
  if (resume->asked != NULL)
    tnk__promise_explain(resume->asked, out);
  else
    tnk__text_printf(out, "waits until the entry is on the disk");
}

/* ---- Requests ---- */

static void on_answer(tnk_promise_t *promise, int status, void *arg) {
  resume_t *resume = arg;
  tnk_training_t *training;

  resume->asked = NULL;
  resume->is_answered = 1;
  if (resume->promise != NULL) {
    resume->answered(resume, promise, status);
  } else {
    /* It came too late to be canceled, and no caller waits for it. */
    training = tnk__promise_value(promise, TNK__RESULT_TRAINING);
    if (training != NULL)
      tnk__training_close(training, NULL, NULL);
  }
  resume->is_answered = 0;
  tnk_promise_unref(promise);
  forget(resume);
}

static void ask(resume_t *resume, tnk_promise_t *promise,
                void (*answered)(resume_t *self, tnk_promise_t *promise,
                                 int status)) {
  resume->asked = promise;
  resume->answered = answered;
  tnk__promise_watch(tnk_promise_ref(promise), &resume->then, on_answer,
                     resume);
}

static const tnk_page_t *page_of(const resume_t *resume) {
  return resume->list != NULL
             ? tnk__promise_value(resume->list, TNK__RESULT_PAGE)
             : NULL;
}

static int is_no_call(const tnk_error_t *error) {
  return error->code == TNK_EUNSUPPORTED || error->http_status == 501;
}

/* Returns whether the service has no list of this run. Then the file is the
 * only source. For a state of the file, restoring it reports the error as well.
 * An intent is not skipped as long as its save may exist. */
static int has_no_list(const resume_t *resume, const tnk_error_t *error) {
  if (error->http_status == 0)
    return 0;
  if (next_intent(resume) == NULL)
    return error->http_status < 500 || is_no_call(error);
  return error->code == TNK_ENOTFOUND || error->code == TNK_EREQUEST ||
         error->code == TNK_EEXPIRED || is_no_call(error);
}

/* A list that was requested before is known. */
static void on_listed(resume_t *resume, tnk_promise_t *promise, int status) {
  const tnk__error_t *error;

  tnk_promise_unref(resume->list);
  resume->list = NULL;
  if (status == TNK_OK) {
    resume->list = tnk_promise_ref(promise);
  } else {
    error = tnk__promise_error(promise);
    if (!has_no_list(resume, &error->pub)) {
      fail(resume, tnk__error_ref(tnk__promise_error(promise)));
      return;
    }
    tnk__log(&resume->context->logger, TNK_LOG_INFO, "ledger",
             "%s: cannot list the checkpoints of %s: %s", op_name, resume->run,
             error->pub.text);
  }
  look_at_next(resume);
}

/* Returns 1 if the request was sent or memory is missing. */
static int list_run(resume_t *resume, const char *run, size_t n) {
  tnk__ask_t what = {.kind = TNK__ASK_LIST_RUN_CHECKPOINTS};
  char why[64];

  if (resume->run != NULL && strlen(resume->run) == n &&
      memcmp(resume->run, run, n) == 0)
    return 0;
  tnk_promise_unref(resume->list);
  resume->list = NULL;
  resume->run = tnk__arena_strndup(&resume->arena, run, n);
  if (resume->run == NULL) {
    fail(resume, tnk__error_static(TNK_ENOMEM));
    return 1;
  }
  if (tnk__ask_check_id("run", resume->run, why, sizeof(why)) != TNK_OK)
    return 0;
  what.id = resume->run;
  ask(resume, tnk__rest_ask(resume->ledger->session, &what, NULL), on_listed);
  return 1;
}

/* ---- Restoring ---- */

static void on_restored(resume_t *resume, tnk_promise_t *promise, int status) {
  tnk_ledger_t *ledger = resume->ledger;
  const tnk_ledger_entry_t *entry = &resume->entry->pub;
  tnk_training_t *training;

  if (status == TNK_ENOTFOUND) {
    tnk__log(&resume->context->logger, TNK_LOG_WARN, "ledger",
             "%s: %s no longer exists; resuming from an older state", op_name,
             entry->state_path);
    look_at_next(resume);
    return;
  }
  if (status != TNK_OK) {
    fail(resume, tnk__error_ref(tnk__promise_error(promise)));
    return;
  }
  training = tnk__promise_value(promise, TNK__RESULT_TRAINING);
  training->tally = (tnk__tally_t){entry->n_steps, entry->n_passes};
  training->saved_tally = training->tally;
  ledger->resumed = entry;
  tnk__ledger_policy_begin(ledger, entry->n_steps);
  /* The process that ended the run was killed before it deleted the rolling
   * saves. */
  if (resume->is_new && entry->is_final)
    tnk__ledger_noted(ledger, resume->entry);
  else
    tnk__ledger_watch(ledger, resume->entry);
  tnk__log(&resume->context->logger, TNK_LOG_INFO, "ledger",
           "%s: resuming from %s, %s the optimizer", op_name, entry->state_path,
           resume->without_optimizer ? "without" : "with");
  tnk__promise_resolve(end(resume), TNK__RESULT_TRAINING,
                       tnk__training_show(training), tnk__training_hide);
  tnk__ledger_job_leave(ledger, &resume->job);
  forget(resume);
}

static void restore(resume_t *resume, tnk__ledger_entry_t *entry) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;

  resume->entry = entry;
  options.path = entry->pub.state_path;
  options.with_optimizer = resume->without_optimizer ? TNK_NO : TNK_YES;
  ask(resume, tnk__restore(resume->ledger->session, &options), on_restored);
}

/* ---- Intents that were passed over ---- */

static void find_run(resume_t *resume, const tnk_page_t *before);

static void go_on(resume_t *resume) {
  if (resume->entry != NULL)
    restore(resume, resume->entry);
  else
    find_run(resume, NULL);
}

static void on_given_up(tnk__pen_line_t *pen_line, int cause) {
  resume_t *resume = tnk__container_of(pen_line, resume_t, pen_line);

  tnk__buf_clear(&resume->passed);
  if (cause != 0)
    fail(resume, tnk__ledger_disk_error(resume->ledger, op_name, cause));
  else
    go_on(resume);
}

/* Continue with an entry of the file, or NULL, once the file says that newer
 * intents were passed over. */
static void choose(resume_t *resume, tnk__ledger_entry_t *entry) {
  resume->entry = entry;
  if (resume->passed.len == 0 && resume->passed.err == TNK_OK) {
    go_on(resume);
    return;
  }
  tnk__pen_line_init(&resume->pen_line, on_given_up);
  tnk__pen_write(&resume->ledger->pen, &resume->pen_line, &resume->passed);
}

/* The counts of use in the intent are older than the last line. */
static void pass_over(resume_t *resume, const tnk__ledger_line_t *intent) {
  tnk__ledger_line_t line = *intent;

  tnk__ledger_lose(resume->ledger, intent);
  line.event = TNK__LEDGER_FAILED;
  memset(line.used, 0, sizeof(line.used));
  (void)tnk__ledger_write(&resume->passed, &line);
}

/* ---- Saves of a killed program ---- */

static void on_noted(tnk__pen_line_t *pen_line, int cause) {
  resume_t *resume = tnk__container_of(pen_line, resume_t, pen_line);
  tnk__ledger_entry_t *entry;
  int is_kept = 1;

  if (cause != 0) {
    fail(resume, tnk__ledger_disk_error(resume->ledger, op_name, cause));
    return;
  }
  for (size_t i = 0; i < resume->n_older && is_kept; i++)
    is_kept = tnk__ledger_keep(resume->ledger, &resume->older[i]) != NULL;
  resume->n_older = 0;
  entry = is_kept ? tnk__ledger_keep(resume->ledger, &resume->line) : NULL;
  resume->is_new = 1;
  if (entry == NULL)
    fail(resume, tnk__error_static(TNK_ENOMEM));
  else
    restore(resume, entry);
}

/* Complete a line with what the service says about its save. */
static void fill(tnk__ledger_line_t *line, const tnk_checkpoint_t *state,
                 const tnk_checkpoint_t *sampler) {
  tnk__ledger_learn(line, state);
  line->event = TNK__LEDGER_SAVED;
  line->state_path = state->path;
  line->sampler_path = sampler != NULL ? sampler->path : NULL;
  if (line->batch < 0)
    line->batch = line->n_steps;
}

/* Several saves may have been under way. The remaining intents are older than
 * the one that was found. Note those of the same model too, so that the run can
 * go back to their states and delete them. Returns 0 without memory. */
static int take_older(resume_t *resume, const char *run) {
  const size_t n = resume->n_intents;
  const tnk_page_t *page = page_of(resume);

  resume->n_older = 0;
  resume->older = tnk__arena_alloc(
      &resume->arena, (n < MAX_OLDER ? n : MAX_OLDER) * sizeof(*resume->older));
  for (size_t i = n < MAX_OLDER ? 0 : n - MAX_OLDER;
       i < n && resume->older != NULL; i++) {
    const tnk__ledger_line_t *intent = &resume->ledger->intents[i];
    const tnk_checkpoint_t *state =
        intent->run != NULL && strcmp(intent->run, run) == 0
            ? tnk__ledger_find(page, intent, TNK__LEDGER_STATE)
            : NULL;

    if (state == NULL)
      continue;
    resume->older[resume->n_older] = *intent;
    fill(&resume->older[resume->n_older++], state,
         tnk__ledger_find(page, intent, TNK__LEDGER_SAMPLER));
  }
  return resume->older != NULL;
}

/* Write lines for the saves that were found, and continue with the last. */
static void note(resume_t *resume, const tnk_checkpoint_t *state,
                 const tnk_checkpoint_t *sampler) {
  tnk__ledger_line_t *line = &resume->line;

  resume->n_intents = 0; /* the remaining intents are older */
  fill(line, state, sampler);
  tnk__log(&resume->context->logger, TNK_LOG_INFO, "ledger",
           "%s: %s was saved earlier and is recorded now", op_name,
           state->path);
  tnk__buf_clear(&resume->text);
  (void)tnk__buf_append(&resume->text, resume->passed.data, resume->passed.len);
  for (size_t i = 0; i < resume->n_older; i++)
    (void)tnk__ledger_write(&resume->text, &resume->older[i]);
  (void)tnk__ledger_write(&resume->text, line);
  tnk__pen_line_init(&resume->pen_line, on_noted);
  tnk__pen_write(&resume->ledger->pen, &resume->pen_line, &resume->text);
}

/* Returns 1 if the intent is the candidate. */
static int try_intent(resume_t *resume, const tnk__ledger_line_t *intent) {
  const tnk_checkpoint_t *state;

  if (intent->run == NULL || !(intent->what & TNK__LEDGER_STATE)) {
    resume->n_intents--;
    return 0;
  }
  if (list_run(resume, intent->run, strlen(intent->run)))
    return 1;
  resume->n_intents--;
  state = tnk__ledger_find(page_of(resume), intent, TNK__LEDGER_STATE);
  if (state == NULL) {
    if (page_of(resume) != NULL)
      pass_over(resume, intent);
    return 0;
  }
  resume->line = *intent;
  if (take_older(resume, intent->run))
    note(resume, state,
         tnk__ledger_find(page_of(resume), intent, TNK__LEDGER_SAMPLER));
  else
    fail(resume, tnk__error_static(TNK_ENOMEM));
  return 1;
}

/* ---- States of the file ---- */

static int try_entry(resume_t *resume, tnk__ledger_entry_t *entry) {
  const char *path = entry->pub.state_path;
  tnk_path_t parts = TNK_PATH_INIT;

  if (path == NULL || entry->pub.is_deleted) {
    resume->n_entries--;
    return 0;
  }
  if (tnk_path_parse(&parts, path) == TNK_OK &&
      list_run(resume, parts.run, parts.run_length))
    return 1;
  resume->n_entries--;
  if (page_of(resume) != NULL && parts.run_length > 0 &&
      !tnk__ledger_may_have(page_of(resume), path)) {
    tnk__log(&resume->context->logger, TNK_LOG_WARN, "ledger",
             "%s: %s no longer exists; resuming from an older state", op_name,
             path);
    return 0;
  }
  choose(resume, entry);
  return 1;
}

/* ---- A run without its file ---- */

static void fail_without_state(resume_t *resume) {
  fail(resume, tnk__error_new(&resume->context->alloc, TNK_ENOTFOUND,
                              "%s: %.512s: there is no state to resume from",
                              op_name, resume->ledger->path));
}

static void on_found(resume_t *resume, tnk_promise_t *promise, int status) {
  const tnk_checkpoint_t *state;
  const tnk_page_t *page;

  if (status != TNK_OK && is_no_call(&tnk__promise_error(promise)->pub)) {
    fail_without_state(resume);
    return;
  }
  if (status != TNK_OK) {
    fail(resume, tnk__error_ref(tnk__promise_error(promise)));
    return;
  }
  tnk_promise_unref(resume->list);
  resume->list = tnk_promise_ref(promise);
  page = page_of(resume);
  state = tnk__ledger_find_run(page, resume->ledger->name, &resume->tried);
  if (state == NULL) {
    find_run(resume, page);
    return;
  }
  resume->line = tnk__ledger_blank;
  tnk__ledger_learn(&resume->line, state);
  if (resume->line.attempt >= resume->ledger->attempt)
    resume->ledger->attempt = resume->line.attempt + 1;
  resume->line.name = strrchr(state->path, '/') + 1;
  if (resume->ledger->used.n_requests == 0 &&
      tnk__ledger_tells_used(&resume->line)) {
    resume->ledger->used = tnk__ledger_used(&resume->line);
    tnk__ledger_begin_used(resume->ledger);
  }
  resume->tried.attempt = resume->line.attempt;
  resume->tried.save = resume->line.save;
  note(resume, state, NULL);
}

static void find_run(resume_t *resume, const tnk_page_t *before) {
  tnk__ask_t what = {.kind = TNK__ASK_LIST_CHECKPOINTS, .limit = PAGE};

  if (resume->ledger->name == NULL ||
      (before != NULL && tnk_page_is_last(before))) {
    fail_without_state(resume);
    return;
  }
  if (before == NULL)
    resume->n_pages = 0;
  if (resume->n_pages++ == MAX_PAGES) {
    fail(resume, tnk__error_new(&resume->context->alloc, TNK_EPROTO,
                                "%s: the list of what the service keeps has "
                                "no end",
                                op_name));
    return;
  }
  if (before != NULL)
    what = before->ask;
  ask(resume, tnk__rest_ask(resume->ledger->session, &what, before), on_found);
}

/* ---- The order ---- */

/* The last state is older than the remaining intents. Another operation may
 * have settled some in the meantime. */
static const tnk__ledger_line_t *next_intent(const resume_t *resume) {
  const tnk_ledger_t *ledger = resume->ledger;
  const size_t n = resume->n_intents < ledger->n_intents ? resume->n_intents
                                                         : ledger->n_intents;

  return n > 0 ? &ledger->intents[n - 1] : NULL;
}

static void look_at_next(resume_t *resume) {
  const tnk_ledger_t *ledger = resume->ledger;

  while (next_intent(resume) != NULL)
    if (try_intent(resume, next_intent(resume)))
      return;
  while (resume->n_entries > 0)
    if (try_entry(resume, ledger->entries[resume->n_entries - 1]))
      return;
  choose(resume, NULL);
}

tnk_promise_t *tnk__ledger_resume(tnk_ledger_t *ledger, int with_optimizer) {
  tnk__context_t *context = ledger->session->context;
  resume_t *resume = tnk__calloc(&context->alloc, 1, sizeof(*resume));
  tnk_promise_t *promise = tnk__promise_new(context, NULL, NULL);

  if (resume == NULL || tnk__promise_is_oom(promise)) {
    tnk__free(&context->alloc, resume);
    if (!tnk__promise_is_oom(promise))
      tnk__promise_reject(promise, tnk__error_static(TNK_ENOMEM));
    return promise;
  }
  tnk__promise_bind(promise, on_cancel, on_explain, resume);
  tnk__promise_enter(promise, op_name, NULL);
  *resume = (resume_t){.ledger = ledger,
                       .context = context,
                       .promise = promise,
                       .without_optimizer = !with_optimizer,
                       .n_intents = ledger->n_intents,
                       .n_entries = ledger->n_entries};
  resume->job.abort = on_abort;
  tnk__list_init(&resume->job.link);
  tnk__arena_init(&resume->arena, &context->alloc, MAX_TEXTS);
  tnk__buf_init(&resume->text, &context->alloc,
                (size_t)(MAX_OLDER + 2) * MAX_TEXTS);
  tnk__buf_init(&resume->passed, &context->alloc, MAX_TEXTS);
  tnk__pen_line_init(&resume->pen_line, on_noted);
  tnk__ledger_job_enter(ledger, &resume->job);
  look_at_next(resume);
  return promise;
}
