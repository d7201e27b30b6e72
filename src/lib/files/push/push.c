/* SPDX-License-Identifier: MIT */
#include "lib/files/push/push.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/files/fetch/fetch.h"
#include "lib/files/push/ask.h"
#include "lib/files/push/card.h"
#include "lib/files/push/folder.h"
#include "lib/files/push/large.h"
#include "lib/files/push/message.h"
#include "lib/io/loop/work.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/url.h"
#include "tnk/error.h"

/* ---- Results ---- */

typedef struct {
  tnk_pushed_t pub;
  char texts[];
} own_t;

static size_t size_of(const char *text) {
  return text != NULL ? strlen(text) + 1 : 1;
}

static const char *put(char **at, const char *text) {
  char *begin = *at;

  memcpy(begin, text != NULL ? text : "", size_of(text));
  *at += size_of(text);
  return begin;
}

/* Make a result in one allocation: the known members, and the id and address
 * from the commit's answer, which may be NULL. Unknown strings are "". NULL
 * without memory. */
static tnk_pushed_t *pushed_new(const tnk_allocator_t *alloc,
                                const tnk_pushed_t *pushed,
                                const json_t *answer) {
  const char *commit = tnk__json_str(answer, "commitOid");
  const char *url = tnk__json_str(answer, "pullRequestUrl");
  own_t *own;
  char *at;

  if (url == NULL)
    url = tnk__json_str(answer, "commitUrl");
  own = tnk__malloc(alloc, sizeof(*own) + size_of(pushed->repo) +
                               size_of(pushed->revision) + size_of(commit) +
                               size_of(url));
  if (own == NULL)
    return NULL;
  at = own->texts;
  own->pub = *pushed;
  own->pub.repo = put(&at, pushed->repo);
  own->pub.revision = put(&at, pushed->revision);
  own->pub.commit = put(&at, commit);
  own->pub.url = put(&at, url);
  return &own->pub;
}

static void pushed_free(const tnk_allocator_t *alloc, void *value) {
  tnk__free(alloc, value);
}

/* ---- Bundles ---- */

/*
 * The options and files of a push. The memory is separate, because the thread
 * pool may still read after the push was canceled.
 *
 * States: idle, or busy with one job of the pool. It may be freed in both.
 */
typedef struct bundle {
  tnk__folder_t folder;
  tnk_push_options_t options;
  const char *owner; /* owner of the repository; NULL: the token's owner */
  const char *name;
  const char *revision;
  /* Set by the owner; called on the loop thread when a job is done. */
  void (*done)(struct bundle *bundle);
  void *user;
  /* Private. */
  tnk__arena_t arena;
  tnk__work_t work;
  void (*job)(tnk__folder_t *folder);
  int is_busy;
  int is_free;
} bundle_t;

enum { MAX_TEXTS = 1 << 20 };

static int copy(tnk__arena_t *arena, const char **text) {
  if (*text == NULL)
    return 1;
  *text = tnk__arena_strdup(arena, *text);
  return *text != NULL;
}

static int copy_list(tnk__arena_t *arena, const char *const **list, size_t n) {
  const char **own;

  if (n == 0)
    return 1;
  own = tnk__arena_calloc(arena, n, sizeof(*own));
  if (own == NULL)
    return 0;
  for (size_t i = 0; i < n; i++) {
    own[i] = (*list)[i];
    if (!copy(arena, &own[i]))
      return 0;
  }
  *list = own;
  return 1;
}

static int copy_all(bundle_t *bundle, const char **directory) {
  tnk_push_options_t *o = &bundle->options;
  tnk__arena_t *arena = &bundle->arena;

  return copy(arena, directory) && copy(arena, &o->checkpoint) &&
         copy(arena, &o->repo) && copy(arena, &o->revision) &&
         copy(arena, &o->message) && copy(arena, &o->base_model) &&
         copy_list(arena, &o->allow, o->n_allow) &&
         copy_list(arena, &o->ignore, o->n_ignore);
}

