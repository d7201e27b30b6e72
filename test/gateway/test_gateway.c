/* SPDX-License-Identifier: MIT */
/* For memmem(). */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rig.h"

/* Requests, and the weights that they are served with. */

TEST_LIMIT(a_request_is_answered, 20) {
  rig_t rig;

  rig_open(&rig, 0);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  CHECK_INT(rig.gateway->n_jobs, 0);
  rig_close(&rig);
}

TEST_LIMIT(without_weights_it_is_not_ready, 20) {
  rig_t rig;

  rig_open(&rig, NEVER);
  CHECK_INT(peer_end(&rig, chat(&rig)), 503);
  rig_close(&rig);
}

/* An allocator of the program for jansson: blocks begin with their size, so
 * that free() is not their free. */
static void *sized_malloc(size_t n) {
  size_t *block = malloc(n + 16);

  if (block == NULL)
    return NULL;
  *block = n;
  return (char *)block + 16;
}

static void sized_free(void *ptr) {
  if (ptr != NULL)
    free((char *)ptr - 16);
}

TEST_LIMIT(a_program_can_have_an_allocator_of_its_own_for_jansson, 20) {
  static const char *const asks[][2] = {
      {"/s/me/v1/chat/completions",
       "{\"max_tokens\":3,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
       "\"metadata\":{\"a\":\"b\"},\"tools\":[{\"type\":\"function\","
       "\"function\":{\"name\":\"f\",\"parameters\":{}}}]}"},
      {"/s/me/v1/responses",
       "{\"max_output_tokens\":3,\"input\":\"hi\",\"metadata\":{\"a\":"
       "\"b\"}}"},
      {"/s/me/v1/messages",
       "{\"max_tokens\":3,\"messages\":[{\"role\":\"user\",\"content\":"
       "\"a\"}]}"},
      {"/s/me/v1/completions", "{\"max_tokens\":3,\"prompt\":\"a\"}"}};
  rig_t rig;

  json_set_alloc_funcs(sized_malloc, sized_free);
  rig_open(&rig, 0);
  for (size_t i = 0; i < sizeof(asks) / sizeof(*asks); i++)
    CHECK_INT(peer_end(&rig, ask(&rig, asks[i][0], asks[i][1])), 200);
  rig_close(&rig);
}

/* The sample would take an hour. It goes on for a while. */
TEST_LIMIT(a_client_that_hangs_up_cancels_its_sample, 20) {
  rig_t rig;
  peer_t *peer;

  rig_open(&rig, LONG_MS);
  peer = chat(&rig);
  until_sampled(&rig, 1);
  CHECK_INT(rig.gateway->n_jobs, 1);
  peer_close(peer);
  while (rig.gateway->stats.n_gone == 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + 29000);
  for (int i = 0; i < 10; i++)
    uv_run(&rig.e2e.uv, UV_RUN_NOWAIT);
  CHECK_INT(rig.gateway->n_jobs, 1);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + LONG_MS);
  while (rig.gateway->n_jobs > 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 0);
  CHECK(tnk__gw_record_session(rig.gateway->record, "me") == NULL);
  rig_close(&rig);
}

TEST_LIMIT(closing_ends_what_is_under_way, 20) {
  peer_t *peers[5];
  rig_t rig;

  rig_open(&rig, LONG_MS);
  for (int i = 0; i < 5; i++)
    peers[i] = ask(&rig, "/v1/completions", "{\"prompt\":\"a\"}");
  until_sampled(&rig, 5);
  rig_close(&rig);
  for (int i = 0; i < 5; i++)
    free(peers[i]);
}

