/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_LEDGER_LEDGER_H
#define TNK_LIB_LEDGER_LEDGER_H

#include "lib/base/arena.h"
#include "lib/client/session/session.h"
#include "lib/client/train/training.h"
#include "lib/io/loop/promise.h"
#include "lib/ledger/line.h"
#include "lib/ledger/pen.h"
#include "tnk/ledger.h"

/* The ledgers of a service. */
typedef struct {
  tnk__session_t *session;
  const tnk__ledger_disk_t *disk; /* tests replace it */
  tnk__list_t open;               /* includes ledgers that are being opened */
} tnk__ledgers_t;

/* A save: the public entry, and its internal fields. */
typedef struct {
  tnk_ledger_entry_t pub;
  int64_t attempt; /* 0: the line was not written by tnk */
  int64_t save;
  int is_swept; /* its state was deleted, or deleting it was tried */
} tnk__ledger_entry_t;

/* The deletion of a state in progress: policy.c. */
typedef struct tnk__ledger_sweep tnk__ledger_sweep_t;

/* When to save, how long a save stays, and the state for both decisions. */
typedef struct {
  uint64_t every_steps;
  uint64_t every_ms;
  uint64_t ttl_s;
  uint64_t n_rolling;
  uint64_t last_steps; /* steps of the last save, counted from its call */
  uint64_t last_ms;    /* time of the last save */
  int has_failed;      /* the last save, or a later one, has failed */
  int has_ended;       /* the last save is final */
  const tnk__ledger_entry_t *watched; /* the last state; NULL: none yet */
  uint64_t watched_ms;                /* when it was noted */
  uint64_t expires_ms;                /* when it expires */
  tnk__timer_t expiring;              /* warns before it expires */
  tnk__ledger_sweep_t *sweep;         /* NULL: no deletion in progress */
} tnk__ledger_policy_t;

/* A list entry with a name, in the ledger's arena. */
typedef struct tnk__ledger_name {
  struct tnk__ledger_name *next;
  const char *text;
} tnk__ledger_name_t;

/* An operation in progress on a ledger. Embedded in the operation. */
typedef struct tnk__ledger_job {
  tnk__list_t link; /* in ledger->jobs, in the order of the calls */
  const char *name; /* name of the save; NULL: the operation does not save */
  /* Ends the job; the caller keeps `error`. */
  void (*abort)(struct tnk__ledger_job *self, tnk__error_t *error);
  /* Called when the job becomes the first; may be NULL. */
  void (*first)(struct tnk__ledger_job *self);
} tnk__ledger_job_t;

/*
 * A ledger. Opening: the pool reads the file. Open. Closing begins with
 * tnk__ledger_close() or the end of the service. It lasts until the pool has
 * written the last line, if any, and released the file. Then the ledger is
 * closed and the caller is notified. A closed ledger refuses every call. It is
 * freed with the last promise that refers to it.
 */
struct tnk_ledger {
  uint32_t magic;
  uint32_t refs;           /* one until closed, one for each promise */
  tnk__list_t link;        /* in ledgers->open */
  tnk__ledgers_t *ledgers; /* NULL once it is closed */
  tnk__session_t *session; /* NULL once it is closed */
  tnk_promise_t *kin;      /* for refusals after the service's end */
  tnk_promise_t *opening;  /* NULL: open, or opening was canceled */
  char *path;              /* path of the file */
  char *name;              /* name of the run; NULL: none */
  const tnk_ledger_entry_t *resumed; /* resumed entry, or NULL */
  tnk__ledger_policy_t policy;
  tnk__pen_t pen;
  tnk__work_t work; /* reads the file */
  int is_reading;
  int cause;
  size_t n_bad;  /* lines that could not be parsed */
  uint8_t *data; /* the contents at opening; strings point into it */
  tnk__arena_t arena;
  tnk__ledger_entry_t **entries;
  size_t n_entries;
  size_t cap_entries;
  /* Rolling saves without a result. The service may have made them later, so
   * their states are deleted at the end of the run. */
  tnk__ledger_entry_t **lost;
  size_t n_lost;
  size_t cap_lost;
  /* Intents that are newer than the last state and have no result line. */
  tnk__ledger_line_t *intents;
  size_t n_intents;
  tnk__ledger_name_t *names; /* names that the service may have */
  tnk__totals_t used;        /* use of the run, from the last line */
  tnk__totals_t told;        /* the service's use in a line so far */
  int64_t attempt;           /* number of the current attempt */
  int64_t n_saves;           /* saves of this attempt */
  tnk__list_t jobs;
  int is_open; /* the file has been read */
  int has_last;
  int is_unnoted;       /* writing the counts to the disk failed */
  tnk__timer_t minute;  /* until the next write of the counts */
  tnk__buf_t last_text; /* allocated when the ledger opens */
  tnk__pen_line_t last_pen_line;
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
  tnk__deferred_t closed;
};