/* Derive missing names from the checkpoint's. */
static int choose_names(bundle_t *bundle) {
  const tnk_push_options_t *o = &bundle->options;
  char repo[TNK__PUSH_NAME + 1];
  char revision[TNK__PUSH_NAME + 1] = "main";
  const char *slash = o->repo != NULL ? strchr(o->repo, '/') : NULL;

  tnk__push_default_repo(repo, o);
  if (o->repo == NULL)
    tnk__push_default_revision(revision, o);
  bundle->revision = o->revision != NULL ? o->revision : revision;
  bundle->name = o->repo == NULL ? repo : slash != NULL ? slash + 1 : o->repo;
  if (slash != NULL) {
    bundle->owner =
        tnk__arena_strndup(&bundle->arena, o->repo, (size_t)(slash - o->repo));
    if (bundle->owner == NULL)
      return 0;
  }
  return copy(&bundle->arena, &bundle->revision) &&
         copy(&bundle->arena, &bundle->name);
}

static void dispose(bundle_t *bundle) {
  const tnk_allocator_t *alloc = bundle->folder.alloc;

  tnk__folder_deinit(&bundle->folder);
  tnk__arena_deinit(&bundle->arena);
  tnk__free(alloc, bundle);
}

/* Create one with copies of all arguments. NULL without memory. */
static bundle_t *bundle_new(const tnk_allocator_t *alloc, const char *directory,
                            const tnk_push_options_t *options) {
  bundle_t *bundle = tnk__calloc(alloc, 1, sizeof(*bundle));
  int is_good;

  if (bundle == NULL)
    return NULL;
  bundle->options = *options;
  tnk__arena_init(&bundle->arena, alloc, MAX_TEXTS);
  is_good = copy_all(bundle, &directory) && choose_names(bundle);
  tnk__folder_init(&bundle->folder, alloc, directory, &bundle->options);
  if (!is_good) {
    dispose(bundle);
    return NULL;
  }
  return bundle;
}

static void run(tnk__work_t *work) {
  bundle_t *bundle = tnk__container_of(work, bundle_t, work);

  bundle->job(&bundle->folder);
}

static void on_done(tnk__work_t *work) {
  bundle_t *bundle = tnk__container_of(work, bundle_t, work);

  bundle->is_busy = 0;
  if (bundle->is_free)
    dispose(bundle);
  else
    bundle->done(bundle);
}

/* Run a job on the pool, one at a time. Returns TNK_OK, or an error and `done`
 * is not called. */
static int bundle_run(bundle_t *bundle, tnk__context_t *context,
                      void (*job)(tnk__folder_t *folder)) {
  int err;

  bundle->job = job;
  err = tnk__work_start(context, &bundle->work, run, on_done);
  bundle->is_busy = err == TNK_OK;
  return err;
}

/* Free it: no callback is called afterwards. `bundle` may be NULL. Allocates
 * nothing. */
static void bundle_free(bundle_t *bundle) {
  if (bundle == NULL)
    return;
  bundle->is_free = 1;
  atomic_store(&bundle->folder.is_unwanted, 1);
  if (!bundle->is_busy)
    dispose(bundle);
}

/* ---- The push ---- */

/*
 *   SCANNING --> ASKING_WHO --> CREATING (--> LOOKING) --> BRANCHING
 *     --> COMPARING --> SORTING, some files at a time --> READING
 *     --> BATCHING, some at a time --> UPLOADING, one by one --> BATCHING
 *     --> COMMITTING --> resolved
 *   or, with only_checks: ASKING_WHO --> COMPARING --> resolved
 *
 * Any failure rejects the promise. Nothing is visible in the repository before
 * the commit. Each state ends in one function, which calls `go()` for the next
 * one or `fail()`.
 */

