#include "lib/client/sample/sampling.h"

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/misuse.h"
#include "lib/client/session/member.h"

void *tnk__sampling_show(tnk_sampling_t *sampling) {
  sampling->refs++;
  return sampling;
}

void tnk__sampling_hide(const tnk_allocator_t *alloc, void *value) {
  tnk_sampling_t *sampling = value;

  if (--sampling->refs > 0)
    return;
  tnk_promise_unref(sampling->kin);
  tnk__handle_end(sampling, sizeof(*sampling));
  tnk__free(alloc, sampling);
}

static void on_closed(tnk__deferred_t *closed) {
  tnk_sampling_t *sampling = tnk__container_of(closed, tnk_sampling_t, closed);
  const tnk_allocator_t *alloc = &sampling->session->context->alloc;
  tnk_close_cb cb = sampling->close_cb;
  void *user = sampling->close_user;

  tnk__list_remove(&sampling->link);
  tnk__free(alloc, sampling->poller);
  tnk__free(alloc, sampling->id);
  tnk__free(alloc, sampling->base_model);
  tnk__free(alloc, sampling->exported);
  tnk__free(alloc, sampling->model_path);
  sampling->session = NULL;
  tnk__sampling_hide(alloc, sampling);
  if (cb != NULL) {
    tnk__callout_begin();
    cb(user);
    tnk__callout_end();
  }
}

tnk_sampling_t *tnk__sampling_new(tnk__session_t *session, const char *id,
                                  const char *base_model,
                                  int record_stability_info) {
  const tnk_allocator_t *alloc = &session->context->alloc;
  tnk_sampling_t *sampling = tnk__calloc(alloc, 1, sizeof(*sampling));

  if (sampling == NULL)
    return NULL;
  sampling->id = tnk__strdup(alloc, id);
  if (base_model != NULL)
    sampling->base_model = tnk__strdup(alloc, base_model);
  if (sampling->id == NULL ||
      (base_model != NULL && sampling->base_model == NULL)) {
    tnk__free(alloc, sampling->id);
    tnk__free(alloc, sampling->base_model);
    tnk__free(alloc, sampling);
    return NULL;
  }
  sampling->magic = TNK__MAGIC_SAMPLING;
  sampling->refs = 1;
  sampling->kin = tnk_promise_ref(session->context->oom);
  sampling->session = session;
  sampling->record_stability_info = record_stability_info;
  tnk__list_init(&sampling->samples);
  tnk__queue_notice_init(&sampling->notice, 0);
  tnk__deferred_init(&sampling->closed, on_closed);
  tnk__list_append(&session->registry.samplings, &sampling->link);
  return sampling;
}

static void abort_all(tnk_sampling_t *sampling, tnk__error_t *error) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&sampling->samples)) != NULL)
    tnk__member_abort(tnk__member_of(node), error);
}

/* The old sampler's poller goes to the other client. */
void tnk__sampling_adopt(tnk_sampling_t *sampling, tnk_sampling_t *other) {
  char *id = sampling->id;

  sampling->id = other->id;
  other->id = id;
  other->poller = sampling->poller;
  sampling->poller = NULL;
  tnk__free(&sampling->session->context->alloc, sampling->exported);
  sampling->exported = NULL;
  sampling->clone = 0;
  sampling->is_told = 0;
  sampling->next_seq = 0;
  tnk__sampling_close(other, NULL, NULL);
}

void tnk__sampling_close(tnk_sampling_t *sampling, tnk_close_cb cb,
                         void *user) {
  if (sampling->closing)
    return;
  sampling->closing = 1;
  sampling->close_cb = cb;
  sampling->close_user = user;
  abort_all(sampling, tnk__error_static(TNK_ECLOSED));
  if (sampling->poller != NULL) {
    tnk__poller_close(sampling->poller);
    sampling->session->limits.n_pollers--;
  }
  tnk__foreign_leave(sampling->foreign);
  sampling->foreign = NULL;
  tnk__defer(sampling->session->context, &sampling->closed);
}

tnk__sampler_text_t tnk__sampling_sampler(const tnk_sampling_t *sampling) {
  const tnk__session_t *session = sampling->session;

  return (tnk__sampler_text_t){
      .session_id =
          sampling->foreign != NULL ? sampling->foreign->id : session->start.id,
      .sampling_session_id = sampling->id,
      .base_url = session->config->url.text,
      .base_model = sampling->base_model,
      .record_stability_info = sampling->record_stability_info};
}

const char *tnk__sampling_export(tnk_sampling_t *sampling) {
  const tnk__sampler_text_t sampler = tnk__sampling_sampler(sampling);
  tnk__buf_t text;
  size_t n;

  if (sampling->exported != NULL)
    return sampling->exported;
  tnk__buf_init(&text, &sampling->session->context->alloc, TNK__MIB);
  tnk__sampler_text_write(&text, &sampler);
  tnk__buf_byte(&text, '\0');
  if (text.err == TNK_OK)
    sampling->exported = (char *)tnk__buf_take(&text, &n);
  tnk__buf_deinit(&text);
  return sampling->exported;
}

static int lacks_batched_polls(const tnk__session_t *session) {
  return (session->endpoint.missing &
          tnk__route_bit(tnk__route(TNK__ROUTE_RETRIEVE_FUTURES))) != 0;
}

/* Samples poll for themselves again, so their number must be limited again. */
static void on_poller_off(tnk__poller_t *poller) {
  tnk__session_t *session = tnk__session_of(poller->endpoint);

  if (!lacks_batched_polls(session))
    return; /* only this client is affected */
  tnk__semaphore_set_limit(&session->limits.sample_running,
                           (size_t)session->start.flags.sample_concurrency);
}

tnk__poller_t *tnk__sampling_poller(tnk_sampling_t *sampling) {
  tnk__session_t *session = sampling->session;

  if (sampling->poller != NULL || !session->start.flags.batched_polls ||
      lacks_batched_polls(session) || !tnk__limits_has_poller(&session->limits))
    return sampling->poller;
  sampling->poller =
      tnk__malloc(&session->context->alloc, sizeof(*sampling->poller));
  if (sampling->poller != NULL) {
    tnk__poller_open(sampling->poller, &session->endpoint, sampling->id,
                     sampling->clone);
    sampling->poller->on_off = on_poller_off;
    session->limits.n_pollers++;
  }
  return sampling->poller;
}

void tnk__sampling_notice(tnk_sampling_t *sampling, const char *state,
                          const char *reason) {
  tnk_queue_state_t parsed = tnk__queue_state_parse(state);

  if (tnk__queue_notice_due(&sampling->notice, parsed,
                            tnk__context_now_ms(sampling->session->context)))
    tnk__session_notice(sampling->session, sampling->id, parsed,
                        tnk__queue_reason(TNK__QUEUE_SAMPLING, parsed, reason));
}
