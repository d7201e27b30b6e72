/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"
#include "tools/local/fault/fault.h"

/* The text of faults, and what it decides. */

static local_fault_spec_t spec;

static const local_fault_rule_t *read_one(const char *text) {
  char why[512] = "";

  if (local_fault_spec_read(&spec, text, why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s: %s", text, why);
  CHECK_INT(spec.n_rules, 1);
  return &spec.rules[0];
}

TEST(nothing_goes_wrong_by_itself) {
  CHECK_INT(local_fault_spec_read(&spec, NULL, NULL, 0), TNK_OK);
  CHECK_INT(spec.n_rules, 0);
  CHECK_INT(local_fault_spec_read(&spec, "", NULL, 0), TNK_OK);
  CHECK_INT(spec.n_rules, 0);
  CHECK_INT(local_fault_spec_read(&spec, "seed=7", NULL, 0), TNK_OK);
  CHECK_INT(spec.n_rules, 0);
  CHECK_INT(spec.seed, 7);
}

TEST(shares_and_positions) {
  static const struct {
    const char *text;
    uint32_t share;
    uint64_t first;
    uint64_t last;
  } rows[] = {
      {"reset", 1000000, 0, 0},
      {"reset=2%", 20000, 0, 0},
      {"reset=0.02", 20000, 0, 0},
      {"reset=2.5%", 25000, 0, 0},
      {"reset=0.0001%", 1, 0, 0},
      {"reset=100%", 1000000, 0, 0},
      {"reset=1", 1000000, 0, 0},
      {"reset@12", 0, 12, 12},
      {"reset@3-5", 0, 3, 5},
      {"reset@7-", 0, 7, UINT64_MAX},
      {"reset:connection=0.2%", 2000, 0, 0},
      {"reset/asample:refused=5%", 50000, 0, 0},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    const local_fault_rule_t *rule = read_one(rows[i].text);

    CHECK_INT(rule->share, rows[i].share);
    CHECK_INT(rule->first, rows[i].first);
    CHECK(rule->last == rows[i].last);
    CHECK_INT(rule->fault.kind, LOCAL_FAULT_RESET);
  }
}

TEST(arguments) {
  const local_fault_rule_t *rule = read_one("cut_body/asample@12:100");

  CHECK_INT(rule->fault.kind, LOCAL_FAULT_CUT);
  CHECK_INT(rule->fault.n, 100);
  CHECK_INT(rule->fault.after, 1);
  CHECK_STR(rule->call, "asample");
  rule = read_one("409/client/config:expected=-1:after:html");
  CHECK_STR(rule->call, "client/config");
  CHECK_INT(rule->fault.status, 409);
  CHECK_INT(rule->fault.expect, LOCAL_EXPECT_RELATIVE);
  CHECK_INT(rule->fault.expected, -1);
  CHECK_INT(rule->fault.after, 1);
  CHECK_INT(rule->fault.body, LOCAL_BODY_HTML);
  rule = read_one("409:expected=12");
  CHECK_INT(rule->fault.expect, LOCAL_EXPECT_NUMBER);
  CHECK_INT(rule->fault.expected, 12);
  rule = read_one("429=1%:rfc850=3");
  CHECK_INT(rule->fault.retry, LOCAL_RETRY_RFC850);
  CHECK_INT(rule->fault.n, 3);
  CHECK_INT(rule->fault.after, 0);
  CHECK_INT(read_one("400")->fault.body, LOCAL_BODY_EMPTY);
  CHECK_INT(read_one("400:json")->fault.body, LOCAL_BODY_JSON);
  CHECK_STR(read_one("try_again")->fault.arg, "active");
  CHECK_STR(read_one("try_again:paused_capacity")->fault.arg,
            "paused_capacity");
  CHECK(read_one("all=10%")->n_group > read_one("mild=10%")->n_group);
}

TEST(what_is_wrong_is_named) {
  static const struct {
    const char *text;
    const char *words;
  } rows[] = {
      {"reset=1%,cut_bdy@12", "in the fault \"cut_bdy@12\""},
      {"cut_bdy@12", "unknown: \"cut_bdy\""},
      {"cut_bdy@12", "known are mild, all, a status from 400 to 599, refuse, "},
      {"399", "unknown: \"399\""},
      {"600", "unknown: \"600\""},
      {"reset=0%", "like 2% or 0.02 and at most 100%, not \"0%\""},
      {"reset=101%", "not \"101%\""},
      {"reset=", "not \"\""},
      {"reset=x", "not \"x\""},
      {"reset=1%%", "not \"1%%\""},
      {"reset=1.2.3%", "not \"1.2.3%\""},
      {"reset=9999999999999999999%", "at most 100%"},
      {"reset@0", "a position is like 12, 3-5 or 7-, not \"0\""},
      {"reset@5-3", "a position"},
      {"reset@x", "a position"},
      {"reset@1=2%", "not \"1=2%\""},
      {"reset:1", "does not take the argument \"1\""},
      {"cut_body:x", "does not take the argument \"x\""},
      {"slow_body:0", "does not take the argument \"0\""},
      {"cut_body:1:after", "does not take the argument \"after\""},
      {"503:ms", "does not take the argument \"ms\""},
      {"503:ms=x", "does not take"},
      {"503:expected=3", "does not take"},
      {"409:expected=+", "does not take"},
      {"try_again:paused", "does not take the argument \"paused\""},
      {"all:1", "does not take the argument \"1\""},
      {"refuse/asample", "refuse concerns connections"},
      {"reset/", "not the name of a call"},
      {"seed=x", "a seed is a number, not \"x\""},
      {"reset,,drop", "empty item"},
      {",reset", "empty item"},
      {"reset,", "nothing follows"},
  };
  char why[512];

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    why[0] = '\0';
    if (local_fault_spec_read(&spec, rows[i].text, why, sizeof(why)) !=
            TNK_EINVAL ||
        strstr(why, rows[i].words) == NULL)
      test_fail(__FILE__, __LINE__, "%s: %s", rows[i].text, why);
  }
}

TEST(too_much_is_refused) {
  char text[1024] = "reset";
  char why[512];

  for (int i = 1; i < LOCAL_MAX_FAULT_RULES; i++)
    strcat(text, ",reset");
  CHECK_INT(local_fault_spec_read(&spec, text, why, sizeof(why)), TNK_OK);
  strcat(text, ",reset");
  CHECK_INT(local_fault_spec_read(&spec, text, why, sizeof(why)), TNK_EINVAL);
  memset(text, 'x', 300);
  text[300] = '\0';
  CHECK_INT(local_fault_spec_read(&spec, text, why, sizeof(why)), TNK_EINVAL);
  CHECK(strstr(why, "too long"));
}

/* ---- Decisions ---- */

static local_faults_t *plan(const char *text) {
  local_faults_t *faults = local_faults_new(test_allocator());
  char why[512] = "";

  CHECK(faults != NULL);
  if (local_faults_set(faults, text, why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s: %s", text, why);
  return faults;
}

static local_fault_t ask(local_faults_t *faults, const char *path) {
  local_fault_t fault;

  local_faults_decide(faults, path, &fault);
  return fault;
}

TEST(positions_count_the_requests_they_are_about) {
  local_faults_t *faults =
      plan("503/optim_step@2-3,reset@4,drop_after_commit/training_runs");

  CHECK_INT(ask(faults, "/api/v1/optim_step").kind, LOCAL_FAULT_NONE);
  CHECK_INT(ask(faults, "/api/v1/asample").kind, LOCAL_FAULT_NONE);
  CHECK_INT(ask(faults, "/api/v1/optim_step").status, 503);
  /* The fourth request of all; the third of its call is past. */
  CHECK_INT(ask(faults, "/api/v1/optim_step").status, 503);
  CHECK_INT(ask(faults, "/api/v1/optim_step").kind, LOCAL_FAULT_NONE);
  CHECK_INT(ask(faults, "/api/v1/optim_steps").kind, LOCAL_FAULT_NONE);
  CHECK_INT(ask(faults, "/api/v1/training_runs/a/b?x").kind, LOCAL_FAULT_DROP);
  CHECK_INT(ask(faults, "/tnk/faults").kind, LOCAL_FAULT_NONE);
  CHECK_INT(local_faults_refuses(faults), 0);
  local_faults_free(faults);
}

TEST(faults_of_polls_are_of_polls) {
  local_faults_t *faults = plan("try_again");

  CHECK_INT(ask(faults, "/api/v1/asample").kind, LOCAL_FAULT_NONE);
  CHECK_INT(ask(faults, "/api/v1/retrieve_future").kind, LOCAL_FAULT_TRY_AGAIN);
  CHECK_INT(local_faults_set(faults, "404", NULL, 0), TNK_OK);
  CHECK_INT(ask(faults, "/api/v1/asample").kind, LOCAL_FAULT_NONE);
  CHECK_INT(ask(faults, "/api/v1/retrieve_future").status, 404);
  CHECK_INT(local_faults_set(faults, "409", NULL, 0), TNK_OK);
  CHECK_INT(ask(faults, "/api/v1/optim_step").status, 409);
  CHECK_INT(ask(faults, "/api/v1/save_weights").kind, LOCAL_FAULT_NONE);
  CHECK_INT(ask(faults, "/api/v1/retrieve_future").kind, LOCAL_FAULT_NONE);
  CHECK_INT(local_faults_set(faults, "404/asample", NULL, 0), TNK_OK);
  CHECK_INT(ask(faults, "/api/v1/asample").status, 404);
  local_faults_free(faults);
}

/* Shares come as often as they say, and a request has one fault at most. */
TEST(shares_are_kept) {
  enum { N = 200000 };
  local_faults_t *faults = plan("reset=5%,503=10%,drop_after_commit=0.5%");
  size_t n[LOCAL_FAULT_OVERSIZED + 1] = {0};

  for (int i = 0; i < N; i++)
    n[ask(faults, "/api/v1/asample").kind]++;
  CHECK_NEAR((double)n[LOCAL_FAULT_RESET] / N, 0.05, 0.005);
  CHECK_NEAR((double)n[LOCAL_FAULT_STATUS] / N, 0.10, 0.005);
  CHECK_NEAR((double)n[LOCAL_FAULT_DROP] / N, 0.005, 0.002);
  CHECK_NEAR((double)n[LOCAL_FAULT_NONE] / N, 0.845, 0.005);
  local_faults_free(faults);
}

/* The group has each of its faults in about equal numbers. */
TEST(all_has_all_of_them) {
  local_faults_t *faults = plan("all");
  size_t n[LOCAL_FAULT_OVERSIZED + 1] = {0};

  for (int i = 0; i < 20000; i++)
    n[ask(faults, "/api/v1/retrieve_future").kind]++;
  CHECK_INT(n[LOCAL_FAULT_NONE], 0);
  CHECK_INT(n[LOCAL_FAULT_REFUSE], 0);
  for (int i = LOCAL_FAULT_RESET; i <= LOCAL_FAULT_OVERSIZED; i++)
    CHECK(n[i] > 200);
  CHECK_INT(local_faults_refuses(faults), 1);
  CHECK_INT(local_faults_count(faults, "refuse"), 1);
  local_faults_free(faults);
}

/* The same seed has the same faults, whatever other calls come between. */
TEST(a_seed_decides) {
  enum { N = 1000 };
  local_faults_t *faults = plan("seed=3,all=30%");
  local_fault_t first[N];
  size_t n_different = 0;

  for (int i = 0; i < N; i++)
    first[i] = ask(faults, "/api/v1/optim_step");
  CHECK_INT(local_faults_set(faults, "seed=3,all=30%", NULL, 0), TNK_OK);
  for (int i = 0; i < N; i++) {
    local_fault_t fault;

    ask(faults, "/api/v1/retrieve_future");
    local_faults_refuses(faults);
    fault = ask(faults, "/api/v1/optim_step");
    CHECK_INT(fault.kind, first[i].kind);
    CHECK_INT(fault.status, first[i].status);
  }
  CHECK_INT(local_faults_set(faults, "seed=4,all=30%", NULL, 0), TNK_OK);
  for (int i = 0; i < N; i++)
    n_different += ask(faults, "/api/v1/optim_step").kind != first[i].kind;
  CHECK(n_different > N / 10);
  local_faults_free(faults);
}

TEST(a_wrong_text_changes_nothing) {
  local_faults_t *faults = plan("503");
  char why[512];

  CHECK_INT(local_faults_set(faults, "nonsense", why, sizeof(why)), TNK_EINVAL);
  CHECK_INT(ask(faults, "/api/v1/asample").status, 503);
  local_faults_free(faults);
}

TEST(without_memory) {
  local_faults_t *faults;

  for (int n = 0; n <= 2; n++) {
    test_alloc_fail_at(n);
    CHECK(local_faults_new(test_allocator()) == NULL);
  }
  test_alloc_fail_at(-1);
  faults = plan("503");
  for (int n = 0; n <= 1; n++) {
    test_alloc_fail_at(n);
    CHECK_INT(local_faults_set(faults, "reset", NULL, 0), TNK_ENOMEM);
    CHECK_INT(ask(faults, "/api/v1/asample").status, 503);
  }
  test_alloc_fail_at(-1);
  local_faults_free(faults);
}
