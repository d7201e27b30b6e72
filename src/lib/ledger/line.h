#ifndef TNK_LIB_LEDGER_LINE_H
#define TNK_LIB_LEDGER_LINE_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/*
 * Lines of a run's ledger, checkpoints.jsonl: a JSON object each, as the Tinker
 * cookbook reads and writes them. Members of its own are name, batch, epoch,
 * final, state_path and sampler_path; ours begin with "tnk", and it keeps them.
 * It goes on from the last line that has a state_path.
 *
 *   intent  what is about to be saved; no path, so that nobody goes on from it
 *   saved   what was saved
 *   failed  what was not saved although an intent says so
 *   deleted the save of which the state was deleted, as later ones replace it
 *   used    what was used since the line before it, each minute and at the end
 *   other   no event: a line of the cookbook
 */
typedef enum {
  TNK__LEDGER_OTHER = 0, /* not of ours, or of later versions */
  TNK__LEDGER_INTENT,
  TNK__LEDGER_SAVED,
  TNK__LEDGER_FAILED,
  TNK__LEDGER_DELETED,
  TNK__LEDGER_USED
} tnk__ledger_event_t;

/* What a run has used until then; money in parts of a dollar. */
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

/* What is saved. */
typedef enum {
  TNK__LEDGER_STATE = 1,
  TNK__LEDGER_SAMPLER = 2
} tnk__ledger_what_t;

typedef struct {
  tnk__ledger_event_t event;
  const char *name;       /* of the checkpoint; never NULL */
  const char *state_path; /* or NULL, as all that follow */
  const char *sampler_path;
  const char *run;                  /* the model that it is of */
  const char *cursor;               /* the caller's */
  const char *json;                 /* the line, when it was read */
  const char *word;                 /* of the event */
  int64_t batch;                    /* -1: there is none */
  int64_t epoch;                    /* -1: there is none */
  int64_t attempt;                  /* of the run: 1, 2 ... 0: unknown */
  int64_t save;                     /* of the attempt: 1, 2 ... 0: unknown */
  int64_t what;                     /* of tnk__ledger_what_t */
  int64_t n_steps;                  /* -1: not told */
  int64_t n_passes;                 /* -1: not told */
  int64_t time_s;                   /* Unix; 0: not told */
  int64_t ttl_s;                    /* 0: it stays */
  int64_t used[TNK__LEDGER_N_USED]; /* 0: nothing, or not told */
  int is_final;
  int is_rolling;
} tnk__ledger_line_t;

/* What a line begins with. */
extern const tnk__ledger_line_t tnk__ledger_blank;

/* Read the n bytes of a line without its end. They are changed, and texts lie
 * in them or in the arena. TNK_OK; TNK_ENOMEM; TNK_EPROTO: it is none. */
int tnk__ledger_read(tnk__ledger_line_t *out, tnk__arena_t *arena,
                     uint8_t *data, size_t n);
/* Write a line and its end. Returns the buffer's error. */
int tnk__ledger_write(tnk__buf_t *out, const tnk__ledger_line_t *line);

#endif
