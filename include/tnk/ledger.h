/* SPDX-License-Identifier: MIT */
#ifndef TNK_LEDGER_H
#define TNK_LEDGER_H

#include "tnk/service.h"
#include "tnk/usage.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The ledger of a run is a directory that records each save and its position in
 * the run.
 *
 *     tnk_promise_t *p = tnk_ledger_open(service, "runs/first", NULL);
 *     tnk_must_keep(p);
 *     tnk_ledger_t *ledger = tnk_promise_ledger(p);
 *     p = tnk_ledger_resume(ledger, NULL);
 *     if (tnk_wait(p) == TNK_OK)
 *       ... continue at tnk_ledger_resumed(ledger)->cursor ...
 *     else if (tnk_promise_status(p) == TNK_ENOTFOUND)
 *       ... create a model: the run begins ...
 *     tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
 *     how.cursor = "{\"next\": 4711, \"seed\": 7}";
 *     tnk_promise_t *saved = tnk_ledger_save(ledger, training, &how);
 *     if (tnk_wait(saved) == TNK_OK)
 *       printf("%s has %llu steps\n", tnk_promise_entry(saved)->state_path,
 *              (unsigned long long)tnk_promise_entry(saved)->n_steps);
 *
 * The ledger writes the intent to save to disk before it asks the service, and
 * the result before the promise resolves. A program that is killed at any
 * moment therefore loses no checkpoint. The number of steps in a state is
 * counted in the sequence of operations that the service receives. It does not
 * depend on calls that the program makes during the save.
 *
 * Define the saving schedule when you open the ledger, and ask wherever the
 * model may be saved:
 *
 *     tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
 *     options.every_steps = 20;
 *     options.every_seconds = 30 * 60;
 *     options.ttl_seconds = 7 * 24 * 3600;
 *     ...
 *     if (tnk_ledger_due(ledger, training))
 *       tnk_must(tnk_ledger_save(ledger, training, &how));
 *
 * The file checkpoints.jsonl has the format of the Tinker cookbook, whose lines
 * the ledger also reads. `batch` is the number of steps unless the caller sets
 * it. An incomplete last line, which a killed program left, is removed. Other
 * lines that cannot be read are reported in the log and kept.
 */

/** The ledger of one run. */
typedef struct tnk_ledger tnk_ledger_t;

/**
 * One save in the ledger. Strings are NULL if unknown. Only the library creates
 * this struct, so later versions may append members.
 */
typedef struct {
  const char *name;         /**< Name at the service; never NULL. */
  const char *state_path;   /**< Weights with optimizer state, to resume. */
  const char *sampler_path; /**< Sampler weights. */
  const char *cursor;       /**< Cursor of the caller, as given. */
  /** The whole line of the file, including members of other programs. NULL for
   * a save of this process. */
  const char *json;
  int64_t batch; /**< Next batch to train on; -1 if unknown. */
  int64_t epoch; /**< -1 if unknown. */
  /** Optimizer steps since the start of the run, if resumed with
   * tnk_ledger_resume(). For lines of other programs: their `batch`. */
  uint64_t n_steps;
  uint64_t n_passes; /**< Passes with gradients since the start of the run. */
  int64_t time_s;    /**< Unix time of the save; 0 if unknown. */
  int64_t expires_s; /**< Unix time from which the service may delete it; 0
                          means never, or unknown. */
  int is_final;      /**< 1 if the run ended with this save. */
  int is_rolling;    /**< 1 if later saves replace it. */
  /** Totals of the run at this save, including earlier processes. NULL if
   * unknown. */
  const tnk_totals_t *used;
  int is_deleted; /**< 1 if it was rolling and its state was deleted. */
} tnk_ledger_entry_t;

