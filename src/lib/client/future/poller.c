/* SPDX-License-Identifier: MIT */
#include "lib/client/future/poller.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/policy/siphash.h"
#include "lib/wire/message/calls_future.h"

enum {
  /* Completions without a waiter: of samples whose acceptance has not arrived
   * yet, and of canceled ones. Above this number the oldest are dropped; the
   * affected sample polls for itself in the end. */
  MAX_LOOSE = 8192,
  MAX_REPORTS = 16384,
  MAX_REPORTS_A_REQUEST = 1024,
  MAX_BODY = 16 * 1024 * 1024,
  MAX_ID = 1024, /* longer ids are not awaited here */
  FLUSH_TIMEOUT_MS = 5000,
  NO_MEMORY_MS = 1000 /* delay of the next attempt after a request or
                         response that found no memory */
};
#define MAX_ANSWER (4 * TNK__MIB)

/* ---- The table of tickets ---- */

enum { MIN_BUCKETS = 64 };

static void tickets_init(tnk__tickets_t *tickets, const tnk_allocator_t *alloc,
                         uint64_t key0, uint64_t key1) {
  memset(tickets, 0, sizeof(*tickets));
  tickets->alloc = alloc;
  tickets->key[0] = key0;
  tickets->key[1] = key1;
}

/* Free the table. Its tickets must be removed before. */
static void tickets_deinit(tnk__tickets_t *tickets) {
  tnk__free(tickets->alloc, tickets->buckets);
  tickets->buckets = NULL;
  tickets->n_buckets = 0;
}

static tnk__ticket_t **bucket_of(const tnk__tickets_t *tickets, uint64_t hash) {
  return &tickets->buckets[hash & (tickets->n_buckets - 1)];
}

static tnk__ticket_t *tickets_find(const tnk__tickets_t *tickets,
                                   const char *id) {
  uint64_t hash = tnk__siphash(tickets->key, id, strlen(id));
  tnk__ticket_t *ticket;

  if (tickets->n_buckets == 0)
    return NULL;
  for (ticket = *bucket_of(tickets, hash); ticket != NULL;
       ticket = ticket->next)
    if (ticket->hash == hash && strcmp(ticket->id, id) == 0)
      return ticket;
  return NULL;
}

/* Double the buckets. Without memory the chains get longer instead. */
static void grow(tnk__tickets_t *tickets) {
  tnk__ticket_t **old = tickets->buckets;
  size_t n_old = tickets->n_buckets;
  size_t n = n_old > 0 ? 2 * n_old : MIN_BUCKETS;
  tnk__ticket_t **buckets = tnk__calloc(tickets->alloc, n, sizeof(*buckets));
  size_t i;

  if (buckets == NULL)
    return;
  tickets->buckets = buckets;
  tickets->n_buckets = n;
  for (i = 0; i < n_old; i++) {
    while (old[i] != NULL) {
      tnk__ticket_t *ticket = old[i];
      tnk__ticket_t **bucket = bucket_of(tickets, ticket->hash);

      old[i] = ticket->next;
      ticket->next = *bucket;
      *bucket = ticket;
    }
  }
  tnk__free(tickets->alloc, old);
}

/* Add a ticket, which is in no list. The id must be new. NULL without
 * memory. */
static tnk__ticket_t *tickets_add(tnk__tickets_t *tickets, const char *id) {
  size_t n = strlen(id);
  tnk__ticket_t **bucket;
  tnk__ticket_t *ticket;

  if (tickets->n >= tickets->n_buckets)
    grow(tickets);
  if (tickets->n_buckets == 0)
    return NULL;
  ticket = tnk__malloc(tickets->alloc, sizeof(*ticket) + n + 1);
  if (ticket == NULL)
    return NULL;
  memset(ticket, 0, sizeof(*ticket));
  memcpy(ticket->id, id, n + 1);
  tnk__list_init(&ticket->link);
  ticket->hash = tnk__siphash(tickets->key, id, n);
  bucket = bucket_of(tickets, ticket->hash);
  ticket->next = *bucket;
  *bucket = ticket;
  tickets->n++;
  return ticket;
}

