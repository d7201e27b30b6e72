#ifndef TNK_LIB_CLIENT_SESSION_SESSION_H
#define TNK_LIB_CLIENT_SESSION_SESSION_H

#include "lib/wire/message/calls_session.h"
#include "lib/policy/budget.h"
#include "lib/policy/limiter.h"
#include "lib/usage/purse.h"
#include "lib/policy/semaphore.h"
#include "lib/policy/window.h"
#include "lib/io/loop/promise.h"
#include "lib/client/call/call.h"
#include "lib/client/session/cancel.h"
#include "lib/client/call/config.h"
#include "lib/client/session/gate.h"
#include "lib/client/session/heartbeat.h"
#include "lib/client/session/loan.h"
#include "lib/client/call/renewal.h"

struct tnk_sampling;
struct tnk_training;
struct tnk__recovery;

/* Progress of the start-up. */
typedef enum {
  TNK__SESSION_NEW,        /* no request was sent */
  TNK__SESSION_CONFIGURED, /* the server's flags are known */
  TNK__SESSION_READY       /* the session exists */
} tnk__session_level_t;

/* A waiter for a level, embedded in the operation. */
typedef struct tnk__need {
  tnk__list_t link;
  tnk__session_level_t level;
  tnk__deferred_t call;
  tnk__error_t *error; /* one reference, while `call` is queued */
  /* Called once, from the deferred queue. `error` is NULL on success, and
   * borrowed. */
  void (*done)(struct tnk__need *self, tnk__error_t *error);
  struct tnk__session *session;
} tnk__need_t;

/* The form of passes that the server has accepted in this session. */
typedef enum {
  TNK__FORM_UNKNOWN = 0, /* no pass accepted yet; protobuf is tried first */
  TNK__FORM_PROTO,
  TNK__FORM_JSON
} tnk__form_t;

/*
 * The state that all clients of a service share: the HTTP client, the server's
 * flags, the session with its heartbeat and counters, and the limits for
 * sending.
 *
 * The level only rises, one step at a time, when an operation needs it. Only
 * one start-up call is active at a time (`busy`). If it fails, all waiting
 * operations fail with it, and the next operation tries again. Closing fails
 * the waiting operations. Each call belongs to its owner.
 */
typedef struct tnk__session {
  tnk__context_t *context;
  const tnk__config_t *config;
  tnk__endpoint_t endpoint;
  tnk__renewal_t renewal;
  tnk__session_level_t level;
  int busy;
  tnk__list_t needs;
  tnk__call_t startup;      /* also used for the report of the end */
  tnk__buf_t startup_body;  /* body of `startup`, and in READY of `refresh` */
  tnk__timer_t watch_timer; /* see watch.c */
  tnk__heartbeat_t heartbeat;
  void (*finished)(struct tnk__session *self);
  /* Called when the session is lost (`training` is NULL), or the model of a
   * training client, to start the recovery. May be NULL, and only schedules. */
  void (*lost)(struct tnk__session *self, struct tnk_training *training);
  /* Called when a sampler is lost. May be NULL, and only schedules. */
  void (*lost_sampler)(struct tnk__session *self,
                       struct tnk_sampling *sampling);
  /* Called when the server was probably restarted, though the session exists.
   * May be NULL. It may call the program. */
  void (*restarted)(struct tnk__session *self);
  struct tnk__recovery *mender;
  tnk__deferred_t no_finish; /* there is nothing to report */
  tnk__call_t refresh;       /* requests the dynamic configuration, with its
                                timer */
  char *id;
  tnk__flags_t flags;
  tnk__dynamic_flags_t dynamic;
  int restores_in_calls; /* the server has refused to restore in one call */
  tnk__form_t pass_form;
  uint64_t next_model_seq;
  uint64_t next_loss_seq;
  uint64_t next_sampling_seq; /* one counter for all calls that create a
                                 sampler */
  tnk__purse_t purse;         /* the allowance, and the usage so far */
  tnk__limiter_t limiter;
  tnk__budget_t train_bytes;
  tnk__budget_t result_bytes;
  tnk__budget_t sample_bytes;
  tnk__list_t trainings; /* clients, open or closing */
  tnk__list_t samplings;
  tnk__list_t foreigners; /* sessions of other services, see foreign.h */
  tnk__loans_t loans;
  tnk__list_t errands; /* service operations: creations, queries */
  tnk__canceler_t canceler;
  size_t n_pollers; /* pollers of sampling clients; each holds one poll */
  tnk__gate_t gate; /* samples that wait for the end of a back-off */
  tnk__semaphore_t sample_running; /* from the first attempt to the result */
  tnk__semaphore_t sample_slots;   /* while being submitted */
  tnk__window_t sample_window;     /* sets the limit of sample_slots */
  tnk__semaphore_t fetches;        /* fetches of results that a poller has
                                      reported */
  tnk__semaphore_t checks; /* polls of samples that were silent for long */
  tnk__semaphore_t sample_throttle; /* a second slot; the gate sets its limit */
} tnk__session_t;

void tnk__session_open(tnk__session_t *session, tnk__context_t *context,
                       const tnk__config_t *config, tnk__http_t *http);
/* Refuse new operations, and fail those that wait for a level. */
void tnk__session_shut(tnk__session_t *session);
/* Report the end of the session, if there is one, and wait for the response for
 * at most two seconds. `done` is called in a later turn of the loop. */
void tnk__session_finish(tnk__session_t *session,
                         void (*done)(tnk__session_t *session));
/* Stop timers and calls, leave the limiter, free. */
void tnk__session_close(tnk__session_t *session);

/* Usage of the service, and of the run that it continues. The requests of a
 * service are counted when they are sent. */
tnk__totals_t tnk__session_used(const tnk__session_t *session);
tnk__totals_t tnk__session_run_used(const tnk__session_t *session);

/* Leave a session that the server has ended. The next operation that needs a
 * session creates a new one. Until then `id` is the old one. */
void tnk__session_renew(tnk__session_t *session);

/* Check now whether the sessions of this and other services exist, for the
 * endpoint's doubts. Returns 0 if there is none. */
int tnk__session_ask(tnk__endpoint_t *endpoint);
/* A requested heartbeat was answered, or is not needed any more. If it was the
 * last one, the calls that wait for it end. Only schedules. */
void tnk__session_answered(tnk__session_t *session);

/* Call on_queue_state, if the program has set it. Must be last: the callback
 * may close the service. */
void tnk__session_tell(tnk__session_t *session, const char *client,
                       tnk_queue_state_t state, const char *reason);
/* Report to the user that operations of a client wait at the service. */
void tnk__session_notice(tnk__session_t *session, const char *client,
                         tnk_queue_state_t state, const char *reason);
/* Whether one more operation may be pending: TNK_OK, TNK_EFULL or
 * TNK_ECLOSED. */
int tnk__session_admits(const tnk__session_t *session);

/* Write the end of a sentence: the reason why the start-up waits. */
void tnk__session_explain(const tnk__session_t *session, tnk__text_t *out);

void tnk__need_init(tnk__need_t *need,
                    void (*done)(tnk__need_t *self, tnk__error_t *error));
/* Wait for a level; `done` is called in a later turn of the loop. */
void tnk__session_need(tnk__session_t *session, tnk__need_t *need,
                       tnk__session_level_t level);
void tnk__need_cancel(tnk__need_t *need);

#endif
