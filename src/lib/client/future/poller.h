/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_FUTURE_POLLER_H
#define TNK_LIB_CLIENT_FUTURE_POLLER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/list.h"
#include "lib/client/call/call.h"
#include "lib/policy/batch.h"
#include "tnk/common.h"

/* The state of a request's completion. */
typedef enum {
  TNK__TICKET_AWAITED = 0, /* a sample waits for it */
  TNK__TICKET_TAKEN,       /* received; its result is being fetched */
  TNK__TICKET_EARLY,       /* received, but no sample has asked for it yet */
  TNK__TICKET_ABANDONED,   /* no sample waits any more, but it will arrive */
  TNK__TICKET_REPORT,      /* received: to be acknowledged */
  TNK__TICKET_REPORTING    /* being acknowledged */
} tnk__ticket_state_t;

struct tnk__awaited;

typedef struct tnk__ticket {
  tnk__list_t link;         /* in the owner's list for its state */
  struct tnk__ticket *next; /* in its hash bucket */
  uint64_t hash;
  tnk__ticket_state_t state;
  struct tnk__awaited *awaited; /* while AWAITED or TAKEN */
  uint64_t result_bytes;
  char id[];
} tnk__ticket_t;

/* Tickets by request id. */
typedef struct {
  const tnk_allocator_t *alloc;
  uint64_t key[2]; /* key of the hash: the ids come from the server */
  tnk__ticket_t **buckets;
  size_t n_buckets; /* a power of two, or 0 */
  size_t n;
} tnk__tickets_t;

/*
 * Polls for the completion of all samples of one client together, instead of
 * one held poll per sample. The samples fetch the results.
 *
 * Idle; polling (the server holds a request); pausing (between two polls);
 * waiting to flush (no sample waits, but received results must be
 * acknowledged); flushing. A new waiter ends the flush and its delay. The
 * poller is turned off permanently when the server does not support it or
 * everything closes. Then all waiters are woken and poll for themselves.
 */
typedef enum {
  TNK__POLLER_IDLE = 0,  /* nothing to do, or turned off */
  TNK__POLLER_POLLING,   /* `call` is held by the server */
  TNK__POLLER_PAUSING,   /* `timer` runs before the next poll */
  TNK__POLLER_FLUSH_DUE, /* `timer` runs; it does not keep the loop alive */
  TNK__POLLER_FLUSHING   /* `call` acknowledges; the response is immediate */
} tnk__poller_state_t;

typedef struct tnk__poller {
  tnk__endpoint_t *endpoint;
  const char *target; /* id of the sampling session, borrowed from the owner */
  uint64_t clone;     /* clone number of the client, see
                         lib/client/sample/sampling.h */
  tnk__poller_state_t state;
  tnk__batch_t batch;
  tnk__call_t call;
  tnk__buf_t body;
  tnk__timer_t timer;
  uint64_t asked_ms; /* pause from the last response; 0: none */
  tnk__tickets_t tickets;
  tnk__list_t awaited; /* tickets, in order of arrival */
  tnk__list_t taken;
  tnk__list_t loose; /* early and abandoned ones, limited in number */
  tnk__list_t reports;
  tnk__list_t reporting; /* in the active request */
  size_t n_awaited;
  size_t n_loose;
  size_t n_reports; /* excludes those in `reporting` */
  /* Called when it is turned off; may be NULL. Only schedules. */
  void (*on_off)(struct tnk__poller *self);
} tnk__poller_t;

/* A waiter for one completion; embedded. */
typedef struct tnk__awaited {
  tnk__poller_t *poller;
  tnk__ticket_t *ticket; /* NULL: it does not wait and has nothing to
                            acknowledge */
  /* Called once, never inside tnk__poller_wait(). is_complete: fetch the
   * result, which has result_bytes (0: unknown). Otherwise the waiter must poll
   * for itself. Only schedules and starts requests. */
  void (*woken)(struct tnk__awaited *self, int is_complete,
                uint64_t result_bytes);
} tnk__awaited_t;

typedef enum {
  TNK__AWAIT_DIRECT = 0, /* the caller polls; `woken` will not be called */
  TNK__AWAIT_WAIT,       /* `woken` will be called */
  TNK__AWAIT_COMPLETE    /* it has ended already; `woken` will not be called */
} tnk__await_t;

/* Why a waiter stops waiting, or ends after it was woken. */
typedef enum {
  TNK__LEAVE_RECEIVED = 0, /* received a result, or the failure of the sample */
  TNK__LEAVE_CANCELED,     /* the result is not wanted any more */
  TNK__LEAVE_LOST          /* the result is not available */
} tnk__leave_t;

void tnk__poller_open(tnk__poller_t *poller, tnk__endpoint_t *endpoint,
                      const char *target, uint64_t clone);
/* Wake all waiters, drop the rest. Allocates nothing. */
void tnk__poller_close(tnk__poller_t *poller);
tnk__await_t tnk__poller_wait(tnk__poller_t *poller, tnk__awaited_t *awaited,
                              const char *request_id, uint64_t *result_bytes);
/* Write the end of a sentence: the reason why the poller's waiters wait. */
void tnk__poller_explain(const tnk__poller_t *poller, tnk__text_t *out);
/* Stop waiting. Does nothing if it does not wait. */
void tnk__awaited_leave(tnk__awaited_t *awaited, tnk__leave_t how);

#endif
