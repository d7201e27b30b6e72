/* SPDX-License-Identifier: MIT */
/*
 * Several services on one loop: each keeps to its own key, address and
 * headers, and those with the same key and address share a back-off.
 */
#include <unistd.h>

#include "support/tls_server.h"
#include "task/script.h"

enum { MAX_SERVICES = 100, MAX_SEEN = 256 };

/* A sample that came in, and from whom. */
typedef struct {
  char key[64];
  char path[64];
  char header[64];
  long long top_k;
} seen_t;

typedef struct {
  uv_loop_t uv;
  mock_server_t *mock;
  tnk_service_t *services[MAX_SERVICES];
  int n_services;
  int n_closed;
  seen_t seen[MAX_SEEN]; /* samples */
  int n_seen;
  int refuse; /* answer the next sample with a 429 */
  uint64_t now_ms;
} tenants_t;

static void copy(char *to, const char *from) {
  snprintf(to, 64, "%s", from != NULL ? from : "");
}

static void on_sample(mock_request_t *request, tenants_t *tenants) {
  seen_t *seen = &tenants->seen[tenants->n_seen++];

  CHECK(tenants->n_seen <= MAX_SEEN);
  copy(seen->key, mock_header(request, "x-api-key"));
  copy(seen->header, mock_header(request, "x-tenant"));
  copy(seen->path, request->path);
  seen->top_k = script_number(request, "top_k");
  if (tenants->refuse) {
    tenants->refuse = 0;
    mock_reply(request, 429, "Retry-After: 5\r\n", "{}", 2);
    return;
  }
  mock_reply_json(request, 200, "{\"request_id\":\"asample:0:1\"}");
}

/* Plays the service below any path. */
static void serve(mock_request_t *request, void *user) {
  const char *call = strstr(request->path, "/api/v1/");

  CHECK(call != NULL);
  call += strlen("/api/v1/");
  if (strcmp(call, "asample") == 0)
    on_sample(request, user);
  else if (strcmp(call, "retrieve_future") == 0)
    script_result(request, user);
  else if (strcmp(call, "create_session") == 0)
    mock_reply_json(request, 200, "{\"session_id\":\"s\"}");
  else if (strcmp(call, "create_sampling_session") == 0)
    mock_reply_json(request, 200, "{\"sampling_session_id\":\"c\"}");
  else if (strcmp(call, "healthz") == 0)
    mock_reply_json(request, 200, "{\"status\":\"ok\"}");
  else
    mock_reply_json(request, 200, "{}");
}

static void tenants_open(tenants_t *tenants) {
  memset(tenants, 0, sizeof(*tenants));
  CHECK_INT(uv_loop_init(&tenants->uv), 0);
  tenants->mock = mock_open(&tenants->uv);
  mock_on(tenants->mock, NULL, NULL, serve, tenants);
}

static tnk_service_t *add_with(tenants_t *tenants,
                               tnk_service_options_t *options) {
  tnk_service_t **service = &tenants->services[tenants->n_services++];
  char text[256];

  options->allocator = test_allocator();
  if (tnk_service_open(service, &tenants->uv, options, text, sizeof(text)) !=
      TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", text);
  /* All clocks stand where the first one's stood when it was opened, because
   * a back-off may be older than the service. */
  if (tenants->now_ms == 0)
    tenants->now_ms = tnk__context_now_ms(&(*service)->root.context);
  tnk__context_fake_clock(&(*service)->root.context, tenants->now_ms);
  return *service;
}

/* `form` makes the address from the port. */
static tnk_service_t *add(tenants_t *tenants, const char *key, const char *form,
                          tnk_limiter_scope_t scope) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  char *end;
  char url[128];

  snprintf(url, sizeof(url), "%s", form);
  end = strchr(url, '#');
  if (end != NULL) /* the port's place */
    snprintf(end, sizeof(url) - (size_t)(end - url), "%u%s",
             (unsigned)mock_port(tenants->mock), strchr(form, '#') + 1);
  options.api_key = key;
  options.base_url = url;
  options.limiter_scope = scope;
  return add_with(tenants, &options);
}

static void on_closed(void *user) {
  ++*(int *)user;
}

static void close_one(tenants_t *tenants, int i) {
  int is_closed = 0;

  tnk_service_close(tenants->services[i], on_closed, &is_closed);
  mock_wait_flag(tenants->mock, &is_closed, 1);
  tenants->services[i] = NULL;
}

