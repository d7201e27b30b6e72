/* SPDX-License-Identifier: MIT */
#include "lib/policy/limiter.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/policy/siphash.h"

/*
 * States of a tenant: never backed off (deadline 0); backing off (before the
 * deadline); throttled (up to TNK__LIMITER_RECENT_MS after it); calm. Only
 * tnk__limiter_back_off() and tnk__limiter_clear() change the deadline; time
 * does the rest. Every limiter of a tenant holds the same deadline. A limiter
 * that joins copies it from a peer, or from the registry's memory if it has no
 * peer.
 *
 * The only callbacks are the watchers, called from those two functions.
 */

static tnk__limiter_t *limiter_of(tnk__list_t *link) {
  return tnk__container_of(link, tnk__limiter_t, link);
}

void tnk__limiter_registry_init(tnk__limiter_registry_t *registry,
                                uint64_t secret0, uint64_t secret1) {
  memset(registry, 0, sizeof(*registry));
  tnk__list_init(&registry->limiters);
  registry->secret[0] = secret0;
  registry->secret[1] = secret1;
}

size_t tnk__limiter_registry_n_memories(tnk__limiter_registry_t *registry,
                                        uint64_t now_ms) {
  size_t n = 0;

  for (size_t i = 0; i < TNK__LIMITER_MEMORY; i++) {
    tnk__limiter_memory_t *memory = &registry->memory[i];

    if (memory->deadline_ms + TNK__LIMITER_RECENT_MS <= now_ms)
      memory->deadline_ms = 0;
    n += memory->deadline_ms != 0;
  }
  return n;
}

tnk__limiter_key_t tnk__limiter_key(const tnk__limiter_registry_t *registry,
                                    const char *base_url,
                                    const char *credential) {
  tnk__limiter_key_t key;
  uint64_t parts[2];

  key.base_url = base_url;
  key.credential =
      tnk__siphash(registry->secret, credential, strlen(credential));
  parts[0] = tnk__siphash(registry->secret, base_url, strlen(base_url));
  parts[1] = key.credential;
  key.hash = tnk__siphash(registry->secret, parts, sizeof(parts));
  return key;
}

/* The hash only speeds up the common case of different tenants. */
static int same_tenant(const tnk__limiter_key_t *a,
                       const tnk__limiter_key_t *b) {
  return a->hash == b->hash && a->credential == b->credential &&
         strcmp(a->base_url, b->base_url) == 0;
}

static tnk__limiter_t *find_peer(tnk__limiter_registry_t *registry,
                                 const tnk__limiter_key_t *key) {
  TNK__LIST_FOREACH (link, &registry->limiters) {
    if (same_tenant(&limiter_of(link)->key, key))
      return limiter_of(link);
  }
  return NULL;
}

/* Remove the tenant's deadline from the memory and return it; 0 if not
 * found. */
static uint64_t recall(tnk__limiter_registry_t *registry,
                       const tnk__limiter_key_t *key) {
  for (size_t i = 0; i < TNK__LIMITER_MEMORY; i++) {
    tnk__limiter_memory_t *memory = &registry->memory[i];

    if (memory->deadline_ms != 0 && memory->hash == key->hash &&
        memory->credential == key->credential) {
      uint64_t deadline_ms = memory->deadline_ms;

      memory->deadline_ms = 0;
      return deadline_ms;
    }
  }
  return 0;
}

/* A full memory drops the deadline that ends first. */
static void remember(tnk__limiter_registry_t *registry,
                     const tnk__limiter_key_t *key, uint64_t deadline_ms) {
  tnk__limiter_memory_t *place = &registry->memory[0];

  for (size_t i = 1; i < TNK__LIMITER_MEMORY; i++) {
    if (registry->memory[i].deadline_ms < place->deadline_ms)
      place = &registry->memory[i];
  }
  /* All remembered deadlines end later than this one, so dropping this one
   * costs the least. */
  if (place->deadline_ms > deadline_ms)
    return;
  place->hash = key->hash;
  place->credential = key->credential;
  place->deadline_ms = deadline_ms;
}

