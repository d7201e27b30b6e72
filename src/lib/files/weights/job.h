/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_WEIGHTS_JOB_H
#define TNK_LIB_FILES_WEIGHTS_JOB_H

#include "lib/base/arena.h"
#include "lib/client/call/call.h"
#include "lib/files/age/key.h"
#include "lib/files/fetch/download.h"
#include "lib/files/weights/place.h"
#include "lib/files/weights/weights.h"
#include "lib/io/loop/promise.h"
#include "lib/io/loop/work.h"
#include "tnk/rest.h"

/*
 * Removes an export. It is allocated before the export exists, so that lack of
 * memory cannot prevent the removal. States: ready, then waiting for an answer,
 * which frees it. It continues after the end of its download, also while the
 * service closes.
 */
typedef struct tnk__weights_sweep tnk__weights_sweep_t;

/* Prepare the removal of this path; it replaces one that was not started.
 * Returns TNK_OK, or TNK_ENOMEM and *sweep is NULL. */
int tnk__weights_sweep_prepare(tnk__weights_sweep_t **sweep,
                               tnk__weights_t *weights, const char *path);
/* Free one that was not started; it may be NULL. */
void tnk__weights_sweep_free(tnk__weights_sweep_t *sweep);
void tnk__weights_sweep_start(tnk__weights_sweep_t *sweep);
/* Stop all that wait for an answer. */
void tnk__weights_sweeps_stop(tnk__weights_t *weights);

/*
 * One download of weights.
 *
 * States, one after the other:
 *
 * - OPENING the place, on the pool; it is repeated while the place is locked
 * - EXPORTING a checkpoint without files, see export.c
 * - ASKING for the URLs
 * - MEASURING the files on the disk, on the pool
 * - LOADING, with new URLs when they expire, see files.c
 * - UNSEALING encrypted files if there is a key, or UNPACKING an archive, on
 *   the pool
 * - COMMITTING, on the pool; then it is over
 *
 * steps.c has the transitions.
 *
 * It is freed when it is over and neither the pool nor a pending promise uses
 * it.
 */
typedef enum {
  TNK__WEIGHTS_OPENING = 0,
  TNK__WEIGHTS_EXPORTING,
  TNK__WEIGHTS_ASKING,
  TNK__WEIGHTS_MEASURING,
  TNK__WEIGHTS_LOADING,
  TNK__WEIGHTS_UNSEALING,
  TNK__WEIGHTS_UNPACKING,
  TNK__WEIGHTS_COMMITTING
} tnk__weights_state_t;

/* One file of the download. */
typedef struct {
  const char *name;
  char *url; /* wiped when it is replaced */
  char *validator;
  uint64_t n_total;   /* UINT64_MAX: unknown */
  uint64_t n_bytes;   /* bytes on the disk */
  uint32_t n_refused; /* consecutive URLs that delivered nothing */
  uint8_t is_stale;   /* its URL was refused */
  uint8_t is_loading;
  uint8_t is_done;
} tnk__weights_file_t;

struct tnk__weights_job;
struct tnk__unpack;

/* Prefix of error messages, and the name of an export. */
#define TNK__WEIGHTS_NAME "download"

/* A slot for one file in transfer. */
typedef struct {
  tnk__download_t download;
  struct tnk__weights_job *job;
  tnk__weights_file_t *file; /* NULL: free */
  uint64_t n_fetched;        /* counted bytes of the transfer */
} tnk__weights_slot_t;

typedef struct tnk__weights_job {
  tnk__list_t link; /* in weights->jobs, until it is over */
  tnk__weights_t *weights;
  tnk_promise_t *promise; /* NULL: over */
  tnk__weights_state_t state;
  /* Set by steps.c. Stops all activity when the job is over. */
  void (*stop)(struct tnk__weights_job *self);
  /* Called if something that the job waited for arrives after its end. */
  void (*late)(struct tnk__weights_job *self);
  /* Requests the URLs; again while LOADING. */
  void (*sign)(struct tnk__weights_job *self);
  /* The last step, when all files are complete. */
  void (*commit)(struct tnk__weights_job *self);
  tnk_weights_options_t options;
  tnk__arena_t arena;  /* memory of the following members */
  const char *source;  /* path of the checkpoint */
  const char *address; /* path of the files: the source, or its export */
  const char *directory;
  tnk__weights_file_t *files; /* sorted by name */
  size_t n_files;
  size_t n_given;                     /* number of files in the result */
  char names[TNK__SHA256_DIGITS + 1]; /* checksum of the names */
  tnk__weights_slot_t *slots;
  size_t n_slots;
  struct tnk__weights_result *result;
  tnk__timer_t deadline;
  tnk__timer_t pause; /* before the lock is tried again */
  uint32_t n_tries;
  /* Owned by the pool while is_busy. */
  tnk__work_t work;
  int is_busy;
  void (*run)(struct tnk__weights_job *self);
  void (*ran)(struct tnk__weights_job *self);
  tnk__place_t *place;
  tnk__place_found_t found;
  int cause;
  int left; /* parts of the old directory remain */
  /* The pending promise. */
  tnk_promise_t *asked;
  tnk__then_t then;
  int is_answered; /* its callback is running */
  void (*answered)(struct tnk__weights_job *self, tnk_promise_t *promise,
                   int status);
  int64_t renew_s; /* when URLs are too old to start a file; INT64_MAX: never */
  /* State of the export. */
  int is_training; /* the source must be exported */
  int is_found;    /* an earlier download has exported it */
  int is_saved;
  int sweeps;  /* an export exists or may exist */
  int is_late; /* over, but the save is still pending */
  tnk__weights_sweep_t *sweep;
  tnk_promise_t *restored; /* holds the model */
  /* State of the archive. */
  int is_archive;
  tnk__error_t *refused; /* why the archive is used, or NULL */
  struct tnk__unpack *unpack;
  /* Set with it: frees it when the job is freed. */
  void (*forget_unpack)(struct tnk__weights_job *self);
  /* The key for decryption, and the error of the last file. */
  int has_identity;
  uint8_t identity[TNK__AGE_KEY];
  size_t n_opened;
  uint64_t n_opened_bytes;
  int opened_err;
  const char *opened_why;
  /* Progress. */
  size_t n_done;
  uint64_t n_bytes;
  uint64_t n_fetched;
  uint64_t told_ms;
  uint64_t rate_ms; /* start of the rate measurement, its bytes ... */
  uint64_t rate_bytes;
  uint64_t next_ms; /* ... and start of the next one */
  uint64_t next_bytes;
} tnk__weights_job_t;