static void tenants_close(tenants_t *tenants) {
  for (int i = 0; i < tenants->n_services; i++)
    if (tenants->services[i] != NULL)
      close_one(tenants, i);
  mock_close(tenants->mock);
  uv_run(&tenants->uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&tenants->uv), 0);
}

static void advance(tenants_t *tenants, uint64_t ms) {
  tenants->now_ms += ms;
  for (int i = 0; i < tenants->n_services; i++)
    if (tenants->services[i] != NULL)
      tnk__context_advance(&tenants->services[i]->root.context, ms);
  mock_turns(tenants->mock, 40);
}

static void wait_ok(tenants_t *tenants, outcome_t *outcome) {
  mock_wait_flag(tenants->mock, &outcome->n_done, 1);
  if (outcome->status != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", outcome->text);
}

static tnk_sampling_t *sampler(tenants_t *tenants, tnk_service_t *service) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  tnk_sampling_t *sampling;
  outcome_t outcome;

  options.base_model = "base";
  outcome_of(&outcome, tnk_service_create_sampling(service, &options));
  wait_ok(tenants, &outcome);
  sampling = tnk_promise_sampling(outcome.promise);
  outcome_drop(&outcome);
  return sampling;
}

static void sample(outcome_t *outcome, tnk_sampling_t *sampling) {
  outcome_of(outcome,
             tnk_sampling_sample(sampling, script_prompt(), NULL, NULL));
}

/* ---- Each its own ---- */

TEST(S0_1_requests_carry_what_their_service_was_given) {
  static const tnk_pair_t headers[] = {{"X-Tenant", "one"},
                                       {"X-Tenant", "two"}};
  static const char *const keys[] = {"tml-one", "tml-two"};
  static const char *const paths[] = {"/one", "/two"};
  tenants_t tenants;
  outcome_t outcomes[4];
  tnk_sampling_t *samplings[2];

  tenants_open(&tenants);
  for (int i = 0; i < 2; i++) {
    tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
    char url[128];
    snprintf(url, sizeof(url), "%s%s", mock_url(tenants.mock), paths[i]);
    options.api_key = keys[i];
    options.base_url = url;
    options.headers = &headers[i];
    options.n_headers = 1;
    samplings[i] = sampler(&tenants, add_with(&tenants, &options));
  }
  for (int i = 0; i < 4; i++) {
    tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
    params.top_k = 7;
    outcome_of(&outcomes[i],
               tnk_sampling_sample(samplings[i % 2], script_prompt(),
                                   i < 2 ? NULL : &params, NULL));
    wait_ok(&tenants, &outcomes[i]);
  }
  for (int i = 0; i < 4; i++) {
    char path[64];
    snprintf(path, sizeof(path), "%s/api/v1/asample", paths[i % 2]);
    CHECK_STR(tenants.seen[i].path, path);
    CHECK_STR(tenants.seen[i].key, keys[i % 2]);
    CHECK_STR(tenants.seen[i].header, headers[i % 2].value);
    CHECK_INT(tenants.seen[i].top_k, i < 2 ? -1 : 7);
  }
  outcome_drop_all(outcomes, 4);
  tenants_close(&tenants);
}

TEST(S3_14_every_request_carries_key_and_address) {
  tenants_t tenants;
  outcome_t outcome;

  tenants_open(&tenants);
  sample(&outcome,
         sampler(&tenants, add(&tenants, "tml-one", "http://127.0.0.1:#/one",
                               TNK_LIMITER_SHARED)));
  wait_ok(&tenants, &outcome);
  outcome_drop(&outcome);
  close_one(&tenants, 0);
  CHECK(mock_n_requests(tenants.mock) >= 7);
  for (size_t i = 0; i < mock_n_requests(tenants.mock); i++) {
    const mock_request_t *request = mock_request(tenants.mock, i);
    CHECK_STR(mock_header(request, "x-api-key"), "tml-one");
    CHECK(strncmp(request->path, "/one/api/v1/", 12) == 0);
    CHECK(mock_header(request, "x-stainless-package-version") != NULL);
  }
  tenants_close(&tenants);
}

/* ---- A shared back-off ---- */

