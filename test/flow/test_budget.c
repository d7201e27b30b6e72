#include "flow/budget.h"

#include "base/alloc.h"
#include "support/test.h"

static int granted[2048];
static size_t n_granted;
static int is_dear; /* prices are twentyfold */

typedef struct {
  tnk__payer_t payer;
  uint64_t price;
  int index;
  int n_asked;
} probe_t;

static void on_granted(tnk__waiter_t *waiter) {
  granted[n_granted++] =
      tnk__container_of(waiter, probe_t, payer.waiter)->index;
}

static uint64_t cost(tnk__payer_t *payer) {
  probe_t *probe = tnk__container_of(payer, probe_t, payer);

  probe->n_asked++;
  return probe->price * (is_dear ? 20 : 1);
}

static void init_probes(probe_t *probes, int n, uint64_t price) {
  for (int i = 0; i < n; i++) {
    tnk__payer_init(&probes[i].payer, on_granted, cost);
    probes[i].price = price;
    probes[i].index = i;
    probes[i].n_asked = 0;
  }
}

TEST(S4_11c_balance_goes_below_zero_once) {
  probe_t probes[4];
  tnk__budget_t budget;

  init_probes(probes, 4, 60);
  tnk__budget_init(&budget, 100);
  CHECK_INT(tnk__budget_acquire(&budget, &probes[0].payer), 1);
  CHECK_INT(tnk__budget_acquire(&budget, &probes[1].payer), 1);
  CHECK_INT(budget.balance, -20);
  CHECK_INT(tnk__budget_acquire(&budget, &probes[2].payer), 0);
  CHECK_INT(budget.balance, -20);
  tnk__budget_release(&budget, &probes[0].payer);
  CHECK_INT(n_granted, 1);
  CHECK_INT(granted[0], 2);
  CHECK_INT(budget.balance, -20);
}

TEST(S4_11c_a_balance_of_zero_admits) {
  probe_t probes[3];
  tnk__budget_t budget;

  init_probes(probes, 3, 50);
  tnk__budget_init(&budget, 50);
  CHECK_INT(tnk__budget_acquire(&budget, &probes[0].payer), 1);
  CHECK_INT(budget.balance, 0);
  CHECK_INT(tnk__budget_acquire(&budget, &probes[1].payer), 1);
  CHECK_INT(tnk__budget_acquire(&budget, &probes[2].payer), 0);
}

TEST(S4_11c_one_giant_among_small_ones_is_served_in_order) {
  probe_t probes[8];
  tnk__budget_t budget;

  init_probes(probes, 8, 10);
  probes[3].price = 50000;
  tnk__budget_init(&budget, 25);
  for (int i = 0; i < 8; i++)
    tnk__budget_acquire(&budget, &probes[i].payer);
  CHECK_INT(budget.n_waiting, 5); /* 0, 1 and 2 are in: 15, 5, -5 */
  tnk__budget_release(&budget, &probes[0].payer);
  CHECK_INT(n_granted, 1);
  CHECK_INT(granted[0], 3);
  tnk__budget_release(&budget, &probes[1].payer);
  tnk__budget_release(&budget, &probes[2].payer);
  CHECK_INT(n_granted, 1); /* nobody overtakes while it is in */
  tnk__budget_release(&budget, &probes[3].payer);
  CHECK_INT(n_granted, 4);
  for (int i = 0; i < 4; i++)
    CHECK_INT(granted[i], 3 + i);
  for (int i = 4; i < 8; i++)
    tnk__budget_release(&budget, &probes[i].payer);
  CHECK_INT(budget.balance, 25);
}

TEST(S4_11c_a_budget_of_one_byte_still_progresses) {
  probe_t probes[20];
  tnk__budget_t budget;

  init_probes(probes, 20, 1000);
  tnk__budget_init(&budget, 1);
  for (int i = 0; i < 20; i++)
    CHECK_INT(tnk__budget_acquire(&budget, &probes[i].payer), i == 0);
  for (int i = 0; i < 20; i++)
    tnk__budget_release(&budget, &probes[i].payer);
  CHECK_INT(n_granted, 19);
  CHECK_INT(budget.balance, 1);
}

