#ifndef TNK_LIB_FILES_WEIGHTS_JOB_H
#define TNK_LIB_FILES_WEIGHTS_JOB_H

#include "lib/base/arena.h"
#include "lib/files/age/key.h"
#include "lib/files/fetch/download.h"
#include "lib/files/weights/place.h"
#include "lib/files/weights/sweep.h"
#include "lib/files/weights/weights.h"
#include "lib/io/loop/promise.h"
#include "lib/io/loop/work.h"
#include "tnk/rest.h"

/*
 * One download of weights.
 *
 * States, one after the other: OPENING the place (pool, again after a while
 * when it is locked); EXPORTING what has no files of its own, see export.c;
 * ASKING for the URLs; MEASURING what is there of each file
 * (pool); LOADING, in which URLs are asked for anew now and then; UNSEALING
 * what is encrypted, if there is a key, or UNPACKING what came as an archive
 * (pool); COMMITTING (pool); then it is over. steps.c has the order, files.c
 * what happens while LOADING.
 *
 * It is freed when it is over and neither the pool nor a promise that it waits
 * for knows it any more.
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

/* One file. */
typedef struct {
  const char *name;
  char *url; /* wiped when it is replaced */
  char *validator;
  uint64_t n_total;   /* UINT64_MAX: not known */
  uint64_t n_bytes;   /* that are there */
  uint32_t n_refused; /* URLs in a row that brought nothing */
  uint8_t is_stale;   /* its URL was refused */
  uint8_t is_loading;
  uint8_t is_done;
} tnk__weights_file_t;

struct tnk__weights_job;
struct tnk__unpack;

/* What begins its sentences, and what an export is called. */
#define TNK__WEIGHTS_NAME "download"

/* A place for one file that is loaded. */
typedef struct {
  tnk__download_t download;
  struct tnk__weights_job *job;
  tnk__weights_file_t *file; /* NULL: it is free */
  uint64_t n_fetched;        /* of the download, as far as counted */
} tnk__weights_slot_t;

typedef struct tnk__weights_job {
  tnk__list_t link; /* in weights->jobs, until it is over */
  tnk__weights_t *weights;
  tnk_promise_t *promise; /* NULL: it is over */
  tnk__weights_state_t state;
  /* What the steps set at its making. It is over: stop what goes on ... */
  void (*stop)(struct tnk__weights_job *self);
  /* ... and what was still waited for then has come. */
  void (*late)(struct tnk__weights_job *self);
  /* Ask for the URLs, anew while it is LOADING. */
  void (*sign)(struct tnk__weights_job *self);
  /* All files are complete: the last step. */
  void (*commit)(struct tnk__weights_job *self);
  tnk_weights_options_t options;
  tnk__arena_t arena;  /* of what follows */
  const char *source;  /* the path at the service */
  const char *address; /* of the files there; the source, or an export of it */
  const char *directory;
  tnk__weights_file_t *files; /* by name */
  size_t n_files;
  size_t n_given;                     /* files that the directory gets */
  char names[TNK__SHA256_DIGITS + 1]; /* their sum */
  tnk__weights_slot_t *slots;
  size_t n_slots;
  struct tnk__weights_result *result;
  tnk__timer_t deadline;
  tnk__timer_t pause; /* until the place is tried again */
  uint32_t n_tries;
  /* The pool's, while it is busy. */
  tnk__work_t work;
  int is_busy;
  void (*run)(struct tnk__weights_job *self);
  void (*ran)(struct tnk__weights_job *self);
  tnk__place_t *place;
  tnk__place_found_t found;
  int cause;
  int left; /* something of the old directory */
  /* The service, while it is asked. */
  tnk_promise_t *asked;
  tnk__then_t then;
  int is_answered; /* it is being told */
  void (*answered)(struct tnk__weights_job *self, tnk_promise_t *promise,
                   int status);
  int64_t renew_s; /* when URLs are too old to begin with; INT64_MAX: never */
  /* The export. */
  int is_training; /* the source has to be exported */
  int is_found;    /* an earlier download has done that */
  int is_saved;
  int sweeps;  /* there is one, or may be */
  int is_late; /* it is over, and waits for it to be saved */
  tnk__weights_sweep_t *sweep;
  tnk_promise_t *restored; /* holds the model */
  /* The archive. */
  int is_archive;
  tnk__error_t *refused; /* why it is tried, or NULL */
  struct tnk__unpack *unpack;
  /* Set with it: frees it, when nobody knows the job any more. */
  void (*forget_unpack)(struct tnk__weights_job *self);
  /* What opens files, and what became of the last one. */
  int has_identity;
  uint8_t identity[TNK__AGE_KEY];
  size_t n_opened;
  uint64_t n_opened_bytes;
  int opened_err;
  const char *opened_why;
  /* How far it is. */
  size_t n_done;
  uint64_t n_bytes;
  uint64_t n_fetched;
  uint64_t told_ms;
  uint64_t rate_ms; /* where the rate is counted from, and from what ... */
  uint64_t rate_bytes;
  uint64_t next_ms; /* ... and from where soon */
  uint64_t next_bytes;
} tnk__weights_job_t;