TEST_LIMIT(S0_2_a_hundred_services_of_a_tenant_wait_together, 30) {
  static tenants_t tenants;
  tnk_sampling_t *samplings[3];
  static const int which[] = {37, 0, 99};
  outcome_t outcomes[3];
  uint64_t id;

  tenants_open(&tenants);
  for (int i = 0; i < 100; i++)
    add(&tenants, "tml-one", "http://127.0.0.1:#", TNK_LIMITER_SHARED);
  id = tenants.services[0]->session.limits.limiter.key.hash;
  for (int i = 1; i < 100; i++)
    CHECK(tenants.services[i]->session.limits.limiter.key.hash == id);
  for (int i = 0; i < 3; i++)
    samplings[i] = sampler(&tenants, tenants.services[which[i]]);
  tenants.refuse = 1;
  sample(&outcomes[0], samplings[0]);
  mock_wait_flag(tenants.mock, &tenants.n_seen, 1);
  mock_turns(tenants.mock, 20);
  sample(&outcomes[1], samplings[1]);
  sample(&outcomes[2], samplings[2]);
  advance(&tenants, 4999);
  CHECK_INT(tenants.n_seen, 1);
  advance(&tenants, 1);
  for (int i = 0; i < 3; i++)
    wait_ok(&tenants, &outcomes[i]);
  CHECK_INT(tenants.n_seen, 4);
  outcome_drop_all(outcomes, 3);
  tenants_close(&tenants);
}

TEST(S0_2b_a_back_off_outlives_the_service_that_was_told) {
  tenants_t tenants;
  outcome_t outcomes[2];

  tenants_open(&tenants);
  tenants.refuse = 1;
  sample(&outcomes[0],
         sampler(&tenants, add(&tenants, "tml-one", "http://127.0.0.1:#",
                               TNK_LIMITER_SHARED)));
  mock_wait_flag(tenants.mock, &tenants.n_seen, 1);
  mock_turns(tenants.mock, 20);
  close_one(&tenants, 0);
  CHECK_INT(outcomes[0].status, TNK_ECLOSED);
  sample(&outcomes[1],
         sampler(&tenants, add(&tenants, "tml-one", "http://127.0.0.1:#",
                               TNK_LIMITER_SHARED)));
  mock_turns(tenants.mock, 20);
  advance(&tenants, 4999);
  CHECK_INT(tenants.n_seen, 1);
  advance(&tenants, 1);
  wait_ok(&tenants, &outcomes[1]);
  outcome_drop_all(outcomes, 2);
  tenants_close(&tenants);
}

/* Whether a 429 of one service holds up a sample of the other. */
static int shares(const char *key, const char *form, const char *other_key,
                  const char *other_form, tnk_limiter_scope_t scope) {
  tenants_t tenants;
  tnk_sampling_t *samplings[2];
  outcome_t outcomes[2];
  int waited;

  tenants_open(&tenants);
  samplings[0] = sampler(&tenants, add(&tenants, key, form, scope));
  samplings[1] = sampler(&tenants, add(&tenants, other_key, other_form, scope));
  tenants.refuse = 1;
  sample(&outcomes[0], samplings[0]);
  mock_wait_flag(tenants.mock, &tenants.n_seen, 1);
  mock_turns(tenants.mock, 20);
  sample(&outcomes[1], samplings[1]);
  mock_turns(tenants.mock, 40);
  waited = outcomes[1].n_done == 0;
  advance(&tenants, 5000);
  wait_ok(&tenants, &outcomes[0]);
  wait_ok(&tenants, &outcomes[1]);
  outcome_drop_all(outcomes, 2);
  advance(&tenants, 60000); /* so that the back-off is forgotten */
  tenants_close(&tenants);
  return waited;
}

TEST_LIMIT(S1_1_a_back_off_belongs_to_address_and_key, 20) {
  static const char a[] = "tml-one";
  static const char url[] = "http://127.0.0.1:#";

  CHECK(shares(a, url, a, url, TNK_LIMITER_SHARED));
  CHECK(shares(a, "HTTP://127.0.0.1:#/x/", a, "http://127.0.0.1:#/x",
               TNK_LIMITER_SHARED));
  CHECK(!shares(a, url, a, url, TNK_LIMITER_PRIVATE));
  CHECK(!shares(a, url, "tml-two", url, TNK_LIMITER_SHARED));
  CHECK(!shares(a, "http://127.0.0.1:#/x", a, "http://127.0.0.1:#/y",
                TNK_LIMITER_SHARED));
  if (test_has_localhost())
    CHECK(!shares(a, url, a, "http://localhost:#", TNK_LIMITER_SHARED));
}

/* ---- Three places ---- */

static void on_https(test_conn_t *conn, const unsigned char *data, size_t n) {
  static const char answer[] = "HTTP/1.1 200 OK\r\n"
                               "Content-Type: application/json\r\n"
                               "Content-Length: 15\r\n\r\n{\"status\":\"ok\"}";

  (void)data;
  (void)n;
  test_conn_write(conn, answer, strlen(answer));
}

