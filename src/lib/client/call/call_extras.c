/* SPDX-License-Identifier: MIT */
/*
 * Members that the library adds to requests, and that older or stricter servers
 * refuse with a 422. The same request is then sent without them, and so are all
 * later ones of the service. A member that the program has asked for is never
 * removed.
 */
#include "lib/client/call/call_private.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/wire/format/json_write.h"
#include "lib/wire/message/answer.h"

typedef struct {
  tnk__route_id_t route;
  int is_marked; /* only if the owner of the call has added it */
  const char *member;
  /* Only a member with this value is removed, because it is the server's
   * default. NULL: any value. */
  const char *value;
  const char *effect;
} extra_t;

static const char by_name[] =
    "; a ledger finds its checkpoints by their names instead";

/* Clients since version 0.22 send the members with a value; older clients omit
 * them. */
static const extra_t extras[] = {
    {TNK__ROUTE_SAVE_STATE, 1, "user_metadata", NULL, by_name},
    {TNK__ROUTE_SAVE_STATE, 0, "overwrite", "false", ""},
    {TNK__ROUTE_SAVE_SAMPLER, 1, "user_metadata", NULL, by_name},
    {TNK__ROUTE_LOAD_STATE, 0, "optimizer", "false", ""},
    {TNK__ROUTE_SAMPLE, 0, "prompt_logprobs", "false", ""},
    {TNK__ROUTE_SAMPLE, 0, "topk_prompt_logprobs", "0", ""},
    {TNK__ROUTE_RETRIEVE_FUTURE, 0, "allow_metadata_only", NULL, ""},
    {TNK__ROUTE_RETRIEVE_SAMPLE, 0, "allow_metadata_only", NULL, ""},
};

enum { N_EXTRAS = sizeof(extras) / sizeof(extras[0]) };
_Static_assert(N_EXTRAS <= 8, "call->tries.left_out has a bit for each");

_Static_assert(N_EXTRAS <= 32, "a set of them has 32 bits");

static int is_about(const extra_t *extra, const tnk__call_t *call) {
  return call->request.route == tnk__route(extra->route) &&
         (!extra->is_marked || call->request.has_own_metadata);
}

/* A body without some of its members, and the original body. */
typedef struct tnk__shorter {
  tnk__buf_t text;
  const uint8_t *whole;
  size_t whole_len;
} shorter_t;

static void free_shorter(const tnk_allocator_t *alloc, shorter_t *shorter) {
  if (shorter == NULL)
    return;
  tnk__buf_deinit(&shorter->text);
  tnk__free(alloc, shorter);
}

/* Returns 1 if the body had the member and it was removed. */
static int cut(tnk__call_t *call, const extra_t *extra) {
  const tnk_allocator_t *alloc = &call->endpoint->context->alloc;
  shorter_t *old = call->shorter;
  shorter_t *shorter = tnk__calloc(alloc, 1, sizeof(*shorter));

  if (shorter == NULL)
    return 0;
  shorter->whole = old != NULL ? old->whole : call->request.body;
  shorter->whole_len = old != NULL ? old->whole_len : call->request.body_len;
  tnk__buf_init(&shorter->text, alloc, call->request.body_len);
  if (call->owner.secret != NULL)
    tnk__buf_keep_secret(&shorter->text);
  if (!tnk__json_cut(&shorter->text, call->request.body, call->request.body_len,
                     extra->member, extra->value) ||
      shorter->text.err != TNK_OK) {
    free_shorter(alloc, shorter);
    return 0;
  }
  free_shorter(alloc, old);
  call->shorter = shorter;
  call->request.body = shorter->text.data;
  call->request.body_len = shorter->text.len;
  return 1;
}

/* Fed, compressed and non-JSON bodies never have these members. */
static int can_cut(const tnk__call_t *call) {
  return call->request.feed == NULL && !call->request.is_proto &&
         !call->request.is_zstd && call->request.body_len > 0;
}

void tnk__call_leave_out(tnk__call_t *call) {
  call->tries.left_out = 0;
  if (call->endpoint->refused_members == 0 || !can_cut(call))
    return;
  for (uint32_t i = 0; i < N_EXTRAS; i++)
    if ((call->endpoint->refused_members >> i & 1) != 0 &&
        is_about(&extras[i], call) && cut(call, &extras[i]))
      call->tries.left_out |= (uint8_t)(1u << i);
}

int tnk__call_shorten(tnk__call_t *call, const tnk__reply_t *reply) {
  int is_shorter = 0;

  if (reply->status != 422 || reply->is_page || call->request.once ||
      call->tries.disowned || call->endpoint->closing || !can_cut(call))
    return 0;
  for (uint32_t i = 0; i < N_EXTRAS; i++) {
    if (!is_about(&extras[i], call) ||
        !tnk__failure_refuses(reply->body, reply->body_len, extras[i].member) ||
        !cut(call, &extras[i]))
      continue;
    call->tries.left_out |= (uint8_t)(1u << i);
    is_shorter = 1;
  }
  return is_shorter;
}

void tnk__call_learn_members(const tnk__call_t *call) {
  tnk__endpoint_t *endpoint = call->endpoint;
  const uint32_t news = call->tries.left_out & ~endpoint->refused_members;

  endpoint->refused_members |= call->tries.left_out;
  for (uint32_t i = 0; i < N_EXTRAS; i++)
    if ((news >> i & 1) != 0)
      tnk__log(&endpoint->context->logger, TNK_LOG_WARN, "call",
               "%s: the server refuses the member \"%s\" (HTTP 422); later "
               "requests omit it%s",
               call->owner.name, extras[i].member, extras[i].effect);
}

void tnk__call_restore_body(tnk__call_t *call) {
  shorter_t *shorter = call->shorter;

  if (shorter == NULL)
    return;
  call->shorter = NULL;
  call->request.body = shorter->whole;
  call->request.body_len = shorter->whole_len;
  free_shorter(&call->endpoint->context->alloc, shorter);
}
