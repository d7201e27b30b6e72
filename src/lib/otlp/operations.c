/* SPDX-License-Identifier: MIT */
#include "lib/otlp/operations.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/otlp/encode.h"
#include "tnk/error.h"

enum {
  MIN_BUCKETS = 64,
  MAX_OPERATIONS = 1 << 16, /* in progress; further ones are dropped */
  MAX_EVENTS = 64,          /* of one operation; further ones are counted */
  MAX_EVENT_BYTES = 16 << 10,
  MAX_TEXT = 128
};

/* An operation in progress. */
typedef struct tnk__otlp_operation {
  struct tnk__otlp_operation *next; /* in its bucket */
  uint64_t number;
  tnk_otlp_span_t span;
  char name[64];
  char client[MAX_TEXT];
  char request_id[MAX_TEXT];
  tnk__buf_t events; /* encoded */
  uint32_t n_events;
  uint32_t n_dropped;
  uint32_t n_retries;
  int status; /* of HTTP, the latest */
} operation_t;

/* ---- The table ---- */

static operation_t **place_of(const tnk__otlp_operations_t *all,
                              uint64_t number) {
  const uint64_t hash = number * 0x9e3779b97f4a7c15u >> 32;

  return &all->buckets[hash & (all->n_buckets - 1)];
}

/* The link to an operation. NULL if it is unknown. */
static operation_t **find(const tnk__otlp_operations_t *all, uint64_t number) {
  operation_t **link;

  if (all->n == 0)
    return NULL;
  link = place_of(all, number);
  while (*link != NULL && (*link)->number != number)
    link = &(*link)->next;
  return *link != NULL ? link : NULL;
}

/* Without memory the table keeps its size. Returns 0 if it has none. */
static int grow(tnk__otlp_t *otlp) {
  tnk__otlp_operations_t *all = &otlp->operations;
  tnk__otlp_operations_t more = {.n = all->n};

  more.n_buckets = all->n_buckets > 0 ? 2 * all->n_buckets : MIN_BUCKETS;
  more.buckets =
      tnk__calloc(&otlp->context->alloc, more.n_buckets, sizeof(operation_t *));
  if (more.buckets == NULL)
    return all->n_buckets > 0;
  for (size_t i = 0; i < all->n_buckets; i++) {
    operation_t *operation = all->buckets[i];

    while (operation != NULL) {
      operation_t *next = operation->next;
      operation_t **link = place_of(&more, operation->number);

      operation->next = *link;
      *link = operation;
      operation = next;
    }
  }
  tnk__free(&otlp->context->alloc, all->buckets);
  *all = more;
  return 1;
}

static void free_operation(tnk__otlp_t *otlp, operation_t *operation) {
  tnk__buf_deinit(&operation->events);
  tnk__free(&otlp->context->alloc, operation);
}

void tnk__otlp_operations_deinit(tnk__otlp_t *otlp) {
  tnk__otlp_operations_t *all = &otlp->operations;

  for (size_t i = 0; i < all->n_buckets; i++)
    while (all->buckets[i] != NULL) {
      operation_t *operation = all->buckets[i];

      all->buckets[i] = operation->next;
      free_operation(otlp, operation);
    }
  tnk__free(&otlp->context->alloc, all->buckets);
  *all = (tnk__otlp_operations_t){.n = 0};
}

/* ---- Operations ---- */

static void begin(tnk__otlp_t *otlp, const tnk_event_t *event) {
  tnk__otlp_operations_t *all = &otlp->operations;
  const tnk_otlp_span_t *parent =
      otlp->parent.span_id != 0 ? &otlp->parent : &otlp->of_option;
  tnk_otlp_span_t span;
  operation_t *operation;

  tnk__otlp_begin_below(otlp, &span, parent);
  if (!span.is_sampled)
    return;
  operation = all->n < MAX_OPERATIONS && (all->n < all->n_buckets || grow(otlp))
                  ? tnk__calloc(&otlp->context->alloc, 1, sizeof(*operation))
                  : NULL;
  if (operation == NULL) {
    otlp->n_dropped++;
    return;
  }
  operation->number = event->operation;
  operation->span = span;
  operation->span.start_ns = event->time_ns;
  (void)snprintf(operation->name, sizeof(operation->name), "%s",
                 event->name != NULL ? event->name : "operation");
  (void)snprintf(operation->client, sizeof(operation->client), "%s",
                 event->client != NULL ? event->client : "");
  tnk__buf_init(&operation->events, &otlp->context->alloc, MAX_EVENT_BYTES);
  operation->next = *place_of(all, event->operation);
  *place_of(all, event->operation) = operation;
  all->n++;
}

