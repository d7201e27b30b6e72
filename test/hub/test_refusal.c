/* SPDX-License-Identifier: MIT */
/*
 * What hubs refuse, and what people are told to do about it.
 */
#include "hub/models.h"

static const model_entry_t entries[] = {
    {"org/model", "main", COMMIT, "f.json", "{}", 0},
    {"org/model", "main", COMMIT, ".odd%20name%25.json", "{\"odd\":1}", 0},
};

typedef struct {
  int status;
  const char *headers;
} answer_t;

static void refuse(mock_request_t *request, void *user) {
  const answer_t *answer = user;
  char headers[400];

  snprintf(headers, sizeof(headers), "%sConnection: close\r\n",
           answer->headers);
  mock_reply(request, answer->status, headers, NULL, 0);
}

typedef struct {
  answer_t answer;
  int code;
  const char *anonymous; /* words of the sentence without a token */
  const char *known;     /* and with one */
} case_t;

static const case_t cases[] = {
    {{401, "X-Error-Code: RepoNotFound\r\n"},
     TNK_EAUTH,
     "no such model, or it is private: set HF_TOKEN",
     "no such model, or the token may not read it"},
    {{404, "X-Error-Code: RepoNotFound\r\n"},
     TNK_ENOTFOUND,
     "no such model, or it is private",
     "no such model, or the token"},
    {{401, ""}, TNK_EAUTH, "no such model, or it is private", "the token may"},
    {{401, "X-Error-Message: Invalid credentials in Authorization header\r\n"},
     TNK_EAUTH,
     "the token is wrong or has expired",
     "the token is wrong or has expired (HTTP 401: Invalid cred"},
    {{401, "X-Error-Code: GatedRepo\r\nX-Error-Message: Access restricted\r\n"},
     TNK_EAUTH,
     "/org/model, and set HF_TOKEN, or the hub's token, to one that may read "
     "it (HTTP 401: Access restricted)",
     "/org/model with the account of the token"},
    {{403, "X-Error-Code: GatedRepo\r\n"},
     TNK_EAUTH,
     "the model is gated: accept its license at http://127.0.0.1",
     "the model is gated: accept its license at http://127.0.0.1"},
    {{403, "X-Error-Message: Access to this resource is disabled.\r\n"},
     TNK_EAUTH,
     "not be read without a token",
     "the token may not read it (HTTP 403: Access to this resource is dis"},
    {{404, "X-Error-Code: RevisionNotFound\r\n"},
     TNK_ENOTFOUND,
     "the model has no revision v9",
     "the model has no revision v9"},
    {{404, "X-Error-Code: EntryNotFound\r\n"},
     TNK_ENOTFOUND,
     "org/model/x.json: there is no such file",
     "there is no such file"},
    {{404, ""}, TNK_ENOTFOUND, "(HTTP 404)", "(HTTP 404)"},
    {{404, "X-Error-Code: SomethingNew\r\nX-Error-Message: new\r\n"},
     TNK_ENOTFOUND,
     "(HTTP 404): new",
     "(HTTP 404): new"},
};

TEST_LIMIT(S0_4_refusals_say_what_to_do, 20) {
  for (int with_token = 0; with_token < 2; with_token++) {
    tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
    stage_t stage;

    stage_open(&stage, entries, 1);
    options.token = with_token ? TOKEN : "";
    bench_reopen_hub(&stage.bench, &options);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
      answer_t answer = cases[i].answer;
      mock_once(stage.bench.mock, "HEAD", NULL, refuse, &answer);
      stage_get_not(&stage, "org/model", "x.json", "v9", cases[i].code,
                    with_token ? cases[i].known : cases[i].anonymous);
    }
    bench_close(&stage.bench);
  }
}

