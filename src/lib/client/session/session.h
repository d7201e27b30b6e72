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

/* How far the start-up has come. */
typedef enum {
  TNK__SESSION_NEW,        /* nothing was sent */
  TNK__SESSION_CONFIGURED, /* the server's flags are known */
  TNK__SESSION_READY       /* the session exists */
} tnk__session_level_t;

/* Waits for a level. Embedded in the operation. */
typedef struct tnk__need {
  tnk__list_t link;
  tnk__session_level_t level;
  tnk__deferred_t call;
  tnk__error_t *error; /* one reference, while `call` is queued */
  /* Called once, from the deferred queue; `error` is NULL on success and is
   * not the callee's. */
  void (*done)(struct tnk__need *self, tnk__error_t *error);
  struct tnk__session *session;
} tnk__need_t;

/* The form of passes that the server has accepted in this session. */
typedef enum {
  TNK__FORM_UNKNOWN = 0, /* none yet; protobuf is tried first */
  TNK__FORM_PROTO,
  TNK__FORM_JSON
} tnk__form_t;

/*
 * What all clients of a service share: the HTTP client, the server's flags,
 * the session with its heartbeat and counters, and the limits for sending.
 *
 * The level only rises, step by step, driven by the first that needs it: one
 * start-up call is under way at a time (`busy`). If it fails, all who wait
 * fail with it, and the next one to come tries again. Closing fails those who
 * wait; calls belong to those who made them.
 */
typedef struct tnk__session {
  tnk__context_t *context;
  const tnk__config_t *config;
  tnk__endpoint_t endpoint;
  tnk__renewal_t renewal;
  tnk__session_level_t level;
  int busy;
  tnk__list_t needs;
  tnk__call_t startup;     /* and at the end the report that it has finished */
  tnk__buf_t startup_body; /* of `startup`, and when it is READY of `refresh` */
  tnk__timer_t watch_timer; /* see watch.c */
  tnk__heartbeat_t heartbeat;
  void (*finished)(struct tnk__session *self);
  /* Whoever mends things hears that the session is lost, or what the server had
   * of a training client; may be NULL, and only schedules. */
  void (*lost)(struct tnk__session *self, struct tnk_training *training);
  /* The same of a sampler; may be NULL, and only schedules. */
  void (*lost_sampler)(struct tnk__session *self,
                       struct tnk_sampling *sampling);
  /* Whoever mends things learns that the server was probably restarted, though
   * the session exists; may be NULL. It may call the program. */
  void (*restarted)(struct tnk__session *self);
  struct tnk__recovery *mender;
  tnk__deferred_t no_finish; /* there is nothing to report */
  tnk__call_t refresh;       /* of the dynamic configuration, with its timer */
  char *id;
  tnk__flags_t flags;
  tnk__dynamic_flags_t dynamic;
  int restores_in_calls; /* the server has refused to restore in one */
  tnk__form_t pass_form;
  uint64_t next_model_seq;
  uint64_t next_loss_seq;
  uint64_t next_sampling_seq; /* one counter for all that make a sampler */
  tnk__purse_t purse;         /* what was used, and what may be */
  tnk__limiter_t limiter;
  tnk__budget_t train_bytes;
  tnk__budget_t result_bytes;
  tnk__budget_t sample_bytes;
  tnk__list_t trainings; /* clients, open or closing */
  tnk__list_t samplings;
  tnk__list_t foreigners; /* sessions of others, see foreign.h */
  tnk__loans_t loans;
  tnk__list_t errands; /* operations of no client: creations, questions */
  tnk__canceler_t canceler;
  size_t n_pollers; /* of sampling clients; each holds one poll */
  tnk__gate_t gate; /* samples that wait for the end of a back-off */
  tnk__semaphore_t sample_running; /* from the first attempt to the result */
  tnk__semaphore_t sample_slots;   /* while being submitted */
  tnk__window_t sample_window;     /* decides how many of those there are */
  tnk__semaphore_t fetches;        /* of results whose completion was told */
  tnk__semaphore_t checks; /* polls of samples that are silent for long */
  tnk__semaphore_t sample_throttle; /* a second one; the gate sets the limit */
} tnk__session_t;

void tnk__session_open(tnk__session_t *session, tnk__context_t *context,
                       const tnk__config_t *config, tnk__http_t *http);
/* Refuse what comes and fail what waits for a level. */
void tnk__session_shut(tnk__session_t *session);
/* Report the session as finished, if there is one, and wait for the answer for
 * at most two seconds; `done` is called in a later turn of the loop. */
void tnk__session_finish(tnk__session_t *session,
                         void (*done)(tnk__session_t *session));
/* The end: stop timers and calls, leave the limiter, free. */
void tnk__session_close(tnk__session_t *session);

/* What the service has used, and the run that it is a part of. The requests of
 * a service are counted where they leave. */
tnk__totals_t tnk__session_used(const tnk__session_t *session);
tnk__totals_t tnk__session_run_used(const tnk__session_t *session);

/* Leave a session that the server has ended: the next one to need a session
 * makes a new one. Until then `id` is that of the old one. */
void tnk__session_renew(tnk__session_t *session);

/* Ask now whether the sessions exist, of this service and of others; for the
 * endpoint's doubts. 0: there is none. */
int tnk__session_ask(tnk__endpoint_t *endpoint);
/* A heartbeat that was asked for has been answered, or is not due any more. If
 * it was the last one, the calls that wait for it end. Only schedules. */
void tnk__session_answered(tnk__session_t *session);

/* Call the observer of queues, if there is one, as the last touch: it may close
 * the service. */
void tnk__session_tell(tnk__session_t *session, const char *client,
                       tnk_queue_state_t state, const char *reason);
/* Tell the user that operations of a client wait at the service. */
void tnk__session_notice(tnk__session_t *session, const char *client,
                         tnk_queue_state_t state, const char *reason);
/* Check that one more operation may be pending: TNK_OK, TNK_EFULL or
 * TNK_ECLOSED. */
int tnk__session_admits(const tnk__session_t *session);

/* Write what the start-up waits for while somebody needs it, as the end of a
 * sentence. */
void tnk__session_explain(const tnk__session_t *session, tnk__text_t *out);

void tnk__need_init(tnk__need_t *need,
                    void (*done)(tnk__need_t *self, tnk__error_t *error));
/* Ask for a level; `done` comes in a later turn of the loop. */
void tnk__session_need(tnk__session_t *session, tnk__need_t *need,
                       tnk__session_level_t level);
void tnk__need_cancel(tnk__need_t *need);

#endif