/* End it. `error` is taken. */
void tnk__weights_job_fail(tnk__weights_job_t *job, tnk__error_t *error);
/* The same with our name in front of it; `error` stays the caller's. */
void tnk__weights_job_fail_about(tnk__weights_job_t *job, tnk__error_t *error);
/* The same with "download: ..." */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void tnk__weights_job_fail_with(tnk__weights_job_t *job, int code,
                                const char *format, ...);
/* Do something in the pool, then `ran`, unless it is over by then. */
void tnk__weights_job_work(tnk__weights_job_t *job,
                           void (*run)(tnk__weights_job_t *self),
                           void (*ran)(tnk__weights_job_t *self));
/* Wait for a promise, whose reference is taken: `answered` comes once, with
 * it, unless the job is over by then. */
void tnk__weights_job_ask(tnk__weights_job_t *job, tnk_promise_t *promise,
                          void (*answered)(tnk__weights_job_t *self,
                                           tnk_promise_t *promise, int status));
/* What the disk refuses; `why` is about which path. */
void tnk__weights_job_fail_place(tnk__weights_job_t *job, int cause,
                                 const char *why);
/* Make the result, now: when the directory has its name nothing may fail any
 * more. TNK_OK or TNK_ENOMEM. */
int tnk__weights_job_will_succeed(tnk__weights_job_t *job);
/* End it with that. */
void tnk__weights_job_succeed(tnk__weights_job_t *job);

/* What it was asked for cannot be had file by file, for this reason: have the
 * archive of the source instead. 0: it may not, or has been tried. */
int tnk__weights_job_try_archive(tnk__weights_job_t *job, tnk__error_t *why);

/* ---- steps.c ---- */

/* Begin one; see weights.h. */
tnk_promise_t *tnk__weights_job_start(tnk__weights_t *weights, const char *path,
                                      const char *directory,
                                      const tnk_weights_options_t *options,
                                      const uint8_t *identity);

/* ---- export.c ---- */

/* How long an export is kept by the service if nobody removes it. */
#define TNK__WEIGHTS_EXPORT_S 3600

/* Have the weights of a checkpoint to train from saved for other programs; then
 * job->address says where, and the job goes on to ask for the URLs. */
void tnk__weights_export(tnk__weights_job_t *job);
/* Let go of the model that they were loaded into. */
void tnk__weights_export_stop(tnk__weights_job_t *job);

/* ---- unseal.c ---- */

/* The arena of one file. */
#define TNK__WEIGHTS_PATHS ((size_t)32 * 1024)

/* Open what is encrypted; then the job is committed. */
void tnk__weights_unseal(tnk__weights_job_t *job);

/* ---- unpack.c ---- */

/* Unpack what came as one archive; then the job is committed. It never ends
 * inside of this call. */
void tnk__weights_unpack(tnk__weights_job_t *job);

/* ---- files.c ---- */

/* Take the URLs of an answer, the first ones or those that replace them. 1; or
 * 0, and the job is over. */
int tnk__weights_files_take(tnk__weights_job_t *job,
                            const tnk_external_files_t *from);
/* See what is there of the files by what the journal says, and begin anew where
 * it speaks of others. For the pool: 0, or libuv's code. */
int tnk__weights_files_measure(tnk__weights_job_t *job);
/* Begin to load, or go on. The job may be over afterwards. */
void tnk__weights_files_load(tnk__weights_job_t *job);
/* Stop loading. */
void tnk__weights_files_stop(tnk__weights_job_t *job);
void tnk__weights_files_explain(const tnk__weights_job_t *job,
                                tnk__text_t *out);

#endif
