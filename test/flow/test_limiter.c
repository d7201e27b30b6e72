/* SPDX-License-Identifier: MIT */
#include "lib/policy/limiter.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/policy/siphash.h"
#include "support/test.h"

static tnk__limiter_registry_t registry;

static void join_at(tnk__limiter_t *limiter, const char *url,
                    const char *credential, uint64_t now_ms) {
  tnk__limiter_key_t key = tnk__limiter_key(&registry, url, credential);

  tnk__limiter_init(limiter);
  tnk__limiter_join(limiter, &registry, &key, now_ms);
}

static void setup(void) {
  tnk__limiter_registry_init(&registry, 0x1234, 0x5678);
}

TEST(S1_1_a_back_off_is_shared_by_url_and_credential) {
  tnk__limiter_t a, b, other_key, other_path, other_port;

  setup();
  join_at(&a, "http://host/x", "key-1", 0);
  join_at(&b, "http://host/x", "key-1", 0);
  join_at(&other_key, "http://host/x", "key-2", 0);
  join_at(&other_path, "http://host/y", "key-1", 0);
  join_at(&other_port, "http://host:8080/x", "key-1", 0);
  tnk__limiter_back_off(&a, 5000);
  CHECK_INT(tnk__limiter_wait_ms(&a, 1000), 4000);
  CHECK_INT(tnk__limiter_wait_ms(&b, 1000), 4000);
  CHECK_INT(tnk__limiter_wait_ms(&other_key, 1000), 0);
  CHECK_INT(tnk__limiter_wait_ms(&other_path, 1000), 0);
  CHECK_INT(tnk__limiter_wait_ms(&other_port, 1000), 0);
  CHECK(a.key.hash == b.key.hash);
  CHECK(a.key.hash != other_key.key.hash);
  CHECK(a.key.hash != other_path.key.hash);
}

TEST(S1_1_a_private_limiter_shares_nothing) {
  tnk__limiter_t a, b;

  setup();
  join_at(&a, "http://host/x", "key", 0);
  tnk__limiter_init(&b);
  tnk__limiter_back_off(&a, 5000);
  CHECK_INT(tnk__limiter_wait_ms(&b, 0), 0);
  tnk__limiter_back_off(&b, 7000);
  CHECK_INT(tnk__limiter_wait_ms(&a, 0), 5000);
  CHECK_INT(tnk__limiter_wait_ms(&b, 0), 7000);
  tnk__limiter_leave(&b, 0);
  CHECK_INT(tnk__limiter_registry_n_memories(&registry, 0), 0);
}

TEST(S0_2_a_hundred_services_of_a_tenant_are_one) {
  static tnk__limiter_t limiters[100];

  setup();
  for (int i = 0; i < 100; i++)
    join_at(&limiters[i], "https://host/", "key", 0);
  tnk__limiter_back_off(&limiters[37], 900);
  for (int i = 0; i < 100; i++) {
    CHECK(limiters[i].key.hash == limiters[0].key.hash);
    CHECK_INT(tnk__limiter_wait_ms(&limiters[i], 100), 800);
  }
}

TEST(S4_2_equal_hashes_do_not_make_one_tenant) {
  tnk__limiter_t a, b, c;
  tnk__limiter_key_t key_a = {1, 2, "http://a/"};
  tnk__limiter_key_t key_b = {1, 2, "http://b/"};
  tnk__limiter_key_t key_c = {1, 3, "http://a/"};

  setup();
  tnk__limiter_init(&a);
  tnk__limiter_init(&b);
  tnk__limiter_init(&c);
  tnk__limiter_join(&a, &registry, &key_a, 0);
  tnk__limiter_join(&b, &registry, &key_b, 0);
  tnk__limiter_join(&c, &registry, &key_c, 0);
  tnk__limiter_back_off(&a, 100);
  CHECK_INT(tnk__limiter_wait_ms(&b, 0), 0);
  CHECK_INT(tnk__limiter_wait_ms(&c, 0), 0);
}

TEST(S0_2b_a_back_off_outlives_the_last_service) {
  tnk__limiter_t a, b, stranger;

  setup();
  join_at(&a, "http://host/", "key", 0);
  tnk__limiter_back_off(&a, 5000);
  tnk__limiter_leave(&a, 1000);
  CHECK_INT(tnk__limiter_registry_n_memories(&registry, 1000), 1);
  join_at(&stranger, "http://host/", "another key", 1500);
  CHECK_INT(tnk__limiter_wait_ms(&stranger, 1500), 0);
  join_at(&b, "http://host/", "key", 2000);
  CHECK_INT(tnk__limiter_wait_ms(&b, 2000), 3000);
  CHECK_INT(tnk__limiter_registry_n_memories(&registry, 2000), 0);
}

