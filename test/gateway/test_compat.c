/* SPDX-License-Identifier: MIT */
#include "gateway/record/atif.h"
#include "rig.h"

/* Reading responses again, several prompts, and answers that are continued. */

/* The value of the first `"id":"..."` of an answer. */
static void id_of(const peer_t *peer, char *out, size_t size) {
  const char *at = strstr(peer->got, "\"id\":\"");

  CHECK(at != NULL);
  at += 6;
  CHECK(strcspn(at, "\"") < size);
  snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
}

/* Whichever allocation fails, the request is answered with 200 or an error, or
 * its connection ends. */
static void fail_each(rig_t *rig, const char *method, const char *path,
                      const char *body) {
  int n_refused = 0;

  for (int did_fail = 1, n = 0; did_fail; n++) {
    peer_t *peer = ask_by(rig, method, path, body);
    int status;

    test_alloc_fail_at(n);
    status = peer_end(rig, peer);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    if (!did_fail && strcmp(method, "DELETE") != 0)
      CHECK_INT(status, 200);
    /* An earlier try may have deleted it. */
    if (status == 404)
      CHECK(strcmp(method, "DELETE") == 0);
    n_refused += status != 200;
    CHECK_INT(rig->gateway->n_jobs, 0);
  }
  CHECK(n_refused > 0);
}

TEST_LIMIT(each_allocation_of_a_retrieval_fails_in_turn, 60) {
  char id[64], path[128];
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, 0);
  peer = ask(&rig, "/v1/responses",
             "{\"input\":\"hi\",\"instructions\":\"be kind\","
             "\"max_output_tokens\":3}");
  until_closed(&rig, peer);
  id_of(peer, id, sizeof(id));
  CHECK_INT(peer_end(&rig, peer), 200);
  snprintf(path, sizeof(path), "/v1/responses/%s", id);
  fail_each(&rig, "GET", path, "");
  snprintf(path, sizeof(path), "/v1/responses/%s/input_items?order=asc", id);
  fail_each(&rig, "GET", path, "");
  snprintf(path, sizeof(path), "/v1/responses/%s", id);
  fail_each(&rig, "DELETE", path, "");
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", path, "")), 404);
  rig_close(&rig);
}

/* ---- Several prompts ---- */

static const char three[] =
    "{\"prompt\":[\"a\",\"bc\",\"def\"],\"max_tokens\":2,\"echo\":true,"
    "\"logprobs\":1}";

TEST_LIMIT(each_allocation_of_several_prompts_fails_in_turn, 100) {
  rig_t rig;

  rig_open(&rig, 0);
  fail_each(&rig, "POST", "/v1/completions", three);
  rig_close(&rig);
}

/* All of them are canceled with their client. */
TEST_LIMIT(a_client_of_several_prompts_hangs_up, 20) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, LONG_MS);
  peer = ask(&rig, "/v1/completions", three);
  until_sampled(&rig, 3);
  peer_close(peer);
  while (rig.gateway->stats.n_gone == 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + LONG_MS);
  while (rig.gateway->n_jobs > 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 0);
  rig_close(&rig);
}

TEST_LIMIT(several_prompts_end_with_the_gateway, 20) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, LONG_MS);
  peer = ask(&rig, "/v1/completions", three);
  until_sampled(&rig, 3);
  rig_close(&rig);
  free(peer);
}

/* One prompt is refused by the service, so the request fails, and the others
 * are canceled. Nothing is recorded. */
TEST_LIMIT(one_of_several_prompts_fails, 20) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, 0);
  peer = ask(&rig, "/v1/completions",
             "{\"prompt\":[[97],[99999999]],\"max_tokens\":2}");
  until_closed(&rig, peer);
  CHECK(strstr(peer->got, "the service: ") != NULL);
  CHECK_INT(peer_end(&rig, peer), 400);
  CHECK_INT(rig.gateway->n_jobs, 0);
  CHECK(tnk__gw_record_session(rig.gateway->record, "default") == NULL);
  rig_close(&rig);
}

/* ---- Answers that are continued ---- */

TEST_LIMIT(each_allocation_of_a_prefill_fails_in_turn, 100) {
  rig_t rig;

  rig_open(&rig, 0);
  fail_each(&rig, "POST", "/v1/messages",
            "{\"max_tokens\":2,\"messages\":[{\"role\":\"user\",\"content\":"
            "\"hi\"},{\"role\":\"assistant\",\"content\":\"Well\"}]}");
  rig_close(&rig);
}

