/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_LIMITER_H
#define TNK_LIB_POLICY_LIMITER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/list.h"

/*
 * The shared back-off of one tenant: all services of a thread with the same
 * base URL and the same credential. Each service embeds one limiter, and the
 * registry (one per thread) links them. One uninterrupted call writes a
 * back-off to all limiters of the tenant. So there is no shared entry to
 * create, count or detach from, and nothing is allocated.
 *
 * Success never clears a back-off. It ends by time, or by tnk__limiter_clear().
 */
typedef struct tnk__limiter_registry tnk__limiter_registry_t;

/* Identifies a tenant. Holds only a keyed hash of the credential. */
typedef struct {
  uint64_t hash;        /* hash of the fields below */
  uint64_t credential;  /* keyed hash of the credential */
  const char *base_url; /* normalized; borrowed for the limiter's lifetime */
} tnk__limiter_key_t;

typedef struct tnk__limiter {
  tnk__list_t link;
  tnk__list_t watchers;
  tnk__limiter_registry_t *registry; /* NULL: private to its service */
  tnk__limiter_key_t key;
  uint64_t deadline_ms; /* 0: no back-off yet */
  uint64_t n_backoffs;  /* calls to tnk__limiter_back_off() on this one */
} tnk__limiter_t;

/* A callback for changes of the deadline. It must only schedule work or re-arm
 * a timer. */
typedef struct tnk__limiter_watcher {
  tnk__list_t link;
  void (*changed)(struct tnk__limiter_watcher *self);
} tnk__limiter_watcher_t;

/* Time after a deadline in which the tenant still counts as throttled. */
#define TNK__LIMITER_RECENT_MS 10000
#define TNK__LIMITER_MEMORY 16

/* A back-off that outlives the last service of its tenant. */
typedef struct {
  uint64_t hash;
  uint64_t credential;
  uint64_t deadline_ms; /* 0: free */
} tnk__limiter_memory_t;

struct tnk__limiter_registry {
  tnk__list_t limiters;
  uint64_t secret[2]; /* key of the hashes; random in each registry */
  tnk__limiter_memory_t memory[TNK__LIMITER_MEMORY];
};

void tnk__limiter_registry_init(tnk__limiter_registry_t *registry,
                                uint64_t secret0, uint64_t secret1);
/* The number of remembered back-offs at now_ms. Drops those that have ended. */
size_t tnk__limiter_registry_n_memories(tnk__limiter_registry_t *registry,
                                        uint64_t now_ms);
tnk__limiter_key_t tnk__limiter_key(const tnk__limiter_registry_t *registry,
                                    const char *base_url,
                                    const char *credential);

/* Make a private limiter, which is enough for TNK_LIMITER_PRIVATE. */
void tnk__limiter_init(tnk__limiter_t *limiter);
/* Share it with its tenant, and copy the tenant's back-off. */
void tnk__limiter_join(tnk__limiter_t *limiter,
                       tnk__limiter_registry_t *registry,
                       const tnk__limiter_key_t *key, uint64_t now_ms);
/* Detach from the tenant. If this was the tenant's last limiter, the registry
 * remembers a running back-off. Watchers are unlinked and not called. */
void tnk__limiter_leave(tnk__limiter_t *limiter, uint64_t now_ms);

/* Block all sends of the tenant until until_ms. A deadline that is earlier than
 * the current one is ignored. Calls watchers. */
void tnk__limiter_back_off(tnk__limiter_t *limiter, uint64_t until_ms);
/* End the back-off now, by request of the user or a test. Calls watchers. */
void tnk__limiter_clear(tnk__limiter_t *limiter, uint64_t now_ms);
/* Milliseconds to wait; 0 means send now. Call it again before each send. */
uint64_t tnk__limiter_wait_ms(const tnk__limiter_t *limiter, uint64_t now_ms);
/* Returns whether the reduced limits apply: before the deadline, and for
 * TNK__LIMITER_RECENT_MS after it. */
int tnk__limiter_is_recent(const tnk__limiter_t *limiter, uint64_t now_ms);
/* The time at which is_recent ends, for the timer that restores the limits. 0
 * when it has ended. */
uint64_t tnk__limiter_recent_until_ms(const tnk__limiter_t *limiter,
                                      uint64_t now_ms);

void tnk__limiter_watch(tnk__limiter_t *limiter,
                        tnk__limiter_watcher_t *watcher,
                        void (*changed)(tnk__limiter_watcher_t *self));
void tnk__limiter_unwatch(tnk__limiter_watcher_t *watcher);

/* The protocol's default pause after a 429 of a sample with an estimated size
 * of n_bytes. Used when the server gives no delay. */
uint64_t tnk__limiter_default_pause_ms(uint64_t n_bytes);

#endif
