#ifndef TNK_LIB_POLICY_QUEUE_STATE_H
#define TNK_LIB_POLICY_QUEUE_STATE_H

#include <stdint.h>

#include "tnk/service.h"

#define TNK__QUEUE_NOTICE_MS 60000 /* between two notices of one client */

/* Whose operations wait. */
typedef enum {
  TNK__QUEUE_TRAINING = 0,
  TNK__QUEUE_SAMPLING = 1
} tnk__queue_kind_t;

/* A field of the client that is told about, so it dies with the client. */
typedef struct {
  uint64_t noticed_ms; /* the last notice */
  uint64_t since_ms;   /* when the state was first reported */
  uint64_t grace_ms;   /* a younger state is not worth a notice */
  tnk_queue_state_t state;
  uint8_t has_noticed;
  uint8_t has_state;
} tnk__queue_notice_t;

/* Begin without a report. With a grace_ms of 0 the first one is noticed. */
void tnk__queue_notice_init(tnk__queue_notice_t *notice, uint64_t grace_ms);
/* Read "active", "paused_capacity" or "paused_rate_limit"; all else, and NULL,
 * is TNK_QUEUE_UNKNOWN. */
tnk_queue_state_t tnk__queue_state_parse(const char *text);
/* Note a state that the server has reported. 1: tell the user. */
int tnk__queue_notice_due(tnk__queue_notice_t *notice, tnk_queue_state_t state,
                          uint64_t now_ms);
/* The reason of a state: the server's words if it has any, else ours. Never
 * NULL. */
const char *tnk__queue_reason(tnk__queue_kind_t kind, tnk_queue_state_t state,
                              const char *server_reason);

#endif