TEST(S0_2b_a_memory_ends_with_the_back_off) {
  tnk__limiter_t a;

  setup();
  join_at(&a, "http://host/", "key", 0);
  tnk__limiter_back_off(&a, 5000);
  tnk__limiter_leave(&a, 1000);
  CHECK_INT(tnk__limiter_registry_n_memories(&registry, 14999), 1);
  CHECK_INT(tnk__limiter_registry_n_memories(&registry, 15000), 0);
  join_at(&a, "http://host/", "key", 15000);
  CHECK_INT(tnk__limiter_is_recent(&a, 15000), 0);
}

TEST(S0_2b_nothing_is_remembered_while_a_peer_lives) {
  tnk__limiter_t a, b;

  setup();
  join_at(&a, "http://host/", "key", 0);
  join_at(&b, "http://host/", "key", 0);
  tnk__limiter_back_off(&a, 5000);
  tnk__limiter_leave(&a, 0);
  CHECK_INT(tnk__limiter_registry_n_memories(&registry, 0), 0);
  join_at(&a, "http://host/", "key", 1000);
  CHECK_INT(tnk__limiter_wait_ms(&a, 1000), 4000);
}

TEST(S0_2b_a_full_memory_keeps_the_longest) {
  tnk__limiter_t limiter;
  char key[16];

  setup();
  for (uint64_t i = 0; i < TNK__LIMITER_MEMORY + 4; i++) {
    snprintf(key, sizeof(key), "key-%d", (int)i);
    join_at(&limiter, "http://host/", key, 0);
    tnk__limiter_back_off(&limiter, 1000 + i);
    tnk__limiter_leave(&limiter, 0);
  }
  CHECK_INT(tnk__limiter_registry_n_memories(&registry, 0),
            TNK__LIMITER_MEMORY);
  join_at(&limiter, "http://host/", "key-3", 0);
  CHECK_INT(tnk__limiter_wait_ms(&limiter, 0), 0);
  tnk__limiter_leave(&limiter, 0);
  join_at(&limiter, "http://host/", "key-4", 0);
  CHECK_INT(tnk__limiter_wait_ms(&limiter, 0), 1004);
}

TEST(S3_15_a_longer_back_off_is_never_shortened) {
  tnk__limiter_t a;

  tnk__limiter_init(&a);
  tnk__limiter_back_off(&a, 5000);
  tnk__limiter_back_off(&a, 3000);
  CHECK_INT(tnk__limiter_wait_ms(&a, 0), 5000);
  tnk__limiter_back_off(&a, 6000);
  CHECK_INT(tnk__limiter_wait_ms(&a, 0), 6000);
  CHECK_INT(a.n_backoffs, 3);
}

TEST(S3_15_default_pause_by_size) {
  CHECK_INT(tnk__limiter_default_pause_ms(0), 1000);
  CHECK_INT(tnk__limiter_default_pause_ms(131072), 1000);
  CHECK_INT(tnk__limiter_default_pause_ms(131073), 5000);
  CHECK_INT(tnk__limiter_default_pause_ms(UINT64_MAX), 5000);
}

TEST(S4_4_recent_before_the_deadline_and_10_s_after) {
  tnk__limiter_t a;

  tnk__limiter_init(&a);
  CHECK_INT(tnk__limiter_is_recent(&a, 0), 0);
  CHECK_INT(tnk__limiter_is_recent(&a, 100000), 0);
  tnk__limiter_back_off(&a, 5000);
  CHECK_INT(tnk__limiter_is_recent(&a, 0), 1);
  CHECK_INT(tnk__limiter_recent_until_ms(&a, 0), 15000);
  CHECK_INT(tnk__limiter_wait_ms(&a, 5000), 0);
  CHECK_INT(tnk__limiter_is_recent(&a, 5000), 1);
  CHECK_INT(tnk__limiter_is_recent(&a, 14999), 1);
  CHECK_INT(tnk__limiter_is_recent(&a, 15000), 0);
  CHECK_INT(tnk__limiter_recent_until_ms(&a, 15000), 0);
}

