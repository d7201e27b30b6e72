/* SPDX-License-Identifier: MIT */
/* Credentials that a command prints. The commands are real, the clock is
 * not. */
#include <unistd.h>

#include "task/tokens.h"

/* A command that counts its runs in a file and prints tml-canary-<run>. */
typedef struct {
  char path[64];
  char text[256];
} counter_t;

static const char *make_counter(counter_t *counter) {
  int fd;

  snprintf(counter->path, sizeof(counter->path), "/tmp/tnk-auth-XXXXXX");
  fd = mkstemp(counter->path);
  CHECK(fd >= 0);
  close(fd);
  snprintf(counter->text, sizeof(counter->text),
           "echo x >> %s; echo canary >&2; echo; "
           "echo \" tml-canary-$(grep -c x %s) \"",
           counter->path, counter->path);
  return counter->text;
}

static void open_with(tokens_t *t, const char *command, const char *flags) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.credential_cmd = command;
  tokens_open_with(t, options, 600, flags);
}

static void capabilities(tokens_t *t, int status) {
  outcome_t outcome;

  outcome_of(&outcome, tnk_service_capabilities(t->script.service));
  if (status == TNK_OK)
    outcome_ok(&t->script, &outcome);
  else
    outcome_fails(&t->script, &outcome, status);
  outcome_drop(&outcome);
}

TEST(A23_command_is_the_only_credential) {
  counter_t counter;
  tokens_t t;

  unsetenv("TINKER_API_KEY");
  open_with(&t, make_counter(&counter), "{}");
  script_sampler(&t.script);
  tokens_sample(&t, TNK_OK);
  CHECK_STR(tokens_key(&t, "/api/v1/client/config", 0), "tml-canary-1");
  CHECK_STR(tokens_key(&t, tokens_sample_path, 0), "tml-canary-1");
  /* It does not tell how long it lives. */
  script_advance(&t.script, 61000);
  tokens_sample(&t, TNK_OK);
  CHECK_STR(tokens_key(&t, tokens_sample_path, 1), "tml-canary-2");
  CHECK_INT(t.n_made, 0);
  tokens_close(&t);
  unlink(counter.path);
}

TEST(A23_command_runs_for_every_token) {
  counter_t counter;
  tokens_t t;

  unsetenv("TINKER_API_KEY");
  open_with(&t, make_counter(&counter), "{\"pjwt_auth_enabled\":true}");
  script_sampler(&t.script);
  CHECK_STR(tokens_key(&t, "/api/v1/client/config", 0), "tml-canary-1");
  CHECK_STR(tokens_key(&t, tokens_path, 0), "tml-canary-2");
  CHECK_STR(tokens_key(&t, "/api/v1/create_session", 0), t.token);
  while (t.script.service->session.renewal.command == NULL)
    script_advance(&t.script, 1000);
  while (t.n_made < 2)
    script_turns(&t.script);
  CHECK_STR(tokens_key(&t, tokens_path, 1), "tml-canary-3");
  tokens_close(&t);
  unlink(counter.path);
}

