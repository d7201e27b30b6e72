/* SPDX-License-Identifier: MIT */
#include "lib/client/session/registry.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"

/* ---- Reports to the program ---- */

void tnk__registry_tell(tnk__registry_t *registry, const char *client,
                        tnk_queue_state_t state, const char *reason) {
  const tnk_service_options_t *options = &registry->endpoint->config->options;

  if (options->on_queue_state == NULL)
    return;
  tnk__callout_begin();
  options->on_queue_state(client, state, reason, options->queue_state_user);
  tnk__callout_end();
}

void tnk__registry_notice(tnk__registry_t *registry, const char *client,
                          tnk_queue_state_t state, const char *reason) {
  tnk__log(&registry->endpoint->context->logger, TNK_LOG_WARN, "queue",
           "%s: %s", client, reason);
  tnk__registry_tell(registry, client, state, reason);
}

/* ---- Whether sessions exist ---- */

static tnk__foreign_t *foreign_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__foreign_t, link);
}

/* A refused sample may belong to a session of another service. */
static int ask(void *user) {
  tnk__registry_t *registry = user;
  int n_asked = 0;

  if (registry->own != NULL && registry->endpoint->ended_session == NULL) {
    tnk__heartbeat_ask(registry->own);
    n_asked++;
  }
  TNK__LIST_FOREACH (node, &registry->foreigners) {
    if (foreign_at(node)->ended != NULL)
      continue;
    tnk__heartbeat_ask(&foreign_at(node)->heartbeat);
    n_asked++;
  }
  return n_asked > 0;
}

void tnk__registry_answered(tnk__registry_t *registry) {
  if (registry->own != NULL && tnk__heartbeat_is_asked(registry->own))
    return;
  TNK__LIST_FOREACH (node, &registry->foreigners)
    if (tnk__heartbeat_is_asked(&foreign_at(node)->heartbeat))
      return;
  tnk__doubts_settle(registry->endpoint);
}

/* ---- Sessions of other services ---- */

static void on_ended(tnk__heartbeat_t *heartbeat, tnk__error_t *error) {
  tnk__foreign_t *foreign =
      tnk__container_of(heartbeat, tnk__foreign_t, heartbeat);

  foreign->ended = foreign->id;
  tnk__registry_answered(foreign->registry);
  if (foreign->n_clients > foreign->n_joining)
    tnk__registry_tell(foreign->registry, foreign->id, TNK_QUEUE_SESSION_LOST,
                       error->pub.text);
}

static void on_kept(tnk__heartbeat_t *heartbeat) {
  tnk__registry_answered(
      tnk__container_of(heartbeat, tnk__foreign_t, heartbeat)->registry);
}

static void destroy(tnk__foreign_t *foreign) {
  const tnk_allocator_t *alloc = &foreign->registry->endpoint->context->alloc;

  tnk__heartbeat_close(&foreign->heartbeat);
  tnk__free(alloc, foreign->id);
  tnk__free(alloc, foreign);
}

static tnk__foreign_t *create(tnk__registry_t *registry, const char *id) {
  const tnk_allocator_t *alloc = &registry->endpoint->context->alloc;
  tnk__foreign_t *foreign = tnk__calloc(alloc, 1, sizeof(*foreign));

  if (foreign == NULL)
    return NULL;
  foreign->registry = registry;
  foreign->id = tnk__strdup(alloc, id);
  tnk__heartbeat_open(&foreign->heartbeat, alloc);
  foreign->heartbeat.ended = on_ended;
  foreign->heartbeat.kept = on_kept;
  if (foreign->id == NULL ||
      tnk__heartbeat_prepare(&foreign->heartbeat, registry->endpoint,
                             foreign->id) != TNK_OK) {
    destroy(foreign);
    return NULL;
  }
  tnk__list_append(&registry->foreigners, &foreign->link);
  tnk__heartbeat_begin(&foreign->heartbeat);
  return foreign;
}

int tnk__foreign_enter(tnk__foreign_t **out, tnk__registry_t *registry,
                       const char *own, const char *id) {
  tnk__foreign_t *found = NULL;

  *out = NULL;
  if (own != NULL && strcmp(own, id) == 0)
    return TNK_OK;
  TNK__LIST_FOREACH (node, &registry->foreigners) {
    tnk__foreign_t *foreign = tnk__container_of(node, tnk__foreign_t, link);

    if (strcmp(foreign->id, id) == 0)
      found = foreign;
  }
  if (found == NULL)
    found = create(registry, id);
  if (found == NULL)
    return TNK_ENOMEM;
  found->n_clients++;
  *out = found;
  return TNK_OK;
}

void tnk__foreign_leave(tnk__foreign_t *foreign) {
  if (foreign == NULL || --foreign->n_clients > 0)
    return;
  tnk__list_remove(&foreign->link);
  tnk__registry_answered(foreign->registry);
  destroy(foreign);
}

void tnk__registry_open(tnk__registry_t *registry, tnk__endpoint_t *endpoint) {
  registry->endpoint = endpoint;
  tnk__list_init(&registry->trainings);
  tnk__list_init(&registry->samplings);
  tnk__list_init(&registry->service_ops);
  tnk__list_init(&registry->foreigners);
  endpoint->doubts.ask = ask;
  endpoint->doubts.user = registry;
}
