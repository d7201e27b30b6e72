/*
 *   LOOKING (pool) --in the cache, and of a commit--> done
 *   LOOKING --else--> ASKING (HEAD)
 *   ASKING --no such file--> NOTING (pool) --> done
 *   ASKING --no answer, but in the cache--> done
 *   ASKING --commit and etag--> CHECKING (pool) --it is there--> done
 *   CHECKING --it is not--> LOADING (GET to its blob) --> LINKING (pool)
 *   CHECKING --another one is loading that blob--> FOLLOWING
 *   FOLLOWING --that one is done, or was canceled--> CHECKING
 *   FOLLOWING --that one failed--> done, with the same error
 *   LINKING --> done
 *
 * While the pool uses it (is_busy), it cannot be freed; after a cancel
 * on_pool_done() frees it. Only end() calls the owner.
 */
#include "lib/files/hub/model_file.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/wire/format/http_read.h"
#include "lib/files/fetch/download.h"
#include "lib/files/hub/refusal.h"
#include "lib/io/loop/work.h"

typedef enum {
  LOOKING = 0,
  ASKING,
  NOTING,
  CHECKING,
  LOADING,
  FOLLOWING,
  LINKING
} step_t;

struct tnk__model_file {
  tnk__hub_t *hub;
  void (*done)(const tnk__model_file_result_t *result, void *user);
  void *user;
  tnk__work_t work;
  step_t step;
  int is_busy;
  int is_canceled;
  tnk__arena_t arena;
  tnk__cache_key_t key; /* strings in the arena, except for the root */
  const char *name;     /* model and file, for messages */
  char tag[24];         /* suffix of temporary files */
  tnk__fetch_t fetch;
  tnk__download_t download;
  tnk__list_t link;      /* in hub->downloads, or in leader->followers */
  tnk__list_t followers; /* other operations that need the same blob */
  uint64_t n_bytes;
  char etag[TNK__CACHE_ETAG + 1];
  char commit[TNK__CACHE_COMMIT + 1];
  /* Owned by the pool while is_busy. */
  tnk__cache_has_t has;
  char found_commit[TNK__CACHE_COMMIT + 1];
  char found[TNK__CACHE_PATH]; /* path in the cache, before any request */
  char path[TNK__CACHE_PATH];  /* path of the blob, then of the file */
  int is_there;
  int cause;
};

static void let_go(tnk__model_file_t *file, tnk__error_t *error);

static void release(tnk__model_file_t *file) {
  tnk__arena_deinit(&file->arena);
  tnk__free(&file->hub->context->alloc, file);
}

void tnk__model_file_cancel(tnk__model_file_t *file) {
  if (file == NULL)
    return;
  tnk__fetch_cancel(&file->fetch);
  tnk__download_cancel(&file->download);
  let_go(file, NULL);
  file->is_canceled = 1;
  if (!file->is_busy)
    release(file);
}

static void end(tnk__model_file_t *file, const char *path, int is_absent,
                tnk__error_t *error) {
  const tnk__model_file_result_t result = {.path = path,
                                           .commit = file->commit,
                                           .is_absent = is_absent,
                                           .error = error};

  tnk__fetch_cancel(&file->fetch);
  tnk__download_cancel(&file->download);
  let_go(file, error);
  file->done(&result, file->user);
  tnk__error_unref(error);
  release(file);
}

static void end_with_file(tnk__model_file_t *file, const char *path) {
  end(file, path, 0, NULL);
}

/* ---- The pool ---- */

static void run(tnk__work_t *work) {
  tnk__model_file_t *file = tnk__container_of(work, tnk__model_file_t, work);
  const tnk__cache_key_t *key = &file->key;
  tnk__cache_key_t of_commit = *key;

  of_commit.revision = file->commit;
  switch (file->step) {
  case LOOKING:
    file->has = tnk__cache_find(key, file->found_commit, file->found);
    break;
  case NOTING:
    /* Errors are ignored: the note only saves a request later. */
    if (file->commit[0] == '\0')
      break;
    (void)tnk__cache_put_ref(key, file->commit, file->tag);
    (void)tnk__cache_put_absent(key, file->commit, file->tag);
    break;
  case CHECKING:
    if (tnk__cache_find(&of_commit, file->found_commit, file->path) ==
        TNK__CACHE_HAS) {
      /* The cache may be read-only, so errors are ignored. */
      (void)tnk__cache_put_ref(key, file->commit, file->tag);
      file->is_there = 1;
      break;
    }
    file->has = TNK__CACHE_UNKNOWN;
    if (tnk__cache_find_blob(key, file->etag, file->path))
      file->has = TNK__CACHE_HAS;
    break;
  default: /* LINKING */
    file->cause = tnk__cache_put_link(key, file->commit, file->etag, file->tag);
    if (file->cause == 0)
      file->cause = tnk__cache_put_ref(key, file->commit, file->tag);
    if (tnk__cache_find(&of_commit, file->found_commit, file->path) !=
            TNK__CACHE_HAS &&
        file->cause == 0)
      file->cause = UV_ENOENT;
  }
}

