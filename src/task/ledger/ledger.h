#ifndef TNK_TASK_LEDGER_LEDGER_H
#define TNK_TASK_LEDGER_LEDGER_H

#include "base/arena.h"
#include "codec/ledger/line.h"
#include "loop/promise.h"
#include "task/ledger/pen.h"
#include "task/session/session.h"
#include "task/train/training.h"
#include "tnk/ledger.h"

/* The ledgers of a service. */
typedef struct {
  tnk__session_t *session;
  const tnk__ledger_disk_t *disk; /* tests put theirs here */
  tnk__list_t open;               /* and those that are being opened */
} tnk__ledgers_t;

/* Something that goes on with a ledger. Embedded in it. */
typedef struct tnk__ledger_job {
  tnk__list_t link; /* in ledger->jobs, in the order of the calls */
  /* End it; `error` stays the caller's. */
  void (*abort)(struct tnk__ledger_job *self, tnk__error_t *error);
  /* It is the first now; may be NULL. */
  void (*first)(struct tnk__ledger_job *self);
} tnk__ledger_job_t;

/*
 * A ledger. Opening: the pool reads the file. Open. Closing, from
 * tnk__ledger_close() or the end of the service until the pool has let go of
 * the file; then closed, and the caller is told: what is left refuses every
 * call, and is freed with the last promise that shows it.
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
  const tnk_ledger_record_t *resumed; /* from which the run goes on, or NULL */
  tnk__pen_t pen;
  tnk__work_t work; /* reads the file */
  int is_reading;
  int cause;
  size_t n_bad;  /* lines that cannot be read */
  uint8_t *data; /* the file as it was; texts lie in it */
  tnk__arena_t arena;
  tnk_ledger_record_t **records;
  size_t n_records;
  size_t cap_records;
  /* Later than the last state, and no line says what became of them. */
  tnk__ledger_line_t *intents;
  size_t n_intents;
  int64_t attempt; /* of this program */
  int64_t n_saves; /* of this attempt */
  tnk__list_t jobs;
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
  tnk__deferred_t closed;
};

void tnk__ledgers_init(tnk__ledgers_t *ledgers, tnk__session_t *session);
/* Close all with everything under way; before the clients are closed. Allocates
 * nothing. */
void tnk__ledgers_shut(tnk__ledgers_t *ledgers);
/* Do what tnk_ledger_open() is asked for; all is copied, and `run_name` may be
 * NULL. */
tnk_promise_t *tnk__ledger_open(tnk__ledgers_t *ledgers, const char *directory,
                                const char *run_name);
/* What the disk refuses, in a sentence that begins with `op`. */
tnk__error_t *tnk__ledger_disk_error(const tnk_ledger_t *ledger, const char *op,
                                     int cause);
void tnk__ledger_close(tnk_ledger_t *ledger, tnk_close_cb cb, void *user);
/* Add what was saved; texts are copied. NULL without memory. */
tnk_ledger_record_t *tnk__ledger_keep(tnk_ledger_t *ledger,
                                      const tnk__ledger_line_t *line);
/* Note that something goes on, and that it is over. */
void tnk__ledger_job_enter(tnk_ledger_t *ledger, tnk__ledger_job_t *job);
void tnk__ledger_job_leave(tnk_ledger_t *ledger, tnk__ledger_job_t *job);

/* ---- Saves: save.c ---- */

/* Do what tnk_ledger_save() is asked for. Arguments have passed their
 * checks. */
tnk_promise_t *tnk__ledger_save(tnk_ledger_t *ledger, tnk_training_t *training,
                                const tnk_ledger_save_t *save);
/* The record behind a promise's value. */
const tnk_ledger_record_t *tnk__ledger_record_value(const void *value);

/* ---- Going on: resume.c ---- */

/* Do what tnk_ledger_resume() is asked for. */
tnk_promise_t *tnk__ledger_resume(tnk_ledger_t *ledger, int with_optimizer);

#endif
