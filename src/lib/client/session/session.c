/* SPDX-License-Identifier: MIT */
/*
 * Only tnk__registry_tell() and tnk__registry_notice() call the program. It
 * must be the last action of their caller, because the program may close the
 * service.
 */
#include "lib/client/session/session.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/client/call/reach.h"

/* ---- Loans ---- */

static void on_over(tnk__deferred_t *call) {
  tnk__loan_t *loan = tnk__container_of(call, tnk__loan_t, call);
  const tnk__loan_t copy = *loan;

  if (loan->is_spare)
    loan->release = NULL;
  else
    tnk__free(&copy.loans->context->alloc, loan);
  tnk__callout_begin();
  copy.release(copy.user);
  tnk__callout_end();
}

static void open_loans(tnk__loans_t *loans, tnk__context_t *context) {
  *loans = (tnk__loans_t){.context = context};
}

static tnk__loan_t *find_spare(tnk__loans_t *loans) {
  size_t i;

  for (i = 0; i < TNK__LOANS_SPARE; i++)
    if (loans->spare[i].release == NULL)
      return &loans->spare[i];
  return NULL;
}

void tnk__loans_end(tnk__loans_t *loans, void (*release)(void *user),
                    void *user) {
  tnk__loan_t *loan = tnk__malloc(&loans->context->alloc, sizeof(*loan));
  const int is_spare = loan == NULL;

  if (is_spare)
    loan = find_spare(loans);
  if (loan == NULL) {
    release(user);
    return;
  }
  *loan = (tnk__loan_t){
      .loans = loans, .release = release, .user = user, .is_spare = is_spare};
  tnk__deferred_init(&loan->call, on_over);
  tnk__defer(loans->context, &loan->call);
}

/* ---- The session ---- */

static void on_reach(tnk__endpoint_t *endpoint, int is_out,
                     const char *reason) {
  tnk__registry_tell(&tnk__session_of(endpoint)->registry,
                     endpoint->config->url.host,
                     is_out ? TNK_QUEUE_UNREACHABLE : TNK_QUEUE_ACTIVE, reason);
}

void tnk__session_open(tnk__session_t *session, tnk__context_t *context,
                       const tnk__config_t *config, tnk__http_t *http) {
  memset(session, 0, sizeof(*session));
  session->context = context;
  session->config = config;
  session->endpoint.context = context;
  session->endpoint.config = config;
  session->endpoint.http = http;
  session->endpoint.auth = &session->renewal.auth;
  tnk__reach_open(&session->endpoint);
  session->endpoint.reach.on_change = on_reach;
  tnk__doubts_open(&session->endpoint);
  tnk__restart_open(&session->endpoint);
  tnk__renewal_open(&session->renewal, &session->endpoint);
  open_loans(&session->loans, context);
  tnk__registry_open(&session->registry, &session->endpoint);
  session->start.endpoint = &session->endpoint;
  session->start.renewal = &session->renewal;
  session->start.limits = &session->limits;
  session->start.registry = &session->registry;
  tnk__start_open(&session->start);
  tnk__limits_open(&session->limits, context, config, &session->start.flags);
  tnk__canceler_open(&session->canceler, &session->endpoint,
                     &session->start.dynamic);
}

void tnk__session_shut(tnk__session_t *session) {
  session->endpoint.closing = 1;
  tnk__reach_shut(&session->endpoint);
  tnk__canceler_close(&session->canceler);
  tnk__renewal_shut(&session->renewal);
  tnk__start_shut(&session->start);
}

void tnk__session_close(tnk__session_t *session) {
  tnk__renewal_close(&session->renewal);
  tnk__limits_close(&session->limits, tnk__context_now_ms(session->context));
  tnk__start_close(&session->start);
}

tnk__totals_t tnk__session_used(const tnk__session_t *session) {
  const tnk__counters_t *counters = &session->context->counters;
  tnk__totals_t totals = session->limits.allowance.used;

  totals.n_requests = counters->n_requests;
  totals.n_bytes_sent = counters->n_bytes_sent;
  totals.n_bytes_received = counters->n_bytes_received;
  return totals;
}

tnk__totals_t tnk__session_run_used(const tnk__session_t *session) {
  const tnk__totals_t used = tnk__session_used(session);
  tnk__totals_t totals = session->limits.allowance.before;

  tnk__totals_add(&totals, &used);
  return totals;
}

int tnk__session_admits(const tnk__session_t *session) {
  if (session->endpoint.closing)
    return TNK_ECLOSED;
  if (session->context->n_pending >= session->config->options.max_pending)
    return TNK_EFULL;
  return TNK_OK;
}