/* Remove a ticket from its list and free it. */
static void tickets_remove(tnk__tickets_t *tickets, tnk__ticket_t *ticket) {
  tnk__ticket_t **at = bucket_of(tickets, ticket->hash);

  while (*at != ticket)
    at = &(*at)->next;
  *at = ticket->next;
  tnk__list_remove(&ticket->link);
  tnk__free(tickets->alloc, ticket);
  tickets->n--;
}

/* ---- The poller ---- */

static void update(tnk__poller_t *poller);

static tnk__ticket_t *ticket_of(tnk__list_t *node) {
  return tnk__container_of(node, tnk__ticket_t, link);
}

/* ---- Tickets ---- */

/* Move a ticket to another state and its list, keeping the counts. */
static void leave_list(tnk__poller_t *poller, tnk__ticket_t *ticket) {
  tnk__list_remove(&ticket->link);
  poller->n_awaited -= ticket->state == TNK__TICKET_AWAITED;
  poller->n_reports -= ticket->state == TNK__TICKET_REPORT;
  poller->n_loose -= ticket->state == TNK__TICKET_EARLY ||
                     ticket->state == TNK__TICKET_ABANDONED;
}

static void drop(tnk__poller_t *poller, tnk__ticket_t *ticket) {
  leave_list(poller, ticket);
  tickets_remove(&poller->tickets, ticket);
}

static void drop_all(tnk__poller_t *poller, tnk__list_t *list) {
  tnk__list_t *node;

  while ((node = tnk__list_first(list)) != NULL)
    drop(poller, ticket_of(node));
}

static void set_awaited(tnk__poller_t *poller, tnk__ticket_t *ticket) {
  ticket->state = TNK__TICKET_AWAITED;
  tnk__list_append(&poller->awaited, &ticket->link);
  poller->n_awaited++;
}

static void set_taken(tnk__poller_t *poller, tnk__ticket_t *ticket) {
  ticket->state = TNK__TICKET_TAKEN;
  tnk__list_append(&poller->taken, &ticket->link);
}

static void set_loose(tnk__poller_t *poller, tnk__ticket_t *ticket,
                      tnk__ticket_state_t state) {
  if (poller->n_loose >= MAX_LOOSE)
    drop(poller, ticket_of(tnk__list_first(&poller->loose)));
  ticket->state = state;
  tnk__list_append(&poller->loose, &ticket->link);
  poller->n_loose++;
}

static void set_report(tnk__poller_t *poller, tnk__ticket_t *ticket) {
  if (poller->n_reports >= MAX_REPORTS)
    drop(poller, ticket_of(tnk__list_first(&poller->reports)));
  ticket->state = TNK__TICKET_REPORT;
  tnk__list_append(&poller->reports, &ticket->link);
  poller->n_reports++;
}

/* The request that acknowledges them was not answered. */
static void report_again(tnk__poller_t *poller) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&poller->reporting)) != NULL)
    set_report(poller, ticket_of(node));
}

/* ---- The end ---- */

/* Wake all waiters: from now on each polls for itself. */
static void go_off(tnk__poller_t *poller) {
  tnk__list_t *node;

  poller->batch.is_off = 1;
  poller->state = TNK__POLLER_IDLE;
  tnk__timer_stop(&poller->timer);
  tnk__call_cancel(&poller->call);
  drop_all(poller, &poller->reporting);
  drop_all(poller, &poller->reports);
  drop_all(poller, &poller->loose);
  while ((node = tnk__list_first(&poller->awaited)) != NULL) {
    tnk__awaited_t *awaited = ticket_of(node)->awaited;

    awaited->ticket = NULL;
    drop(poller, ticket_of(node));
    awaited->woken(awaited, 0, 0);
  }
  if (poller->on_off != NULL)
    poller->on_off(poller);
}

/* ---- Responses ---- */

