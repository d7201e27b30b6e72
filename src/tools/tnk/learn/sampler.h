/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_SAMPLER_H
#define TNK_TOOLS_TNK_LEARN_SAMPLER_H

#include "tnk/training.h"
#include "tools/tnk/ask/ask.h"

/* The outcome of a part of a loop is 0, the exit status of a reported error, or
 * one of these. */
enum {
  LEARN_LOST = -1, /* the model was lost, and the library restores it */
  LEARN_BROKE = -2 /* a limit has refused a request; the model is intact */
};

/* Await a promise, which stays the caller's. */
int learn_await(cli_ask_t *ask, tnk_promise_t *promise);
/* As above, but LEARN_BROKE is possible too: a warning then has the cause. */
int learn_await_limited(cli_ask_t *ask, tnk_promise_t *promise);

/* The weights that a loop samples from. Each step has its own. They have a
 * path, so their sampler is restored after the server has lost it. Zeros are an
 * empty one. */
typedef struct {
  char *path;              /* the current ones; or NULL */
  char *old;               /* those before them; or NULL */
  tnk_promise_t *deleting; /* earlier ones; or NULL */
} learn_sampler_t;

/* Call for saving the weights of the model under a name that the run has not
 * used. The service deletes them after some days, if this process cannot. */
tnk_promise_t *learn_sampler_begin(tnk_training_t *model, const char *name);
/* Take the weights of a resolved promise of learn_sampler_begin(). The current
 * ones become the old ones. Returns the exit status. */
int learn_sampler_take(learn_sampler_t *sampler, cli_ask_t *ask,
                       const tnk_promise_t *saved);
/* Both, with the wait between. Returns an outcome, as above. */
int learn_sampler_save(learn_sampler_t *sampler, cli_ask_t *ask,
                       tnk_training_t *model, const char *name);
/* Begin to delete the old ones, which nothing samples from anymore. */
void learn_sampler_drop_old(learn_sampler_t *sampler, cli_ask_t *ask);
/* Begin to delete all of them. */
void learn_sampler_drop(learn_sampler_t *sampler, cli_ask_t *ask);
/* Delete all of them, and wait for it. */
void learn_sampler_end(learn_sampler_t *sampler, cli_ask_t *ask);
void learn_sampler_free(learn_sampler_t *sampler);

#endif
