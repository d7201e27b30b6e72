/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_EVENTS_H
#define TNK_TEST_TASK_EVENTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "tnk/tnk.h"

/*
 * An observer for every scripted test: what it hears has to be in order,
 * whatever the test does to the operation. What each operation went through can
 * be asked for as a line of words:
 *
 *   queued connection sent accepted connection held result decoded delivered
 *
 * where a word that is no phase says what was waited for.
 */
typedef struct {
  char name[40];
  char client[40];
  char words[720]; /* of the first events */
  size_t n_sent;   /* attempts */
  size_t n_accepted;
  size_t n_results;
  int has_request; /* SENT of something that is not answered yet */
  int has_ended;
  int code;
  int is_delivered;
  uint64_t begin_ns;
  uint64_t end_ns;
} heard_op_t;

typedef struct {
  heard_op_t *ops; /* by number, from 1 */
  size_t n;
  size_t room;
  uint64_t last_ns;
  size_t n_events;
} heard_t;

static inline heard_op_t *heard_op(heard_t *heard, uint64_t operation) {
  CHECK(operation > 0 && operation <= heard->n);
  return &heard->ops[operation - 1];
}

static inline void heard_word(heard_op_t *op, const char *word) {
  size_t n = strlen(op->words);

  if (n + strlen(word) + 2 < sizeof(op->words))
    snprintf(op->words + n, sizeof(op->words) - n, "%s%s", n > 0 ? " " : "",
             word);
}

static inline void heard_queued(heard_t *heard, const tnk_event_t *event) {
  heard_op_t *op;

  CHECK_INT(event->operation, heard->n + 1);
  if (heard->n == heard->room) {
    heard->room = heard->room > 0 ? 2 * heard->room : 64;
    heard->ops = realloc(heard->ops, heard->room * sizeof(*heard->ops));
    CHECK(heard->ops != NULL);
  }
  op = &heard->ops[heard->n++];
  memset(op, 0, sizeof(*op));
  snprintf(op->name, sizeof(op->name), "%s", event->name);
  snprintf(op->client, sizeof(op->client), "%s",
           event->client != NULL ? event->client : "");
  op->begin_ns = event->time_ns;
}

static inline void heard_request(heard_op_t *op, const tnk_event_t *event) {
  switch (event->phase) {
  case TNK_PHASE_SENT:
    CHECK(event->attempt > 0);
    op->has_request = 1;
    op->n_sent++;
    break;
  case TNK_PHASE_ACCEPTED:
    CHECK(op->has_request && event->status / 100 == 2);
    op->n_accepted++;
    break;
  case TNK_PHASE_HELD:
    CHECK(op->n_accepted > 0);
    break;
  case TNK_PHASE_RESULT:
    CHECK(op->has_request && event->status != 0);
    op->n_results++;
    CHECK(op->n_accepted == 0 || op->n_results <= op->n_sent);
    break;
  default:
    break;
  }
}

static inline void heard_end(heard_op_t *op, const tnk_event_t *event) {
  if (event->phase == TNK_PHASE_DELIVERED) {
    CHECK(op->has_ended && !op->is_delivered);
    op->is_delivered = 1;
    return;
  }
  CHECK(!op->has_ended);
  if (event->phase == TNK_PHASE_DECODED || event->phase == TNK_PHASE_FAILED) {
    CHECK((event->phase == TNK_PHASE_FAILED) == (event->code != TNK_OK));
    op->has_ended = 1;
    op->code = event->code;
    op->end_ns = event->time_ns;
  }
}

static inline void heard_event(const tnk_event_t *event, void *user) {
  heard_t *heard = user;
  heard_op_t *op;

  heard->n_events++;
  CHECK(event->time_ns >= heard->last_ns);
  heard->last_ns = event->time_ns;
  CHECK(tnk_phase_name(event->phase)[0] != '\0');
  CHECK((event->phase == TNK_PHASE_WAITS) ==
        (event->waits_for != TNK_WAITS_FOR_NOTHING));
  if (event->phase == TNK_PHASE_QUEUED)
    heard_queued(heard, event);
  op = heard_op(heard, event->operation);
  CHECK(event->name[0] != '\0');
  heard_end(op, event);
  heard_request(op, event);
  heard_word(op, event->phase == TNK_PHASE_WAITS
                     ? tnk_waits_for_name(event->waits_for)
                     : tnk_phase_name(event->phase));
}

/* At the end of a test, when the service has gone: each has ended. */
static inline void heard_close(heard_t *heard) {
  for (size_t i = 0; i < heard->n; i++)
    if (!heard->ops[i].has_ended)
      test_fail(__FILE__, __LINE__, "%s has not ended: %s", heard->ops[i].name,
                heard->ops[i].words);
  free(heard->ops);
  memset(heard, 0, sizeof(*heard));
}

#endif