/* The recorded response has one token, which the text shows. */
TEST_LIMIT(each_allocation_of_a_continuation_fails_in_turn, 100) {
  char body[512];
  const tnk__gw_session_t *session;
  json_t *line, *text;
  rig_t rig;

  rig_open(&rig, 0);
  CHECK_INT(peer_end(&rig, ask(&rig, "/v1/chat/completions",
                               "{\"max_tokens\":1,\"messages\":[{\"role\":"
                               "\"user\",\"content\":\"hi\"}]}")),
            200);
  session = tnk__gw_record_session(rig.gateway->record, "default");
  CHECK(session != NULL);
  CHECK_INT(tnk__gw_record_line(
                rig.gateway->record,
                tnk__container_of(session->turns.next, tnk__gw_turn_t, link),
                &line),
            TNK_OK);
  text = json_object_get(json_array_get(json_object_get(line, "messages"), 1),
                         "content");
  {
    char *quoted = json_dumps(text, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

    CHECK(quoted != NULL);
    snprintf(body, sizeof(body),
             "{\"max_tokens\":2,\"continue_final_message\":true,"
             "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},"
             "{\"role\":\"assistant\",\"content\":%s}]}",
             quoted);
    free(quoted);
  }
  json_decref(line);
  fail_each(&rig, "POST", "/v1/chat/completions", body);
  CHECK_INT(
      tnk__container_of(session->turns.prev, tnk__gw_turn_t, link)->n_prompt,
      0);
  rig_close(&rig);
}

/* ---- Trajectories ---- */

static int count_bytes(void *user, const char *line, size_t n) {
  (void)line;
  *(size_t *)user += n;
  return TNK_OK;
}

/* A call, its result, a response in two parts. */
TEST_LIMIT(each_allocation_of_a_trajectory_fails_in_turn, 60) {
  static const int32_t ids[2] = {104, 105};
  static const float logprobs[2] = {-1, -2};
  const tnk__gw_datum_options_t options = {0};
  json_t *messages = json_pack(
      "[{s:s,s:s}, {s:s,s:[{s:s,s:s}]}, {s:s,s:s,s:s,s:[{s:s,s:{s:s,s:{s:i}}}]}"
      "]",
      "role", "system", "content", "s", "role", "user", "content", "type",
      "text", "text", "u", "role", "assistant", "content", "",
      "reasoning_content", "r", "tool_calls", "id", "c", "function", "name",
      "f", "arguments", "x", 1);
  json_t *after =
      json_pack("[{s:s,s:s,s:s}, {s:s,s:s}]", "role", "tool", "tool_call_id",
                "c", "content", "2", "role", "assistant", "content", "a");
  json_t *rest = json_pack("[{s:s,s:s}]", "role", "assistant", "content", "ab");
  tnk__gw_turn_new_t turn = {.session = "me",
                             .request = 1,
                             .api = "chat",
                             .prompt = ids,
                             .n_prompt = 2,
                             .sampled = ids,
                             .logprobs = logprobs,
                             .n_sampled = 2,
                             .end = "length",
                             .made_s = 1,
                             .messages = messages};
  tnk__gw_turn_t *made;
  size_t n_whole = 0;
  rig_t rig;
  int err = TNK_ENOMEM;

  rig_open(&rig, NEVER);
  CHECK_INT(tnk__gw_record_add(rig.gateway->record, &turn, &made), TNK_OK);
  turn.parent = made;
  turn.messages = after;
  CHECK_INT(tnk__gw_record_add(rig.gateway->record, &turn, &made), TNK_OK);
  turn.parent = made;
  turn.messages = rest;
  turn.n_prompt = 0;
  CHECK_INT(tnk__gw_record_add(rig.gateway->record, &turn, &made), TNK_OK);
  CHECK_INT(tnk__gw_record_reward(rig.gateway->record, made, 1), TNK_OK);
  CHECK_INT(tnk__gw_atif(rig.gateway->record, &options, count_bytes, &n_whole),
            TNK_OK);
  CHECK(n_whole > 0);
  json_decref(messages);
  json_decref(after);
  json_decref(rest);
  for (long n = 0; err != TNK_OK; n++) {
    size_t n_bytes = 0;

    test_alloc_fail_at(n);
    err = tnk__gw_atif(rig.gateway->record, &options, count_bytes, &n_bytes);
    test_alloc_fail_at(-1);
    CHECK(err == TNK_OK || err == TNK_ENOMEM);
    CHECK(err != TNK_OK || n_bytes == n_whole);
  }
  rig_close(&rig);
}
