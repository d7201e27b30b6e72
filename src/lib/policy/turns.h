#ifndef TNK_LIB_POLICY_TURNS_H
#define TNK_LIB_POLICY_TURNS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/list.h"
#include "lib/policy/classify.h"

/*
 * The order of submissions of one training client.
 *
 * An operation enters when it is called. The first in the queue has the turn:
 * it alone takes sequence numbers, when it is about to send, as many as it
 * needs and one at a time or several at once, and it settles each with what
 * became of the request. A number that was not accepted is given out again,
 * lowest first, so the server never waits for one that does not come. The
 * operation leaves when all its submissions are settled, and the next one has
 * the turn. A custom loss keeps the turn over both its passes.
 *
 * Slices side by side: take n numbers, send slices 2..n, and slice 1 when they
 * are accepted. After a refusal among them give back the number of slice 1
 * unsent.
 *
 * A number whose fate can never be known fails the queue: whatever is queued or
 * comes later gets the same error, instead of a server that waits forever.
 */
typedef struct tnk__turn {
  tnk__list_t link;
  /* It has the turn now. Must only schedule. */
  void (*ready)(struct tnk__turn *self);
  uint32_t n_open; /* numbers taken and not settled */
  uint32_t epoch;  /* numbering under which the last one was taken; kept with
                      the number for tnk__turns_heal() */
} tnk__turn_t;

#define TNK__TURNS_MAX_HOLES 64

/* Numbers first..last, free again although higher ones are in use. */
typedef struct {
  uint64_t first;
  uint64_t last;
} tnk__turns_hole_t;

/* So many numbers may be free by guess only. */
#define TNK__TURNS_MAX_DOUBTS 16

/* A number that was given back although the server may have it; `mark` stands
 * for the bytes that were sent under it. */
typedef struct {
  uint64_t number;
  uint64_t mark;
} tnk__doubt_t;

typedef struct {
  tnk__list_t queue; /* the first one has the turn */
  size_t n_queued;
  uint64_t next;    /* lowest number never taken, or given back */
  uint64_t heal;    /* what `next` becomes when no number is open */
  uint64_t floor;   /* then, what is below it is not given out; 0: none */
  uint32_t epoch;   /* counts changes of the numbering by the server */
  uint32_t n_open;  /* numbers taken and not settled, in all */
  uint32_t n_holes; /* ascending and apart from each other */
  uint8_t has_heal;
  uint32_t n_doubts;
  int err; /* TNK_OK, or why the queue failed */
  tnk__turns_hole_t holes[TNK__TURNS_MAX_HOLES];
  tnk__doubt_t doubts[TNK__TURNS_MAX_DOUBTS];
} tnk__turns_t;

/* Begin with an empty queue. first: the first number on the wire; 1 for a model
 * made by create_model or loaded in one call, which itself is number 0. */
void tnk__turns_init(tnk__turns_t *turns, uint64_t first);
void tnk__turn_init(tnk__turn_t *turn, void (*ready)(tnk__turn_t *self));

/* Take a place at the end of the queue. 1: it has the turn now. 0: queued,
 * `ready` will be called once. Negative: the queue has failed with that
 * code. */
int tnk__turns_enter(tnk__turns_t *turns, tnk__turn_t *turn);
/* Leave the queue: done, failed or canceled, with or without the turn; harmless
 * when not queued. No number may be open. May call one `ready`. */
void tnk__turns_leave(tnk__turns_t *turns, tnk__turn_t *turn);
int tnk__turns_has_turn(const tnk__turns_t *turns, const tnk__turn_t *turn);

/* Take the next number; only the one that has the turn may. TNK_OK, the queue's
 * error, or TNK_EINTERNAL without the turn. */
int tnk__turns_take(tnk__turns_t *turns, tnk__turn_t *turn, uint64_t *number);
/*
 * Say what became of a number: ACCEPTED; NONE (refused, or never sent): free
 * again; UNKNOWN, after all retries: the queue fails, with code err, and so it
 * does when there are more holes than can be remembered. Returns the queue's
 * error; when it is not TNK_OK for the first time, the owner fails the
 * operation and drains the rest with tnk__turns_next_failed().
 */
int tnk__turns_settle(tnk__turns_t *turns, tnk__turn_t *turn, uint64_t number,
                      tnk__effect_t effect, int err);
/*
 * Say that the fate of a number is not known, after all repeats, and that what
 * is sent under it next will tell: a server that has it refuses other bytes,
 * and takes the same ones for one request. It is given back, and remembered
 * with `mark`. When nothing more can be remembered, the queue fails as above.
 */
int tnk__turns_doubt(tnk__turns_t *turns, tnk__turn_t *turn, uint64_t number,
                     uint64_t mark, int err);
/* The doubt about a number, or NULL. Valid until the next call. */
const tnk__doubt_t *tnk__turns_doubt_of(const tnk__turns_t *turns,
                                        uint64_t number);
/*
 * Go on with the server's numbers: the submission of `number`, or its future,
 * was refused with "expected N, got M", M being our number. A lower N: the
 * server did not count what we counted (TuFT does not count operations that
 * failed), and numbering goes on at N. A higher N: what is below it is used, by
 * a repeat of ours or by somebody else. Either holds as soon as no number is
 * open. `epoch` is the turn's right after it took the number: what was said of
 * numbers from before the last change downwards is ignored. 1 when the report
 * is used, else 0.
 */
int tnk__turns_heal(tnk__turns_t *turns, uint32_t epoch, uint64_t number,
                    uint64_t expected);
/* Fail the queue for another reason, such as the end of the session. */
void tnk__turns_fail(tnk__turns_t *turns, int err);
/* End a failure: numbers are given out again. */
void tnk__turns_resume(tnk__turns_t *turns);
/* Begin anew with another server's numbers, from `first` on. No number may be
 * open. */
void tnk__turns_restart(tnk__turns_t *turns, uint64_t first);
/* Take out, after a failure, the next waiting operation that has no open
 * number, without calling it; NULL when there is none. */
tnk__turn_t *tnk__turns_next_failed(tnk__turns_t *turns);

/* Read "expected N, got M" out of a server's text; 1 when both are there. */
int tnk__turns_parse_conflict(const char *text, uint64_t *expected,
                              uint64_t *got);

/* Whether a refusal says that the number was "reused" or "already used": other
 * bytes have it. */
int tnk__turns_parse_taken(const char *text);

#endif