typedef enum {
  SCANNING,   /* the pool lists the files */
  ASKING_WHO, /* get the token's owner, which also checks the token */
  CREATING,   /* create the repository, which may exist */
  LOOKING,    /* check that it exists, if the token cannot create one */
  BRANCHING,  /* create the branch, which may exist */
  COMPARING,  /* read the repository's card for its checkpoint */
  SORTING,    /* ask which files are large */
  READING,    /* the pool reads small files and all checksums */
  BATCHING,   /* request addresses for the large files */
  UPLOADING,  /* upload one of them */
  COMMITTING
} state_t;

enum { MAX_CARD = 1 << 20, MAX_COMMIT = 192 << 20 };

typedef struct {
  tnk__hub_job_t job;
  state_t state;
  int only_checks;
  bundle_t *bundle;
  tnk__buf_t repo; /* "OWNER/NAME" */
  tnk__ask_t ask;
  tnk__fetch_t fetch; /* fetches the card */
  tnk__large_t large;
  tnk__error_t *refusal; /* error of the creation, while LOOKING */
  tnk__buf_t url;
  tnk__buf_t body;
  tnk__buf_t card;
  json_t *batch; /* the hub's answer, while its files are uploaded */
  size_t place;  /* first file of the next request */
  size_t n_asked;
  size_t next; /* next object of `batch` */
  uint64_t n_files;
  uint64_t n_sent;
} push_t;

static void go(push_t *push, state_t state);

static const tnk_allocator_t *alloc_of(const push_t *push) {
  return &push->job.hub->context->alloc;
}

static void stop(tnk__hub_job_t *job) {
  push_t *push = (push_t *)(void *)job;

  tnk__ask_cancel(&push->ask);
  tnk__fetch_cancel(&push->fetch);
  tnk__large_cancel(&push->large);
  bundle_free(push->bundle);
  tnk__error_unref(push->refusal);
  tnk__buf_deinit(&push->repo);
  tnk__buf_deinit(&push->url);
  tnk__buf_deinit(&push->body);
  tnk__buf_deinit(&push->card);
  json_decref(push->batch);
}

/* Takes ownership of `error`. Frees the push. */
static void fail(push_t *push, tnk__error_t *error) {
  tnk__hub_job_fail(&push->job, error);
  tnk__error_unref(error);
}

static void fail_with(push_t *push, int err, const char *what) {
  fail(push, err == TNK_ENOMEM
                 ? tnk__error_static(err)
                 : tnk__error_new(alloc_of(push), err, "push: %s: %s", what,
                                  tnk_strerror(err)));
}

/* ---- The push: requests ---- */

/* Write "ENDPOINT/api/models/OWNER/NAME", or without the middle part. */
static void put_repo(push_t *push, const char *middle) {
  tnk__buf_printf(&push->url, "%s%s/%s",
                  push->job.hub->config->options.endpoint, middle,
                  tnk__buf_cstr(&push->repo));
}

/* Write "/KIND/REVISION"; slashes in the branch's name are encoded. */
static void put_revision(push_t *push, const char *kind) {
  tnk__buf_printf(&push->url, "/%s/", kind);
  tnk__url_put_segment(&push->url, push->bundle->revision);
}

static void put_pull_request(push_t *push) {
  if (push->bundle->options.opens_pull_request == TNK_YES)
    tnk__buf_text(&push->url, "?create_pr=1");
}

/* Send the request in `url` and `body`. */
static void ask(push_t *push, tnk__ask_request_t request) {
  int err = push->body.err;

  request.url = tnk__buf_cstr(&push->url);
  request.has_token = 1;
  request.body = push->body.data;
  request.n_body = push->body.len;
  if (err == TNK_OK)
    err = request.url != NULL ? tnk__ask_start(&push->ask, &request)
                              : push->url.err;
  if (err != TNK_OK)
    fail_with(push, err, request.what);
}

static void ask_who(push_t *push) {
  tnk__buf_printf(&push->url, "%s/api/whoami-v2",
                  push->job.hub->config->options.endpoint);
  ask(push, (tnk__ask_request_t){.what = "find out whose token it is",
                                 .method = "GET"});
}

