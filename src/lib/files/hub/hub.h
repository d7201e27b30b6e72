/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_HUB_HUB_H
#define TNK_LIB_FILES_HUB_HUB_H

#include "lib/base/arena.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/promise.h"
#include "lib/wire/format/proxy.h"
#include "tnk/hub.h"

/* Configuration of a hub: checked, complete and copied. Strings are in the
 * arena, except for the token, which is wiped. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__arena_t arena;
  tnk_hub_options_t options; /* with the defaults applied */
  tnk__proxies_t proxies;    /* secrets in them are wiped too */
  char *token;               /* NULL: none */
  int is_offline;
} tnk__hub_config_t;

/*
 * The shared state of all operations on one hub. States: open; closed for good,
 * when pending operations are rejected.
 */
typedef struct tnk__hub {
  tnk__context_t *context;
  tnk__http_t *http;
  const tnk__hub_config_t *config;
  tnk__list_t jobs;       /* pending operations */
  tnk__list_t files;      /* pending files, see model_file.c */
  tnk__list_t downloads;  /* pending downloads of blobs, see model_file.c */
  tnk__list_t tokenizers; /* pending and loaded, see tokenizer.c */
  int closing;
} tnk__hub_t;

void tnk__hub_open(tnk__hub_t *hub, tnk__context_t *context, tnk__http_t *http,
                   const tnk__hub_config_t *config);
/* Close the hub for good: all pending operations reject with TNK_ECLOSED.
 * Allocates nothing. */
void tnk__hub_close(tnk__hub_t *hub);

/*
 * A pending operation with a promise; the first member of a larger struct.
 * tnk__hub_job_fail() or tnk__hub_job_resolve() settles the promise and frees
 * it.
 */
typedef struct tnk__hub_job {
  tnk__list_t link; /* in hub->jobs */
  tnk__hub_t *hub;
  tnk_promise_t *promise;
  /* Releases the members of the larger struct. Allocates nothing. */
  void (*stop)(struct tnk__hub_job *self);
} tnk__hub_job_t;

/* Create a zeroed job of `size` bytes; NULL without memory. *promise is
 * returned to the caller in both cases. */
tnk__hub_job_t *tnk__hub_job_new(
    tnk__hub_t *hub, size_t size, void (*stop)(tnk__hub_job_t *self),
    void (*explain)(const void *op, tnk__text_t *out), tnk_promise_t **promise);
/* Settle the promise and free the job. The caller keeps `error`. */
void tnk__hub_job_fail(tnk__hub_job_t *job, tnk__error_t *error);
void tnk__hub_job_resolve(tnk__hub_job_t *job, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *, void *));

/* Implements tnk_hub_download(). The arguments are checked; `sum` is in lower
 * case or NULL. All strings are copied. */
tnk_promise_t *tnk__hub_download(tnk__hub_t *hub, const char *url,
                                 const char *path, const char *sum,
                                 const tnk_download_options_t *options);

/* Get a file of a model; the names have passed their checks. */
tnk_promise_t *tnk__hub_file(tnk__hub_t *hub, const char *model,
                             const char *revision, const char *file);

#endif
