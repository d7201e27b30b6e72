#ifndef TNK_LEDGER_H
#define TNK_LEDGER_H

#include "tnk/service.h"
#include "tnk/usage.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The ledger of a run: a directory that knows what was saved, and where in the
 * run that was.
 *
 *     tnk_promise_t *p = tnk_ledger_open(service, "runs/first", NULL);
 *     tnk_must_keep(p);
 *     tnk_ledger_t *ledger = tnk_promise_ledger(p);
 *     p = tnk_ledger_resume(ledger, NULL);
 *     if (tnk_wait(p) == TNK_OK)
 *       ... go on at tnk_ledger_resumed(ledger)->cursor ...
 *     else if (tnk_promise_status(p) == TNK_ENOTFOUND)
 *       ... make a model: the run begins ...
 *     tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
 *     how.cursor = "{\"next\": 4711, \"seed\": 7}";
 *     tnk_promise_t *saved = tnk_ledger_save(ledger, training, &how);
 *     if (tnk_wait(saved) == TNK_OK)
 *       printf("%s has %llu steps\n", tnk_promise_entry(saved)->state_path,
 *              (unsigned long long)tnk_promise_entry(saved)->n_steps);
 *
 * What is about to be saved is on the disk before the service is asked, and
 * what was saved before the promise resolves: a program that is killed at any
 * moment loses no checkpoint. How many steps a state contains is counted in the
 * sequence of operations that the service gets, and not in the loop of the
 * program, which may have called others by then.
 *
 * When to save is said once, as the ledger is opened, and asked for wherever
 * the model may be saved:
 *
 *     tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
 *     options.every_steps = 20;
 *     options.every_seconds = 30 * 60;
 *     options.ttl_seconds = 7 * 24 * 3600;
 *     ...
 *     if (tnk_ledger_due(ledger, training))
 *       tnk_must(tnk_ledger_save(ledger, training, &how));
 *
 * The file, checkpoints.jsonl, has the form of the Tinker cookbook's, whose
 * lines are read as well: `batch` is the number of steps unless the caller says
 * otherwise. A line that was cut off by the end
 * of a program counts for nothing and is taken away. A line that cannot be read
 * is told in the log and let be.
 */

/** The ledger of one run. */
typedef struct tnk_ledger tnk_ledger_t;

/**
 * A save, as the ledger has it. Texts are NULL when there is none. Made by the
 * library only, so later versions may append members.
 */
typedef struct {
  const char *name;         /**< At the service; never NULL. */
  const char *state_path;   /**< Weights with the optimizer, to go on from. */
  const char *sampler_path; /**< Weights to sample from. */
  const char *cursor;       /**< The caller's, as it was given. */
  /** The whole line of the file, with what others have written there; of a save
   * of this program: NULL. */
  const char *json;
  int64_t batch; /**< The next one to train on; -1: not told. */
  int64_t epoch; /**< -1: not told. */
  /** Steps of the optimizer since the run began, if it is gone on with by
   * tnk_ledger_resume(); of a line of others: its batch. */
  uint64_t n_steps;
  uint64_t n_passes; /**< Passes with gradients since the run began. */
  int64_t time_s;    /**< Unix time of the save; 0: not told. */
  int64_t expires_s; /**< From when the service may remove it; 0: never, or not
                          told. */
  int is_final;      /**< 1: the run has ended with it. */
  int is_rolling;    /**< 1: later ones replace it. */
  /** What the run had used when it was saved, with earlier programs; NULL: not
   * told. */
  const tnk_totals_t *used;
  int is_deleted; /**< 1: it was rolling, and its state has been deleted. */
} tnk_ledger_entry_t;

