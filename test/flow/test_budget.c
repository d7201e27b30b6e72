/* SPDX-License-Identifier: MIT */
#include "lib/policy/semaphore.h"

#include "lib/base/alloc.h"
#include "support/test.h"

enum { MAX_PROBES = 500 };

static int is_dear; /* prices are twentyfold */

typedef struct {
  tnk__payer_t payer;
  uint64_t price;
  int index;
  int n_asked;
} probe_t;

static tnk__budget_t budget;
static probe_t probes[MAX_PROBES];
static int granted[MAX_PROBES]; /* their indices */
static size_t n_granted;

static void on_granted(tnk__waiter_t *waiter) {
  granted[n_granted++] =
      tnk__container_of(waiter, probe_t, payer.waiter)->index;
}

static uint64_t cost(tnk__payer_t *payer) {
  probe_t *probe = tnk__container_of(payer, probe_t, payer);

  probe->n_asked++;
  return probe->price * (is_dear ? 20 : 1);
}

static int acquire(int i) {
  return tnk__budget_acquire(&budget, &probes[i].payer);
}

static void release(int i) {
  tnk__budget_release(&budget, &probes[i].payer);
}

static void setup(uint64_t size, uint64_t price) {
  for (int i = 0; i < MAX_PROBES; i++) {
    tnk__payer_init(&probes[i].payer, on_granted, cost);
    probes[i].price = price;
    probes[i].index = i;
    probes[i].n_asked = 0;
  }
  tnk__budget_init(&budget, size);
}

TEST(S4_11c_balance_goes_below_zero_once) {
  setup(100, 60);
  CHECK_INT(acquire(0), 1);
  CHECK_INT(acquire(1), 1);
  CHECK_INT(budget.balance, -20);
  CHECK_INT(acquire(2), 0);
  CHECK_INT(budget.balance, -20);
  release(0);
  CHECK_INT(n_granted, 1);
  CHECK_INT(granted[0], 2);
  CHECK_INT(budget.balance, -20);
}

TEST(S4_11c_a_balance_of_zero_admits) {
  setup(50, 50);
  CHECK_INT(acquire(0), 1);
  CHECK_INT(budget.balance, 0);
  CHECK_INT(acquire(1), 1);
  CHECK_INT(acquire(2), 0);
}

TEST(S4_11c_one_giant_among_small_ones_is_served_in_order) {
  setup(25, 10);
  probes[3].price = 50000;
  for (int i = 0; i < 8; i++)
    acquire(i);
  CHECK_INT(budget.n_waiting, 5); /* 0, 1 and 2 are in: 15, 5, -5 */
  release(0);
  CHECK_INT(n_granted, 1);
  CHECK_INT(granted[0], 3);
  release(1);
  release(2);
  CHECK_INT(n_granted, 1); /* nobody overtakes while it is in */
  release(3);
  CHECK_INT(n_granted, 4);
  for (int i = 0; i < 4; i++)
    CHECK_INT(granted[i], 3 + i);
  for (int i = 4; i < 8; i++)
    release(i);
  CHECK_INT(budget.balance, 25);
}

TEST(S4_11c_a_budget_of_one_byte_still_progresses) {
  setup(1, 1000);
  for (int i = 0; i < 20; i++)
    CHECK_INT(acquire(i), i == 0);
  for (int i = 0; i < 20; i++)
    release(i);
  CHECK_INT(n_granted, 19);
  CHECK_INT(budget.balance, 1);
}

TEST(S4_4_the_price_is_asked_at_admission) {
  setup(10, 30);
  acquire(0);
  acquire(1);
  CHECK_INT(probes[1].n_asked, 0);
  is_dear = 1;
  release(0);
  CHECK_INT(probes[1].n_asked, 1);
  CHECK_INT(budget.balance, 10 - 600);
  is_dear = 0;
  release(1);
  CHECK_INT(probes[1].n_asked, 1);
  CHECK_INT(budget.balance, 10);
}

TEST(S4_11d_release_of_a_waiter_leaves_the_queue) {
  setup(10, 30);
  for (int i = 0; i < 3; i++)
    acquire(i);
  release(1);
  release(1);
  CHECK_INT(n_granted, 0);
  CHECK_INT(budget.balance, -20);
  release(0);
  CHECK_INT(n_granted, 1);
  CHECK_INT(granted[0], 2);
}

TEST(S4_11c_release_without_payment_changes_nothing) {
  setup(10, 30);
  release(0);
  CHECK_INT(budget.balance, 10);
  acquire(0);
  release(0);
  release(0);
  CHECK_INT(budget.balance, 10);
}

TEST(S4_11c_a_new_size_keeps_what_is_taken) {
  setup(20, 30);
  for (int i = 0; i < 4; i++)
    acquire(i);
  tnk__budget_set_size(&budget, 70); /* -10 + 50: two more */
  CHECK_INT(n_granted, 2);
  CHECK_INT(budget.balance, -20);
  tnk__budget_set_size(&budget, 0);
  for (int i = 0; i < 3; i++)
    release(i);
  CHECK_INT(n_granted, 3);
  release(3);
  CHECK_INT(budget.balance, 0);
}

TEST(S4_11c_enormous_amounts_do_not_overflow) {
  setup(UINT64_MAX, UINT64_MAX);
  CHECK_INT(acquire(0), 1);
  CHECK_INT(acquire(1), 1);
  CHECK(budget.balance < 0);
  tnk__budget_set_size(&budget, 5);
  release(0);
  release(1);
  CHECK_INT(budget.balance, 5);
}

TEST(S4_11c_random_use_never_admits_below_zero) {
  enum { N = MAX_PROBES };
  uint64_t seed = 11;
  int n_in = 0;

  setup(1000, 0);
  for (int i = 0; i < N;) {
    int64_t before = budget.balance;

    if (test_random(&seed) % 2 == 0) {
      probes[i].price = test_random(&seed) % 900;
      if (acquire(i)) {
        CHECK(before >= 0);
        CHECK_INT(n_granted, (size_t)n_in);
      }
      i++;
    } else if (i > 0) {
      tnk__budget_release(&budget,
                          &probes[test_random(&seed) % (unsigned)i].payer);
    }
    CHECK(budget.balance >= -900);
    CHECK(budget.n_waiting == 0 || budget.balance < 0);
    n_in = (int)n_granted;
  }
  for (int i = 0; i < N; i++)
    release(i);
  for (int i = 0; i < N; i++) /* those granted by the first round */
    release(i);
  CHECK_INT(budget.balance, 1000);
  for (size_t i = 1; i < n_granted; i++)
    CHECK(granted[i] > granted[i - 1]);
}