static void create(push_t *push) {
  const tnk_push_options_t *o = &push->bundle->options;

  tnk__buf_printf(&push->url, "%s/api/repos/create",
                  push->job.hub->config->options.endpoint);
  tnk__push_put_create(&push->body, push->bundle->owner, push->bundle->name,
                       o->is_public != TNK_YES);
  /* A retry gets 409, which counts as success. */
  ask(push, (tnk__ask_request_t){.what = "create the repository",
                                 .method = "POST",
                                 .type = "application/json",
                                 .may_be = 409});
}

static void look(push_t *push) {
  put_repo(push, "/api/models");
  ask(push,
      (tnk__ask_request_t){.what = "find the repository", .method = "GET"});
}

/* "main" exists with the repository, and a reference is not a branch. */
static void make_branch(push_t *push) {
  const char *revision = push->bundle->revision;

  if (strcmp(revision, "main") == 0 || strncmp(revision, "refs/", 5) == 0) {
    go(push, COMPARING);
    return;
  }
  put_repo(push, "/api/models");
  put_revision(push, "branch");
  tnk__buf_text(&push->body, "{}");
  ask(push, (tnk__ask_request_t){.what = "make the branch",
                                 .method = "POST",
                                 .type = "application/json",
                                 .may_be = 409});
}

/* A repository without a card has no checkpoint that could be overwritten. */
static void compare(push_t *push) {
  const tnk_hub_options_t *o = &push->job.hub->config->options;
  tnk__fetch_request_t request = {.name = "the model card",
                                  .token = push->job.hub->config->token,
                                  .silence_ms = o->silence_timeout_ms,
                                  .max_retries = o->max_retries,
                                  .lane = TNK__LANE_CONTROL};
  int err;

  put_repo(push, "");
  put_revision(push, "resolve");
  tnk__buf_text(&push->url, "/README.md");
  request.url = tnk__buf_cstr(&push->url);
  err = request.url != NULL ? tnk__fetch_start(&push->fetch, &request)
                            : push->url.err;
  if (err != TNK_OK)
    fail_with(push, err, "the model card");
}

/* Ask the hub which files are large, for some of them at a time. */
static void sort(push_t *push) {
  if (push->place == push->bundle->folder.n_files) {
    go(push, READING);
    return;
  }
  put_repo(push, "/api/models");
  put_revision(push, "preupload");
  put_pull_request(push);
  push->n_asked =
      tnk__push_put_sorting(&push->body, &push->bundle->folder, push->place);
  ask(push, (tnk__ask_request_t){.what = "announce the files",
                                 .method = "POST",
                                 .type = "application/json"});
}

/* Request the addresses of the next large files; if none are left, all are
 * uploaded. */
static void ask_batch(push_t *push) {
  static const char lfs[] = "application/vnd.git-lfs+json";
  size_t n;

  put_repo(push, "");
  tnk__buf_text(&push->url, ".git/info/lfs/objects/batch");
  push->place = tnk__push_put_batch(&push->body, &push->bundle->folder,
                                    push->place, push->bundle->revision, &n);
  if (n == 0) {
    go(push, COMMITTING);
    return;
  }
  ask(push, (tnk__ask_request_t){.what = "announce large files",
                                 .method = "POST",
                                 .type = lfs,
                                 .accept = lfs});
}

static void commit(push_t *push) {
  const tnk_push_options_t *o = &push->bundle->options;
  char message[256];

  snprintf(message, sizeof(message), "Upload %.200s", o->checkpoint);
  push->n_files =
      tnk__push_put_commit(&push->body, &push->bundle->folder,
                           o->message != NULL ? o->message : message);
  if (push->n_files == 0) {
    fail(push, tnk__error_new(alloc_of(push), TNK_EINVAL,
                              "push: the hub ignores every file"));
    return;
  }
  put_repo(push, "/api/models");
  put_revision(push, "commit");
  put_pull_request(push);
  ask(push, (tnk__ask_request_t){.what = "commit",
                                 .method = "POST",
                                 .type = "application/x-ndjson",
                                 .is_once = 1});
}

