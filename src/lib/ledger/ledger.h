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
  const tnk__ledger_disk_t *disk; /* tests put theirs here */
  tnk__list_t open;               /* and those that are being opened */
} tnk__ledgers_t;

/* A save, as callers see it, and what only we need. */
typedef struct {
  tnk_ledger_entry_t pub;
  int64_t attempt; /* 0: not of ours */
  int64_t save;
  int is_swept; /* its state has been deleted, or that was tried */
} tnk__ledger_entry_t;

/* The deletion of a state, while it goes on: policy.c. */
typedef struct tnk__ledger_sweep tnk__ledger_sweep_t;

/* When to save and how long that stays, and what it was decided by. */
typedef struct {
  uint64_t every_steps;
  uint64_t every_ms;
  uint64_t ttl_s;
  uint64_t n_rolling;
  uint64_t last_steps; /* that the last save has, once it was called */
  uint64_t last_ms;    /* when that was */
  int has_failed;      /* that one, or one after it */
  int has_ended;       /* the last state ends the run */
  const tnk__ledger_entry_t *watched; /* the last state; NULL: none yet */
  uint64_t watched_ms;                /* since when it is */
  uint64_t expires_ms;                /* until when */
  tnk__timer_t expiring;              /* it soon will */
  tnk__ledger_sweep_t *sweep;         /* NULL: nothing is being deleted */
} tnk__ledger_policy_t;

/* One of a list of names, in the arena of a ledger. */
typedef struct tnk__ledger_name {
  struct tnk__ledger_name *next;
  const char *text;
} tnk__ledger_name_t;

/* Something that goes on with a ledger. Embedded in it. */
typedef struct tnk__ledger_job {
  tnk__list_t link; /* in ledger->jobs, in the order of the calls */
  const char *name; /* that a save gives; NULL: it is none */
  /* End it; `error` stays the caller's. */
  void (*abort)(struct tnk__ledger_job *self, tnk__error_t *error);
  /* It is the first now; may be NULL. */
  void (*first)(struct tnk__ledger_job *self);
} tnk__ledger_job_t;

/*
 * A ledger. Opening: the pool reads the file. Open. Closing, from
 * tnk__ledger_close() or the end of the service until the pool has written the
 * last line, if there is one, and let go of the file; then closed, and the
 * caller is told: what is left refuses every call, and is freed with the last
 * promise that shows it.
 */
struct tnk_ledger {
  uint32_t magic;
  uint32_t refs;           /* one until it is closed, one a promise */
  tnk__list_t link;        /* in ledgers->open */
  tnk__ledgers_t *ledgers; /* NULL once it is closed */
  tnk__session_t *session; /* likewise */
  tnk_promise_t *kin;      /* of its service, for refusals after its end */
  tnk_promise_t *opening;  /* NULL: it is open, or the caller has given up */
  char *path;              /* of the file */
  char *name;              /* of the run; NULL: it has none */
  const tnk_ledger_entry_t *resumed; /* from which the run goes on, or NULL */
  tnk__ledger_policy_t policy;
  tnk__pen_t pen;
  tnk__work_t work; /* reads the file */
  int is_reading;
  int cause;
  size_t n_bad;  /* lines that cannot be read */
  uint8_t *data; /* the file as it was; texts lie in it */
  tnk__arena_t arena;
  tnk__ledger_entry_t **entries;
  size_t n_entries;
  size_t cap_entries;
  /* Later than the last state, and no line says what became of them. */
  tnk__ledger_line_t *intents;
  size_t n_intents;
  tnk__ledger_name_t *names; /* that a save may have at the service already */
  tnk__totals_t used;        /* by the run, as the last line says that tells */
  tnk__totals_t told;        /* of what the service has used, a line has this */
  int64_t attempt;           /* of this program */
  int64_t n_saves;           /* of this attempt */
  tnk__list_t jobs;
  int is_open; /* it has been read */
  int has_last;
  int is_unnoted;       /* the disk has refused what was used */
  tnk__timer_t minute;  /* until that is noted again */
  tnk__buf_t last_text; /* has its memory from the beginning */
  tnk__pen_line_t last_pen_line;
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
  tnk__deferred_t closed;
};

