/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gateway/account.h"
#include "lib/wire/message/results.h"
#include "rig.h"

/* Requests with the key of a session: what they use, and how they end. */

typedef struct {
  rig_t rig;
  char key[TNK_GATEWAY_KEY_SIZE];
  char id[TNK_GATEWAY_KEY_ID_SIZE];
} stage_t;

static void stage_open(stage_t *stage, uint64_t latency_ms,
                       const char *record) {
  tnk_gateway_key_options_t options = TNK_GATEWAY_KEY_OPTIONS_INIT;

  rig_admin_key = "admin";
  rig_open_with(&stage->rig, latency_ms, record, 0, 0);
  options.session = "me";
  options.max_tokens = 100000;
  CHECK_INT(tnk_gateway_key_create(stage->rig.gateway, &options, stage->key,
                                   sizeof(stage->key), stage->id,
                                   sizeof(stage->id)),
            TNK_OK);
}

static tnk__gw_grant_t *grant_of(const stage_t *stage) {
  tnk__gw_grant_t *grant =
      tnk__gw_grant_by_id(&stage->rig.gateway->grants, stage->id);

  CHECK(grant != NULL);
  return grant;
}

static peer_t *say(stage_t *stage, const char *key) {
  return ask_as(&stage->rig, key, "POST", "/v1/chat/completions",
                "{\"max_tokens\":3,\"messages\":[{\"role\":\"user\","
                "\"content\":\"hi\"}]}");
}

static int said(stage_t *stage, const char *key) {
  return peer_end(&stage->rig, say(stage, key));
}

static void make_file(char *path) {
  int fd = mkstemp(path);

  CHECK(fd >= 0);
  close(fd);
}

/* ---- Costs ---- */

/* Cost in 10^-12 USD of a request of 10 ids that samples 3 of at most 5. */
static uint64_t cost_of(stage_t *stage, int32_t n_hits) {
  static tnk__sequence_t sequence = {.n_tokens = 3};
  const tnk_samples_t samples = {
      .sequences = &sequence, .n_sequences = 1, .cache_hit_tokens = n_hits};
  tnk__gw_grant_t *grant = grant_of(stage);
  tnk__gw_job_t job = {.gateway = stage->rig.gateway,
                       .grant = grant,
                       .ids = {.len = 10 * sizeof(int32_t)},
                       .ask = {.n = 1, .max_tokens = 5}};
  const uint64_t before = grant->used.pico;
  tnk__gw_fault_t fault;
  uint32_t wait_s;

  CHECK_INT(tnk__gw_grant_enter(&stage->rig.gateway->grants, grant, &wait_s),
            TNK__GW_ENTERED);
  CHECK_INT(tnk__gw_account_begin(&job, &fault), 0);
  CHECK_INT(grant->used.pico - before, 40000000);
  tnk__gw_account_samples(&job, 0, &samples);
  tnk__gw_account_end(&job);
  return grant->used.pico - before;
}

TEST_LIMIT(cache_hits_have_their_own_price, 20) {
  stage_t stage;

  rig_usd[0] = 2;
  rig_usd[1] = 4;
  rig_usd[2] = 0.5;
  stage_open(&stage, NEVER, NULL);
  CHECK_INT(cost_of(&stage, 0), 32000000);
  CHECK_INT(cost_of(&stage, 6), 23000000);
  /* A service may say what cannot be. */
  CHECK_INT(cost_of(&stage, -1), 32000000);
  CHECK_INT(cost_of(&stage, INT32_MAX), 17000000);
  rig_close(&stage.rig);
  rig_usd[2] = 0;
  stage_open(&stage, NEVER, NULL);
  CHECK_INT(cost_of(&stage, 6), 32000000);
  rig_close(&stage.rig);
}

static int complete(stage_t *stage, const char *body) {
  return peer_end(&stage->rig, ask_as(&stage->rig, stage->key, "POST",
                                      "/v1/completions", body));
}