/* End the job with an error. It takes ownership of `error`. */
void tnk__weights_job_fail(tnk__weights_job_t *job, tnk__error_t *error);
/* As above, with the job's name as a prefix; the caller keeps `error`. */
void tnk__weights_job_fail_about(tnk__weights_job_t *job, tnk__error_t *error);
/* As above, with the prefix "download: ". */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void tnk__weights_job_fail_with(tnk__weights_job_t *job, int code,
                                const char *format, ...);
/* Run a function on the pool, then call `ran` unless the job is over. */
void tnk__weights_job_work(tnk__weights_job_t *job,
                           void (*run)(tnk__weights_job_t *self),
                           void (*ran)(tnk__weights_job_t *self));
/* Wait for a promise and take its reference. `answered` is called once, unless
 * the job is over. */
void tnk__weights_job_ask(tnk__weights_job_t *job, tnk_promise_t *promise,
                          void (*answered)(tnk__weights_job_t *self,
                                           tnk_promise_t *promise, int status));
/* Fail with a disk error; `why` describes the path. */
void tnk__weights_job_fail_place(tnk__weights_job_t *job, int cause,
                                 const char *why);
/* Allocate the result now, because nothing may fail after the directory has its
 * name. Returns TNK_OK or TNK_ENOMEM. */
int tnk__weights_job_will_succeed(tnk__weights_job_t *job);
/* End the job with that result. */
void tnk__weights_job_succeed(tnk__weights_job_t *job);

/* The files are not available separately, for the reason `why`: download an
 * archive of the source instead. Returns 0 if that is not allowed or was
 * tried. */
int tnk__weights_job_try_archive(tnk__weights_job_t *job, tnk__error_t *why);

/* ---- steps.c ---- */

/* Start a download; see weights.h. */
tnk_promise_t *tnk__weights_job_start(tnk__weights_t *weights, const char *path,
                                      const char *directory,
                                      const tnk_weights_options_t *options,
                                      const uint8_t *identity);

/* ---- export.c ---- */

/* Lifetime of an export at the service, if it is not removed, in seconds. */
#define TNK__WEIGHTS_EXPORT_S 3600

/* Export a checkpoint of kind training. Then job->address is the path of the
 * export, and the job continues with the URLs. */
void tnk__weights_export(tnk__weights_job_t *job);
/* Release the model of the export. */
void tnk__weights_export_stop(tnk__weights_job_t *job);

/* ---- Decryption ---- */

/* Limit of the arena of one file. */
#define TNK__WEIGHTS_PATHS ((size_t)32 * 1024)

/* Decrypt encrypted files, then commit. */
void tnk__weights_unseal(tnk__weights_job_t *job);

/* ---- unpack.c ---- */

/* Unpack the archive, then commit. The job never ends inside this call. */
void tnk__weights_unpack(tnk__weights_job_t *job);

/* ---- files.c ---- */

/* Set the URLs from an answer, the first or new ones. Returns 1, or 0 if the
 * job is over. */
int tnk__weights_files_take(tnk__weights_job_t *job,
                            const tnk_external_files_t *from);
/* Compare the files on the disk with the journal. Start over if it describes
 * other files. Runs on the pool. Returns 0 or libuv's error code. */
int tnk__weights_files_measure(tnk__weights_job_t *job);
/* Start or continue the transfers. The job may be over afterwards. */
void tnk__weights_files_load(tnk__weights_job_t *job);
/* Stop the transfers. */
void tnk__weights_files_stop(tnk__weights_job_t *job);
void tnk__weights_files_explain(const tnk__weights_job_t *job,
                                tnk__text_t *out);

#endif
