/* SPDX-License-Identifier: MIT */
#include "lib/files/hub/model_file.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/files/fetch/download.h"
#include "lib/files/fetch/fetch.h"
#include "lib/io/loop/work.h"
#include "lib/wire/format/http_read.h"

/* ---- Refusals ---- */

typedef enum {
  TNK__REFUSAL_OTHER = 0, /* another refusal, or none */
  TNK__REFUSAL_NO_FILE,
  TNK__REFUSAL_NO_REVISION,
  TNK__REFUSAL_NO_MODEL, /* or not visible to the caller */
  TNK__REFUSAL_GATED,
  TNK__REFUSAL_BAD_TOKEN,
  TNK__REFUSAL_NO_RIGHT
} refusal_t;

#define N(table) (sizeof(table) / sizeof((table)[0]))

/* ---- Refusals: classification ---- */

static const struct {
  const char *code; /* value of the header X-Error-Code */
  refusal_t refusal;
} codes[] = {{"EntryNotFound", TNK__REFUSAL_NO_FILE},
             {"RevisionNotFound", TNK__REFUSAL_NO_REVISION},
             {"RepoNotFound", TNK__REFUSAL_NO_MODEL},
             {"GatedRepo", TNK__REFUSAL_GATED}};

/* Without a valid token Hugging Face answers 401 for a model that does not
 * exist, as for a private one. */
static refusal_t by_status(const tnk__http_result_t *result, int knows_commit) {
  const char *said = tnk__http_result_header(result, "x-error-message");

  switch (result->status) {
  case 401:
    return said != NULL && strstr(said, "Invalid ") == said
               ? TNK__REFUSAL_BAD_TOKEN
               : TNK__REFUSAL_NO_MODEL;
  case 403:
    return TNK__REFUSAL_NO_RIGHT;
  case 404:
    return knows_commit ? TNK__REFUSAL_NO_FILE : TNK__REFUSAL_OTHER;
  default:
    return TNK__REFUSAL_OTHER;
  }
}

/* Classify a hub's answer, which may be NULL. Hugging Face sends the reason in
 * a header. `knows_commit`: the answer names a commit. */
static refusal_t refusal_of(const tnk__http_result_t *result,
                            int knows_commit) {
  const char *code;

  if (result == NULL || result->err != TNK_OK || result->status / 100 != 4)
    return TNK__REFUSAL_OTHER;
  code = tnk__http_result_header(result, "x-error-code");
  for (size_t i = 0; code != NULL && i < N(codes); i++)
    if (strcmp(code, codes[i].code) == 0)
      return codes[i].refusal;
  return by_status(result, knows_commit && code == NULL);
}

/* ---- Refusals: messages ---- */

#define TOKEN_HINT "set HF_TOKEN, or the hub's token, to one that may read it"

static void put_advice(char *out, size_t size, refusal_t refusal, int has_token,
                       const tnk__cache_key_t *key, const char *endpoint) {
  switch (refusal) {
  case TNK__REFUSAL_NO_FILE:
    snprintf(out, size, "there is no such file");
    break;
  case TNK__REFUSAL_NO_REVISION:
    snprintf(out, size, "the model has no revision %s", key->revision);
    break;
  case TNK__REFUSAL_NO_MODEL:
    snprintf(out, size, "there is no such model, or %s",
             has_token ? "the token may not read it"
                       : "it is private: " TOKEN_HINT);
    break;
  case TNK__REFUSAL_GATED:
    snprintf(out, size, "the model is gated: accept its license at %.200s/%s%s",
             endpoint, key->model,
             has_token ? " with the account of the token"
                       : ", and " TOKEN_HINT);
    break;
  case TNK__REFUSAL_BAD_TOKEN:
    snprintf(out, size, "the token is wrong or has expired");
    break;
  default:
    snprintf(out, size, "%s",
             has_token ? "the token may not read it"
                       : "it may not be read without a token: " TOKEN_HINT);
  }
}

/* Make an error whose message says how to solve the problem. The caller keeps
 * `error`. */