/** Options of a ledger. 0 or NULL selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_LEDGER_OPTIONS_INIT. */
  /** Name of the run, unique for the API key; at most 256 bytes. It is stored
   * with each checkpoint, so that tnk_ledger_resume() finds a run whose
   * directory is lost. NULL means that such a run is not found. */
  const char *run;
  /** Number of optimizer steps after which tnk_ledger_due() returns 1: a save
   * is due when the model has passed a multiple of it. 0 means no such rule. */
  uint64_t every_steps;
  /** Seconds since the last save after which one is due, if the model has
   * changed. 0 means no such rule. */
  uint64_t every_seconds;
  /** Lifetime of saves that set none; 0 keeps them until deleted. The save that
   * ends the run is always kept. */
  uint64_t ttl_seconds;
  /** Number of rolling saves to keep. After a later save was recorded, the
   * state of the oldest one beyond it is deleted on the service. All are
   * deleted after the save that ends the run, or when a finished run is opened.
   * Sampler weights are not deleted. 0 means that saves are not rolling unless
   * they say so; then one is kept. Opening deletes nothing then. */
  uint64_t n_rolling;
} tnk_ledger_options_t;

#define TNK_LEDGER_OPTIONS_INIT TNK_SIZED(tnk_ledger_options_t)

/**
 * Open the ledger of a run. A run can be open only once, in any process.
 *
 * @param service    Owns the ledger, as it owns a training client.
 * @param directory  Created together with missing parents. Copied.
 * @param options    NULL for defaults. Copied.
 *
 * Each save also stores the totals of the run. After the ledger was opened, the
 * totals of the run (tnk_service_run_totals()) begin with the last stored ones,
 * unless a budget sets `before`. They are totals of the service, so set
 * `before` if a service has several ledgers. The ledger also stores the totals
 * every minute and when it is closed. The totals do not include the last minute
 * before a process was killed. If the directory was lost, they do not include
 * anything after the save that tnk_ledger_resume() finds.
 *
 * @return A promise of tnk_promise_ledger().
 * Rejects with: Caller (groups of error.h): TNK_EINVAL; TNK_ECONFLICT while the
 *   run is open elsewhere; TNK_EFILE (error->cause is libuv's code) if the file
 *   cannot be read or written.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_ledger_open(tnk_service_t *service,
                                       const char *directory,
                                       const tnk_ledger_options_t *options);

/**
 * Get the ledger that tnk_ledger_open() opened. It lives until it or its
 * service is closed.
 *
 * @return NULL unless resolved with that type, or if the ledger was closed.
 * Thread: loop thread. Since: 0.1
 */
TNK_API tnk_ledger_t *tnk_promise_ledger(const tnk_promise_t *promise);

/** Get the number of saves. Thread: loop thread. Since: 0.1 */
TNK_API size_t tnk_ledger_count(const tnk_ledger_t *ledger);

/**
 * Get save @p index, in the order of the file.
 *
 * @return NULL if there is none. Lifetime: as long as the ledger.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_ledger_entry_t *tnk_ledger_entry(const tnk_ledger_t *ledger,
                                                   size_t index);

/**
 * Get the last save with a state, from which the run would resume. A save whose
 * state was deleted has none.
 *
 * @return NULL if there is none. Lifetime: as long as the ledger.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_ledger_entry_t *tnk_ledger_last(const tnk_ledger_t *ledger);

/** Options of a save. 0 or NULL selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_LEDGER_SAVE_INIT. */
  /** Name of the checkpoint: letters, digits, "_" and "-"; at most 128. NULL
   * means a number. In a resumed run, "-a2" and so on is appended. If the name
   * may already exist, a number is appended. */
  const char *name;
  /** Everything that the program needs to resume: indices, seeds, the weights
   * of samples in flight and so on. UTF-8, at most 2048 bytes. Also stored with
   * the checkpoint. */
  const char *cursor;
  uint64_t batch; /**< Next batch to train on; 0 means the number of steps. */
  uint64_t epoch;
  uint64_t ttl_seconds;      /**< 0 means the value of the ledger's options. */
  tnk_choice_t with_sampler; /**< Also save sampler weights. Default: no. */
  tnk_choice_t is_final;     /**< The run ends with this save. Default: no. */
  /** Later saves replace it. Default: as in the ledger's options, except for
   * the save that ends the run. TNK_NO keeps it until deleted or expired. */
  tnk_choice_t is_rolling;
  uint32_t reserved;
} tnk_ledger_save_t;

#define TNK_LEDGER_SAVE_INIT TNK_SIZED(tnk_ledger_save_t)

