/* Another client of a sampler that exists already, created here or elsewhere.
 * The server assigns its clone number if it can (join_sampling_session).
 * Otherwise the number is drawn at random, like in the official client. */
#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/future/errand.h"
#include "lib/client/sample/sampling.h"
#include "lib/wire/message/calls_sampling.h"

typedef struct {
  tnk__errand_t errand;
  tnk__sampler_text_t sampler;
} join_t;

static join_t *of_errand(tnk__errand_t *errand) {
  return tnk__container_of(errand, join_t, errand);
}

/* ---- The number ---- */

static int is_taken(const tnk__session_t *session, const char *id,
                    uint64_t clone) {
  TNK__LIST_FOREACH (node, &session->registry.samplings) {
    const tnk_sampling_t *other =
        tnk__container_of_const(node, tnk_sampling_t, link);

    if (other->clone == clone && strcmp(other->id, id) == 0)
      return 1;
  }
  return 0;
}

/* From 1 to 10^9, and not used in this service. */
static uint64_t draw(tnk__session_t *session, const char *id) {
  uint64_t clone;

  do
    clone = 1 + tnk__context_random(session->context) % TNK__CLONE_NUMBERS;
  while (is_taken(session, id, clone));
  return clone;
}

static void hand_over(join_t *join, uint64_t clone) {
  const tnk__sampler_text_t *sampler = &join->sampler;
  tnk__session_t *session = join->errand.session;
  tnk__foreign_t *foreign;
  tnk_sampling_t *sampling = NULL;

  if (tnk__foreign_enter(&foreign, session, sampler->session_id) == TNK_OK)
    sampling =
        tnk__sampling_new(session, sampler->sampling_session_id,
                          sampler->base_model, sampler->record_stability_info);
  if (sampling == NULL) {
    tnk__foreign_leave(foreign);
    tnk__errand_fail_code(&join->errand, join->errand.name, TNK_ENOMEM);
    return;
  }
  sampling->foreign = foreign;
  sampling->clone = clone;
  sampling->next_seq = clone * TNK__CLONE_NUMBERS;
  tnk__errand_resolve(&join->errand, TNK__RESULT_SAMPLING,
                      tnk__sampling_show(sampling), tnk__sampling_hide);
}

/* ---- Request ---- */

/* The server does not have the call, whatever its flags are. A 404 with a
 * specific message is about the sampler. A 404 with a framework's message is
 * about the call. */
static int lacks_call(const tnk__reply_t *reply) {
  const char *message = reply->error->pub.message;

  if (reply->status == 404)
    return message == NULL || message[0] == '\0' ||
           strcasecmp(message, "not found") == 0;
  return reply->status == 400 || reply->status == 405 || reply->status == 501;
}

static void on_joined(tnk__call_t *call, const tnk__reply_t *reply) {
  join_t *join = of_errand(tnk__container_of(call, tnk__errand_t, call));
  tnk__session_t *session = join->errand.session;
  const char *id = join->sampler.sampling_session_id;
  uint64_t clone = 0;
  int err;

  if (reply->error != NULL && lacks_call(reply)) {
    tnk__log(&session->context->logger, TNK_LOG_INFO, "sampling",
             "%s: the server does not number its clients; a random number is "
             "used",
             id);
    hand_over(join, draw(session, id));
    return;
  }
  if (reply->error != NULL) {
    tnk__errand_fail(&join->errand, reply->error);
    return;
  }
  err = tnk__join_sampling_read(&clone, reply->body, reply->body_len);
  /* 0 is the client that created the sampler. */
  if (err == TNK_OK && (clone == 0 || is_taken(session, id, clone)))
    err = TNK_EPROTO;
  if (err != TNK_OK)
    tnk__errand_fail_code(&join->errand, call->owner.name, err);
  else
    hand_over(join, clone);
}

static void begin(tnk__errand_t *errand) {
  join_t *join = of_errand(errand);
  tnk__session_t *session = errand->session;
  const char *id = join->sampler.sampling_session_id;

  if (!session->start.flags.join_samplers) {
    hand_over(join, draw(session, id));
    return;
  }
  tnk__call_init(&errand->call, &session->endpoint, TNK__ROUTE_JOIN_SAMPLING,
                 "join_sampling_session");
  errand->call.owner.method_name = "SamplingClient.join_sampling_session";
  tnk__join_sampling_write(&errand->body, id);
  tnk__errand_call(errand, on_joined);
}

/* ---- Start ---- */

static int keep(join_t *join, const tnk__sampler_text_t *sampler) {
  tnk__arena_t *arena = &join->errand.arena;
  tnk__sampler_text_t *own = &join->sampler;

  *own = *sampler;
  own->session_id = tnk__arena_strdup(arena, sampler->session_id);
  own->sampling_session_id =
      tnk__arena_strdup(arena, sampler->sampling_session_id);
  if (sampler->base_model != NULL)
    own->base_model = tnk__arena_strdup(arena, sampler->base_model);
  own->base_url = NULL;
  return own->session_id != NULL && own->sampling_session_id != NULL &&
         (sampler->base_model == NULL || own->base_model != NULL);
}

/* The string may come from anyone, and this service decides where it connects.
 * A different server is probably a mistake. */
static void warn_of_another(tnk__session_t *session,
                            const tnk__sampler_text_t *sampler) {
  const char *own = session->config->url.text;

  if (sampler->base_url != NULL && strcmp(sampler->base_url, own) != 0)
    tnk__log(&session->context->logger, TNK_LOG_WARN, "sampling",
             "%s: was exported where base_url is %.200s; here it is %s",
             sampler->sampling_session_id, sampler->base_url, own);
}

tnk_promise_t *tnk__join_sampling(tnk__session_t *session, const char *name,
                                  const tnk__sampler_text_t *sampler) {
  tnk_promise_t *promise = NULL;
  tnk__errand_t *errand =
      tnk__errand_new(session, name, sizeof(join_t), &promise);

  if (errand == NULL)
    return promise;
  warn_of_another(session, sampler);
  if (!keep(of_errand(errand), sampler))
    tnk__errand_fail_code(errand, name, TNK_ENOMEM);
  else
    tnk__errand_enter(errand, TNK__SESSION_CONFIGURED, begin);
  return promise;
}