/* What began with the old weights ends with them. */
TEST_LIMIT(weights_are_replaced_between_turns, 20) {
  const tnk__gw_session_t *session;
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, 300);
  peer = chat(&rig);
  until_sampled(&rig, 1);
  use(&rig);
  CHECK_INT(peer_end(&rig, peer), 200);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  session = tnk__gw_record_session(rig.gateway->record, "me");
  CHECK_INT(session->n_turns, 2);
  CHECK_INT(
      tnk__container_of(session->turns.next, tnk__gw_turn_t, link)->version, 1);
  CHECK_INT(
      tnk__container_of(session->turns.prev, tnk__gw_turn_t, link)->version, 2);
  /* The old ones are closed. */
  CHECK(rig.gateway->samplers.next == rig.gateway->samplers.prev);
  rig_close(&rig);
}

static tnk__gw_turn_t *latest(const rig_t *rig, const char *session) {
  const tnk__gw_session_t *found =
      tnk__gw_record_session(rig->gateway->record, session);

  CHECK(found != NULL && !tnk__list_empty(&found->turns));
  return tnk__container_of(found->turns.prev, tnk__gw_turn_t, link);
}

static json_t *line_of(const rig_t *rig, const tnk__gw_turn_t *turn) {
  json_t *line;

  CHECK_INT(tnk__gw_record_line(rig->gateway->record, turn, &line), TNK_OK);
  return line;
}

/* A request that goes on from the latest turn. */
static peer_t *chat_on(rig_t *rig) {
  json_t *line = line_of(rig, latest(rig, "me"));
  json_t *messages = json_object_get(line, "messages");
  json_t *body;
  peer_t *peer;
  char *text;

  json_array_append_new(messages,
                        json_pack("{s:s,s:s}", "role", "user", "content", "?"));
  body = json_pack("{s:i,s:O}", "max_tokens", 3, "messages", messages);
  text = json_dumps(body, JSON_COMPACT);
  CHECK(text != NULL);
  peer = ask(rig, "/s/me/v1/chat/completions", text);
  free(text);
  json_decref(body);
  json_decref(line);
  return peer;
}

/* More than there is room for, of another session. */
static void add_much(const rig_t *rig) {
  static const int32_t ids[4096];
  const tnk__gw_turn_new_t turn = {.session = "other",
                                   .request = 1,
                                   .api = "chat",
                                   .prompt = ids,
                                   .n_prompt = 4096,
                                   .end = "stop"};
  tnk__gw_turn_t *made;

  CHECK_INT(tnk__gw_record_add(rig->gateway->record, &turn, &made), TNK_OK);
}

/* What it went on from is forgotten meanwhile: it is recorded as a whole. */
TEST_LIMIT(a_turn_may_outlive_the_one_before, 20) {
  tnk__gw_turn_t *turn;
  json_t *line;
  peer_t *peer;
  rig_t rig;

  rig_open_with(&rig, 100, NULL, 8192, 0);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  peer = chat_on(&rig);
  until_sampled(&rig, 2);
  add_much(&rig);
  CHECK(tnk__gw_record_session(rig.gateway->record, "me") == NULL);
  CHECK_INT(peer_end(&rig, peer), 200);
  turn = latest(&rig, "me");
  CHECK(turn->parent == NULL);
  line = line_of(&rig, turn);
  CHECK_INT(json_array_size(json_object_get(line, "messages")), 4);
  json_decref(line);
  rig_close(&rig);
}

/* Each request is answered with something, or its connection ends. */
TEST_LIMIT(each_allocation_fails_in_turn, 60) {
  int n_refused = 0;
  int did_fail = 1;
  rig_t rig;

  rig_open(&rig, 0);
  for (long n = 0; did_fail; n++) {
    peer_t *peer = chat(&rig);
    int status;

    test_alloc_fail_at(n);
    status = peer_end(&rig, peer);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    if (!did_fail)
      CHECK_INT(status, 200);
    n_refused += status != 200;
    CHECK_INT(rig.gateway->n_jobs, 0);
  }
  CHECK(n_refused > 0);
  rig_close(&rig);
}
/* What is sent is whole: the last line is there. */
TEST_LIMIT(each_allocation_of_a_scrape_fails_in_turn, 60) {
  int n_refused = 0;
  rig_t rig;

  rig_open(&rig, 0);
  for (int did_fail = 1, n = 0; did_fail; n++) {
    peer_t *peer = ask_by(&rig, "GET", "/metrics", "");
    int is_whole, status;

    test_alloc_fail_at(n);
    until_closed(&rig, peer);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    is_whole = strstr(peer->got, "\ntnk_gateway_build_info{") != NULL;
    status = peer_end(&rig, peer);
    if (!did_fail)
      CHECK_INT(status, 200);
    CHECK_INT(is_whole, status == 200);
    n_refused += status != 200;
  }
  CHECK(n_refused > 0);
  rig_close(&rig);
}