TEST_LIMIT(S0_4_a_message_that_holds_the_token_is_not_repeated, 20) {
  answer_t answer = {403, NULL};
  char headers[300];
  outcome_t outcome;
  stage_t stage;

  /* So that a message is cut within it, too, wherever that is done. */
  stage_open(&stage, entries, 1);
  for (int n = 80; n < 210; n += 5) {
    snprintf(headers, sizeof(headers), "X-Error-Message: %0*d" TOKEN "\r\n", n,
             0);
    answer.headers = headers;
    mock_once(stage.bench.mock, "HEAD", NULL, refuse, &answer);
    stage_get(&stage, &outcome, "org/model", "x.json", NULL);
    CHECK_INT(outcome.status, TNK_EAUTH);
    CHECK(strstr(outcome.text, "hf_") == NULL);
    outcome_drop(&outcome);
    mock_once(stage.bench.mock, "GET", "/f", refuse, &answer);
    bench_get(&stage.bench, &outcome, "/f",
              &(tnk_download_options_t){.size = sizeof(tnk_download_options_t),
                                        .token = TOKEN});
    CHECK_INT(outcome.status, TNK_EAUTH);
    CHECK(strstr(outcome.text, "hf_") == NULL);
    outcome_drop(&outcome);
  }
  bench_close(&stage.bench);
}

/* As Python does: the hub has answered, and the branch is gone. */
TEST(S0_4_a_revision_that_is_gone_is_not_covered_by_the_cache) {
  answer_t gone = {404, "X-Error-Code: RevisionNotFound\r\n"};
  answer_t hidden = {401, "X-Error-Code: RepoNotFound\r\n"};
  stage_t stage;

  stage_open(&stage, entries, 1);
  stage_get_ok(&stage, "org/model", "f.json", NULL,
               CACHE "snapshots/" COMMIT "/f.json");
  mock_once(stage.bench.mock, "HEAD", NULL, refuse, &gone);
  stage_get_not(&stage, "org/model", "f.json", NULL, TNK_ENOTFOUND,
                "no revision main");
  mock_once(stage.bench.mock, "HEAD", NULL, refuse, &hidden);
  stage_get_ok(&stage, "org/model", "f.json", NULL,
               CACHE "snapshots/" COMMIT "/f.json");
  bench_close(&stage.bench);
}

TEST(S0_4_files_may_have_odd_names) {
  stage_t stage;

  stage_open(&stage, entries, 2);
  stage_get_ok(&stage, "org/model", ".odd name%.json", NULL,
               CACHE "snapshots/" COMMIT "/.odd name%.json");
  bench_check_file(&stage.bench, CACHE "snapshots/" COMMIT "/.odd name%.json",
                   "{\"odd\":1}");
  bench_close(&stage.bench);
}

/* ---- Too many requests ---- */

static void check_rate(const char *headers, int n_more, uint64_t wait_ms) {
  answer_t answer = {429, headers};
  stage_t stage;
  outcome_t outcome;

  stage_open(&stage, entries, 1);
  mock_once(stage.bench.mock, "HEAD", NULL, refuse, &answer);
  stage_get(&stage, &outcome, "org/model", "f.json", NULL);
  CHECK_INT(mock_n_requests(stage.bench.mock), 1 + n_more);
  CHECK_INT(outcome.status, n_more > 0 ? TNK_OK : TNK_ERATE);
  if (n_more == 0) {
    CHECK(strstr(outcome.text, "a pause of 300 s") != NULL);
    CHECK_INT(tnk_promise_error(outcome.promise)->retry_after_ms, wait_ms);
  } else {
    CHECK(tnk__context_now_ms(&stage.bench.hub->root.context) >=
          1000000 + wait_ms);
  }
  outcome_drop(&outcome);
  bench_close(&stage.bench);
}

TEST_LIMIT(S1_5_a_hub_that_is_asked_too_often_is_left_alone, 30) {
  check_rate("Retry-After: 20\r\n", 2, 20000);
  check_rate("RateLimit: \"resolvers\";r=0;t=55\r\n", 2, 55000);
  check_rate("RateLimit: \"api\"; r=9; t=300\r\n", 2, 0);
  check_rate("Retry-After: 300\r\n", 0, 300000);
  check_rate("RateLimit: \"api\"; r=0; t=300\r\n", 0, 300000);
}