/* 1.5 of the protocol: a plain key gives way only if the server says so. */
TEST(A23_command_beside_a_key) {
  static const struct {
    const char *key;
    const char *flags;
    const char *asked_with;
    const char *exchanged;
  } rows[] = {
      {"tml-key", "{\"pjwt_auth_enabled\":true}", "tml-key", "tml-key"},
      {"tml-key",
       "{\"pjwt_auth_enabled\":true,"
       "\"credential_default_source\":\"credential_cmd\"}",
       "tml-key", "tml-command"},
      {"other-key", "{\"pjwt_auth_enabled\":true}", "tml-command",
       "tml-command"},
      {"eyJ.eyJleHAiOjk5OTk5OTk5OTl9.x",
       "{\"pjwt_auth_enabled\":true,"
       "\"credential_default_source\":\"credential_cmd\"}",
       "eyJ.eyJleHAiOjk5OTk5OTk5OTl9.x", "eyJ.eyJleHAiOjk5OTk5OTk5OTl9.x"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tokens_t t;
    setenv("TINKER_API_KEY", rows[i].key, 1);
    open_with(&t, "echo tml-command", rows[i].flags);
    capabilities(&t, TNK_OK);
    CHECK_STR(tokens_key(&t, "/api/v1/client/config", 0), rows[i].asked_with);
    CHECK_STR(tokens_key(&t, tokens_path, 0), rows[i].exchanged);
    tokens_close(&t);
  }
}

TEST(A23_command_that_the_server_wants_and_is_not_there) {
  tokens_t t;

  tokens_open(&t, 3600);
  script_flags(&t.script, "{\"pjwt_auth_enabled\":true,"
                          "\"credential_default_source\":\"credential_cmd\"}");
  capabilities(&t, TNK_ECREDENTIAL);
  CHECK_INT(t.n_made, 0);
  tokens_close(&t);
}

TEST_LIMIT(A23_command_that_gives_no_credential, 20) {
  static const char *const commands[] = {
      "exit 1",
      "echo tml-canary; exit 3",
      "echo tml-canary; kill -9 $$",
      "true",
      "echo; echo ' '",
      "echo tml-canary other",
      "printf 'tml-a\\r\\nX-Evil: canary'",
      "printf 'tml-\\377canary'",
      "echo tml-canary >&2",
      "/nonexistent/canary",
      "echo eyJ.eyJleHAiOjF9.canary",
      "echo eyJ.canary.x",
      "while :; do echo canary; done",
  };

  unsetenv("TINKER_API_KEY");
  for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
    tokens_t t;
    open_with(&t, commands[i], "{}");
    capabilities(&t, TNK_ECREDENTIAL);
    CHECK_INT(mock_n_requests(t.script.mock), 0);
    tokens_close(&t);
  }
}

static void open_slow(tokens_t *t, outcome_t *outcome) {
  unsetenv("TINKER_API_KEY");
  open_with(t, "exec sleep 600", "{}");
  outcome_of(outcome, tnk_service_capabilities(t->script.service));
  script_turns(&t->script);
  CHECK_INT(outcome->n_done, 0);
}

TEST(A23_command_has_30_s) {
  tokens_t t;
  outcome_t outcome;

  open_slow(&t, &outcome);
  script_advance(&t.script, 29000);
  CHECK_INT(outcome.n_done, 0);
  script_advance(&t.script, 1000);
  outcome_fails(&t.script, &outcome, TNK_ECREDENTIAL);
  CHECK(strstr(outcome.text, "30 seconds") != NULL);
  outcome_drop(&outcome);
  tokens_close(&t);
}

TEST(A23_command_dies_with_its_service) {
  tokens_t t;
  outcome_t outcome;

  open_slow(&t, &outcome);
  CHECK(t.script.service->session.renewal.command != NULL);
  tokens_close(&t); /* checks that libuv holds nothing any more */
  CHECK_INT(outcome.status, TNK_ECLOSED);
  outcome_drop(&outcome);
}

TEST(explain_tells_of_the_wait_for_the_command) {
  tokens_t t;
  tnk_promise_t *promise;
  char text[300];

  unsetenv("TINKER_API_KEY");
  open_with(&t, "exec sleep 600", "{}");
  promise = tnk_service_health(t.script.service);
  script_turns(&t.script);
  tnk_promise_explain(promise, text, sizeof(text));
  CHECK(strstr(text, "waits for the credential command") != NULL);
  CHECK(strstr(text, "sleep") == NULL);
  tnk_promise_unref(promise);
  tokens_close(&t);
}

static int run_without_memory(long n) {
  tokens_t t;
  int is_over;

  open_with(&t, "echo tml-canary", "{\"pjwt_auth_enabled\":true}");
  is_over = tokens_ask_without_memory(&t, n);
  tokens_close(&t);
  CHECK_INT(test_alloc_live(), 0);
  return is_over;
}

TEST_LIMIT(A23_command_without_memory, 60) {
  long n = 0;

  unsetenv("TINKER_API_KEY");
  while (!run_without_memory(n))
    CHECK(++n < 1000);
}