/* The service reads a prompt once, whatever the number of its responses. */
TEST_LIMIT(a_prompt_costs_once, 20) {
  const tnk__gw_use_t *used;
  stage_t stage;

  rig_usd[0] = 2;
  rig_usd[1] = 4;
  stage_open(&stage, 0, NULL);
  used = &grant_of(&stage)->used;
  CHECK_INT(complete(&stage, "{\"prompt\":\"abcde\",\"n\":3,\"max_tokens\":"
                             "2,\"temperature\":0}"),
            200);
  CHECK_INT(used->n_turns, 3);
  CHECK_INT(used->n_tokens, 5 + 3 * 2);
  CHECK_INT(used->pico, 5 * 2000000 + 3 * 2 * 4000000);
  /* Each of several prompts. */
  CHECK_INT(complete(&stage, "{\"prompt\":[\"abc\",\"d\"],\"max_tokens\":2,"
                             "\"temperature\":0}"),
            200);
  CHECK_INT(used->n_requests, 2);
  CHECK_INT(used->n_turns, 3 + 2);
  CHECK_INT(used->n_tokens, 11 + 4 + 2 * 2);
  CHECK_INT(used->pico, 9 * 2000000 + 10 * 4000000);
  rig_close(&stage.rig);
}

/* What is reserved for several prompts is the most that all of them can use. */
TEST_LIMIT(several_prompts_need_the_sum, 20) {
  tnk__gw_grant_t *grant;
  stage_t stage;

  stage_open(&stage, 0, NULL);
  grant = grant_of(&stage);
  grant->limits.max_tokens = 11;
  CHECK_INT(complete(&stage, "{\"prompt\":[\"ab\",\"cd\"],\"max_tokens\":4}"),
            403);
  CHECK_INT(n_calls(&stage.rig, "asample"), 0);
  CHECK_INT(complete(&stage, "{\"prompt\":[\"ab\",\"c\"],\"max_tokens\":4}"),
            200);
  rig_close(&stage.rig);
}

static peer_t *ask_object(stage_t *stage) {
  return ask_as(&stage->rig, stage->key, "POST", "/v1/chat/completions",
                "{\"max_tokens\":2,\"response_format\":{\"type\":"
                "\"json_object\"},\"messages\":[{\"role\":\"user\","
                "\"content\":\"hi\"}]}");
}

/* The client hangs up, and repeats its request when the sample is there. That
 * sample was charged. The attempts that follow it are charged as well. */