/* ---- The disk ---- */

/* The disk is full: the first request hears of it, the others are not sampled.
 */
TEST_LIMIT(what_cannot_be_recorded_is_not_sampled, 20) {
  char path[] = "/tmp/tnk-gateway-XXXXXX";
  struct rlimit limit;
  struct rlimit small;
  rig_t rig;
  int fd = mkstemp(path);

  CHECK(fd >= 0);
  close(fd);
  rig_open_with(&rig, 0, path, 0, 0);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/healthz", "")), 200);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/readyz", "")), 200);
  CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = limit;
  small.rlim_cur = 16;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
  CHECK_INT(peer_end(&rig, chat(&rig)), 500);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK_INT(n_calls(&rig, "asample"), 2);
  CHECK_INT(peer_end(&rig, chat(&rig)), 500);
  CHECK_INT(n_calls(&rig, "asample"), 2);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/healthz", "")), 503);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/health", "")), 503);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/readyz", "")), 503);
  rig_close(&rig);
  unlink(path);
}

/* Ready: there are weights, and the program will not end. */
TEST_LIMIT(it_is_ready_while_it_can_serve, 20) {
  rig_t rig;

  rig_open(&rig, NEVER);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/healthz", "")), 200);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/readyz", "")), 503);
  use(&rig);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/readyz", "")), 200);
  tnk_gateway_leave(NULL);
  tnk_gateway_leave(rig.gateway);
  tnk_gateway_leave(rig.gateway);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/readyz", "")), 503);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/healthz", "")), 200);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  rig_close(&rig);
}

/* The service was restarted, and knows the sampler no more. */
TEST_LIMIT(it_is_not_healthy_without_its_session, 20) {
  static const local_options_t defaults = LOCAL_OPTIONS_INIT;
  local_options_t options = defaults;
  rig_t rig;

  rig_open(&rig, 0);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  options.port = local_server_port(rig.e2e.server);
  e2e_stop_server(&rig.e2e);
  e2e_start_server(&rig.e2e, options);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/healthz", "")), 200);
  CHECK_INT(peer_end(&rig, chat(&rig)), 502);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/healthz", "")), 503);
  CHECK_INT(peer_end(&rig, ask_by(&rig, "GET", "/readyz", "")), 503);
  rig_close(&rig);
}