/** How to keep a ledger. Zero is the default of every member. */
typedef struct {
  size_t size; /**< Set by TNK_LEDGER_OPTIONS_INIT. */
  /** A name that no other run of the same key has; at most 256 bytes. It goes
   * with each checkpoint, so that a run whose directory is lost is found at the
   * service. NULL: it would not be. */
  const char *run;
  /** When tnk_ledger_due() says that a save is due: when the model has gone
   * past a multiple of so many optimizer steps since the last save ... */
  uint64_t every_steps;
  /** ... or when that is so long ago and the model has gone on. */
  uint64_t every_seconds;
  /** How long saves stay that say nothing themselves; 0: until deleted. What
   * ends the run always stays. */
  uint64_t ttl_seconds;
  /** Saves are rolling, and so many of them stay: when a later one is noted,
   * the state of the one that is too many is deleted at the service, and when
   * the run has ended with a save, of all of them. Weights to sample from are
   * let be. 0: no save is, unless it says so itself, and then 1 stays. */
  uint64_t n_rolling;
} tnk_ledger_options_t;

#define TNK_LEDGER_OPTIONS_INIT TNK_SIZED(tnk_ledger_options_t)

/**
 * Open the ledger of a run. One run is open once, in all programs.
 *
 * @param service    Owns the ledger, as it owns a training client.
 * @param directory  Is made, with what is missing on the way to it. Copied.
 * @param options    NULL for defaults. Copied.
 *
 * The file also keeps what the run has used, with each save. From here on the
 * run's totals begin with the last of them (tnk_service_run_totals()), unless a
 * budget says what was used before. They are those of the service, so let one
 * that has several ledgers say so itself. What was used after the last save is
 * noted each minute and when the ledger closes; what a program used in the last
 * minute before it was killed is not in them, nor, of a run whose directory is
 * lost, what it used after the save that tnk_ledger_resume() finds.
 *
 * @return A promise of tnk_promise_ledger().
 * Rejects with: Caller (groups of error.h): TNK_EINVAL; TNK_ECONFLICT while the
 *   run is open elsewhere; TNK_EFILE (error->cause is libuv's code) when the
 *   file cannot be read or written.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_ledger_open(tnk_service_t *service,
                                       const char *directory,
                                       const tnk_ledger_options_t *options);

/**
 * The ledger that tnk_ledger_open() has opened. It lives until it or its
 * service is closed.
 *
 * @return NULL unless resolved with that type, or when it has been closed.
 * Thread: loop thread. Since: 0.1
 */
TNK_API tnk_ledger_t *tnk_promise_ledger(const tnk_promise_t *promise);

/** How many saves the ledger has. Thread: loop thread. Since: 0.1 */
TNK_API size_t tnk_ledger_count(const tnk_ledger_t *ledger);

/**
 * Save @p index, in the order of the file.
 *
 * @return NULL when there is none. Lifetime: that of the ledger.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_ledger_entry_t *tnk_ledger_entry(const tnk_ledger_t *ledger,
                                                   size_t index);

/**
 * The last save that has a state, from which the run would go on. One whose
 * state was deleted has none.
 *
 * @return NULL when there is none. Lifetime: that of the ledger.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_ledger_entry_t *tnk_ledger_last(const tnk_ledger_t *ledger);

/** A save. Zero is the default of every member. */
typedef struct {
  size_t size; /**< Set by TNK_LEDGER_SAVE_INIT. */
  /** What the checkpoint is called, of letters, digits, "_" and "-"; at most
   * 128. NULL: a number. When the run is begun again "-a2" and so on follows,
   * and a name that the ledger has already, or that a save may have of which
   * nothing was heard, gets a number as well. */
  const char *name;
  /** Whatever it takes to go on: indices, seeds, the weights behind samples
   * that are in flight ... UTF-8, at most 2048 bytes. Goes with the checkpoint
   * too. */
  const char *cursor;
  uint64_t batch; /**< The next one to train on; 0: the number of steps. */
  uint64_t epoch;
  uint64_t ttl_seconds; /**< 0: as the ledger's options say. */
  tnk_choice_t
      with_sampler;      /**< Save weights to sample from too. Default no. */
  tnk_choice_t is_final; /**< The run ends with it. Default no. */
  /** Later ones replace it. Default: as the ledger's options say, but for what
   * ends the run. TNK_NO: it stays until deleted, or as long as it says. */
  tnk_choice_t is_rolling;
  uint32_t reserved;
} tnk_ledger_save_t;