static void on_pool_done(tnk__work_t *work);

static void go_to_pool(tnk__model_file_t *file, step_t step) {
  file->step = step;
  file->is_busy = 1;
  /* Cannot fail: libuv rejects only a job without a function. */
  (void)tnk__work_start(file->hub->context, &file->work, run, on_pool_done);
}

/* ---- Errors ---- */

static tnk__error_t *absent_error(const tnk__model_file_t *file) {
  const tnk_hub_options_t *o = &file->hub->config->options;
  const tnk_allocator_t *alloc = &file->hub->context->alloc;

  if (file->has != TNK__CACHE_ABSENT && file->hub->config->is_offline)
    return tnk__error_new(alloc, TNK_ENOTFOUND,
                          "%s is not in the cache at %.512s, and the hub is "
                          "offline",
                          file->name, o->cache_dir);
  return tnk__error_new(alloc, TNK_ENOTFOUND, "%s: there is no such file",
                        file->name);
}

static void end_with(tnk__model_file_t *file, int code, const char *why) {
  end(file, "", 0,
      tnk__error_new(&file->hub->context->alloc, code, "%s: %s", file->name,
                     why));
}

/* ---- Asking the hub ---- */

static void put_url(tnk__buf_t *url, const tnk__model_file_t *file,
                    const char *revision) {
  tnk__buf_text(url, file->hub->config->options.endpoint);
  tnk__buf_byte(url, '/');
  tnk__url_put_segments(url, file->key.model);
  tnk__buf_text(url, "/resolve/");
  tnk__url_put_segment(url, revision);
  tnk__buf_byte(url, '/');
  tnk__url_put_segments(url, file->key.file);
}

static void on_answer(tnk__fetch_t *fetch, const tnk__http_result_t *result,
                      tnk__error_t *error);

static void ask(tnk__model_file_t *file) {
  const tnk_hub_options_t *o = &file->hub->config->options;
  tnk__fetch_request_t request = {.name = file->name,
                                  .token = file->hub->config->token,
                                  .is_head = 1,
                                  .silence_ms = o->silence_timeout_ms,
                                  .max_retries = o->max_retries,
                                  .lane = TNK__LANE_CONTROL};
  tnk__buf_t url;
  int err;

  file->step = ASKING;
  /* With a cached file retries are not needed. */
  if (file->has == TNK__CACHE_HAS)
    request.max_retries = 0;
  tnk__fetch_init(&file->fetch, file->hub->context, file->hub->http);
  file->fetch.done = on_answer;
  tnk__buf_init(&url, &file->hub->context->alloc, TNK__MAX_URL);
  put_url(&url, file, file->key.revision);
  request.url = tnk__buf_cstr(&url);
  err =
      request.url == NULL ? url.err : tnk__fetch_start(&file->fetch, &request);
  tnk__buf_deinit(&url);
  if (err != TNK_OK)
    end_with(file, err, tnk_strerror(err));
}

/* A commit id must match exactly. */
static int is_of_revision(const tnk__model_file_t *file, const char *commit) {
  return tnk__cache_is_commit(commit) &&
         (!tnk__cache_is_commit(file->key.revision) ||
          strcmp(commit, file->key.revision) == 0);
}

/* Parse the headers of an answer. Returns NULL, or the missing header. */
static const char *read_answer(tnk__model_file_t *file,
                               const tnk__fetch_t *fetch, int status) {
  const char *commit = tnk__fetch_header(fetch, "x-repo-commit");
  const char *etag = tnk__fetch_header(fetch, "x-linked-etag");

  if (etag == NULL)
    etag = tnk__fetch_header(fetch, "etag");
  if (commit == NULL || !tnk__cache_is_commit(commit))
    return "the answer names no commit; is this a hub?";
  if (!is_of_revision(file, commit))
    return "the answer is about another commit";
  if (etag == NULL || !tnk__cache_read_etag(file->etag, etag))
    return "the answer has no ETag that can name a file";
  memcpy(file->commit, commit, TNK__CACHE_COMMIT + 1);
  file->n_bytes = UINT64_MAX;
  if (!tnk__fetch_number(fetch, "x-linked-size", &file->n_bytes) &&
      status == 200)
    (void)tnk__fetch_number(fetch, "content-length", &file->n_bytes);
  return NULL;
}