/* Returns 1 if a waiter was woken. */
static int complete(tnk__poller_t *poller,
                    const tnk__completion_t *completion) {
  tnk__ticket_t *ticket =
      tickets_find(&poller->tickets, completion->request_id);
  tnk__awaited_t *awaited;

  if (ticket == NULL) {
    ticket = tickets_add(&poller->tickets, completion->request_id);
    if (ticket == NULL)
      return 0; /* like a lost notification */
    ticket->result_bytes = completion->result_bytes;
    set_loose(poller, ticket, TNK__TICKET_EARLY);
    return 0;
  }
  if (ticket->state == TNK__TICKET_ABANDONED) {
    leave_list(poller, ticket);
    set_report(poller, ticket);
    return 1;
  }
  if (ticket->state != TNK__TICKET_AWAITED)
    return 0; /* the server repeats it */
  awaited = ticket->awaited;
  leave_list(poller, ticket);
  set_taken(poller, ticket);
  awaited->woken(awaited, 1, completion->result_bytes);
  return 1;
}

static int read_answer(tnk__poller_t *poller, const tnk__reply_t *reply) {
  tnk__context_t *context = poller->endpoint->context;
  tnk__batch_answer_t answer;
  tnk__arena_t arena;
  int has_news = 0;
  size_t i;
  int err;

  tnk__arena_init(&arena, &context->alloc, 8 * MAX_ANSWER);
  err =
      tnk__retrieve_futures_read(&answer, &arena, reply->body, reply->body_len);
  if (err == TNK_OK) {
    for (i = 0; i < answer.n; i++)
      has_news |= complete(poller, &answer.completions[i]);
    drop_all(poller, &poller->reporting);
    tnk__batch_answered(&poller->batch, answer.cursor, has_news,
                        tnk__context_now_ms(context));
  }
  tnk__arena_deinit(&arena);
  return err;
}

static void log_off(const tnk__poller_t *poller, const char *why) {
  tnk__log(&poller->endpoint->context->logger, TNK_LOG_WARN, "sampling",
           "%s: batched polls do not work with this server, so each sample is "
           "polled for: %s",
           poller->target, why);
}

/* Returns 1 if another request will be sent. */
static int on_failed(tnk__poller_t *poller, const tnk__reply_t *reply) {
  int was_flush = poller->state == TNK__POLLER_FLUSHING;

  report_again(poller);
  if (!tnk__batch_failed(&poller->batch, &reply->verdict, reply->outcome,
                         reply->retry_after_ms,
                         tnk__context_now_ms(poller->endpoint->context),
                         tnk__context_uniform(poller->endpoint->context)))
    return 0;
  if (was_flush && tnk__batch_drops_reports(&poller->batch))
    drop_all(poller, &poller->reports);
  return 1;
}

static void on_answer(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__poller_t *poller = tnk__container_of(call, tnk__poller_t, call);
  const char *why = NULL;
  int err;

  poller->asked_ms = reply->retry_after_ms;
  if (reply->error != NULL) {
    if (!on_failed(poller, reply))
      why = reply->error->pub.text;
  } else {
    err = read_answer(poller, reply);
    if (err != TNK_OK)
      report_again(poller);
    if (err == TNK_ENOMEM)
      poller->batch.next_ms =
          tnk__context_now_ms(poller->endpoint->context) + NO_MEMORY_MS;
    else if (err != TNK_OK)
      why = tnk_strerror(err);
  }
  poller->state = TNK__POLLER_IDLE;
  if (why != NULL) {
    log_off(poller, why);
    go_off(poller);
  } else {
    update(poller);
  }
}

/* ---- Requests ---- */

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Take the ids to acknowledge with the next request, sorted. Without memory
 * they are acknowledged later. */
static const char **take_reports(tnk__poller_t *poller, size_t *n) {
  size_t max = poller->n_reports < MAX_REPORTS_A_REQUEST
                   ? poller->n_reports
                   : MAX_REPORTS_A_REQUEST;
  const char **ids = NULL;
  size_t i;

  *n = 0;
  if (max > 0)
    ids = tnk__calloc(&poller->endpoint->context->alloc, max, sizeof(*ids));
  if (ids == NULL)
    return NULL;
  for (i = 0; i < max; i++) {
    tnk__ticket_t *ticket = ticket_of(tnk__list_first(&poller->reports));

    leave_list(poller, ticket);
    ticket->state = TNK__TICKET_REPORTING;
    tnk__list_append(&poller->reporting, &ticket->link);
    ids[i] = ticket->id;
  }
  qsort(ids, max, sizeof(*ids), by_text);
  *n = max;
  return ids;
}