#define TNK_LEDGER_SAVE_INIT TNK_SIZED(tnk_ledger_save_t)

/**
 * Save the state of a model, and note it in the ledger. Protocol: training,
 * JSON training requests.
 *
 * Order: the save has its place in the sequence of @p training from this call
 * on; what is called after it waits until the disk knows that it is about to be
 * made. Saves are noted in the order of their calls.
 *
 * @param training  Of the ledger's service.
 * @param save      NULL for defaults. Copied.
 *
 * A service that refuses the name of a save as one that it has already has run
 * an earlier sending of the same request: then the list of what it keeps says
 * so, and that is a success.
 *
 * Completion: cancel ends it unless the service has saved already.
 * @return A promise of tnk_promise_entry().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h);
 *   TNK_EFILE (error->cause is libuv's code): the disk refuses a line, or the
 *   file has been removed; TNK_ECONFLICT: somebody else has written to it, as
 *   from a machine that does not see the locks of this one. If it was the first
 *   line, nothing was saved. Where the state is saved and weights
 *   to sample from are not, the state is noted.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_ledger_save(tnk_ledger_t *ledger,
                                       tnk_training_t *training,
                                       const tnk_ledger_save_t *save);

/**
 * The result of tnk_ledger_save().
 *
 * @return NULL unless resolved with that type. Lifetime: that of the promise.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_ledger_entry_t *
tnk_promise_entry(const tnk_promise_t *promise);

/**
 * Whether it is time to save, as the options of the ledger say. Steps count
 * when they are called: a save that is called next contains them. After a save
 * that has failed one is due.
 *
 * That the last state expires before the next save, the log says at the level
 * of warnings: once a state, when three quarters of its time are over and no
 * save has followed, or as soon as saves are seen to come too rarely for it.
 *
 * @return 1, or 0: also for NULL, one that is closed, and a model of another
 *   service.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_ledger_due(const tnk_ledger_t *ledger,
                           const tnk_training_t *training);

/** How to go on. Zero is the default of every member. */
typedef struct {
  size_t size; /**< Set by TNK_LEDGER_RESUME_INIT. */
  /** TNK_NO: weights alone, so that the optimizer begins anew. Default yes. */
  tnk_choice_t with_optimizer;
  uint32_t reserved;
} tnk_ledger_resume_t;

#define TNK_LEDGER_RESUME_INIT TNK_SIZED(tnk_ledger_resume_t)

/**
 * Go on with the run: make a model from its last state. Protocol: session,
 * creating a training client.
 *
 * What a program that was killed had announced, or this one without hearing
 * what became of it, is looked for in the list of what the service keeps, is
 * noted if it is there, and is the last state then. A list that is refused ends
 * the call while it may have such a state.
 * A state that is not there any more is passed over, which the log tells, and
 * tnk_ledger_resumed() says which one it is in the end. A failure that does not
 * say that a state is gone ends the call: nobody goes on from an older state
 * because a service is out of order.
 *
 * @param options  NULL for defaults. Copied.
 *
 * @return A promise of tnk_promise_training(), as tnk_service_restore().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ENOTFOUND when there is no state: the run begins. TNK_EFILE
 *   (error->cause is libuv's code).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_ledger_resume(tnk_ledger_t *ledger,
                                         const tnk_ledger_resume_t *options);

/**
 * What the last tnk_ledger_resume() has gone on from.
 *
 * @return NULL: none has resolved. Lifetime: that of the ledger.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_ledger_entry_t *
tnk_ledger_resumed(const tnk_ledger_t *ledger);

/**
 * Close the ledger; another program may open it then. Saves under way reject
 * with TNK_ECLOSED. Closing the service closes it too.
 *
 * @param ledger  NULL calls nothing. A second close does nothing and calls
 *                nothing.
 * @param cb      May be NULL. Called when the file is closed.
 * @param user    Handed to @p cb.
 * Never fails and allocates nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_ledger_close(tnk_ledger_t *ledger, tnk_close_cb cb,
                              void *user);

#ifdef __cplusplus
}
#endif

#endif
