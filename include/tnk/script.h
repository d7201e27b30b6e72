/* SPDX-License-Identifier: MIT */
#ifndef TNK_SCRIPT_H
#define TNK_SCRIPT_H

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "tnk/tnk.h"

/*
 * Functions for scripts, which run from top to bottom on the default loop. If
 * an operation fails, they print one sentence to stderr and end the program
 * with status 1. They are inline functions, because only a program may decide
 * to end. The library does not contain them.
 */

#ifdef __cplusplus
extern "C" {
#endif

/** Print a sentence to stderr and exit with status 1. */
static inline void tnk_must_not(const char *why) {
  fprintf(stderr, "%s\n", why);
  exit(1);
}

/** Print a line to stderr for each notice of a service. */
static inline void tnk_script_notice(const char *client,
                                     tnk_queue_state_t state,
                                     const char *reason, void *user) {
  (void)state;
  (void)user;
  fprintf(stderr, "%s: %s\n", client, reason);
}

/** The trace that tnk_must_trace() opened. Not for programs. */
static inline tnk_trace_t **tnk_script_trace(void) {
  static tnk_trace_t *trace;

  return &trace;
}

/** Write the rest of the trace and close it. Not for programs. */
static inline void tnk_script_end_trace(void) {
  tnk_trace_t **trace = tnk_script_trace();

  if (tnk_trace_close(*trace) != TNK_OK)
    fprintf(stderr, "the trace could not be written\n");
  *trace = NULL;
}

/** Trace a service (observe.h). Call it before tnk_must_open(): it sets the
 * observer in @p options. The file is complete when the program exits, also
 * through tnk_must_not(). Call it at most once in a program, and open only one
 * service with these options.
 * @param path  File of the trace; an existing file is replaced. */
static inline void tnk_must_trace(tnk_service_options_t *options,
                                  const char *path) {
  tnk_trace_t **trace = tnk_script_trace();

  if (*trace != NULL || tnk_trace_open(trace, path, NULL) != TNK_OK ||
      atexit(tnk_script_end_trace) != 0)
    tnk_must_not("the trace cannot be written");
  options->observer = tnk_trace_event;
  options->observer_user = *trace;
}

/** Open a service on uv_default_loop(). Without on_queue_state and without a
 * logger, notices are printed to stderr, for example that nothing responds.
 * @param options  NULL for defaults. */
static inline tnk_service_t *
tnk_must_open(const tnk_service_options_t *options) {
  tnk_service_options_t with = TNK_SERVICE_OPTIONS_INIT;
  tnk_service_t *service;
  char why[512];

  if (options != NULL)
    with = *options;
  if (with.on_queue_state == NULL && with.logger == NULL)
    with.on_queue_state = tnk_script_notice;
  if (tnk_service_open(&service, uv_default_loop(), &with, why, sizeof(why)) !=
      TNK_OK)
    tnk_must_not(why);
  return service;
}

/** Wait, and return the promise for its accessors. */
static inline tnk_promise_t *tnk_must_keep(tnk_promise_t *promise) {
  if (tnk_wait(promise) != TNK_OK)
    tnk_must_not(tnk_promise_text(promise));
  return promise;
}

/** Wait, and release the promise. */
static inline void tnk_must(tnk_promise_t *promise) {
  tnk_promise_unref(tnk_must_keep(promise));
}

/** Wait for a training client, and release the promise. */
static inline tnk_training_t *tnk_must_training(tnk_promise_t *promise) {
  char why[512];
  tnk_training_t *training = tnk_take_training(promise, why, sizeof(why));

  if (training == NULL)
    tnk_must_not(why);
  return training;
}

/** Open the ledger of a run. It is closed with the service. @param options
 * NULL for defaults. */
static inline tnk_ledger_t *
tnk_must_ledger(tnk_service_t *service, const char *directory,
                const tnk_ledger_options_t *options) {
  tnk_promise_t *opened =
      tnk_must_keep(tnk_ledger_open(service, directory, options));
  tnk_ledger_t *ledger = tnk_promise_ledger(opened);

  tnk_promise_unref(opened);
  return ledger;
}

/** Resume the run, or create a new model if the ledger has no state.
 * tnk_ledger_resumed() returns the save that was used. */
static inline tnk_training_t *tnk_must_resume(tnk_service_t *service,
                                              tnk_ledger_t *ledger,
                                              const tnk_lora_options_t *lora) {
  tnk_promise_t *resumed = tnk_ledger_resume(ledger, NULL);

  if (tnk_wait(resumed) != TNK_ENOTFOUND)
    return tnk_must_training(resumed);
  tnk_promise_unref(resumed);
  return tnk_must_training(tnk_service_create_lora(service, lora));
}

/** Create a plan (train.h). */
static inline tnk_plan_t *tnk_must_plan(const tnk_plan_options_t *options) {
  tnk_plan_t *plan;
  char why[512];

  if (tnk_plan_new(&plan, options, why, sizeof(why)) != TNK_OK)
    tnk_must_not(why);
  return plan;
}

/** Wait for a sampling client, and release the promise. */
static inline tnk_sampling_t *tnk_must_sampling(tnk_promise_t *promise) {
  char why[512];
  tnk_sampling_t *sampling = tnk_take_sampling(promise, why, sizeof(why));

  if (sampling == NULL)
    tnk_must_not(why);
  return sampling;
}

/** Wait for a pass, release the promise, and return tnk_pass_loss(). */
static inline double tnk_must_loss(tnk_promise_t *promise) {
  const double loss = tnk_pass_loss(tnk_promise_pass(tnk_must_keep(promise)));

  tnk_promise_unref(promise);
  return loss;
}

/** Wait. Returns 1 on success, and the promise stays for its accessors. Returns
 * 0 after TNK_ESESSION, and the promise is released: a service with `recovery`
 * restores the model, and tnk_must_ready() returns the step to continue from.
 * Any other failure ends the program. */
static inline int tnk_must_unless_lost(tnk_promise_t *promise) {
  if (tnk_wait(promise) == TNK_ESESSION) {
    tnk_promise_unref(promise);
    return 0;
  }
  (void)tnk_must_keep(promise);
  return 1;
}

/** Wait until a training client accepts operations after a loss, and return the
 * number of optimizer steps in its weights. */
static inline uint64_t tnk_must_ready(tnk_training_t *training) {
  tnk_promise_t *ready = tnk_must_keep(tnk_training_ready(training));
  const uint64_t n_steps = tnk_promise_saved(ready)->n_steps;

  tnk_promise_unref(ready);
  return n_steps;
}

/** Close the service with its clients, and run the loop until everything is
 * closed. Returns the exit status for main(): 0 on success. */
static inline int tnk_must_close(tnk_service_t *service) {
  tnk_service_close(service, NULL, NULL);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  return uv_loop_close(uv_default_loop()) == 0 ? 0 : 1;
}

#ifdef __cplusplus
}
#endif

#endif
