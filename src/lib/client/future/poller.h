#ifndef TNK_LIB_CLIENT_FUTURE_POLLER_H
#define TNK_LIB_CLIENT_FUTURE_POLLER_H

#include "lib/client/call/call.h"
#include "lib/client/future/ticket.h"
#include "lib/policy/batch.h"

/*
 * Learns for all samples of one client together which have ended, in place of
 * a held poll for each of them. Fetching the results is up to the samples.
 *
 * Idle; polling (a request is held by the server); pausing (between two
 * polls); waiting to flush (nobody waits, but something is to be reported);
 * flushing. A waiter that comes ends the flush and its delay. Off, for good,
 * when the server cannot do this or everything closes: then all who wait are
 * woken to poll by themselves.
 */
typedef enum {
  TNK__POLLER_IDLE = 0,  /* nothing is wanted, or it is off */
  TNK__POLLER_POLLING,   /* `call` is held by the server */
  TNK__POLLER_PAUSING,   /* `timer` runs before the next poll */
  TNK__POLLER_FLUSH_DUE, /* `timer` runs; it does not keep the loop alive */
  TNK__POLLER_FLUSHING   /* `call` reports, and is answered at once */
} tnk__poller_state_t;

typedef struct tnk__poller {
  tnk__endpoint_t *endpoint;
  const char *target; /* id of the sampling session; the owner's */
  uint64_t clone; /* which of its clients, see lib/client/sample/sampling.h */
  tnk__poller_state_t state;
  tnk__batch_t batch;
  tnk__call_t call;
  tnk__buf_t body;
  tnk__timer_t timer;
  uint64_t asked_ms; /* the pause that the last response asked for; 0: none */
  tnk__tickets_t tickets;
  tnk__list_t awaited; /* tickets, in order of arrival */
  tnk__list_t taken;
  tnk__list_t loose; /* early and abandoned ones, a limited number */
  tnk__list_t reports;
  tnk__list_t reporting; /* with the request under way */
  size_t n_awaited;
  size_t n_loose;
  size_t n_reports; /* without those being reported */
  /* It is off from now on; may be NULL. Only schedules. */
  void (*on_off)(struct tnk__poller *self);
} tnk__poller_t;

/* Somebody who waits for a completion; embedded. */
typedef struct tnk__awaited {
  tnk__poller_t *poller;
  tnk__ticket_t *ticket; /* NULL: neither waits nor has anything to report */
  /* Called once, never inside tnk__poller_wait(). is_complete: fetch the
   * result, of that size (0: not known). Else: poll for yourself. Only
   * schedules and starts requests. */
  void (*woken)(struct tnk__awaited *self, int is_complete,
                uint64_t result_bytes);
} tnk__awaited_t;

typedef enum {
  TNK__AWAIT_DIRECT = 0, /* poll for yourself; `woken` will not be called */
  TNK__AWAIT_WAIT,       /* `woken` will be called */
  TNK__AWAIT_COMPLETE    /* it has ended already; `woken` will not be called */
} tnk__await_t;

/* How somebody stops waiting, or has ended after being woken. */
typedef enum {
  TNK__LEAVE_RECEIVED = 0, /* with a result or the failure of the sample */
  TNK__LEAVE_CANCELED,     /* nobody wants it any more */
  TNK__LEAVE_LOST          /* there is nothing to be had */
} tnk__leave_t;

void tnk__poller_open(tnk__poller_t *poller, tnk__endpoint_t *endpoint,
                      const char *target, uint64_t clone);
/* Wake all who wait, forget the rest. Allocates nothing. */
void tnk__poller_close(tnk__poller_t *poller);
tnk__await_t tnk__poller_wait(tnk__poller_t *poller, tnk__awaited_t *awaited,
                              const char *request_id, uint64_t *result_bytes);
/* Write what those who wait for it wait for, as the end of a sentence. */
void tnk__poller_explain(const tnk__poller_t *poller, tnk__text_t *out);
/* Stop waiting; harmless when it does not wait. */
void tnk__awaited_leave(tnk__awaited_t *awaited, tnk__leave_t how);

#endif