/* Why there is no file, according to the answer, which may be NULL. */
static tnk__refusal_t read_refusal(tnk__model_file_t *file,
                                   const tnk__http_result_t *result) {
  const char *commit =
      result != NULL ? tnk__http_result_header(result, "x-repo-commit") : NULL;

  if (commit != NULL && is_of_revision(file, commit))
    memcpy(file->commit, commit, TNK__CACHE_COMMIT + 1);
  return tnk__refusal_of(result, file->commit[0] != '\0');
}

static void on_answer(tnk__fetch_t *fetch, const tnk__http_result_t *result,
                      tnk__error_t *error) {
  tnk__model_file_t *file = tnk__container_of(fetch, tnk__model_file_t, fetch);
  tnk__refusal_t refusal = TNK__REFUSAL_OTHER;
  const char *why = NULL;

  if (error == NULL)
    why = read_answer(file, fetch, result->status);
  else
    refusal = read_refusal(file, result);
  if (error == NULL && why == NULL) {
    go_to_pool(file, CHECKING);
  } else if (refusal == TNK__REFUSAL_NO_FILE) {
    go_to_pool(file, NOTING);
  } else if (file->has == TNK__CACHE_HAS &&
             refusal != TNK__REFUSAL_NO_REVISION &&
             (error == NULL || error->pub.code != TNK_ENOMEM)) {
    tnk__log(&file->hub->context->logger, TNK_LOG_WARN, "hub",
             "%s; what the cache has is used",
             error != NULL ? error->pub.text : why);
    memcpy(file->commit, file->found_commit, sizeof(file->commit));
    end_with_file(file, file->found);
  } else if (error != NULL) {
    end(file, "", 0,
        tnk__refusal_error(refusal, fetch, result, error, &file->key,
                           file->hub->config->options.endpoint));
  } else {
    end_with(file, TNK_EPROTO, why);
  }
}

/* ---- Downloading ---- */

static void on_loaded(tnk__download_t *download, tnk__error_t *error) {
  tnk__model_file_t *file =
      tnk__container_of(download, tnk__model_file_t, download);

  if (error != NULL)
    end(file, "", 0, tnk__error_ref(error));
  else
    go_to_pool(file, LINKING);
}

static void on_progress(tnk__download_t *download) {
  const tnk__model_file_t *file =
      tnk__container_of(download, tnk__model_file_t, download);
  const tnk_hub_options_t *o = &file->hub->config->options;

  tnk__callout_begin();
  o->on_progress(file->name, download->fetch.offset,
                 download->n_total == UINT64_MAX ? 0 : download->n_total,
                 o->progress_user);
  tnk__callout_end();
}

/* The file is requested by its commit, so that it matches the headers. */
static void load(tnk__model_file_t *file) {
  const tnk_hub_options_t *o = &file->hub->config->options;
  tnk__download_request_t request = {
      .path = file->path,
      .name = file->name,
      .token = file->hub->config->token,
      .sum = tnk__sha256_is_sum(file->etag) ? file->etag : NULL,
      .n_bytes = file->n_bytes,
      .max_bytes = UINT64_MAX,
      .silence_ms = o->silence_timeout_ms,
      .max_retries = o->max_retries,
      .lane = TNK__LANE_CONTROL};
  tnk__buf_t url;
  int err;

  file->step = LOADING;
  tnk__download_init(&file->download, file->hub->context, file->hub->http);
  file->download.done = on_loaded;
  if (o->on_progress != NULL)
    file->download.on_progress = on_progress;
  tnk__buf_init(&url, &file->hub->context->alloc, TNK__MAX_URL);
  put_url(&url, file, file->commit);
  request.url = tnk__buf_cstr(&url);
  err = request.url == NULL ? url.err
                            : tnk__download_start(&file->download, &request);
  tnk__buf_deinit(&url);
  if (err != TNK_OK)
    end_with(file, err, tnk_strerror(err));
}

/* ---- Shared blobs ---- */

static tnk__model_file_t *find_leader(const tnk__model_file_t *file) {
  TNK__LIST_FOREACH (node, &file->hub->downloads) {
    tnk__model_file_t *other = tnk__container_of(node, tnk__model_file_t, link);
    if (strcmp(other->key.model, file->key.model) == 0 &&
        strcmp(other->etag, file->etag) == 0)
      return other;
  }
  return NULL;
}

/* A branch, its commit and files with equal contents share one blob. One
 * operation downloads it; the others look for it afterwards. */
static void load_or_follow(tnk__model_file_t *file) {
  tnk__model_file_t *leader = find_leader(file);

  if (leader == NULL) {
    tnk__list_append(&file->hub->downloads, &file->link);
    load(file);
    return;
  }
  file->step = FOLLOWING;
  tnk__list_append(&leader->followers, &file->link);
}