void tnk__limiter_init(tnk__limiter_t *limiter) {
  memset(limiter, 0, sizeof(*limiter));
  tnk__list_init(&limiter->link);
  tnk__list_init(&limiter->watchers);
}

void tnk__limiter_join(tnk__limiter_t *limiter,
                       tnk__limiter_registry_t *registry,
                       const tnk__limiter_key_t *key, uint64_t now_ms) {
  tnk__limiter_t *peer = find_peer(registry, key);

  (void)tnk__limiter_registry_n_memories(registry, now_ms);
  limiter->registry = registry;
  limiter->key = *key;
  limiter->deadline_ms =
      peer != NULL ? peer->deadline_ms : recall(registry, key);
  tnk__list_append(&registry->limiters, &limiter->link);
}

void tnk__limiter_leave(tnk__limiter_t *limiter, uint64_t now_ms) {
  tnk__limiter_registry_t *registry = limiter->registry;

  while (tnk__list_pop(&limiter->watchers) != NULL) {
  }
  if (registry == NULL)
    return;
  tnk__list_remove(&limiter->link);
  limiter->registry = NULL;
  (void)tnk__limiter_registry_n_memories(registry, now_ms);
  if (tnk__limiter_is_recent(limiter, now_ms) &&
      find_peer(registry, &limiter->key) == NULL)
    remember(registry, &limiter->key, limiter->deadline_ms);
}

static void set_deadline(tnk__limiter_t *limiter, uint64_t deadline_ms) {
  limiter->deadline_ms = deadline_ms;
  TNK__LIST_FOREACH_SAFE (link, tmp, &limiter->watchers) {
    tnk__limiter_watcher_t *watcher =
        tnk__container_of(link, tnk__limiter_watcher_t, link);

    watcher->changed(watcher);
  }
}

static void set_all(tnk__limiter_t *limiter, uint64_t deadline_ms) {
  if (limiter->registry == NULL) {
    set_deadline(limiter, deadline_ms);
    return;
  }
  TNK__LIST_FOREACH_SAFE (link, tmp, &limiter->registry->limiters) {
    if (same_tenant(&limiter_of(link)->key, &limiter->key))
      set_deadline(limiter_of(link), deadline_ms);
  }
}

void tnk__limiter_back_off(tnk__limiter_t *limiter, uint64_t until_ms) {
  limiter->n_backoffs++;
  if (until_ms > limiter->deadline_ms)
    set_all(limiter, until_ms);
}

void tnk__limiter_clear(tnk__limiter_t *limiter, uint64_t now_ms) {
  if (limiter->deadline_ms > now_ms)
    set_all(limiter, now_ms);
}

uint64_t tnk__limiter_wait_ms(const tnk__limiter_t *limiter, uint64_t now_ms) {
  return limiter->deadline_ms > now_ms ? limiter->deadline_ms - now_ms : 0;
}

int tnk__limiter_is_recent(const tnk__limiter_t *limiter, uint64_t now_ms) {
  return tnk__limiter_recent_until_ms(limiter, now_ms) != 0;
}

uint64_t tnk__limiter_recent_until_ms(const tnk__limiter_t *limiter,
                                      uint64_t now_ms) {
  uint64_t end_ms = limiter->deadline_ms + TNK__LIMITER_RECENT_MS;

  if (limiter->deadline_ms == 0 || end_ms <= now_ms)
    return 0;
  return end_ms;
}

void tnk__limiter_watch(tnk__limiter_t *limiter,
                        tnk__limiter_watcher_t *watcher,
                        void (*changed)(tnk__limiter_watcher_t *self)) {
  watcher->changed = changed;
  tnk__list_append(&limiter->watchers, &watcher->link);
}

void tnk__limiter_unwatch(tnk__limiter_watcher_t *watcher) {
  tnk__list_remove(&watcher->link);
}

uint64_t tnk__limiter_default_pause_ms(uint64_t n_bytes) {
  return n_bytes <= 131072 ? 1000 : 5000;
}
