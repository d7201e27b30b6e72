#ifndef TNK_LIB_POLICY_LIMITER_H
#define TNK_LIB_POLICY_LIMITER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/list.h"

/*
 * The shared back-off of one tenant: all services of a thread with the same
 * base URL and the same credential. Each service embeds one limiter; the
 * registry (one a thread) links them. A back-off is written to all limiters
 * of the tenant in one uninterrupted call, so there is no entry to create
 * twice, to count, or to detach from, and nothing is allocated.
 *
 * No success ever clears a back-off: time alone does, or tnk__limiter_clear().
 */
typedef struct tnk__limiter_registry tnk__limiter_registry_t;

/* Names a tenant. Holds no credential, only a keyed hash of it. */
typedef struct {
  uint64_t hash;        /* of all that follows */
  uint64_t credential;  /* keyed hash of the credential */
  const char *base_url; /* normalised; borrowed for the limiter's life */
} tnk__limiter_key_t;

typedef struct tnk__limiter {
  tnk__list_t link;
  tnk__list_t watchers;
  tnk__limiter_registry_t *registry; /* NULL: private to its service */
  tnk__limiter_key_t key;
  uint64_t deadline_ms; /* 0: there was no back-off yet */
  uint64_t n_backoffs;  /* calls to tnk__limiter_back_off() on this one */
} tnk__limiter_t;

/* Hears that the deadline has moved. Must only schedule or re-arm a timer. */
typedef struct tnk__limiter_watcher {
  tnk__list_t link;
  void (*changed)(struct tnk__limiter_watcher *self);
} tnk__limiter_watcher_t;

/* How long after a deadline the tenant still counts as throttled. */
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
  uint64_t secret[2]; /* of the keyed hashes; random for each registry */
  tnk__limiter_memory_t memory[TNK__LIMITER_MEMORY];
};

void tnk__limiter_registry_init(tnk__limiter_registry_t *registry,
                                uint64_t secret0, uint64_t secret1);
/* Back-offs still remembered at now_ms; forgets those that ended. */
size_t tnk__limiter_registry_n_memories(tnk__limiter_registry_t *registry,
                                        uint64_t now_ms);
tnk__limiter_key_t tnk__limiter_key(const tnk__limiter_registry_t *registry,
                                    const char *base_url,
                                    const char *credential);

/* Make a private limiter, which is enough for TNK_LIMITER_PRIVATE. */
void tnk__limiter_init(tnk__limiter_t *limiter);
/* Share it with its tenant, and take over the tenant's back-off. */
void tnk__limiter_join(tnk__limiter_t *limiter,
                       tnk__limiter_registry_t *registry,
                       const tnk__limiter_key_t *key, uint64_t now_ms);
/* End its life. A running back-off is remembered when this is the tenant's last
 * limiter. Watchers are unlinked and not called. */
void tnk__limiter_leave(tnk__limiter_t *limiter, uint64_t now_ms);

/* Let nobody of the tenant send before until_ms; an earlier moment than the one
 * known changes nothing. Calls watchers. */
void tnk__limiter_back_off(tnk__limiter_t *limiter, uint64_t until_ms);
/* End the back-off now, by decision of the user or a test. Calls watchers. */
void tnk__limiter_clear(tnk__limiter_t *limiter, uint64_t now_ms);
/* The milliseconds to wait; 0: send. To be asked again before each send. */
uint64_t tnk__limiter_wait_ms(const tnk__limiter_t *limiter, uint64_t now_ms);
/* Whether slots are few and bytes dear: before the deadline, and for
 * TNK__LIMITER_RECENT_MS after it. */
int tnk__limiter_is_recent(const tnk__limiter_t *limiter, uint64_t now_ms);
/* When is_recent ends; 0 when it is over. For the timer that restores the
 * limits. */
uint64_t tnk__limiter_recent_until_ms(const tnk__limiter_t *limiter,
                                      uint64_t now_ms);

void tnk__limiter_watch(tnk__limiter_t *limiter,
                        tnk__limiter_watcher_t *watcher,
                        void (*changed)(tnk__limiter_watcher_t *self));
void tnk__limiter_unwatch(tnk__limiter_watcher_t *watcher);

/* The protocol's own pause after a 429 of a sample whose size was estimated
 * at n_bytes, when the server names none. */
uint64_t tnk__limiter_default_pause_ms(uint64_t n_bytes);

#endif
