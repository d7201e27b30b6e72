/* SPDX-License-Identifier: MIT */
#include "lib/client/session/cancel.h"

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/client/call/call.h"
#include "lib/client/session/member.h"
#include "lib/wire/message/calls_future.h"

/* A slow server must not make the queue grow without limit. */
enum { MAX_WAITING = 16384, MAX_CANCEL_BODY = 64 * 1024 };

/* One cancel. Waiting, then sent; freed after the response. */
typedef struct {
  tnk__list_t link;
  tnk__canceler_t *canceler;
  tnk__call_t call;
  tnk__buf_t body;
} cancel_t;

static void pump(tnk__canceler_t *canceler);

static void dispose(cancel_t *cancel) {
  const tnk_allocator_t *alloc = &cancel->canceler->endpoint->context->alloc;

  tnk__list_remove(&cancel->link);
  tnk__call_cancel(&cancel->call);
  tnk__buf_deinit(&cancel->body);
  tnk__free(alloc, cancel);
}

static void drop_waiting(tnk__canceler_t *canceler) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&canceler->waiting)) != NULL)
    dispose(tnk__container_of(node, cancel_t, link));
  canceler->n_waiting = 0;
}

/* A sample that the server does not know has already ended. */
static void on_done(tnk__call_t *call, const tnk__reply_t *reply) {
  cancel_t *cancel = tnk__container_of(call, cancel_t, call);
  tnk__canceler_t *canceler = cancel->canceler;

  if (reply->error != NULL && reply->error->pub.code != TNK_ENOTFOUND &&
      reply->error->pub.code != TNK_EUNSUPPORTED)
    tnk__log(&canceler->endpoint->context->logger, TNK_LOG_WARN, "sampling",
             "could not report a canceled sample to the server: %s",
             reply->error->pub.text);
  dispose(cancel);
  canceler->n_sent--;
  pump(canceler);
}

/* Send as many in parallel as the server allows. */
static void pump(tnk__canceler_t *canceler) {
  tnk__list_t *node;

  if (!tnk__canceler_is_wanted(canceler)) {
    drop_waiting(canceler);
    return;
  }
  while (canceler->n_sent < canceler->flags->sample_cancel_batch &&
         (node = tnk__list_pop(&canceler->waiting)) != NULL) {
    cancel_t *cancel = tnk__container_of(node, cancel_t, link);

    tnk__list_append(&canceler->sent, node);
    canceler->n_waiting--;
    canceler->n_sent++;
    tnk__call_start(&cancel->call, on_done);
  }
}

void tnk__canceler_open(tnk__canceler_t *canceler, tnk__endpoint_t *endpoint,
                        const tnk__dynamic_flags_t *flags) {
  canceler->endpoint = endpoint;
  canceler->flags = flags;
  tnk__list_init(&canceler->waiting);
  tnk__list_init(&canceler->sent);
  tnk__list_init(&canceler->submissions);
}

void tnk__canceler_close(tnk__canceler_t *canceler) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&canceler->submissions)) != NULL)
    tnk__member_abort(tnk__member_of(node), tnk__error_static(TNK_ECLOSED));
  drop_waiting(canceler);
  while ((node = tnk__list_first(&canceler->sent)) != NULL)
    dispose(tnk__container_of(node, cancel_t, link));
  canceler->n_sent = 0;
}

int tnk__canceler_is_wanted(const tnk__canceler_t *canceler) {
  return canceler->flags->sample_cancel && !canceler->endpoint->closing &&
         !(canceler->endpoint->missing &
           tnk__route_bit(tnk__route(TNK__ROUTE_CANCEL_FUTURE)));
}

void tnk__canceler_tell(tnk__canceler_t *canceler, const char *request_id) {
  const tnk_allocator_t *alloc = &canceler->endpoint->context->alloc;
  cancel_t *cancel;

  if (!tnk__canceler_is_wanted(canceler) || canceler->n_waiting >= MAX_WAITING)
    return;
  cancel = tnk__calloc(alloc, 1, sizeof(*cancel));
  if (cancel == NULL)
    return;
  cancel->canceler = canceler;
  tnk__list_append(&canceler->waiting, &cancel->link);
  canceler->n_waiting++;
  tnk__call_init(&cancel->call, canceler->endpoint, TNK__ROUTE_CANCEL_FUTURE,
                 "cancel_future");
  tnk__buf_init(&cancel->body, alloc, MAX_CANCEL_BODY);
  tnk__cancel_future_write(&cancel->body, request_id);
  cancel->call.request.body = cancel->body.data;
  cancel->call.request.body_len = cancel->body.len;
  if (cancel->body.err != TNK_OK) {
    canceler->n_waiting--;
    dispose(cancel);
    return;
  }
  pump(canceler);
}
