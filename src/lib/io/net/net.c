/* SPDX-License-Identifier: MIT */
#include "lib/io/net/net.h"

#include "lib/base/alloc.h"
#include "lib/io/net/sessions.h"
#include "lib/io/net/trust.h"
#include "tnk/error.h"

static void release_parts(tnk__net_t *net) {
  const tnk_allocator_t *alloc = &net->context->alloc;

  tnk__dns_deinit(&net->dns);
  tnk__trust_free(net->trust);
  tnk__sessions_free(net->sessions);
  tnk__pace_deinit(&net->pace);
  tnk__free(alloc, net->read_buf);
  tnk__free(alloc, net->plain_buf);
  tnk__free(alloc, net->carrier_buf);
  tnk__free(alloc, net);
}

int tnk__net_new(tnk__net_t **out, tnk__context_t *context,
                 const char *ca_file) {
  const tnk_allocator_t *alloc = &context->alloc;
  tnk__net_t *net = tnk__calloc(alloc, 1, sizeof(*net));

  *out = NULL;
  if (net == NULL)
    return TNK_ENOMEM;
  net->context = context;
  net->refs = 1;
  tnk__dns_init(&net->dns, context);
  tnk__pace_init(&net->pace, context);
  net->read_buf = tnk__malloc(alloc, TNK__NET_READ_SIZE);
  net->plain_buf = tnk__malloc(alloc, TNK__NET_PLAIN_SIZE);
  if (net->read_buf == NULL || net->plain_buf == NULL ||
      tnk__trust_new(&net->trust, context, ca_file) != TNK_OK ||
      tnk__sessions_new(&net->sessions, context) != TNK_OK) {
    release_parts(net);
    return TNK_ENOMEM;
  }
  *out = net;
  return TNK_OK;
}

int tnk__net_reserve_carrier(tnk__net_t *net) {
  if (net->carrier_buf == NULL)
    net->carrier_buf = tnk__malloc(&net->context->alloc, TNK__NET_PLAIN_SIZE);
  return net->carrier_buf != NULL ? TNK_OK : TNK_ENOMEM;
}

void tnk__net_ref(tnk__net_t *net) {
  net->refs++;
}

void tnk__net_unref(tnk__net_t *net) {
  if (net != NULL && --net->refs == 0)
    release_parts(net);
}

int tnk__net_identify(tnk__net_t *net, const char *cert_file,
                      const char *key_file) {
  return tnk__trust_identify(net->trust, cert_file, key_file);
}

int tnk__net_load_trust(tnk__net_t *net, char *why, size_t size) {
  const int err = tnk__trust_load(net->trust);

  if (err != TNK_OK)
    tnk__trust_explain(net->trust, why, size);
  return err;
}

/* ---- Handshakes ---- */

/* The deferred call runs once in each turn of the loop while steps are being
 * done. It resets the count and runs waiting steps first. */
static void on_later(tnk__deferred_t *call) {
  tnk__pace_t *pace = tnk__container_of(call, tnk__pace_t, later);
  tnk__list_t *node;

  pace->n_used = 0;
  while (pace->n_used < TNK__PACE_STEPS &&
         (node = tnk__list_pop(&pace->waiting)) != NULL) {
    tnk__pace_step_t *step = tnk__container_of(node, tnk__pace_step_t, link);
    pace->n_used++;
    step->run(step);
  }
  if (pace->n_used > 0)
    tnk__defer(pace->context, &pace->later);
}

void tnk__pace_init(tnk__pace_t *pace, tnk__context_t *context) {
  pace->context = context;
  pace->n_used = 0;
  tnk__list_init(&pace->waiting);
  tnk__deferred_init(&pace->later, on_later);
}

void tnk__pace_deinit(tnk__pace_t *pace) {
  tnk__defer_cancel(&pace->later);
}

void tnk__pace_step_init(tnk__pace_step_t *step,
                         void (*run)(tnk__pace_step_t *self)) {
  tnk__list_init(&step->link);
  step->run = run;
}

int tnk__pace_ask(tnk__pace_t *pace, tnk__pace_step_t *step) {
  tnk__defer(pace->context, &pace->later);
  if (pace->n_used < TNK__PACE_STEPS && tnk__list_empty(&pace->waiting)) {
    pace->n_used++;
    return 1;
  }
  if (tnk__list_empty(&step->link))
    tnk__list_append(&pace->waiting, &step->link);
  return 0;
}

void tnk__pace_forget(tnk__pace_step_t *step) {
  tnk__list_remove(&step->link);
}
