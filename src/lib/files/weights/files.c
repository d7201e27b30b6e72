/* SPDX-License-Identifier: MIT */
/*
 * Downloads the files of a checkpoint, in state LOADING. A file waits, then
 * loads in one of the slots. If its URL is refused, it waits for a new one.
 * Then it is done.
 *
 * next() decides which file starts; none starts while URLs are requested.
 */
#include "lib/files/weights/job.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/format/relative.h"

enum { MAX_FILES = 10000, MAX_REFUSED = 2 };
/* URLs that expire this soon are renewed before a file starts. */
enum { RENEW_S = 300 };
enum { TELL_MS = 100, RATE_MS = 2000 };

static tnk__context_t *context_of(const tnk__weights_job_t *job) {
  return job->weights->session->context;
}

/* ---- The list of files ---- */

static int by_name(const void *a, const void *b) {
  return strcmp(((const tnk__weights_file_t *)a)->name,
                ((const tnk__weights_file_t *)b)->name);
}

static tnk__weights_file_t *find(const tnk__weights_job_t *job,
                                 const char *name) {
  const tnk__weights_file_t key = {.name = name};

  return bsearch(&key, job->files, job->n_files, sizeof(key), by_name);
}

static void sum_names(tnk__weights_job_t *job) {
  tnk__sha256_t sha;

  tnk__sha256_init(&sha);
  for (size_t i = 0; i < job->n_files; i++)
    tnk__sha256_add(&sha, job->files[i].name, strlen(job->files[i].name) + 1);
  tnk__sha256_end(&sha, job->names);
}

/* Returns the error in the names, or NULL. */
static const char *check_names(const tnk_external_files_t *from) {
  if (from->n_files == 0)
    return "the service has no files of this checkpoint";
  if (from->n_files > MAX_FILES)
    return "the service lists too many files";
  for (size_t i = 0; i < from->n_files; i++) {
    const char *name = from->files[i].name;
    if (tnk__relative_check(name, strlen(name)) != NULL)
      return "the service lists a file whose name cannot be written";
  }
  return NULL;
}

/* Returns whether two files conflict: equal names, or one name is a folder of
 * the other. Names are sorted. */
static int is_crowded(const tnk__weights_job_t *job) {
  for (size_t i = 0; i + 1 < job->n_files; i++) {
    const char *name = job->files[i].name;
    const size_t n = strlen(name);
    for (size_t k = i + 1; k < job->n_files; k++) {
      const char *other = job->files[k].name;
      if (strncmp(other, name, n) != 0)
        break;
      if (other[n] == '\0' || other[n] == '/')
        return 1;
    }
  }
  return 0;
}

static int make_slots(tnk__weights_job_t *job) {
  const size_t n = job->options.max_parallel < job->n_files
                       ? job->options.max_parallel
                       : job->n_files;

  job->slots = tnk__arena_calloc(&job->arena, n, sizeof(*job->slots));
  if (job->slots == NULL)
    return TNK_ENOMEM;
  job->n_slots = n;
  return TNK_OK;
}

static int make_files(tnk__weights_job_t *job,
                      const tnk_external_files_t *from) {
  job->files =
      tnk__arena_calloc(&job->arena, from->n_files, sizeof(*job->files));
  if (job->files == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < from->n_files; i++) {
    job->files[i].name = tnk__arena_strdup(&job->arena, from->files[i].name);
    if (job->files[i].name == NULL)
      return TNK_ENOMEM;
    job->files[i].n_total = UINT64_MAX;
  }
  job->n_files = job->n_given = from->n_files;
  qsort(job->files, job->n_files, sizeof(*job->files), by_name);
  sum_names(job);
  return is_crowded(job) ? TNK_EPROTO : make_slots(job);
}

static int keep_url(tnk__weights_job_t *job, const tnk_pair_t *pair) {
  const tnk_allocator_t *alloc = &context_of(job)->alloc;
  tnk__weights_file_t *file = find(job, pair->name);

  if (file == NULL)
    return TNK_ECORRUPT;
  tnk__free_secret(alloc, file->url);
  file->url = tnk__strdup(alloc, pair->value);
  file->is_stale = 0;
  return file->url != NULL ? TNK_OK : TNK_ENOMEM;
}