/* Remove it from the list of leaders or followers. */
static void let_go(tnk__model_file_t *file, tnk__error_t *error) {
  tnk__list_t followers;
  tnk__list_t *node;

  tnk__list_remove(&file->link);
  tnk__list_move(&followers, &file->followers);
  while ((node = tnk__list_pop(&followers)) != NULL) {
    tnk__model_file_t *follower =
        tnk__container_of(node, tnk__model_file_t, link);
    if (error != NULL)
      end(follower, "", 0, tnk__error_ref(error));
    else
      go_to_pool(follower, CHECKING);
  }
}

/* ---- Transitions ---- */

static void on_looked(tnk__model_file_t *file) {
  const int is_offline = file->hub->config->is_offline;

  if (file->has == TNK__CACHE_UNKNOWN && !is_offline) {
    ask(file);
  } else if (!is_offline && !tnk__cache_is_commit(file->key.revision)) {
    ask(file);
  } else {
    memcpy(file->commit, file->found_commit, sizeof(file->commit));
    if (file->has == TNK__CACHE_HAS)
      end_with_file(file, file->found);
    else
      end(file, "", 1, absent_error(file));
  }
}

static void on_linked(tnk__model_file_t *file) {
  tnk__error_t *error;

  if (file->cause == 0) {
    end_with_file(file, file->path);
    return;
  }
  error = tnk__error_new(&file->hub->context->alloc, TNK_EFILE,
                         "%s: cannot write to the cache at %.512s: %s",
                         file->name, file->hub->config->options.cache_dir,
                         uv_strerror(file->cause));
  if (error->refs > 0)
    error->pub.cause = file->cause;
  end(file, "", 0, error);
}

static void on_pool_done(tnk__work_t *work) {
  tnk__model_file_t *file = tnk__container_of(work, tnk__model_file_t, work);

  file->is_busy = 0;
  if (file->is_canceled)
    release(file);
  else if (file->step == LOOKING)
    on_looked(file);
  else if (file->step == NOTING)
    end(file, "", 1, absent_error(file));
  else if (file->step == LINKING)
    on_linked(file);
  else if (file->is_there)
    end_with_file(file, file->path);
  else if (file->has == TNK__CACHE_HAS)
    go_to_pool(file, LINKING);
  else
    load_or_follow(file);
}

static int keep(tnk__model_file_t *file, const char *model,
                const char *revision, const char *name) {
  tnk__arena_t *arena = &file->arena;
  const size_t n = strlen(model) + strlen(name) + 2;
  char *full;

  tnk__arena_init(arena, &file->hub->context->alloc, 16 * 1024);
  full = tnk__arena_alloc(arena, n);
  file->key.root = file->hub->config->options.cache_dir;
  file->key.model = tnk__arena_strdup(arena, model);
  file->key.revision = tnk__arena_strdup(arena, revision);
  file->key.file = tnk__arena_strdup(arena, name);
  file->name = full;
  if (full == NULL || file->key.model == NULL || file->key.revision == NULL ||
      file->key.file == NULL)
    return TNK_ENOMEM;
  snprintf(full, n, "%s/%s", model, name);
  return TNK_OK;
}

int tnk__model_file_start(tnk__model_file_t **out, tnk__hub_t *hub,
                          const char *model, const char *revision,
                          const char *name,
                          void (*done)(const tnk__model_file_result_t *result,
                                       void *user),
                          void *user) {
  tnk__model_file_t *file = tnk__calloc(&hub->context->alloc, 1, sizeof(*file));

  *out = NULL;
  if (file == NULL)
    return TNK_ENOMEM;
  file->hub = hub;
  file->done = done;
  file->user = user;
  tnk__list_init(&file->link);
  tnk__list_init(&file->followers);
  if (keep(file, model, revision, name) != TNK_OK) {
    release(file);
    return TNK_ENOMEM;
  }
  snprintf(file->tag, sizeof(file->tag), "%016llx",
           (unsigned long long)tnk__context_random(hub->context));
  *out = file;
  go_to_pool(file, LOOKING);
  return TNK_OK;
}

void tnk__model_file_explain(const tnk__model_file_t *file, tnk__text_t *out) {
  tnk__text_printf(out, "%s: ", file->name);
  if (file->is_busy)
    tnk__text_printf(out, "the cache is looked into");
  else if (file->step == FOLLOWING)
    tnk__text_printf(out, "another download of it is waited for");
  else if (file->step == LOADING)
    tnk__download_explain(&file->download, out);
  else
    tnk__fetch_explain(&file->fetch, out);
}
