#ifndef TNK_LIB_FILES_HUB_HUB_H
#define TNK_LIB_FILES_HUB_HUB_H

#include "lib/files/hub/config.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/promise.h"

/*
 * What everything that is asked of one hub shares. Open; then closing for ever,
 * which rejects what is under way.
 */
typedef struct tnk__hub {
  tnk__context_t *context;
  tnk__http_t *http;
  const tnk__hub_config_t *config;
  tnk__list_t jobs;       /* under way */
  tnk__list_t files;      /* under way, see wanted.c */
  tnk__list_t downloads;  /* of blobs under way, see model_file.c */
  tnk__list_t tokenizers; /* under way and loaded, see tokenizer.c */
  int closing;
} tnk__hub_t;

void tnk__hub_open(tnk__hub_t *hub, tnk__context_t *context, tnk__http_t *http,
                   const tnk__hub_config_t *config);
/* Close for ever: everything under way rejects with TNK_ECLOSED. Allocates
 * nothing. */
void tnk__hub_close(tnk__hub_t *hub);

/*
 * Something under way that somebody waits for; the beginning of a larger
 * struct. It ends in tnk__job_end(), which settles the promise and frees it.
 */
typedef struct tnk__hub_job {
  tnk__list_t link; /* in hub->jobs */
  tnk__hub_t *hub;
  tnk_promise_t *promise;
  /* Let go of what the larger struct holds. Allocates nothing. */
  void (*stop)(struct tnk__hub_job *self);
} tnk__hub_job_t;

/* Make a zeroed job of `size` bytes; NULL without memory. *promise tells the
 * caller either way. */
tnk__hub_job_t *tnk__hub_job_new(
    tnk__hub_t *hub, size_t size, void (*stop)(tnk__hub_job_t *self),
    void (*explain)(const void *op, tnk__text_t *out), tnk_promise_t **promise);
/* Settle and free. `error` stays the caller's. */
void tnk__hub_job_fail(tnk__hub_job_t *job, tnk__error_t *error);
void tnk__hub_job_resolve(tnk__hub_job_t *job, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *, void *));

#endif