/* A URL with a short lifetime is used for half of it. If the clocks differ by
 * more than a lifetime, only a refusal shows that it has expired. */
static int64_t renew_at(int64_t now_s, int64_t expires_us) {
  const int64_t life_s = expires_us / 1000000 - now_s;

  if (expires_us == 0 || life_s <= 0)
    return INT64_MAX;
  return now_s + (life_s > 2 * RENEW_S ? life_s - RENEW_S : life_s / 2);
}

static int take(tnk__weights_job_t *job, const tnk_external_files_t *from) {
  int err = TNK_OK;

  if (job->files == NULL)
    err = make_files(job, from);
  else if (from->n_files != job->n_files)
    err = TNK_ECORRUPT;
  for (size_t i = 0; i < from->n_files && err == TNK_OK; i++)
    err = keep_url(job, &from->files[i]);
  job->renew_s =
      renew_at(tnk__context_wall_s(context_of(job)), from->expires_us);
  return err;
}

int tnk__weights_files_take(tnk__weights_job_t *job,
                            const tnk_external_files_t *from) {
  const char *why = check_names(from);
  const int err = why != NULL ? TNK_EPROTO : take(job, from);

  if (err == TNK_OK)
    return 1;
  if (err == TNK_ENOMEM)
    tnk__weights_job_fail(job, tnk__error_static(err));
  else if (err == TNK_ECORRUPT)
    tnk__weights_job_fail_with(job, err, "%s",
                               "the service lists different files than before");
  else
    tnk__weights_job_fail_with(
        job, err, "%s",
        why != NULL ? why
                    : "the service names files that are in each other's "
                      "way");
  return 0;
}

/* ---- Files on the disk, in the pool ---- */

static int know(tnk__weights_job_t *job, const tnk__journal_file_t *from) {
  const tnk_allocator_t *alloc = job->place->alloc;
  tnk__weights_file_t *file = find(job, from->name);

  if (file == NULL)
    return 0;
  tnk__free(alloc, file->validator);
  file->validator = NULL;
  file->n_total = from->n_total;
  if (from->validator == NULL)
    return 0;
  file->validator = tnk__strdup(alloc, from->validator);
  return file->validator != NULL ? 0 : UV_ENOMEM;
}

/* Parse the journal. *same is set if it describes files of these names. */
static int read_journal(tnk__weights_job_t *job, int *same) {
  char *text = job->found.text;
  tnk__journal_t journal = {text, text + job->found.n_text};
  tnk__journal_line_t line;
  int err = 0;

  *same = 0;
  while (text != NULL && err == 0 &&
         tnk__journal_next(&journal, &line) != TNK__JOURNAL_END) {
    if (line.kind == TNK__JOURNAL_NAMES)
      *same = strcmp(line.names, job->names) == 0;
    else if (line.kind == TNK__JOURNAL_FILE && *same)
      err = know(job, &line.file);
  }
  return err;
}

static int begin_journal(tnk__weights_job_t *job) {
  tnk__buf_t line;
  int err = 0;

  if (job->found.is_used)
    err = tnk__place_clear(job->place, job->source);
  if (err != 0)
    return err;
  tnk__buf_init(&line, job->place->alloc, TNK__MAX_URL);
  if (job->is_training)
    tnk__journal_put_export(&line, job->address);
  tnk__journal_put_names(&line, job->names);
  err = tnk__place_note(job->place, &line);
  tnk__buf_deinit(&line);
  return err;
}

/* One byte of a complete file is requested again, to check that the store still
 * has the same file. */
static uint64_t usable(const tnk__weights_file_t *file, uint64_t size) {
  if (file->n_total != UINT64_MAX && size > file->n_total)
    return 0;
  return size > 0 && size == file->n_total ? size - 1 : size;
}

int tnk__weights_files_measure(tnk__weights_job_t *job) {
  int same = 0;
  int err = job->found.is_used ? read_journal(job, &same) : 0;

  if (err == 0 && !same)
    err = begin_journal(job);
  for (size_t i = 0; i < job->n_files && err == 0 && same; i++) {
    tnk__weights_file_t *file = &job->files[i];
    file->n_bytes = usable(file, tnk__place_size(job->place, file->name));
  }
  return err;
}