void tnk__ledgers_init(tnk__ledgers_t *ledgers, tnk__session_t *session);
/* Close all with everything under way; before the clients are closed. Allocates
 * nothing. */
void tnk__ledgers_shut(tnk__ledgers_t *ledgers);
/* Do what tnk_ledger_open() is asked for; all is copied. */
tnk_promise_t *tnk__ledger_open(tnk__ledgers_t *ledgers, const char *directory,
                                const tnk_ledger_options_t *options);
/* What the disk refuses, in a sentence that begins with `op`. */
tnk__error_t *tnk__ledger_disk_error(const tnk_ledger_t *ledger, const char *op,
                                     int cause);
void tnk__ledger_close(tnk_ledger_t *ledger, tnk_close_cb cb, void *user);
/* Add what was saved; all is copied. NULL without memory. */
tnk__ledger_entry_t *tnk__ledger_keep(tnk_ledger_t *ledger,
                                      const tnk__ledger_line_t *line);
/* Note that what a line announces may have been saved although that was not
 * heard, or not noted; it is copied. Without memory the file alone has it. */
void tnk__ledger_doubt(tnk_ledger_t *ledger, const tnk__ledger_line_t *line);
/* What a line says that the run has used, and saying it. */
tnk__totals_t tnk__ledger_used(const tnk__ledger_line_t *line);
int tnk__ledger_tells_used(const tnk__ledger_line_t *line);
/* Let the run's totals begin with what is known of it. */
void tnk__ledger_begin_used(tnk_ledger_t *ledger);
void tnk__ledger_tell_used(tnk__ledger_line_t *line, tnk_ledger_t *ledger);
/* The line that was to say it is not on the disk. */
void tnk__ledger_forget_told(tnk_ledger_t *ledger);
/* Note each minute, from now on, what no line tells. */
void tnk__ledger_note_used(tnk_ledger_t *ledger);
/* Have memory for the last line. 0: there is none. */
int tnk__ledger_prepare_last(tnk_ledger_t *ledger);
/* The ledger closes: write what no line tells. 1: the pen is busy with that. */
int tnk__ledger_write_last(tnk_ledger_t *ledger);
/* Note that something goes on, and that it is over. */
void tnk__ledger_job_enter(tnk_ledger_t *ledger, tnk__ledger_job_t *job);
void tnk__ledger_job_leave(tnk_ledger_t *ledger, tnk__ledger_job_t *job);

/* ---- Saves: save.c ---- */

/* Do what tnk_ledger_save() is asked for. Arguments have passed their
 * checks. */
tnk_promise_t *tnk__ledger_save(tnk_ledger_t *ledger, tnk_training_t *training,
                                const tnk_ledger_save_t *save);
/* The entry behind a promise's value. */
const tnk_ledger_entry_t *tnk__ledger_entry_value(const void *value);

/* ---- Going on: resume.c ---- */

/* Do what tnk_ledger_resume() is asked for. */
tnk_promise_t *tnk__ledger_resume(tnk_ledger_t *ledger, int with_optimizer);

/* ---- When and for how long: policy.c ---- */

/* Do what tnk_ledger_due() is asked for. */
int tnk__ledger_due(const tnk_ledger_t *ledger, const tnk_training_t *training);
/* Count from a save, or a state to go on from, that has so many steps. */
void tnk__ledger_policy_begin(tnk_ledger_t *ledger, uint64_t n_steps);
/* Whether a save is final, rolling, and how long it stays. */
void tnk__ledger_policy_apply(const tnk__ledger_policy_t *policy,
                              tnk__ledger_line_t *line,
                              const tnk_ledger_save_t *how);
/* Warn when this state, the last one, is about to expire. */
void tnk__ledger_watch(tnk_ledger_t *ledger, tnk__ledger_entry_t *entry);
/* A save has been noted: see to its time, and to those that it replaces. */
void tnk__ledger_noted(tnk_ledger_t *ledger, tnk__ledger_entry_t *entry);
/* The ledger closes. Allocates nothing. */
void tnk__ledger_policy_end(tnk_ledger_t *ledger);

#endif