static void on_due(tnk__timer_t *timer);

static void ask(tnk__poller_t *poller, tnk__poller_state_t state) {
  tnk__context_t *context = poller->endpoint->context;
  int is_flush = state == TNK__POLLER_FLUSHING;
  tnk__batch_request_t request = {.sampling_session_id = poller->target,
                                  .clone = poller->clone,
                                  .prev_cursor = poller->batch.cursor,
                                  .at_once = is_flush};
  const char **ids = take_reports(poller, &request.n_retrieved);

  request.retrieved = ids;
  tnk__buf_clear(&poller->body);
  tnk__retrieve_futures_write(&poller->body, &request);
  tnk__free(&context->alloc, ids);
  poller->state = state;
  poller->call.request.body = poller->body.data;
  poller->call.request.body_len = poller->body.len;
  poller->call.request.timeout_ms = is_flush ? FLUSH_TIMEOUT_MS : 0;
  if (poller->body.err != TNK_OK) {
    report_again(poller);
    poller->state = is_flush ? TNK__POLLER_FLUSH_DUE : TNK__POLLER_PAUSING;
    tnk__timer_start(context, &poller->timer, NO_MEMORY_MS, on_due);
    return;
  }
  tnk__batch_sent(&poller->batch, tnk__context_now_ms(context));
  tnk__call_start(&poller->call, on_answer);
}

static void on_due(tnk__timer_t *timer) {
  tnk__poller_t *poller = tnk__container_of(timer, tnk__poller_t, timer);

  tnk__reach_leave(&poller->call.reacher);
  ask(poller, poller->state == TNK__POLLER_PAUSING ? TNK__POLLER_POLLING
                                                   : TNK__POLLER_FLUSHING);
}

/* Stop the active request or pause: it serves a need that has changed. */
static void stop(tnk__poller_t *poller) {
  tnk__timer_stop(&poller->timer);
  tnk__call_cancel(&poller->call);
  report_again(poller);
  poller->state = TNK__POLLER_IDLE;
}

static void hold(tnk__poller_t *poller, uint64_t wait_ms) {
  if (wait_ms == 0) {
    ask(poller, TNK__POLLER_POLLING);
    return;
  }
  poller->state = TNK__POLLER_PAUSING;
  tnk__timer_start(poller->endpoint->context, &poller->timer, wait_ms, on_due);
  tnk__reach_wait(poller->endpoint, &poller->call.reacher, poller->asked_ms);
}

/* Start the request that is needed now. Called after every change of waiters,
 * acknowledgments and responses. */
static void update(tnk__poller_t *poller) {
  tnk__poller_state_t state = poller->state;
  int is_polling = state == TNK__POLLER_POLLING || state == TNK__POLLER_PAUSING;
  tnk__batch_need_t need =
      tnk__batch_need(&poller->batch, poller->n_awaited, poller->n_reports);
  uint64_t wait_ms;

  if (state != TNK__POLLER_IDLE) {
    if (is_polling ? need == TNK__BATCH_POLL : need != TNK__BATCH_POLL)
      return;
    stop(poller);
    need =
        tnk__batch_need(&poller->batch, poller->n_awaited, poller->n_reports);
  }
  wait_ms = tnk__batch_wait_ms(&poller->batch, need,
                               tnk__context_now_ms(poller->endpoint->context));
  if (need == TNK__BATCH_POLL) {
    hold(poller, wait_ms);
  } else if (need == TNK__BATCH_FLUSH) {
    poller->state = TNK__POLLER_FLUSH_DUE;
    tnk__timer_start_background(poller->endpoint->context, &poller->timer,
                                wait_ms, on_due);
  }
}

/* ---- Waiters ---- */

