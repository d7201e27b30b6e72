/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_QUEUE_STATE_H
#define TNK_LIB_POLICY_QUEUE_STATE_H

#include <stdint.h>

#include "tnk/service.h"

/* Decides when to report that an operation has not progressed. */
typedef struct {
  uint64_t moved_ms;
  uint64_t notice_ms; /* time without progress until the next notice */
} tnk__stall_t;

/* Record a start or progress. */
void tnk__stall_moved(tnk__stall_t *stall, uint64_t now_ms);
/* Returns 1 if a notice is due. Thresholds that passed between two calls cause
 * one notice together. */
int tnk__stall_due(tnk__stall_t *stall, uint64_t now_ms);

/* An origin is unreachable after failures for this long without any
 * response. */
#define TNK__OUTAGE_MS 5000
/* The origin refuses all requests after refusals for this long without a
 * success. */
#define TNK__REFUSALS_MS 30000
/* Interval of the probes that are sent during an outage, before their regular
 * delay. */
#define TNK__OUTAGE_PROBE_MS 2000

/*
 * Detects whether an origin responds at all. Any status is a response.
 * Connections that were refused, broken or silent for too long are failures.
 * The same state also serves origins that only report that they are unable to
 * serve.
 */
typedef struct {
  uint64_t since_ms; /* first failure with no response after it */
  int is_failing;
  int is_out;
} tnk__outage_t;

/* Record an attempt without a response. Returns 1 if the origin is out from now
 * on, because nothing was received for least_ms. */
int tnk__outage_failed(tnk__outage_t *outage, uint64_t now_ms,
                       uint64_t least_ms);
/* Record a response. Returns 1 if this ends an outage. */
int tnk__outage_answered(tnk__outage_t *outage);

/* The kind of client whose operations wait. */
typedef enum {
  TNK__QUEUE_TRAINING = 0,
  TNK__QUEUE_SAMPLING = 1
} tnk__queue_kind_t;

/* The state of notices of one client, embedded in that client. */
typedef struct {
  uint64_t noticed_ms; /* time of the last notice */
  uint64_t since_ms;   /* when the current state was first reported */
  uint64_t grace_ms;   /* a state must last this long before a notice */
  tnk_queue_state_t state;
  uint8_t has_noticed;
  uint8_t has_state;
} tnk__queue_notice_t;

/* Begin without a report. With a grace_ms of 0 the first report causes a
 * notice. */
void tnk__queue_notice_init(tnk__queue_notice_t *notice, uint64_t grace_ms);
/* Parse "active", "paused_capacity" or "paused_rate_limit". Other strings and
 * NULL give TNK_QUEUE_UNKNOWN. */
tnk_queue_state_t tnk__queue_state_parse(const char *text);
/* Record a state that the server has reported. Returns 1 if the user should be
 * notified. */
int tnk__queue_notice_due(tnk__queue_notice_t *notice, tnk_queue_state_t state,
                          uint64_t now_ms);
/* The reason for a state: the server's reason if it sent one, else our own.
 * Never NULL. */
const char *tnk__queue_reason(tnk__queue_kind_t kind, tnk_queue_state_t state,
                              const char *server_reason);

#endif