TEST(options_out_of_range_are_refused) {
  static const tnk_pair_t variable = {"thinks", "tru"};
  static const struct {
    tnk_gateway_options_t options;
    const char *why;
  } wrong[] = {
      {{.host = "0.0.0.0"}, "an address other than a loopback one needs a key"},
      {{.host = "0.0.0.0", .key = "", .admin_key = ""},
       "an address other than a loopback one needs a key"},
      {{.host = "localhost"},
       "the host must be a numeric address, such as 127.0.0.1"},
      {{.host = "127.1.evil", .key = "k"},
       "the host must be a numeric address, such as 127.0.0.1"},
      {{.port = 70000}, "the port is out of range"},
      {{.max_tokens = -1}, "max_tokens is below 0"},
      {{.tls_cert = "x"}, "a certificate and its key go together"},
      {{.client_ca_file = "x"}, "client_ca_file needs tls_cert"},
      {{.client_crl_file = "x"},
       "client_crl_file and client_optional need client_ca_file"},
      {{.client_optional = TNK_YES},
       "client_crl_file and client_optional need client_ca_file"},
      {{.variables = &variable, .n_variables = 1},
       "the variable thinks is not JSON, or its name is not UTF-8"},
  };
  tnk_gateway_options_t options = TNK_GATEWAY_OPTIONS_INIT;
  tnk_gateway_t *gateway;
  uv_loop_t loop;
  /* It is not looked at before all options are. */
  tnk_service_t *service = (tnk_service_t *)(void *)&loop;
  char why[256];

  CHECK_INT(uv_loop_init(&loop), 0);
  CHECK_INT(tnk_gateway_open(&gateway, &loop, NULL, &options, why, sizeof(why)),
            TNK_EINVAL);
  CHECK_STR(why, "loop or service is NULL");
  CHECK_INT(
      tnk_gateway_open(&gateway, &loop, service, &options, why, sizeof(why)),
      TNK_EINVAL);
  CHECK_STR(why, "a tokenizer is needed that can encode and decode");
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
    options = wrong[i].options;
    options.size = sizeof(options);
    options.tokenizer.plugin = tnk_chat_bytes_plugin();
    CHECK_INT(
        tnk_gateway_open(&gateway, &loop, service, &options, why, sizeof(why)),
        TNK_EINVAL);
    CHECK_STR(why, wrong[i].why);
    CHECK(gateway == NULL);
  }
  CHECK_INT(uv_loop_close(&loop), 0);
}

/* A request under way when draining begins is answered and recorded. */
TEST_LIMIT(draining_finishes_what_is_under_way, 20) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  char path[] = "/tmp/tnk-drain-XXXXXX";
  int fd = mkstemp(path);
  char text[4096];
  peer_t *peer;
  ssize_t n;
  rig_t rig;

  CHECK(fd >= 0);
  tnk_gateway_drain(NULL);
  rig_open_with(&rig, 50, path, 0, 0);
  peer = chat(&rig);
  until_sampled(&rig, 1);
  tnk_gateway_drain(rig.gateway);
  CHECK_INT(peer_end(&rig, peer), 200);
  do {
    uv_run(&rig.e2e.uv, UV_RUN_NOWAIT);
    CHECK_INT(tnk_gateway_stats(&stats, rig.gateway), TNK_OK);
  } while (stats.n_connections > 0);
  CHECK_INT(stats.n_answered, 1);
  CHECK_INT(stats.n_gone, 0);
  rig_close(&rig);
  n = read(fd, text, sizeof(text) - 1);
  CHECK(n > 0);
  text[n] = '\0';
  CHECK(strstr(text, "\"type\":\"turn\"") != NULL);
  close(fd);
  unlink(path);
}

TEST_LIMIT(requests_under_way_are_bounded, 20) {
  peer_t *peers[3];
  rig_t rig;

  rig_max_requests = 2;
  rig_open_with(&rig, 100, NULL, 0, 0);
  peers[0] = chat(&rig);
  peers[1] = chat(&rig);
  until_sampled(&rig, 2);
  peers[2] = chat(&rig);
  CHECK_INT(peer_end(&rig, peers[2]), 503);
  CHECK_INT(n_calls(&rig, "asample"), 2);
  CHECK_INT(peer_end(&rig, peers[0]), 200);
  CHECK_INT(peer_end(&rig, peers[1]), 200);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  rig_close(&rig);
}

/* A request is held until there is a model. Here one seems to be. */
TEST_LIMIT(requests_that_are_held_are_counted, 20) {
  peer_t *peer, *scrape;
  tnk__gw_job_t *job;
  rig_t rig;

  rig_open(&rig, 50);
  peer = chat(&rig);
  until_sampled(&rig, 1);
  job = tnk__container_of(rig.gateway->jobs.next, tnk__gw_job_t, link);
  job->is_held = 1;
  scrape = ask_by(&rig, "GET", "/metrics", "");
  until_got(&rig, scrape, "\ntnk_gateway_requests_waiting 1\n", 1);
  job->is_held = 0;
  CHECK_INT(peer_end(&rig, scrape), 200);
  CHECK_INT(peer_end(&rig, peer), 200);
  rig_close(&rig);
}