TEST_LIMIT(attempts_after_a_kept_sample_are_charged, 60) {
  const tnk__gw_use_t *used;
  stage_t stage;
  peer_t *peer;

  rig_formats = TNK_GATEWAY_FORMATS_RETRY;
  stage_open(&stage, 100, NULL);
  used = &grant_of(&stage)->used;
  peer = ask_object(&stage);
  until_sampled(&stage.rig, 1);
  peer_close(peer);
  (void)peer_end(&stage.rig, peer);
  while (stage.rig.gateway->again.n_kept == 0)
    uv_run(&stage.rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(used->n_turns, 1);
  CHECK_INT(grant_of(&stage)->n_active, 0);
  CHECK_INT(peer_end(&stage.rig, ask_object(&stage)), 200);
  CHECK_INT(n_calls(&stage.rig, "asample"), 3);
  CHECK_INT(used->n_turns, 3);
  CHECK_INT(grant_of(&stage)->n_active, 0);
  rig_close(&stage.rig);
}

/* ---- Keys in use ---- */

/* A request has the key that it came with until it ends. */
TEST_LIMIT(a_key_is_rotated_during_a_request, 20) {
  char next[TNK_GATEWAY_KEY_SIZE];
  stage_t stage;
  peer_t *peer;

  stage_open(&stage, 50, NULL);
  peer = say(&stage, stage.key);
  until_sampled(&stage.rig, 1);
  CHECK_INT(grant_of(&stage)->n_active, 1);
  CHECK_INT(
      tnk_gateway_key_rotate(stage.rig.gateway, stage.id, next, sizeof(next)),
      TNK_OK);
  CHECK_INT(said(&stage, stage.key), 401);
  CHECK_INT(peer_end(&stage.rig, peer), 200);
  CHECK_INT(grant_of(&stage)->n_active, 0);
  CHECK_INT(grant_of(&stage)->used.n_requests, 1);
  CHECK_INT(said(&stage, next), 200);
  CHECK_INT(grant_of(&stage)->used.n_requests, 2);
  rig_close(&stage.rig);
}

TEST_LIMIT(a_key_is_revoked_during_a_request, 20) {
  stage_t stage;
  peer_t *peer;

  stage_open(&stage, 50, NULL);
  peer = say(&stage, stage.key);
  until_sampled(&stage.rig, 1);
  CHECK_INT(tnk_gateway_key_revoke(stage.rig.gateway, stage.id), TNK_OK);
  CHECK_INT(said(&stage, stage.key), 401);
  CHECK_INT(peer_end(&stage.rig, peer), 200);
  rig_close(&stage.rig);
}

/* ---- The record ---- */

/* Keys come back with a record, and so does the need for one. */
TEST_LIMIT(a_record_with_keys_serves_nobody_without_one, 20) {
  char path[] = "/tmp/tnk-account-XXXXXX";
  char key[TNK_GATEWAY_KEY_SIZE];
  tnk_gateway_options_t options = TNK_GATEWAY_OPTIONS_INIT;
  tnk_gateway_t *gateway;
  char why[256];
  stage_t stage;

  make_file(path);
  stage_open(&stage, 0, path);
  memcpy(key, stage.key, sizeof(key));
  rig_close(&stage.rig);
  rig_open_with(&stage.rig, 0, path, 0, 0);
  CHECK_INT(said(&stage, NULL), 401);
  CHECK_INT(said(&stage, "tnk-"), 401);
  CHECK_INT(n_calls(&stage.rig, "asample"), 0);
  CHECK_INT(said(&stage, key), 200);
  rig_close(&stage.rig);
  rig_admin_key = NULL;
  rig_open(&stage.rig, NEVER);
  options.tokenizer = (tnk_chat_tokenizer_t){tnk_chat_bytes_plugin(), NULL};
  options.record = path;
  CHECK_INT(tnk_gateway_open(&gateway, &stage.rig.e2e.uv, stage.rig.e2e.service,
                             &options, why, sizeof(why)),
            TNK_EINVAL);
  CHECK(strstr(why, "the record has keys of sessions") != NULL);
  rig_close(&stage.rig);
  unlink(path);
}

/* The disk is full when a request has reserved what it may use. It counts, as
 * it was sampled. Later ones are neither sampled nor counted. */
TEST_LIMIT(the_disk_is_full_while_a_limit_is_reserved, 20) {
  char path[] = "/tmp/tnk-account-XXXXXX";
  tnk__gw_use_t used;
  struct rlimit limit, small;
  stage_t stage;

  make_file(path);
  stage_open(&stage, 0, path);
  CHECK_INT(said(&stage, stage.key), 200);
  used = grant_of(&stage)->used;
  CHECK_INT(used.n_requests, 1);
  CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = limit;
  small.rlim_cur = 16;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
  CHECK_INT(said(&stage, stage.key), 500);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK_INT(n_calls(&stage.rig, "asample"), 2);
  CHECK_INT(grant_of(&stage)->n_active, 0);
  CHECK_INT(grant_of(&stage)->used.n_requests, 2);
  CHECK(grant_of(&stage)->used.n_tokens > used.n_tokens);
  used = grant_of(&stage)->used;
  CHECK_INT(said(&stage, stage.key), 500);
  CHECK_INT(n_calls(&stage.rig, "asample"), 2);
  CHECK_INT(grant_of(&stage)->n_active, 0);
  CHECK_INT(grant_of(&stage)->used.n_requests, 2);
  CHECK_INT(grant_of(&stage)->used.n_tokens, used.n_tokens);
  rig_close(&stage.rig);
  unlink(path);
}

/* ---- Memory ---- */

/* What a request reserved is returned unless it was sampled. */
TEST_LIMIT(each_allocation_of_a_request_fails_in_turn, 100) {
  char path[] = "/tmp/tnk-account-XXXXXX";
  int n_refused = 0;
  stage_t stage;

  make_file(path);
  stage_open(&stage, 0, path);
  CHECK_INT(said(&stage, stage.key), 200);
  for (int n = 0, did_fail = 1; did_fail; n++) {
    const uint64_t before = grant_of(&stage)->used.n_requests;
    const int n_before = n_calls(&stage.rig, "asample");
    peer_t *peer = say(&stage, stage.key);
    int status;

    test_alloc_fail_at(n);
    status = peer_end(&stage.rig, peer);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    n_refused += status != 200;
    if (!did_fail)
      CHECK_INT(status, 200);
    CHECK_INT(stage.rig.gateway->n_jobs, 0);
    CHECK_INT(grant_of(&stage)->n_active, 0);
    if (status == 200)
      CHECK_INT(grant_of(&stage)->used.n_requests - before, 1);
    CHECK(grant_of(&stage)->used.n_requests - before <=
          (uint64_t)(n_calls(&stage.rig, "asample") - n_before));
  }
  CHECK(n_refused > 0);
  rig_close(&stage.rig);
  unlink(path);
}
