/* SPDX-License-Identifier: MIT */
#include "lib/policy/semaphore.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "support/test.h"

enum { MAX_PROBES = 1010 };

typedef struct {
  tnk__waiter_t waiter;
  int index;
} probe_t;

static tnk__semaphore_t sem;
static probe_t probes[MAX_PROBES];

/* Waiters write their index here when they are granted. */
static int granted[MAX_PROBES];
static size_t n_granted;

static void on_granted(tnk__waiter_t *waiter) {
  granted[n_granted++] = tnk__container_of(waiter, probe_t, waiter)->index;
}

static int acquire(int i) {
  return tnk__semaphore_acquire(&sem, &probes[i].waiter);
}

static void release(int n) {
  while (n-- > 0)
    tnk__semaphore_release(&sem);
}

/* So many slots, and the first n have asked for one. */
static void setup(uint32_t limit, int n) {
  for (int i = 0; i < MAX_PROBES; i++) {
    tnk__waiter_init(&probes[i].waiter, on_granted);
    probes[i].index = i;
  }
  tnk__semaphore_init(&sem, limit);
  for (int i = 0; i < n; i++)
    acquire(i);
}

TEST(S4_11_slots_go_out_in_order_of_arrival) {
  setup(10, 0);
  for (int i = 0; i < 1010; i++)
    CHECK_INT(acquire(i), i < 10);
  CHECK_INT(sem.n_waiting, 1000);
  for (int i = 10; i < 1010; i++) {
    release(1);
    CHECK_INT(sem.n_held, 10);
    CHECK_INT(granted[i - 10], i);
  }
  CHECK_INT(sem.n_waiting, 0);
}

TEST(S4_11b_one_release_wakes_one_waiter) {
  setup(1, 5);
  for (size_t n = 1; n <= 4; n++) {
    release(1);
    CHECK_INT(n_granted, n);
  }
  release(1);
  CHECK_INT(n_granted, 4);
  CHECK_INT(sem.n_held, 0);
}

TEST(S4_11_nobody_comes_between_a_release_and_its_waiter) {
  setup(1, 2);
  release(1);
  CHECK_INT(acquire(2), 0);
  CHECK_INT(n_granted, 1);
  CHECK_INT(granted[0], 1);
}

TEST(S4_11_asking_twice_is_one_place_in_the_queue) {
  setup(1, 1);
  CHECK_INT(acquire(1), 0);
  CHECK_INT(acquire(1), 0);
  CHECK_INT(sem.n_waiting, 1);
}

TEST(S3_12_a_waiter_that_returns_gets_its_old_place) {
  setup(3, 6);
  tnk__semaphore_set_limit(&sem, 1);
  /* 2, 0 and 1 give their slots back and ask again, in this order. */
  release(1);
  CHECK_INT(acquire(2), 0);
  release(1);
  CHECK_INT(acquire(0), 0);
  CHECK_INT(n_granted, 0);
  release(1); /* by 1: the first of all is 0 */
  CHECK_INT(acquire(1), 0);
  release(5);
  CHECK_INT(n_granted, 6);
  for (int i = 0; i < 6; i++)
    CHECK_INT(granted[i], i);
}

TEST(S4_11d_a_canceled_waiter_leaves_the_middle_of_the_queue) {
  setup(1, 4);
  tnk__semaphore_cancel(&sem, &probes[2].waiter);
  tnk__semaphore_cancel(&sem, &probes[2].waiter);
  CHECK_INT(sem.n_waiting, 2);
  release(3);
  CHECK_INT(n_granted, 2);
  CHECK_INT(granted[0], 1);
  CHECK_INT(granted[1], 3);
  CHECK_INT(sem.n_held, 0);
}

TEST(S4_4_a_lower_limit_takes_no_slot_away) {
  setup(4, 6);
  tnk__semaphore_set_limit(&sem, 2);
  CHECK_INT(sem.n_held, 4);
  release(2);
  CHECK_INT(n_granted, 0);
  release(1);
  CHECK_INT(n_granted, 1);
  CHECK_INT(sem.n_held, 2);
}

TEST(S4_4_a_higher_limit_lets_several_in) {
  setup(1, 6);
  tnk__semaphore_set_limit(&sem, 4);
  CHECK_INT(n_granted, 3);
  tnk__semaphore_set_limit(&sem, TNK__SEMAPHORE_UNLIMITED);
  CHECK_INT(n_granted, 5);
  for (int i = 0; i < 5; i++)
    CHECK_INT(granted[i], i + 1);
}

TEST(S4_11_a_release_too_many_makes_no_slot) {
  setup(1, 0);
  release(1);
  CHECK_INT(acquire(0), 1);
  CHECK_INT(acquire(1), 0);
}

/* Random acquires, releases and cancels: never over the limit, never a free
 * slot beside a waiter, and the order of grants is the order of arrival. */
TEST(S4_11_random_use_keeps_order_and_limit) {
  enum { N = 400 };
  uint64_t seed = 7;
  size_t checked = 0;
  int last = -1;

  setup(3, 0);
  for (int i = 0; i < N;) {
    switch (test_random(&seed) % 3) {
    case 0:
      if (acquire(i))
        granted[n_granted++] = i;
      i++;
      break;
    case 1:
      release(1);
      break;
    default:
      tnk__semaphore_cancel(
          &sem, &probes[test_random(&seed) % (unsigned)(i + 1)].waiter);
    }
    CHECK(sem.n_held <= 3);
    CHECK(sem.n_waiting == 0 || sem.n_held == 3);
    for (; checked < n_granted; checked++) {
      CHECK(granted[checked] > last);
      last = granted[checked];
    }
  }
  CHECK(checked > 100);
}
