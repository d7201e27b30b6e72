/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_TURNS_H
#define TNK_LIB_POLICY_TURNS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/list.h"
#include "lib/policy/classify.h"

/*
 * The order of submissions of one training client.
 *
 * An operation enters when it is called. The first operation in the queue has
 * the turn. Only it takes sequence numbers, one or several at a time, when it
 * is about to send. It settles each number with the effect of its request. A
 * number that was not accepted is given out again, lowest first, so the server
 * never waits for a missing number. The operation leaves when all its
 * submissions are settled, and the next one gets the turn. A custom loss keeps
 * the turn during both its passes.
 *
 * Parallel chunks: take n numbers, send chunks 2..n, and send chunk 1 when they
 * are accepted. If one of them is refused, give back the number of chunk 1
 * unsent.
 *
 * A number whose effect can never be known fails the queue. Queued and later
 * operations get the same error; otherwise the server would wait forever.
 */
typedef struct tnk__turn {
  tnk__list_t link;
  /* Called when it gets the turn. Must only schedule. */
  void (*ready)(struct tnk__turn *self);
  uint32_t n_open; /* numbers taken and not settled */
  uint32_t epoch;  /* numbering of the last number taken; kept with the
                      number for tnk__turns_heal() */
} tnk__turn_t;

#define TNK__TURNS_MAX_HOLES 64

/* Numbers first..last, free again although higher ones are in use. */
typedef struct {
  uint64_t first;
  uint64_t last;
} tnk__turns_hole_t;

/* Maximum of numbers that are in doubt at one time. */
#define TNK__TURNS_MAX_DOUBTS 16

/* A number that was given back although the server may have it. `mark`
 * identifies the bytes that were sent under it. */
typedef struct {
  uint64_t number;
  uint64_t mark;
} tnk__doubt_t;

typedef struct {
  tnk__list_t queue; /* the first one has the turn */
  size_t n_queued;
  uint64_t next;    /* lowest number never taken, or given back */
  uint64_t heal;    /* value of `next` once no number is open */
  uint64_t floor;   /* then no lower number is given out; 0: none */
  uint32_t epoch;   /* number of renumberings by the server */
  uint32_t n_open;  /* numbers taken and not settled, in total */
  uint32_t n_holes; /* ascending and not adjacent */
  uint8_t has_heal;
  uint32_t n_doubts;
  int err; /* TNK_OK, or the reason why the queue failed */
  tnk__turns_hole_t holes[TNK__TURNS_MAX_HOLES];
  tnk__doubt_t doubts[TNK__TURNS_MAX_DOUBTS];
} tnk__turns_t;

/* Begin with an empty queue. first: the first sequence number to send. It is 1
 * for a model made by create_model or loaded in one call, which itself is
 * number 0. */
void tnk__turns_init(tnk__turns_t *turns, uint64_t first);
void tnk__turn_init(tnk__turn_t *turn, void (*ready)(tnk__turn_t *self));

/* Join the end of the queue. Returns 1 if the operation has the turn now, 0 if
 * it is queued and `ready` will be called once. A negative result is the code
 * with which the queue has failed. */
int tnk__turns_enter(tnk__turns_t *turns, tnk__turn_t *turn);
/* Leave the queue: done, failed or canceled, with or without the turn. Does
 * nothing when not queued. No number may be open. May call one `ready`. */
void tnk__turns_leave(tnk__turns_t *turns, tnk__turn_t *turn);
int tnk__turns_has_turn(const tnk__turns_t *turns, const tnk__turn_t *turn);

/* Take the next number. Returns TNK_OK, the queue's error, or TNK_EINTERNAL if
 * the operation does not have the turn. */
int tnk__turns_take(tnk__turns_t *turns, tnk__turn_t *turn, uint64_t *number);
/*
 * Record the effect of a request on its number. ACCEPTED uses the number. NONE
 * (refused or never sent) frees it. UNKNOWN, after all retries, fails the queue
 * with code err. The queue also fails when there are too many holes.
 *
 * Returns the queue's error. When that is not TNK_OK for the first time, the
 * owner fails the operation and drains the rest with tnk__turns_next_failed().
 */
int tnk__turns_settle(tnk__turns_t *turns, tnk__turn_t *turn, uint64_t number,
                      tnk__effect_t effect, int err);
/*
 * Record that the effect of a number is still unknown after all retries, but
 * that the next request with this number will show it. A server that has the
 * number refuses other bytes, and treats the same bytes as one request. The
 * number is given back and remembered with `mark`. When too many doubts are
 * remembered, the queue fails as above.
 */
int tnk__turns_doubt(tnk__turns_t *turns, tnk__turn_t *turn, uint64_t number,
                     uint64_t mark, int err);
/* The doubt about a number, or NULL. Valid until the next call. */
const tnk__doubt_t *tnk__turns_doubt_of(const tnk__turns_t *turns,
                                        uint64_t number);
/*
 * Adopt the server's numbering. The submission of `number`, or its future, was
 * refused with "expected N, got M", and M is our number.
 *
 * A lower N: the server did not count a request that we counted (TuFT does not
 * count operations that failed). Numbering continues at N. A higher N: the
 * numbers below it are used, by a retry or by another program. Both take effect
 * when no number is open.
 *
 * `epoch` is the turn's value right after it took the number. Reports about
 * numbers from before the last downward change are ignored. Returns 1 if the
 * report is used, else 0.
 */
int tnk__turns_heal(tnk__turns_t *turns, uint32_t epoch, uint64_t number,
                    uint64_t expected);
/* Fail the queue for another reason, for example the end of the session. */
void tnk__turns_fail(tnk__turns_t *turns, int err);
/* Clear the failure: numbers are given out again. */
void tnk__turns_resume(tnk__turns_t *turns);
/* Restart with another server's numbers, from `first` on. No number may be
 * open. */
void tnk__turns_restart(tnk__turns_t *turns, uint64_t first);
/* After a failure, remove the next operation that has no open number, without
 * calling it. NULL when none is left. */
tnk__turn_t *tnk__turns_next_failed(tnk__turns_t *turns);

/* Parse "expected N, got M" in a server's message. Returns 1 if both numbers
 * are present. */
int tnk__turns_parse_conflict(const char *text, uint64_t *expected,
                              uint64_t *got);

/* Returns whether a refusal says that the number was "reused" or "already used"
 * with other bytes. */
int tnk__turns_parse_taken(const char *text);

#endif