/* ---- The push: large files ---- */

/* The program may close the hub in the callback, so this is the last access. */
static void on_progress(tnk__large_t *large, uint64_t n_bytes) {
  const push_t *push = tnk__container_of_const(large, push_t, large);
  const tnk_push_options_t *o = &push->bundle->options;

  tnk__callout_begin();
  o->on_progress(large->file->name, n_bytes, large->file->n_bytes,
                 o->progress_user);
  tnk__callout_end();
}

static void refuse_object(push_t *push, const tnk__push_file_t *file,
                          const json_t *object) {
  const char *said = tnk__json_str(tnk__json_obj(object, "error"), "message");

  if (said == NULL || strstr(said, push->job.hub->config->token) != NULL)
    said = "malformed answer";
  fail(push, tnk__error_new(alloc_of(push), TNK_EREQUEST,
                            "push: the hub refuses %.256s: %.200s",
                            file != NULL ? file->name : "a file", said));
}

static void on_large(tnk__large_t *large, tnk__error_t *error) {
  push_t *push = tnk__container_of(large, push_t, large);

  if (error != NULL) {
    fail(push, tnk__error_ref(error));
    return;
  }
  push->n_sent += large->file->n_bytes;
  go(push, UPLOADING);
}

/* Upload the next file that the hub does not have yet. */
static void upload(push_t *push) {
  const json_t *objects = tnk__json_arr(push->batch, "objects");
  const json_t *object = NULL;
  const tnk__push_file_t *file = NULL;
  const json_t *actions = NULL;
  int err;

  while (actions == NULL && push->next < json_array_size(objects)) {
    object = json_array_get(objects, push->next++);
    file = tnk__folder_find_sum(&push->bundle->folder,
                                tnk__json_str(object, "oid"));
    if (file == NULL || tnk__json_obj(object, "error") != NULL) {
      refuse_object(push, file, object);
      return;
    }
    actions = tnk__json_obj(object, "actions");
  }
  if (actions == NULL) {
    go(push, BATCHING);
    return;
  }
  tnk__large_cancel(&push->large);
  tnk__large_init(&push->large, push->job.hub);
  push->large.done = on_large;
  if (push->bundle->options.on_progress != NULL)
    push->large.on_progress = on_progress;
  err = tnk__large_start(&push->large, &push->bundle->folder, file, actions);
  if (err != TNK_OK)
    fail_with(push, err, "the hub's response about a large file");
}

/* ---- The push: answers ---- */

/* `answer` is the commit's answer; NULL: there was no commit. */
static void resolve(push_t *push, const json_t *answer) {
  tnk_pushed_t pushed = {.repo = tnk__buf_cstr(&push->repo),
                         .revision = push->bundle->revision,
                         .n_files = push->n_files,
                         .n_sent = push->n_sent};
  tnk_pushed_t *own = pushed_new(alloc_of(push), &pushed, answer);

  if (own == NULL)
    fail_with(push, TNK_ENOMEM, "");
  else
    tnk__hub_job_resolve(&push->job, TNK__RESULT_PUSHED, own, pushed_free);
}

static void on_card(tnk__fetch_t *fetch, const tnk__http_result_t *result,
                    tnk__error_t *error) {
  push_t *push = tnk__container_of(fetch, push_t, fetch);
  const char *path = NULL;
  size_t n = 0;

  if (error != NULL && error->pub.code != TNK_ENOTFOUND) {
    fail(push, tnk__error_new(alloc_of(push), error->pub.code, "push: %s",
                              error->pub.text));
    return;
  }
  if (error == NULL) {
    tnk__buf_append(&push->card, result->body->data, result->body->len);
    n = tnk__push_find_other((const char *)push->card.data, push->card.len,
                             push->bundle->options.checkpoint, &path);
  }
  if (push->card.err == TNK_ENOMEM)
    fail_with(push, TNK_ENOMEM, "");
  else if (n > 0)
    fail(push, tnk__error_new(alloc_of(push), TNK_ECONFLICT,
                              "push: %s has another checkpoint, %.*s",
                              tnk__buf_cstr(&push->repo),
                              (int)(n < 256 ? n : 256), path));
  else if (push->only_checks)
    resolve(push, NULL);
  else
    go(push, SORTING);
}