/**
 * Save the state of a model and record it in the ledger. Protocol: training,
 * JSON training requests.
 *
 * Order: the save takes its place in the sequence of @p training with this
 * call. Later calls wait until the intent to save is on disk. Saves are
 * recorded in the order of their calls.
 *
 * If the service rejects the name because it exists, an earlier attempt of the
 * same request may have succeeded. The library then looks for it in the list of
 * checkpoints, and resolves if it is there.
 *
 * @param training  A client of the ledger's service.
 * @param save      NULL for defaults. Copied.
 *
 * Completion: cancel ends the save unless the service has already saved.
 * @return A promise of tnk_promise_entry().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h);
 *   TNK_EFILE (error->cause is libuv's code) if a line cannot be written or the
 *   file was removed; TNK_ECONFLICT if another program has written to the file,
 *   for example on a machine that does not see this machine's locks. If the
 *   first line failed, nothing was saved. If the state was saved and the
 * sampler weights were not, the state is recorded. Thread: loop thread.
 * Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_ledger_save(tnk_ledger_t *ledger,
                                       tnk_training_t *training,
                                       const tnk_ledger_save_t *save);

/**
 * Get the result of tnk_ledger_save().
 *
 * @return NULL unless resolved with that type. Lifetime: as long as the
 * promise.
 * Thread: loop thread, or taker. Since: 0.1
 */
TNK_API const tnk_ledger_entry_t *
tnk_promise_entry(const tnk_promise_t *promise);

/**
 * Check whether a save is due according to the options of the ledger. Steps
 * count when they are called, because the next save contains them. After a save
 * that failed, one is due.
 *
 * The ledger logs a warning if the last state is about to expire without a
 * later save: once per state, after three quarters of its lifetime, or earlier
 * if saves are too rare for it.
 *
 * @return 1 or 0. 0 for NULL, a closed ledger, and a model of another service.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_ledger_due(const tnk_ledger_t *ledger,
                           const tnk_training_t *training);

/** Options of tnk_ledger_resume(). 0 selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_LEDGER_RESUME_INIT. */
  /** TNK_NO restores only the weights and resets the optimizer. Default: yes.
   */
  tnk_choice_t with_optimizer;
  uint32_t reserved;
} tnk_ledger_resume_t;

#define TNK_LEDGER_RESUME_INIT TNK_SIZED(tnk_ledger_resume_t)

/**
 * Resume the run: create a model from its last state. Protocol: session,
 * creating a training client.
 *
 * If a save was intended and its outcome is unknown, the library looks for it
 * in the service's list of checkpoints. If it is there, it is recorded and is
 * the last state. If it is not there, the file says so, and no later call
 * resumes from it: the service may still complete it, but the run has then
 * continued from an older state. If the list cannot be read and may have such
 * a state, the call rejects.
 *
 * A state that no longer exists is skipped with a log message, and
 * tnk_ledger_resumed() names the state that was used. Any other failure rejects
 * the call, so that a run never continues from an older state because the
 * service had a failure.
 *
 * @param options  NULL for defaults. Copied.
 *
 * @return A promise of tnk_promise_training(), as tnk_service_restore().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ENOTFOUND if there is no state, because the run begins. TNK_EFILE
 *   (error->cause is libuv's code).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_ledger_resume(tnk_ledger_t *ledger,
                                         const tnk_ledger_resume_t *options);

/**
 * Get the save from which the last tnk_ledger_resume() has resumed.
 *
 * @return NULL if none has resolved. Lifetime: as long as the ledger.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_ledger_entry_t *
tnk_ledger_resumed(const tnk_ledger_t *ledger);

/**
 * Close the ledger, so that another program can open it. Saves in progress
 * reject with TNK_ECLOSED. Closing the service also closes its ledgers.
 *
 * @param ledger  NULL does nothing and does not call @p cb. A second close does
 *                nothing.
 * @param cb      Called when the file is closed. May be NULL.
 * @param user    Passed to @p cb.
 * Never fails and allocates nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_ledger_close(tnk_ledger_t *ledger, tnk_close_cb cb,
                              void *user);

#ifdef __cplusplus
}
#endif

#endif