/* ---- Watchers ---- */

typedef struct {
  tnk__limiter_watcher_t watcher;
  int n_changes;
  int leaves; /* unwatch when told */
} probe_t;

static void on_changed(tnk__limiter_watcher_t *watcher) {
  probe_t *probe = tnk__container_of(watcher, probe_t, watcher);

  probe->n_changes++;
  if (probe->leaves)
    tnk__limiter_unwatch(watcher);
}

TEST(S4_3_waiters_hear_of_every_change) {
  tnk__limiter_t a, b, stranger;
  probe_t on_a = {.n_changes = 0}, on_b = {.n_changes = 0};
  probe_t on_stranger = {.n_changes = 0};

  setup();
  join_at(&a, "http://host/", "key", 0);
  join_at(&b, "http://host/", "key", 0);
  join_at(&stranger, "http://host/", "key 2", 0);
  tnk__limiter_watch(&a, &on_a.watcher, on_changed);
  tnk__limiter_watch(&b, &on_b.watcher, on_changed);
  tnk__limiter_watch(&stranger, &on_stranger.watcher, on_changed);
  tnk__limiter_back_off(&a, 1000);
  CHECK_INT(on_a.n_changes, 1);
  CHECK_INT(on_b.n_changes, 1);
  tnk__limiter_back_off(&b, 500); /* changes nothing */
  CHECK_INT(on_a.n_changes, 1);
  tnk__limiter_back_off(&b, 5500); /* extended at 0.5 s */
  CHECK_INT(on_a.n_changes, 2);
  CHECK_INT(tnk__limiter_wait_ms(&a, 500), 5000);
  tnk__limiter_clear(&a, 1000);
  CHECK_INT(on_b.n_changes, 3);
  CHECK_INT(tnk__limiter_wait_ms(&b, 1000), 0);
  tnk__limiter_clear(&a, 1000); /* nothing to clear */
  CHECK_INT(on_b.n_changes, 3);
  CHECK_INT(on_stranger.n_changes, 0);
}

TEST(S4_3_watchers_may_leave_when_told) {
  tnk__limiter_t a;
  probe_t probes[3] = {{.leaves = 1}, {.leaves = 0}, {.leaves = 1}};

  tnk__limiter_init(&a);
  for (int i = 0; i < 3; i++)
    tnk__limiter_watch(&a, &probes[i].watcher, on_changed);
  tnk__limiter_back_off(&a, 100);
  tnk__limiter_back_off(&a, 200);
  CHECK_INT(probes[0].n_changes, 1);
  CHECK_INT(probes[1].n_changes, 2);
  CHECK_INT(probes[2].n_changes, 1);
}

TEST(S4_5_leaving_unlinks_watchers_without_a_call) {
  tnk__limiter_t a;
  probe_t probe = {.n_changes = 0};

  setup();
  join_at(&a, "http://host/", "key", 0);
  tnk__limiter_watch(&a, &probe.watcher, on_changed);
  tnk__limiter_leave(&a, 0);
  tnk__limiter_unwatch(&probe.watcher);
  tnk__limiter_leave(&a, 0);
  CHECK_INT(probe.n_changes, 0);
}

/* ---- The keyed hash ---- */

TEST(siphash_reference_values) {
  static const uint64_t key[2] = {UINT64_C(0x0706050403020100),
                                  UINT64_C(0x0f0e0d0c0b0a0908)};
  uint8_t data[16];

  for (uint8_t i = 0; i < sizeof(data); i++)
    data[i] = i;
  CHECK(tnk__siphash(key, data, 0) == UINT64_C(0x726fdb47dd0e0e31));
  CHECK(tnk__siphash(key, data, 1) == UINT64_C(0x74f839c593dc67fd));
  CHECK(tnk__siphash(key, data, 8) == UINT64_C(0x93f5f5799a932462));
  CHECK(tnk__siphash(key, data, 15) == UINT64_C(0xa129ca6149be45e5));
}

TEST(S1_1_another_secret_gives_other_ids) {
  tnk__limiter_registry_t other;
  tnk__limiter_key_t a, b;

  setup();
  tnk__limiter_registry_init(&other, 0x1234, 0x5679);
  a = tnk__limiter_key(&registry, "http://host/", "key");
  b = tnk__limiter_key(&other, "http://host/", "key");
  CHECK(a.hash != b.hash);
  CHECK(a.credential != b.credential);
}