/* ---- Progress ---- */

static void rate(tnk__weights_job_t *job, uint64_t now) {
  if (now - job->next_ms < RATE_MS)
    return;
  job->rate_ms = job->next_ms;
  job->rate_bytes = job->next_bytes;
  job->next_ms = now;
  job->next_bytes = job->n_fetched;
}

static uint64_t total_of(const tnk__weights_job_t *job) {
  uint64_t total = 0;

  for (size_t i = 0; i < job->n_files; i++) {
    if (job->files[i].n_total > INT64_MAX - total)
      return 0;
    total += job->files[i].n_total;
  }
  return total;
}

/* Call the progress callback. The last access: the job may be over
 * afterwards. */
static void tell(tnk__weights_job_t *job, const char *name) {
  const uint64_t now = tnk__context_now_ms(context_of(job));
  const int is_all = job->n_done == job->n_files;
  tnk_weights_progress_t progress = {.file = name};

  rate(job, now);
  if (job->options.on_progress == NULL ||
      (!is_all && now - job->told_ms < TELL_MS))
    return;
  job->told_ms = now;
  progress.n_files = job->n_files;
  progress.n_files_done = job->n_done;
  progress.n_bytes = job->n_bytes;
  progress.n_total = total_of(job);
  progress.n_fetched = job->n_fetched;
  if (now > job->rate_ms)
    progress.bytes_per_s =
        (job->n_fetched - job->rate_bytes) * 1000 / (now - job->rate_ms);
  tnk__callout_begin();
  job->options.on_progress(&progress, job->options.progress_user);
  tnk__callout_end();
}

/* Count the bytes received since the last call. */
static void count(tnk__weights_slot_t *slot) {
  tnk__weights_job_t *job = slot->job;
  const uint64_t fetched = slot->download.n_fetched;
  const uint64_t offset = slot->download.fetch.offset;

  job->n_fetched += fetched - slot->n_fetched;
  slot->n_fetched = fetched;
  /* The file may have started over. */
  job->n_bytes = job->n_bytes - slot->file->n_bytes + offset;
  slot->file->n_bytes = offset;
}

/* ---- Loading ---- */

static void on_begin(tnk__download_t *download) {
  tnk__weights_slot_t *slot =
      tnk__container_of(download, tnk__weights_slot_t, download);
  const tnk__fetch_t *fetch = &download->fetch;
  tnk__weights_file_t *file = slot->file;
  const tnk__journal_file_t about = {.n_total = fetch->n_total,
                                     .validator = fetch->validator,
                                     .name = file->name};
  tnk__buf_t line;

  count(slot);
  file->n_total = fetch->n_total;
  if (fetch->is_rest)
    return; /* the journal has it */
  tnk__free(&fetch->context->alloc, file->validator);
  file->validator = fetch->validator != NULL
                        ? tnk__strdup(&fetch->context->alloc, fetch->validator)
                        : NULL;
  tnk__buf_init(&line, &fetch->context->alloc, TNK__MIB);
  tnk__journal_put_file(&line, &about);
  tnk__download_note(download, &line);
}

static void on_progress(tnk__download_t *download) {
  tnk__weights_slot_t *slot =
      tnk__container_of(download, tnk__weights_slot_t, download);

  count(slot);
  slot->file->n_refused = 0;
  tell(slot->job, slot->file->name);
}

/* Returns whether the URL may have expired; stores report that differently. */
static int may_be_expired(const tnk__error_t *error) {
  const int status = error->pub.http_status;

  return status == 400 || status == 401 || status == 403 || status == 404 ||
         status == 410;
}

static void on_loaded(tnk__download_t *download, tnk__error_t *error) {
  tnk__weights_slot_t *slot =
      tnk__container_of(download, tnk__weights_slot_t, download);
  tnk__weights_job_t *job = slot->job;
  tnk__weights_file_t *file = slot->file;

  count(slot);
  slot->file = NULL;
  file->is_loading = 0;
  if (error == NULL) {
    file->is_done = 1;
    file->n_total = file->n_bytes;
    job->n_done++;
  } else if (may_be_expired(error) && ++file->n_refused <= MAX_REFUSED) {
    file->is_stale = 1;
  } else {
    tnk__weights_job_fail_about(job, error);
    return;
  }
  tnk__weights_files_load(job);
}