/* A retry resumes the card, or starts over. */
static void on_card_begin(tnk__fetch_t *fetch) {
  if (fetch->is_rest)
    return;
  tnk__buf_clear(&tnk__container_of(fetch, push_t, fetch)->card);
  fetch->offset = 0;
}

static void on_card_part(tnk__fetch_t *fetch) {
  push_t *push = tnk__container_of(fetch, push_t, fetch);
  tnk__buf_t part;

  tnk__buf_init(&part, alloc_of(push), MAX_CARD);
  tnk__exchange_take_body(&fetch->exchange, &part);
  fetch->offset += part.len;
  tnk__buf_append(&push->card, part.data, part.len);
  tnk__buf_deinit(&part);
}

/* The owner defaults to the token's. Then the card can be written.
 */
static int choose_files(push_t *push, const json_t *answer) {
  const char *owner = push->bundle->owner;

  if (owner == NULL)
    owner = tnk__json_str(answer, "name");
  if (owner == NULL || !tnk__push_is_name(owner))
    return TNK_EPROTO;
  tnk__buf_printf(&push->repo, "%s/%s", owner, push->bundle->name);
  if (tnk__buf_cstr(&push->repo) == NULL)
    return TNK_ENOMEM;
  if (!push->only_checks)
    tnk__folder_choose(&push->bundle->folder, (char *)push->repo.data);
  return push->bundle->folder.err;
}

/* Read the answer of the current state. Returns TNK_OK with the next state in
 * *next. */
static int read_answer(push_t *push, const json_t *answer, state_t *next) {
  int err = TNK_OK;

  switch (push->state) {
  case ASKING_WHO:
    *next = push->only_checks ? COMPARING : CREATING;
    return choose_files(push, answer);
  case CREATING:
  case LOOKING:
  case BRANCHING:
    *next = push->state == BRANCHING ? COMPARING : BRANCHING;
    return TNK_OK;
  case SORTING:
    *next = SORTING;
    err = tnk__push_read_sorting(&push->bundle->folder, push->place,
                                 push->n_asked, answer);
    push->place += push->n_asked;
    return err;
  default:
    return TNK_EINTERNAL;
  }
}

/* A token may have access to a repository but no right to create one. */
static int may_exist(const push_t *push, const tnk__error_t *error) {
  return push->state == CREATING && error->pub.http_status >= 401 &&
         error->pub.http_status <= 403;
}

/* If both requests are refused, report the first refusal. */
static void on_refusal(push_t *push, tnk__error_t *error) {
  tnk__error_t *first = push->refusal;

  if (may_exist(push, error)) {
    push->refusal = tnk__error_ref(error);
    go(push, LOOKING);
  } else if (push->state == LOOKING) {
    push->refusal = NULL;
    fail(push, first);
  } else {
    fail(push, tnk__error_ref(error));
  }
}

static void on_answer(tnk__ask_t *asked, const tnk__http_result_t *result,
                      tnk__error_t *error) {
  push_t *push = tnk__container_of(asked, push_t, ask);
  state_t next = push->state;
  json_t *answer = NULL;
  int err;

  if (error != NULL) {
    on_refusal(push, error);
    return;
  }
  err = tnk__json_parse_object(&answer, result->body->data, result->body->len);
  /* The answer to the creation of a branch is not needed. */
  if (err == TNK_EPROTO &&
      (push->state == BRANCHING || push->state == CREATING))
    err = TNK_OK;
  if (err == TNK_OK && push->state == BATCHING) {
    push->batch = answer;
    push->next = 0;
    go(push, UPLOADING);
    return;
  }
  if (err == TNK_OK && push->state == COMMITTING) {
    resolve(push, answer);
    json_decref(answer);
    return;
  }
  if (err == TNK_OK)
    err = read_answer(push, answer, &next);
  json_decref(answer);
  if (err == TNK_OK)
    go(push, next);
  else if (push->bundle->folder.err != TNK_OK)
    fail(push, tnk__folder_error(&push->bundle->folder));
  else
    fail_with(push, err, "the hub's answer");
}