static tnk__error_t *refusal_error(refusal_t refusal, const tnk__fetch_t *fetch,
                                   const tnk__http_result_t *result,
                                   tnk__error_t *error,
                                   const tnk__cache_key_t *key,
                                   const char *endpoint) {
  const char *said;
  tnk__error_t *better;
  char advice[600];

  if (refusal == TNK__REFUSAL_OTHER)
    return tnk__error_ref(error);
  said = tnk__fetch_said(fetch, result);
  put_advice(advice, sizeof(advice), refusal, fetch->token != NULL, key,
             endpoint);
  better = tnk__fetch_error(fetch, error->pub.code, "%s (HTTP %d%s%.100s)",
                            advice, result->status, said != NULL ? ": " : "",
                            said != NULL ? said : "");
  if (better->refs > 0) {
    better->pub.http_status = result->status;
    better->pub.n_attempts = error->pub.n_attempts;
  }
  return better;
}

/* ---- A file ---- */

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

/*
 * Gets one file of a model, through the cache.
 *
 * A cached file of a commit is used without a request. For a movable revision a
 * request to the hub comes first. If it does not answer, the cached file is
 * used. `done` is called once unless canceled; then the object frees itself.
 */
typedef struct model_file model_file_t;

typedef enum {
  LOOKING = 0,
  ASKING,
  NOTING,
  CHECKING,
  LOADING,
  FOLLOWING,
  LINKING
} step_t;