TEST(S4_4_the_price_is_asked_at_admission) {
  probe_t probes[2];
  tnk__budget_t budget;

  init_probes(probes, 2, 30);
  tnk__budget_init(&budget, 10);
  tnk__budget_acquire(&budget, &probes[0].payer);
  tnk__budget_acquire(&budget, &probes[1].payer);
  CHECK_INT(probes[1].n_asked, 0);
  is_dear = 1;
  tnk__budget_release(&budget, &probes[0].payer);
  CHECK_INT(probes[1].n_asked, 1);
  CHECK_INT(budget.balance, 10 - 600);
  is_dear = 0;
  tnk__budget_release(&budget, &probes[1].payer);
  CHECK_INT(probes[1].n_asked, 1);
  CHECK_INT(budget.balance, 10);
}

TEST(S4_11d_release_of_a_waiter_leaves_the_queue) {
  probe_t probes[3];
  tnk__budget_t budget;

  init_probes(probes, 3, 30);
  tnk__budget_init(&budget, 10);
  for (int i = 0; i < 3; i++)
    tnk__budget_acquire(&budget, &probes[i].payer);
  tnk__budget_release(&budget, &probes[1].payer);
  tnk__budget_release(&budget, &probes[1].payer);
  CHECK_INT(n_granted, 0);
  CHECK_INT(budget.balance, -20);
  tnk__budget_release(&budget, &probes[0].payer);
  CHECK_INT(n_granted, 1);
  CHECK_INT(granted[0], 2);
}

TEST(S4_11c_release_without_payment_changes_nothing) {
  probe_t probes[1];
  tnk__budget_t budget;

  init_probes(probes, 1, 30);
  tnk__budget_init(&budget, 10);
  tnk__budget_release(&budget, &probes[0].payer);
  CHECK_INT(budget.balance, 10);
  tnk__budget_acquire(&budget, &probes[0].payer);
  tnk__budget_release(&budget, &probes[0].payer);
  tnk__budget_release(&budget, &probes[0].payer);
  CHECK_INT(budget.balance, 10);
}

TEST(S4_11c_a_new_size_keeps_what_is_taken) {
  probe_t probes[4];
  tnk__budget_t budget;

  init_probes(probes, 4, 30);
  tnk__budget_init(&budget, 20);
  for (int i = 0; i < 4; i++)
    tnk__budget_acquire(&budget, &probes[i].payer);
  tnk__budget_set_size(&budget, 70); /* -10 + 50: two more */
  CHECK_INT(n_granted, 2);
  CHECK_INT(budget.balance, -20);
  tnk__budget_set_size(&budget, 0);
  for (int i = 0; i < 3; i++)
    tnk__budget_release(&budget, &probes[i].payer);
  CHECK_INT(n_granted, 3);
  tnk__budget_release(&budget, &probes[3].payer);
  CHECK_INT(budget.balance, 0);
}

TEST(S4_11c_enormous_amounts_do_not_overflow) {
  probe_t probes[2];
  tnk__budget_t budget;

  init_probes(probes, 2, UINT64_MAX);
  tnk__budget_init(&budget, UINT64_MAX);
  CHECK_INT(tnk__budget_acquire(&budget, &probes[0].payer), 1);
  CHECK_INT(tnk__budget_acquire(&budget, &probes[1].payer), 1);
  CHECK(budget.balance < 0);
  tnk__budget_set_size(&budget, 5);
  tnk__budget_release(&budget, &probes[0].payer);
  tnk__budget_release(&budget, &probes[1].payer);
  CHECK_INT(budget.balance, 5);
}

TEST(S4_11c_random_use_never_admits_below_zero) {
  enum { N = 500 };
  static probe_t probes[N];
  tnk__budget_t budget;
  uint64_t seed = 11;
  int n_in = 0;

  init_probes(probes, N, 0);
  tnk__budget_init(&budget, 1000);
  for (int i = 0; i < N;) {
    int64_t before = budget.balance;

    if (test_random(&seed) % 2 == 0) {
      probes[i].price = test_random(&seed) % 900;
      if (tnk__budget_acquire(&budget, &probes[i].payer)) {
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
    tnk__budget_release(&budget, &probes[i].payer);
  for (int i = 0; i < N; i++) /* those granted by the first round */
    tnk__budget_release(&budget, &probes[i].payer);
  CHECK_INT(budget.balance, 1000);
  for (size_t i = 1; i < n_granted; i++)
    CHECK(granted[i] > granted[i - 1]);
}