/* The pool has finished the job of the state. */
static void on_job(bundle_t *bundle) {
  push_t *push = bundle->user;

  if (bundle->folder.err != TNK_OK) {
    fail(push, tnk__folder_error(&push->bundle->folder));
    return;
  }
  push->place = 0;
  go(push, push->state == SCANNING ? ASKING_WHO : BATCHING);
}

/* ---- The push: transitions ---- */

static void start(push_t *push, void (*job)(tnk__folder_t *folder)) {
  const int err = bundle_run(push->bundle, push->job.hub->context, job);

  if (err != TNK_OK)
    fail_with(push, err, "the thread pool");
}

static void go(push_t *push, state_t state) {
  push->state = state;
  tnk__buf_clear(&push->url);
  tnk__buf_clear(&push->body);
  if (state != UPLOADING) {
    json_decref(push->batch);
    push->batch = NULL;
  }
  switch (state) {
  case SCANNING:
    start(push, tnk__folder_scan);
    break;
  case ASKING_WHO:
    ask_who(push);
    break;
  case CREATING:
    create(push);
    break;
  case LOOKING:
    look(push);
    break;
  case BRANCHING:
    make_branch(push);
    break;
  case COMPARING:
    compare(push);
    break;
  case SORTING:
    sort(push);
    break;
  case READING:
    start(push, tnk__folder_read);
    break;
  case BATCHING:
    ask_batch(push);
    break;
  case UPLOADING:
    upload(push);
    break;
  case COMMITTING:
    commit(push);
    break;
  }
}

static void explain(const void *arg, tnk__text_t *out) {
  const push_t *push = arg;

  tnk__text_printf(out, "push: ");
  if (push->state == SCANNING || push->state == READING)
    tnk__text_printf(out, "the thread pool reads the files");
  else if (push->state == COMPARING)
    tnk__fetch_explain(&push->fetch, out);
  else if (push->state == UPLOADING)
    tnk__large_explain(&push->large, out);
  else
    tnk__ask_explain(&push->ask, out);
}

tnk_promise_t *tnk__push(tnk__hub_t *hub, const char *directory,
                         const tnk_push_options_t *options) {
  const tnk_allocator_t *alloc = &hub->context->alloc;
  tnk_promise_t *promise;
  push_t *push = (push_t *)(void *)tnk__hub_job_new(hub, sizeof(*push), stop,
                                                    explain, &promise);

  if (push == NULL)
    return promise;
  tnk__promise_enter(promise, "push", NULL);
  tnk__ask_init(&push->ask, hub);
  push->ask.done = on_answer;
  tnk__fetch_init(&push->fetch, hub->context, hub->http);
  push->fetch.on_begin = on_card_begin;
  push->fetch.on_body = on_card_part;
  push->fetch.done = on_card;
  tnk__large_init(&push->large, hub);
  tnk__buf_init(&push->repo, alloc, TNK__MAX_URL);
  tnk__buf_init(&push->url, alloc, TNK__MAX_URL);
  tnk__buf_init(&push->body, alloc, MAX_COMMIT);
  tnk__buf_init(&push->card, alloc, MAX_CARD);
  push->bundle = bundle_new(alloc, directory, options);
  if (push->bundle == NULL) {
    tnk__hub_job_fail(&push->job, tnk__error_static(TNK_ENOMEM));
    return promise;
  }
  push->bundle->done = on_job;
  push->bundle->user = push;
  push->only_checks = options->only_checks == TNK_YES;
  go(push, push->only_checks ? ASKING_WHO : SCANNING);
  return promise;
}
