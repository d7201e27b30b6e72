#include <string.h>

#include "lib/base/alloc.h"
#include "tools/local/future/hold.h"
#include "tools/local/sample/sampler.h"

/*
 * Batched polls: a client of a sampling session asks which of its samples have
 * finished since a cursor. Each completion gets the session's next cursor.
 */

typedef struct {
  tnk__list_t link; /* in local_sampler_t.polls */
  local_hold_t hold;
  tnk__srv_req_t *req;
  local_sampler_t *sampler;
  uint64_t clone;
  uint64_t prev;
} poll_t;

#define POLL(p) tnk__container_of(p, poll_t, link)
#define FUTURE(p) tnk__container_of(p, local_future_t, in_sampler)

/* Limit for one answer; the client fetches the rest with the cursor. */
enum { MAX_COMPLETIONS = 4096 };

static int is_new(const local_future_t *future, uint64_t clone, uint64_t prev) {
  return future->state == LOCAL_FUTURE_SETTLED && future->clone == clone &&
         future->cursor > prev;
}

static int has_news(const local_sampler_t *sampler, uint64_t clone,
                    uint64_t prev) {
  TNK__LIST_FOREACH (node, &sampler->futures) {
    if (is_new(FUTURE(node), clone, prev))
      return 1;
  }
  return 0;
}

static void reply_news(tnk__srv_req_t *req, const local_sampler_t *sampler,
                       uint64_t clone, uint64_t prev) {
  uint64_t cursor = prev;
  size_t n = 0;
  local_out_t out;

  local_out_init(&out, sampler->server->alloc);
  tnk__json_begin_object(&out.w);
  tnk__json_key(&out.w, "completions");
  tnk__json_begin_array(&out.w);
  /* Completions are in the order of their cursors. */
  TNK__LIST_FOREACH (node, &sampler->futures) {
    const local_future_t *future = FUTURE(node);

    if (!is_new(future, clone, prev) || n == MAX_COMPLETIONS)
      continue;
    n++;
    cursor = future->cursor;
    tnk__json_begin_object(&out.w);
    tnk__json_put_text(&out.w, "state",
                       future->status == 200 ? "finished" : "failed");
    tnk__json_put_text(&out.w, "request_id", future->id);
    if (future->status == 200)
      tnk__json_put_int(&out.w, "response_payload_uncompressed_size",
                        (int64_t)future->n_result);
    tnk__json_end(&out.w);
  }
  tnk__json_end(&out.w);
  tnk__json_put_int(&out.w, "cursor", (int64_t)cursor);
  tnk__json_end(&out.w);
  local_out_reply(&out, req, 200);
}

static void free_poll(poll_t *poll) {
  local_server_t *server = poll->sampler->server;

  tnk__list_remove(&poll->link);
  local_hold_stop(server, &poll->hold);
  tnk__free(server->alloc, poll);
}

static void answer(poll_t *poll) {
  poll_t copy = *poll;

  free_poll(poll);
  reply_news(copy.req, copy.sampler, copy.clone, copy.prev);
}

static void on_held(local_timer_t *timer) {
  answer(tnk__container_of(timer, poll_t, hold.timer));
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  (void)req;
  free_poll(user);
}

void local_batch_settled(local_future_t *future) {
  local_sampler_t *sampler = future->sampler;

  if (sampler == NULL)
    return;
  future->cursor = ++sampler->cursor;
  /* Append it, because the list is in the order of cursors. */
  tnk__list_remove(&future->in_sampler);
  tnk__list_append(&sampler->futures, &future->in_sampler);
  /* Usually each client has one poll. */
  TNK__LIST_FOREACH (node, &sampler->polls) {
    if (POLL(node)->clone == future->clone) {
      /* The answer is sent from the timer. So samples that settle together are
       * reported together, and no answer is sent inside this call. */
      local_timer_start(&sampler->server->timers, &POLL(node)->hold.timer, 0,
                        on_held);
    }
  }
}

void local_batch_end(local_sampler_t *sampler) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&sampler->polls)) != NULL) {
    tnk__srv_req_t *req = POLL(node)->req;

    free_poll(POLL(node));
    local_reply_error(req, 404, "Sampling session is over");
  }
}

/* ---- The request ---- */

static void hold(local_call_t *call, local_sampler_t *sampler, uint64_t clone,
                 uint64_t prev) {
  local_server_t *server = call->server;
  poll_t *poll = tnk__calloc(server->alloc, 1, sizeof(*poll));

  if (poll == NULL) {
    local_reply_error(call->req, 503, "Out of memory");
    return;
  }
  *poll = (poll_t){
      .req = call->req, .sampler = sampler, .clone = clone, .prev = prev};
  tnk__list_append(&sampler->polls, &poll->link);
  tnk__srv_req_park(call->req, on_gone, poll);
  local_hold_start(server, &poll->hold, on_held);
}

void local_batch_poll(local_call_t *call, local_sampler_t *sampler,
                      uint64_t clone, uint64_t prev, int may_wait) {
  if (!may_wait || has_news(sampler, clone, prev))
    reply_news(call->req, sampler, clone, prev);
  else
    hold(call, sampler, clone, prev);
}