void tnk__ledgers_init(tnk__ledgers_t *ledgers, tnk__session_t *session);
/* Close all ledgers and their operations. Call it before the clients are
 * closed. Allocates nothing. */
void tnk__ledgers_shut(tnk__ledgers_t *ledgers);
/* Implements tnk_ledger_open(); copies all arguments. */
tnk_promise_t *tnk__ledger_open(tnk__ledgers_t *ledgers, const char *directory,
                                const tnk_ledger_options_t *options);
/* The error for a failed disk operation. The message begins with `op`. */
tnk__error_t *tnk__ledger_disk_error(const tnk_ledger_t *ledger, const char *op,
                                     int cause);
void tnk__ledger_close(tnk_ledger_t *ledger, tnk_close_cb cb, void *user);
/* Add a save to the entries; all is copied. Returns NULL without memory. */
tnk__ledger_entry_t *tnk__ledger_keep(tnk_ledger_t *ledger,
                                      const tnk__ledger_line_t *line);
/* Note that the run continues without a save, which the service may still
 * complete. The line is copied. Without memory its state stays. */
void tnk__ledger_lose(tnk_ledger_t *ledger, const tnk__ledger_line_t *line);
/* Note that the save of an intent may exist although no result arrived or was
 * written. The line is copied. Without memory only the file records it. */
void tnk__ledger_doubt(tnk_ledger_t *ledger, const tnk__ledger_line_t *line);
/* Read the counts of a line, and whether it has any. */
tnk__totals_t tnk__ledger_used(const tnk__ledger_line_t *line);
int tnk__ledger_tells_used(const tnk__ledger_line_t *line);
/* Initialize the run's totals from the ledger. */
void tnk__ledger_begin_used(tnk_ledger_t *ledger);
void tnk__ledger_tell_used(tnk__ledger_line_t *line, tnk_ledger_t *ledger);
/* The line with the counts could not be written: count them again. */
void tnk__ledger_forget_told(tnk_ledger_t *ledger);
/* Start writing counts that no line contains yet, once a minute. */
void tnk__ledger_note_used(tnk_ledger_t *ledger);
/* Allocate the last line in advance. Returns 0 without memory. */
int tnk__ledger_prepare_last(tnk_ledger_t *ledger);
/* On closing, write the counts that no line contains. Returns 1 if the pen is
 * busy with that line. */
int tnk__ledger_write_last(tnk_ledger_t *ledger);
/* Add a job to the list, or remove it. */
void tnk__ledger_job_enter(tnk_ledger_t *ledger, tnk__ledger_job_t *job);
void tnk__ledger_job_leave(tnk_ledger_t *ledger, tnk__ledger_job_t *job);

/* ---- Saves: save.c ---- */

/* Implements tnk_ledger_save(). Arguments have passed their checks. */
tnk_promise_t *tnk__ledger_save(tnk_ledger_t *ledger, tnk_training_t *training,
                                const tnk_ledger_save_t *save);
/* The entry in a promise's value. */
const tnk_ledger_entry_t *tnk__ledger_entry_value(const void *value);

/* ---- Resuming: resume.c ---- */

/* Implements tnk_ledger_resume(). */
tnk_promise_t *tnk__ledger_resume(tnk_ledger_t *ledger, int with_optimizer);

/* ---- When and for how long: policy.c ---- */

/* Implements tnk_ledger_due(). */
int tnk__ledger_due(const tnk_ledger_t *ledger, const tnk_training_t *training);
/* Start counting at a save or a restored state with n_steps steps. */
void tnk__ledger_policy_begin(tnk_ledger_t *ledger, uint64_t n_steps);
/* Set whether a save is final or rolling, and how long it stays. */
void tnk__ledger_policy_apply(const tnk__ledger_policy_t *policy,
                              tnk__ledger_line_t *line,
                              const tnk_ledger_save_t *how);
/* Log a warning before this state, the last one, expires. */
void tnk__ledger_watch(tnk_ledger_t *ledger, tnk__ledger_entry_t *entry);
/* Call this after a save was noted. It handles the save's expiry and the saves
 * that it replaces. */
void tnk__ledger_noted(tnk_ledger_t *ledger, tnk__ledger_entry_t *entry);
/* Call this after the ledger was opened. If the run has ended, the rolling
 * saves are deleted that a killed program has left. */
void tnk__ledger_policy_open(tnk_ledger_t *ledger);
/* End the policy when the ledger closes. Allocates nothing. */
void tnk__ledger_policy_end(tnk_ledger_t *ledger);

#endif