static int start(tnk__weights_slot_t *slot, tnk__weights_file_t *file) {
  tnk__weights_job_t *job = slot->job;
  const tnk__download_request_t request = {
      .url = file->url,
      .path = tnk__place_path(job->place, &job->arena, file->name),
      .name = file->name,
      .n_bytes = UINT64_MAX,
      .max_bytes = UINT64_MAX,
      .is_signed = 1,
      .offset = file->n_bytes,
      .n_total = file->n_total,
      .validator = file->validator,
      .journal = job->place->journal,
      .gone = tnk__place_unref,
      .user = job->place,
      .silence_ms = job->options.silence_timeout_ms,
      .max_retries = job->options.max_retries,
      .lane = TNK__LANE_CONTROL};
  int err;

  if (request.path == NULL)
    return TNK_ENOMEM;
  tnk__download_init(&slot->download, context_of(job), &job->weights->http);
  slot->download.fetch.observed = job->promise;
  slot->download.fetch.part = (uint32_t)(file - job->files);
  slot->download.done = on_loaded;
  slot->download.on_begin = on_begin;
  slot->download.on_progress = on_progress;
  slot->n_fetched = 0;
  tnk__place_ref(job->place);
  err = tnk__download_start(&slot->download, &request);
  if (err != TNK_OK)
    return err;
  slot->file = file;
  file->is_loading = 1;
  return TNK_OK;
}

static void fail_start(tnk__weights_job_t *job, const tnk__weights_file_t *file,
                       int err) {
  if (err == TNK_EINVAL)
    tnk__weights_job_fail_with(job, TNK_EPROTO,
                               "%.256s: the service gives an address that is "
                               "not used: only https is, or this machine",
                               file->name);
  else
    tnk__weights_job_fail(job, tnk__error_static(err));
}

static tnk__weights_slot_t *free_slot(tnk__weights_job_t *job) {
  for (size_t i = 0; i < job->n_slots; i++)
    if (job->slots[i].file == NULL)
      return &job->slots[i];
  return NULL;
}

/* Returns whether new URLs are needed before a file can start. */
static int needs_urls(const tnk__weights_job_t *job,
                      const tnk__weights_file_t *file) {
  return file->is_stale || tnk__context_wall_s(context_of(job)) >= job->renew_s;
}

void tnk__weights_files_load(tnk__weights_job_t *job) {
  tnk__weights_slot_t *slot;
  int err;

  if (job->n_done == job->n_files) {
    if (job->is_archive)
      tnk__weights_unpack(job);
    else if (job->has_identity)
      tnk__weights_unseal(job);
    else
      job->commit(job);
    tell(job, job->files[job->n_files - 1].name);
    return;
  }
  if (job->asked != NULL)
    return; /* wait for URLs */
  for (size_t i = 0; i < job->n_files; i++) {
    tnk__weights_file_t *file = &job->files[i];
    if (file->is_done || file->is_loading)
      continue;
    slot = free_slot(job);
    if (slot == NULL)
      return;
    if (needs_urls(job, file)) {
      job->sign(job);
      return;
    }
    slot->job = job;
    err = start(slot, file);
    if (err != TNK_OK) {
      fail_start(job, file, err);
      return;
    }
  }
}

void tnk__weights_files_stop(tnk__weights_job_t *job) {
  for (size_t i = 0; i < job->n_slots; i++) {
    tnk__weights_slot_t *slot = &job->slots[i];
    if (slot->file != NULL)
      tnk__download_cancel(&slot->download);
    slot->file = NULL;
  }
}

void tnk__weights_files_explain(const tnk__weights_job_t *job,
                                tnk__text_t *out) {
  tnk__text_printf(out, "%zu of %zu files are complete; ", job->n_done,
                   job->n_files);
  for (size_t i = 0; i < job->n_slots; i++)
    if (job->slots[i].file != NULL) {
      tnk__text_printf(out, "%s: ", job->slots[i].file->name);
      tnk__download_explain(&job->slots[i].download, out);
      return;
    }
  tnk__text_printf(out, "URLs are being requested");
}