/* ---- Keys of sessions ---- */

static int count_line(void *user, const char *line, size_t n) {
  CHECK(n > 0 && line[n - 1] == '\n');
  CHECK(memmem(line, n, "tnk-", 4) == NULL);
  CHECK(memmem(line, n, "\"session\":\"me\"", 14) != NULL);
  ++*(int *)user;
  return TNK_OK;
}

static int n_keys(const rig_t *rig) {
  int n = 0;

  CHECK_INT(tnk_gateway_keys(rig->gateway, count_line, &n), TNK_OK);
  return n;
}

TEST_LIMIT(keys_are_made_by_calls, 20) {
  tnk_gateway_key_options_t options = TNK_GATEWAY_KEY_OPTIONS_INIT;
  char key[TNK_GATEWAY_KEY_SIZE], next[TNK_GATEWAY_KEY_SIZE];
  char id[TNK_GATEWAY_KEY_ID_SIZE];
  rig_t rig;

  rig_admin_key = "admin";
  rig_open(&rig, NEVER);
  options.session = "me";
  CHECK_INT(tnk_gateway_key_create(rig.gateway, &options, key, sizeof(key), id,
                                   sizeof(id)),
            TNK_OK);
  CHECK_INT(n_keys(&rig), 1);
  CHECK_INT(tnk_gateway_key_rotate(rig.gateway, id, next, sizeof(next)),
            TNK_OK);
  CHECK(strcmp(key, next) != 0);
  CHECK_INT(tnk_gateway_key_rotate(rig.gateway, id, next, 8), TNK_EINVAL);
  CHECK_INT(tnk_gateway_key_rotate(rig.gateway, "x", next, sizeof(next)),
            TNK_ENOTFOUND);
  CHECK_INT(tnk_gateway_key_revoke(rig.gateway, id), TNK_OK);
  CHECK_INT(tnk_gateway_key_revoke(rig.gateway, id), TNK_ENOTFOUND);
  CHECK_INT(tnk_gateway_key_revoke(NULL, id), TNK_EINVAL);
  CHECK_INT(tnk_gateway_keys(rig.gateway, NULL, NULL), TNK_EINVAL);
  CHECK_INT(n_keys(&rig), 0);
  rig_close(&rig);
}

TEST_LIMIT(wrong_keys_are_not_made, 20) {
  static const tnk_gateway_key_options_t wrong[] = {
      {.session = ""},
      {.session = "a b"},
      {.session = "a/b"},
      {.expires_in_s = UINT64_C(1) << 40},
      {.max_tokens = UINT64_MAX},
      {.max_usd = 1}, /* without prices */
      {.max_usd = -1},
      {.max_per_minute = 1000001},
      {.may_reward = (tnk_choice_t)7}};
  char key[TNK_GATEWAY_KEY_SIZE];
  rig_t rig;

  rig_admin_key = "admin";
  rig_open(&rig, NEVER);
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
    tnk_gateway_key_options_t options = wrong[i];

    options.size = sizeof(options);
    CHECK_INT(tnk_gateway_key_create(rig.gateway, &options, key, sizeof(key),
                                     NULL, 0),
              TNK_EINVAL);
  }
  CHECK_INT(tnk_gateway_key_create(rig.gateway, NULL, key, 8, NULL, 0),
            TNK_EINVAL);
  CHECK_INT(n_keys(&rig), 0);
  rig_close(&rig);
  /* Without any key all clients could do everything. */
  rig_admin_key = NULL;
  rig_open(&rig, NEVER);
  CHECK_INT(
      tnk_gateway_key_create(rig.gateway, NULL, key, sizeof(key), NULL, 0),
      TNK_EINVAL);
  rig_close(&rig);
}