static tnk_otlp_attribute_t text_of(const char *key, const char *text) {
  return (tnk_otlp_attribute_t){.key = text != NULL && *text ? key : NULL,
                                .text = text};
}

static tnk_otlp_attribute_t number_of(const char *key, uint64_t number) {
  return (tnk_otlp_attribute_t){.key = number > 0 ? key : NULL,
                                .type = TNK_OTLP_INTEGER,
                                .integer = (int64_t)number};
}

static const char *error_of(int code) {
  return code != TNK_OK ? tnk_err_name(code) : NULL;
}

static void note_phase(const tnk__otlp_t *otlp, operation_t *operation,
                       const tnk_event_t *event) {
  const tnk_otlp_attribute_t attributes[] = {
      text_of("tnk.waits_for", event->phase == TNK_PHASE_WAITS
                                   ? tnk_waits_for_name(event->waits_for)
                                   : NULL),
      number_of("tnk.part", event->part),
      number_of("tnk.attempt", event->attempt),
      number_of("tnk.bytes", event->bytes),
      number_of("http.response.status_code",
                event->status > 0 ? (uint64_t)event->status : 0),
      text_of("error.type", error_of(event->code))};
  const size_t n_before = operation->events.len;

  if (event->status > 0)
    operation->status = event->status;
  if (event->request_id != NULL)
    (void)snprintf(operation->request_id, sizeof(operation->request_id), "%s",
                   event->request_id);
  if (event->phase == TNK_PHASE_WAITS &&
      event->waits_for == TNK_WAITS_FOR_RETRY)
    operation->n_retries++;
  if (operation->n_events < MAX_EVENTS && operation->events.err == TNK_OK) {
    tnk__otlp_put_event(&operation->events, tnk_phase_name(event->phase),
                        tnk__context_unix_ns(otlp->context, event->time_ns),
                        attributes, sizeof(attributes) / sizeof(*attributes));
    if (operation->events.err == TNK_OK) {
      operation->n_events++;
      return;
    }
    /* The bytes of a partly written event are not used. */
    operation->events.len = n_before;
  }
  operation->n_dropped++;
}

static void end(tnk__otlp_t *otlp, operation_t *operation,
                const tnk_event_t *event) {
  const tnk_otlp_attribute_t attributes[] = {
      number_of("tnk.operation", operation->number),
      text_of("tnk.client", operation->client),
      text_of("tnk.request_id", operation->request_id),
      number_of("tnk.retries", operation->n_retries),
      number_of("http.response.status_code",
                operation->status > 0 ? (uint64_t)operation->status : 0),
      text_of("error.type", error_of(event->code))};
  const tnk_otlp_end_t how = {.name = operation->name,
                              .kind = TNK_OTLP_CLIENT,
                              .is_error = event->phase == TNK_PHASE_FAILED,
                              .end_ns = event->time_ns,
                              .attributes = attributes,
                              .n_attributes =
                                  sizeof(attributes) / sizeof(*attributes)};

  tnk__otlp_end(otlp, &operation->span, &how, &operation->events,
                operation->n_dropped);
}

void tnk__otlp_observe(tnk__otlp_t *otlp, const tnk_event_t *event) {
  operation_t **link;
  operation_t *operation;

  if (otlp->is_closing || !otlp->settings.targets[TNK__OTLP_TRACES].is_on)
    return;
  if (event->phase == TNK_PHASE_QUEUED) {
    begin(otlp, event);
    return;
  }
  link = find(&otlp->operations, event->operation);
  if (link == NULL)
    return;
  operation = *link;
  if (event->phase == TNK_PHASE_DECODED || event->phase == TNK_PHASE_FAILED) {
    end(otlp, operation, event);
    *link = operation->next;
    otlp->operations.n--;
    free_operation(otlp, operation);
  } else {
    note_phase(otlp, operation, event);
  }
}
