#ifndef TNK_LIB_POLICY_QUEUE_STATE_H
#define TNK_LIB_POLICY_QUEUE_STATE_H

#include <stdint.h>

#include "tnk/service.h"

/* Minimum interval between two notices of one client. */
#define TNK__QUEUE_NOTICE_MS 60000

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
