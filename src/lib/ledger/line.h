/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_LEDGER_LINE_H
#define TNK_LIB_LEDGER_LINE_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/*
 * A line of a run's ledger, checkpoints.jsonl: one JSON object, in the format
 * of the Tinker cookbook. The cookbook's members are name, batch, epoch, final,
 * state_path and sampler_path. Members of tnk begin with "tnk", and the
 * cookbook keeps them. The cookbook resumes from the last line that has a
 * state_path.
 *
 *   intent  a save is about to start; without a path, so no run resumes from it
 *   saved   the save is complete
 *   failed  the save of an intent failed, or the run was resumed without it
 *   deleted the state of a save was deleted, because later saves replace it
 *   used    use since the previous line, written each minute and at the end
 *   other   no event: a line of the cookbook
 */
typedef enum {
  TNK__LEDGER_OTHER = 0, /* a line of another program or of a later version */
  TNK__LEDGER_INTENT,
  TNK__LEDGER_SAVED,
  TNK__LEDGER_FAILED,
  TNK__LEDGER_DELETED,
  TNK__LEDGER_USED
} tnk__ledger_event_t;

/* Use of a run up to a line; money in fractions of a dollar. */
typedef enum {
  TNK__LEDGER_PROMPT = 0,
  TNK__LEDGER_CACHED,
  TNK__LEDGER_SAMPLED,
  TNK__LEDGER_TRAINED,
  TNK__LEDGER_UNPRICED,
  TNK__LEDGER_DOUBTFUL,
  TNK__LEDGER_COST,
  TNK__LEDGER_DOUBTFUL_COST,
  TNK__LEDGER_REQUESTS,
  TNK__LEDGER_SENT,
  TNK__LEDGER_RECEIVED,
  TNK__LEDGER_N_USED
} tnk__ledger_used_t;

/* The saved objects. */
typedef enum {
  TNK__LEDGER_STATE = 1,
  TNK__LEDGER_SAMPLER = 2
} tnk__ledger_what_t;

typedef struct {
  tnk__ledger_event_t event;
  const char *name;       /* name of the checkpoint; never NULL */
  const char *state_path; /* NULL if absent, like all that follow */
  const char *sampler_path;
  const char *run;                  /* id of the training run */
  const char *cursor;               /* set by the caller */
  const char *json;                 /* the line as it was read, or NULL */
  const char *word;                 /* name of the event */
  int64_t batch;                    /* -1: absent */
  int64_t epoch;                    /* -1: absent */
  int64_t attempt;                  /* attempt number; 0: unknown */
  int64_t save;                     /* save number in the attempt; 0: unknown */
  int64_t what;                     /* a set of tnk__ledger_what_t */
  int64_t n_steps;                  /* -1: absent */
  int64_t n_passes;                 /* -1: absent */
  int64_t time_s;                   /* Unix time; 0: absent */
  int64_t ttl_s;                    /* 0: no expiry */
  int64_t used[TNK__LEDGER_N_USED]; /* 0: nothing used, or absent */
  int is_final;
  int is_rolling;
} tnk__ledger_line_t;

/* Initial value of a line. */
extern const tnk__ledger_line_t tnk__ledger_blank;

/* Parse the n bytes of a line, without its newline. The bytes are changed.
 * Strings point into them or into the arena. Returns TNK_OK, TNK_ENOMEM, or
 * TNK_EPROTO if it is not a valid line. */
int tnk__ledger_read(tnk__ledger_line_t *out, tnk__arena_t *arena,
                     uint8_t *data, size_t n);
/* Write a line with its newline. Returns the buffer's error. */
int tnk__ledger_write(tnk__buf_t *out, const tnk__ledger_line_t *line);

#endif