struct model_file {
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

static void let_go(model_file_t *file, tnk__error_t *error);

static void release(model_file_t *file) {
  tnk__arena_deinit(&file->arena);
  tnk__free(&file->hub->context->alloc, file);
}

/* Cancel it: no callback is called afterwards. `file` may be NULL. Allocates
 * nothing. */
static void model_file_cancel(model_file_t *file) {
  if (file == NULL)
    return;
  tnk__fetch_cancel(&file->fetch);
  tnk__download_cancel(&file->download);
  let_go(file, NULL);
  file->is_canceled = 1;
  if (!file->is_busy)
    release(file);
}

static void end(model_file_t *file, const char *path, int is_absent,
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

static void end_with_file(model_file_t *file, const char *path) {
  end(file, path, 0, NULL);
}

/* ---- A file: the pool ---- */

static void run(tnk__work_t *work) {
  model_file_t *file = tnk__container_of(work, model_file_t, work);
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

static void go_to_pool(model_file_t *file, step_t step) {
  file->step = step;
  file->is_busy = 1;
  /* Cannot fail: libuv rejects only a job without a function. */
  (void)tnk__work_start(file->hub->context, &file->work, run, on_pool_done);
}

/* ---- A file: errors ---- */

static tnk__error_t *absent_error(const model_file_t *file) {
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

static void end_with(model_file_t *file, int code, const char *why) {
  end(file, "", 0,
      tnk__error_new(&file->hub->context->alloc, code, "%s: %s", file->name,
                     why));
}

/* ---- A file: asking the hub ---- */

static void put_url(tnk__buf_t *url, const model_file_t *file,
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

static void ask(model_file_t *file) {
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
static int is_of_revision(const model_file_t *file, const char *commit) {
  return tnk__cache_is_commit(commit) &&
         (!tnk__cache_is_commit(file->key.revision) ||
          strcmp(commit, file->key.revision) == 0);
}

/* Parse the headers of an answer. Returns NULL, or the missing header. */
static const char *read_answer(model_file_t *file, const tnk__fetch_t *fetch,
                               int status) {
  const char *commit = tnk__fetch_header(fetch, "x-repo-commit");
  const char *etag = tnk__fetch_header(fetch, "x-linked-etag");

  if (etag == NULL)
    etag = tnk__fetch_header(fetch, "etag");
  if (commit == NULL || !tnk__cache_is_commit(commit))
    return "the response names no commit; is this a hub?";
  if (!is_of_revision(file, commit))
    return "the response is about another commit";
  if (etag == NULL || !tnk__cache_read_etag(file->etag, etag))
    return "the response has no ETag that can name a file";
  memcpy(file->commit, commit, TNK__CACHE_COMMIT + 1);
  file->n_bytes = UINT64_MAX;
  if (!tnk__fetch_number(fetch, "x-linked-size", &file->n_bytes) &&
      status == 200)
    (void)tnk__fetch_number(fetch, "content-length", &file->n_bytes);
  return NULL;
}

/* Returns why there is no file, according to the answer, which may be NULL. */
static refusal_t read_refusal(model_file_t *file,
                              const tnk__http_result_t *result) {
  const char *commit =
      result != NULL ? tnk__http_result_header(result, "x-repo-commit") : NULL;

  if (commit != NULL && is_of_revision(file, commit))
    memcpy(file->commit, commit, TNK__CACHE_COMMIT + 1);
  return refusal_of(result, file->commit[0] != '\0');
}

static void on_answer(tnk__fetch_t *fetch, const tnk__http_result_t *result,
                      tnk__error_t *error) {
  model_file_t *file = tnk__container_of(fetch, model_file_t, fetch);
  refusal_t refusal = TNK__REFUSAL_OTHER;
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
             "%s; the cached copy is used",
             error != NULL ? error->pub.text : why);
    memcpy(file->commit, file->found_commit, sizeof(file->commit));
    end_with_file(file, file->found);
  } else if (error != NULL) {
    end(file, "", 0,
        refusal_error(refusal, fetch, result, error, &file->key,
                      file->hub->config->options.endpoint));
  } else {
    end_with(file, TNK_EPROTO, why);
  }
}

/* ---- A file: downloading ---- */

static void on_loaded(tnk__download_t *download, tnk__error_t *error) {
  model_file_t *file = tnk__container_of(download, model_file_t, download);

  if (error != NULL)
    end(file, "", 0, tnk__error_ref(error));
  else
    go_to_pool(file, LINKING);
}

static void on_progress(tnk__download_t *download) {
  const model_file_t *file =
      tnk__container_of(download, model_file_t, download);
  const tnk_hub_options_t *o = &file->hub->config->options;

  tnk__callout_begin();
  o->on_progress(file->name, download->fetch.offset,
                 download->n_total == UINT64_MAX ? 0 : download->n_total,
                 o->progress_user);
  tnk__callout_end();
}

/* The file is requested by its commit, so that it matches the headers. */
static void load(model_file_t *file) {
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

/* ---- A file: shared blobs ---- */

static model_file_t *find_leader(const model_file_t *file) {
  TNK__LIST_FOREACH (node, &file->hub->downloads) {
    model_file_t *other = tnk__container_of(node, model_file_t, link);
    if (strcmp(other->key.model, file->key.model) == 0 &&
        strcmp(other->etag, file->etag) == 0)
      return other;
  }
  return NULL;
}

/* A branch, its commit and files with equal contents share one blob. One
 * operation downloads it; the others look for it afterwards. */
static void load_or_follow(model_file_t *file) {
  model_file_t *leader = find_leader(file);

  if (leader == NULL) {
    tnk__list_append(&file->hub->downloads, &file->link);
    load(file);
    return;
  }
  file->step = FOLLOWING;
  tnk__list_append(&leader->followers, &file->link);
}

/* Remove it from the list of leaders or followers. */
static void let_go(model_file_t *file, tnk__error_t *error) {
  tnk__list_t followers;
  tnk__list_t *node;

  tnk__list_remove(&file->link);
  tnk__list_move(&followers, &file->followers);
  while ((node = tnk__list_pop(&followers)) != NULL) {
    model_file_t *follower = tnk__container_of(node, model_file_t, link);
    if (error != NULL)
      end(follower, "", 0, tnk__error_ref(error));
    else
      go_to_pool(follower, CHECKING);
  }
}

/* ---- A file: transitions ---- */

static void on_looked(model_file_t *file) {
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

static void on_linked(model_file_t *file) {
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
  model_file_t *file = tnk__container_of(work, model_file_t, work);

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

static int keep(model_file_t *file, const char *model, const char *revision,
                const char *name) {
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

/* Start it; the names have passed their checks. Returns TNK_OK, or TNK_ENOMEM
 * and no callback is called. */
static int model_file_start(model_file_t **out, tnk__hub_t *hub,
                            const char *model, const char *revision,
                            const char *name,
                            void (*done)(const tnk__model_file_result_t *result,
                                         void *user),
                            void *user) {
  model_file_t *file = tnk__calloc(&hub->context->alloc, 1, sizeof(*file));

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

/* Describe the current step, as the end of a sentence. */
static void model_file_explain(const model_file_t *file, tnk__text_t *out) {
  tnk__text_printf(out, "%s: ", file->name);
  if (file->is_busy)
    tnk__text_printf(out, "the cache is being read");
  else if (file->step == FOLLOWING)
    tnk__text_printf(out, "waits for another download of the same file");
  else if (file->step == LOADING)
    tnk__download_explain(&file->download, out);
  else
    tnk__fetch_explain(&file->fetch, out);
}

/* ---- Wanted files ---- */

/*
 * States of a shared file:
 *
 *   created by the first wait --end--> all callbacks are called, freed
 *   created by the first wait --the last wait cancels--> freed
 *
 * It is in the hub's list while it is pending. It leaves the list before
 * callbacks are called, so that a request from a callback starts over.
 */

typedef struct tnk__shared_file {
  tnk__list_t link; /* in hub->files */
  tnk__hub_t *hub;
  tnk__list_t waiters;
  model_file_t *file;
  char key[]; /* model, revision and file, separated by newlines */
} shared_t;

static void free_shared(shared_t *shared) {
  tnk__list_remove(&shared->link);
  model_file_cancel(shared->file);
  tnk__free(&shared->hub->context->alloc, shared);
}

static void on_done(const tnk__model_file_result_t *result, void *user) {
  shared_t *shared = user;
  tnk__list_t *node;

  shared->file = NULL;
  tnk__list_remove(&shared->link);
  while ((node = tnk__list_pop(&shared->waiters)) != NULL) {
    tnk__wanted_t *wanted = tnk__container_of(node, tnk__wanted_t, link);
    wanted->file = NULL;
    wanted->done(wanted, result);
  }
  free_shared(shared);
}

static size_t put_key(char *out, size_t size, const char *model,
                      const char *revision, const char *file) {
  return (size_t)snprintf(out, size, "%s\n%s\n%s", model, revision, file);
}

static shared_t *new_shared(tnk__hub_t *hub, const char *model,
                            const char *revision, const char *file) {
  const size_t n = put_key(NULL, 0, model, revision, file) + 1;
  shared_t *shared = tnk__calloc(&hub->context->alloc, 1, sizeof(*shared) + n);

  if (shared == NULL)
    return NULL;
  (void)put_key(shared->key, n, model, revision, file);
  shared->hub = hub;
  tnk__list_init(&shared->link);
  tnk__list_init(&shared->waiters);
  return shared;
}

/* Return the pending one with the same key, or add this one. NULL without
 * memory. */
static shared_t *enter(tnk__hub_t *hub, shared_t *mine, const char *model,
                       const char *revision, const char *file) {
  TNK__LIST_FOREACH (node, &hub->files) {
    shared_t *known = tnk__container_of(node, shared_t, link);
    if (strcmp(known->key, mine->key) == 0) {
      free_shared(mine);
      return known;
    }
  }
  if (model_file_start(&mine->file, hub, model, revision, file, on_done,
                       mine) != TNK_OK) {
    free_shared(mine);
    return NULL;
  }
  tnk__list_append(&hub->files, &mine->link);
  return mine;
}

void tnk__wanted_init(tnk__wanted_t *wanted,
                      void (*done)(tnk__wanted_t *wanted,
                                   const tnk__model_file_result_t *result)) {
  tnk__list_init(&wanted->link);
  wanted->file = NULL;
  wanted->done = done;
}

int tnk__wanted_start(tnk__wanted_t *wanted, tnk__hub_t *hub, const char *model,
                      const char *revision, const char *file) {
  shared_t *shared = new_shared(hub, model, revision, file);

  if (shared != NULL)
    shared = enter(hub, shared, model, revision, file);
  if (shared == NULL)
    return TNK_ENOMEM;
  wanted->file = shared;
  tnk__list_append(&shared->waiters, &wanted->link);
  return TNK_OK;
}

void tnk__wanted_cancel(tnk__wanted_t *wanted) {
  shared_t *shared = wanted->file;

  if (shared == NULL)
    return;
  wanted->file = NULL;
  tnk__list_remove(&wanted->link);
  /* Without a file, on_done() frees it. */
  if (tnk__list_empty(&shared->waiters) && shared->file != NULL)
    free_shared(shared);
}

void tnk__wanted_explain(const tnk__wanted_t *wanted, tnk__text_t *out) {
  if (wanted->file != NULL && wanted->file->file != NULL)
    model_file_explain(wanted->file->file, out);
}