void tnk__poller_open(tnk__poller_t *poller, tnk__endpoint_t *endpoint,
                      const char *target, uint64_t clone) {
  tnk__context_t *context = endpoint->context;

  memset(poller, 0, sizeof(*poller));
  poller->endpoint = endpoint;
  poller->target = target;
  poller->clone = clone;
  tnk__batch_init(&poller->batch);
  tnk__call_init(&poller->call, endpoint, TNK__ROUTE_RETRIEVE_FUTURES,
                 "retrieve_futures");
  poller->call.request.max_body = MAX_ANSWER;
  /* The call itself makes no pauses, because it is a poll. */
  tnk__reacher_init(&poller->call.reacher, &poller->timer);
  tnk__buf_init(&poller->body, &context->alloc, MAX_BODY);
  tickets_init(&poller->tickets, &context->alloc, tnk__context_random(context),
               tnk__context_random(context));
  tnk__list_init(&poller->awaited);
  tnk__list_init(&poller->taken);
  tnk__list_init(&poller->loose);
  tnk__list_init(&poller->reports);
  tnk__list_init(&poller->reporting);
}

void tnk__poller_close(tnk__poller_t *poller) {
  tnk__list_t *node;

  poller->on_off = NULL;
  go_off(poller);
  while ((node = tnk__list_first(&poller->taken)) != NULL) {
    ticket_of(node)->awaited->ticket = NULL;
    drop(poller, ticket_of(node));
  }
  tickets_deinit(&poller->tickets);
  tnk__buf_deinit(&poller->body);
}

tnk__await_t tnk__poller_wait(tnk__poller_t *poller, tnk__awaited_t *awaited,
                              const char *request_id, uint64_t *result_bytes) {
  tnk__ticket_t *ticket;

  if (poller->batch.is_off || strlen(request_id) > MAX_ID)
    return TNK__AWAIT_DIRECT;
  ticket = tickets_find(&poller->tickets, request_id);
  if (ticket != NULL && ticket->state != TNK__TICKET_EARLY)
    return TNK__AWAIT_DIRECT; /* the server has used an id twice */
  if (ticket == NULL) {
    ticket = tickets_add(&poller->tickets, request_id);
    if (ticket == NULL)
      return TNK__AWAIT_DIRECT;
    set_awaited(poller, ticket);
  } else {
    leave_list(poller, ticket);
    set_taken(poller, ticket);
    *result_bytes = ticket->result_bytes;
  }
  ticket->awaited = awaited;
  awaited->ticket = ticket;
  awaited->poller = poller;
  if (ticket->state == TNK__TICKET_TAKEN)
    return TNK__AWAIT_COMPLETE;
  update(poller);
  return TNK__AWAIT_WAIT;
}

void tnk__awaited_leave(tnk__awaited_t *awaited, tnk__leave_t how) {
  tnk__poller_t *poller = awaited->poller;
  tnk__ticket_t *ticket = awaited->ticket;
  int has_come;

  if (ticket == NULL)
    return;
  awaited->ticket = NULL;
  ticket->awaited = NULL;
  has_come = ticket->state == TNK__TICKET_TAKEN;
  leave_list(poller, ticket);
  if (poller->batch.is_off || how == TNK__LEAVE_LOST)
    tickets_remove(&poller->tickets, ticket);
  else if (how == TNK__LEAVE_RECEIVED || has_come)
    set_report(poller, ticket);
  else
    set_loose(poller, ticket, TNK__TICKET_ABANDONED);
  update(poller);
}

/* ---- Reasons of a wait ---- */

void tnk__poller_explain(const tnk__poller_t *poller, tnk__text_t *out) {
  const uint64_t now = tnk__context_now_ms(poller->endpoint->context);

  tnk__text_printf(out, "the poll for %zu sample%s of the client ",
                   poller->n_awaited, poller->n_awaited == 1 ? "" : "s");
  if (tnk__timer_is_active(&poller->timer)) {
    tnk__text_printf(out, "follows in ");
    tnk__text_time(out, tnk__timer_left_ms(&poller->timer, now));
  } else {
    tnk__call_explain(&poller->call, out);
  }
}