static void health(tenants_t *tenants, outcome_t *outcome,
                   tnk_service_t *service) {
  (void)tenants;
  outcome_of(outcome, tnk_service_health(service));
}

TEST(S1_6_three_services_in_three_places) {
  tenants_t tenants;
  mock_server_t *second;
  test_server_t secure;
  test_identity_t identity;
  const test_cert_t cert = {.address = "127.0.0.1", .is_ca = 1};
  test_server_options_t options = {.on_read = on_https, .identity = &identity};
  tnk_service_options_t service = TNK_SERVICE_OPTIONS_INIT;
  char ca_path[256];
  char url[128];
  outcome_t outcomes[9];

  tenants_open(&tenants);
  second = mock_open(&tenants.uv);
  mock_on(second, NULL, NULL, serve, &tenants);
  test_identity_make(&identity, &cert);
  test_identity_save(&identity, ca_path, sizeof(ca_path));
  test_server_open(&secure, &tenants.uv, &options);
  add(&tenants, "tml-one", "http://127.0.0.1:#", TNK_LIMITER_SHARED);
  add(&tenants, "tml-one", mock_url(second), TNK_LIMITER_SHARED);
  snprintf(url, sizeof(url), "https://127.0.0.1:%d", secure.port);
  service.api_key = "tml-one";
  service.base_url = url;
  service.ca_file = ca_path;
  add_with(&tenants, &service);
  for (int i = 0; i < 3; i++)
    health(&tenants, &outcomes[i], tenants.services[i]);
  for (int i = 0; i < 3; i++)
    wait_ok(&tenants, &outcomes[i]);
  /* All at work; one closes, and the others do not notice. */
  mock_on(tenants.mock, NULL, NULL, mock_hold, NULL);
  for (int i = 0; i < 3; i++)
    health(&tenants, &outcomes[3 + i], tenants.services[i]);
  close_one(&tenants, 0);
  CHECK_INT(outcomes[3].status, TNK_ECLOSED);
  for (int i = 1; i < 3; i++) {
    wait_ok(&tenants, &outcomes[3 + i]);
    health(&tenants, &outcomes[6 + i], tenants.services[i]);
    wait_ok(&tenants, &outcomes[6 + i]);
    outcome_drop(&outcomes[6 + i]);
  }
  outcome_drop_all(outcomes, 6);
  CHECK_INT(mock_n_connections(second), 1);
  CHECK_INT(secure.n_handshakes, 1);
  close_one(&tenants, 1);
  close_one(&tenants, 2);
  test_server_close(&secure);
  mock_close(second);
  tenants_close(&tenants);
  test_identity_free(&identity);
  CHECK_INT(unlink(ca_path), 0);
}

/* ---- Two threads ---- */

static void work(void *arg) {
  script_t script;
  outcome_t outcomes[40];

  (void)arg;
  script_open_train(&script);
  script_sampler(&script);
  for (int i = 0; i < 40; i += 2) {
    outcome_of(&outcomes[i], script_pass(&script, 3));
    outcome_of(&outcomes[i + 1], script_sample(&script));
  }
  for (int i = 0; i < 40; i++)
    outcome_ok(&script, &outcomes[i]);
  outcome_drop_all(outcomes, 40);
  script_close(&script);
}

TEST_LIMIT(S1_13_services_on_two_threads_know_nothing_of_each_other, 20) {
  uv_thread_t threads[2];

  for (int i = 0; i < 2; i++)
    CHECK_INT(uv_thread_create(&threads[i], work, NULL), 0);
  for (int i = 0; i < 2; i++)
    CHECK_INT(uv_thread_join(&threads[i]), 0);
}

/* What the tests themselves build on: a back-off that one server has asked for
 * is not taken for that of a server which came after it. */
TEST(S1_1_no_two_servers_of_a_test_have_one_address) {
  enum { N = 500 };
  static uint16_t ports[N];
  uv_loop_t uv;

  CHECK_INT(uv_loop_init(&uv), 0);
  for (int i = 0; i < N; i++) {
    mock_server_t *mock = mock_open(&uv);

    ports[i] = mock_port(mock);
    mock_close(mock);
    uv_run(&uv, UV_RUN_DEFAULT);
    for (int k = 0; k < i; k++)
      CHECK(ports[k] != ports[i]);
  }
  CHECK_INT(uv_loop_close(&uv), 0);
}
