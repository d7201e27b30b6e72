/* SPDX-License-Identifier: MIT */
/*
 * A service behind a proxy. Its user and password are of those that nobody is
 * told: every sentence, log line and dump is searched for them.
 */
#include "support/proxy.h"

#include "task/kinds.h"

/* user:canary-7 */
#define USER "user:canary-7@"
#define BASIC "dXNlcjpjYW5hcnktNw=="

static int n_told;

static void no_secret(tnk_log_level_t level, const char *subject,
                      const char *message, size_t length, void *user) {
  script_log(level, subject, message, length, user);
  n_told += strstr(message, BASIC) != NULL || strstr(message, "canary") != NULL;
}

static void on_dump(const char *text, size_t length, void *user) {
  char *copy = strndup(text, length);

  CHECK(strstr(copy, BASIC) == NULL && strstr(copy, "canary") == NULL);
  *(int *)user += strstr(copy, "proxy: 127.0.0.1:") != NULL;
  free(copy);
}

static void open_behind(script_t *script, const char *base_url, int port) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  char proxy[64];

  snprintf(proxy, sizeof(proxy), "http://" USER "127.0.0.1:%d", port);
  options.proxy = proxy;
  options.base_url = base_url;
  script_open_service(script, options);
  script->service->root.context.logger.write = no_secret;
  n_told = 0;
}

static void check_stats(const script_t *script, uint64_t n_retries,
                        uint64_t n_connect) {
  tnk_stats_t stats = TNK_STATS_INIT;

  tnk_service_stats(&stats, script->service);
  CHECK_INT(stats.n_retries, n_retries);
  CHECK_INT(stats.n_retries_connect, n_connect);
  CHECK_INT(n_told, 0);
}

TEST(A16_a_service_through_a_proxy) {
  script_t script;
  outcome_t outcome;
  int named = 0;

  script_begin(&script);
  open_behind(&script, NULL, mock_port(script.mock));
  script_train(&script);
  script_sampler(&script);
  script_ok(&script, &outcome, script_step(&script));
  outcome_drop(&outcome);
  script_ok(&script, &outcome, script_sample(&script));
  outcome_drop(&outcome);
  CHECK(mock_n_requests(script.mock) > 5);
  for (size_t i = 0; i < mock_n_requests(script.mock); i++) {
    const mock_request_t *request = mock_request(script.mock, i);
    CHECK(strncmp(request->target, mock_url(script.mock),
                  strlen(mock_url(script.mock))) == 0);
    CHECK_STR(mock_header(request, "Proxy-Authorization"), "Basic " BASIC);
  }
  CHECK_INT(tnk_service_dump(script.service, TNK_DUMP_TEXT, on_dump, &named),
            TNK_OK);
  CHECK_INT(named, 1);
  check_stats(&script, 0, 0);
  script_close(&script);
}

/* The proxy's 407 is not the service's, and nothing is repeated. */
TEST(A16_a_proxy_that_wants_others) {
  script_t script;
  outcome_t outcome;

  script_begin(&script);
  open_behind(&script, NULL, mock_port(script.mock));
  mock_json(script.mock, NULL, NULL, 407,
            "{\"detail\":\"canary-7 " BASIC "\"}");
  script_fails(&script, &outcome, tnk_service_health(script.service),
               TNK_EPROXY);
  CHECK(strstr(outcome.text, "refused the request: 407 Proxy Authentication "
                             "Required") != NULL);
  CHECK(strstr(outcome.text, BASIC) == NULL);
  check_stats(&script, 0, 0);
  outcome_drop(&outcome);
  script_close(&script);
}

static int n_refused;

static void refuse_thrice(mock_request_t *request, void *user) {
  if (n_refused == 3)
    script_result(request, user);
  else if (++n_refused)
    mock_reply_json(request, 407, "{}");
}

/* What the service has accepted is not given up because the proxy refuses. */
TEST(A16_a_poll_outlives_a_proxy_that_refuses_for_a_while) {
  script_t script;
  outcome_t outcome;

  script_begin(&script);
  open_behind(&script, NULL, mock_port(script.mock));
  script_train(&script);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", refuse_thrice, NULL);
  outcome_of(&outcome, script_step(&script));
  for (int i = 0; i < 20 && outcome.n_done == 0; i++)
    script_advance(&script, 1000);
  outcome_ok(&script, &outcome);
  CHECK_INT(n_refused, 3);
  outcome_drop(&outcome);
  script_close(&script);
}

/* Its page may say our credential again, whatever stands around it. */
TEST(A16_a_page_of_a_proxy_that_knows_a_credential) {
  static const char page[] = "<title>canary-7 " BASIC "</title>";
  script_t script;
  outcome_t outcome;

  script_begin(&script);
  open_behind(&script, NULL, mock_port(script.mock));
  mock_json(script.mock, NULL, NULL, 403, page);
  script_fails(&script, &outcome, tnk_service_health(script.service),
               TNK_EPROXY);
  CHECK(strstr(outcome.text, "the answer is of proxy 127.0.0.1:") != NULL);
  CHECK(strstr(outcome.text, "canary") == NULL);
  check_stats(&script, 0, 0);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Tunnels ---- */

static void check_tunnel(const char *answer, int code, uint64_t n_retries,
                         const char *part) {
  script_t script;
  outcome_t outcome;
  test_proxy_t proxy;

  script_begin(&script);
  test_proxy_open(&proxy, &script.uv, 1, 0);
  proxy.answer = answer;
  open_behind(&script, "https://far.test/services/x", proxy.server.port);
  outcome_of(&outcome, tnk_service_health(script.service));
  script_settle(&script, &outcome);
  outcome_fails(&script, &outcome, code);
  if (strstr(outcome.text, part) == NULL)
    test_fail(__FILE__, __LINE__, "%s", outcome.text);
  CHECK(strstr(outcome.text, BASIC) == NULL);
  CHECK(strncmp(proxy.head, "CONNECT far.test:443 ", 21) == 0);
  CHECK(strstr(proxy.head, "Proxy-Authorization: Basic " BASIC) != NULL);
  CHECK(strstr(proxy.head, script_key()) == NULL);
  CHECK_INT(proxy.n_asked, n_retries + 1);
  check_stats(&script, n_retries, n_retries);
  outcome_drop(&outcome);
  test_proxy_close(&proxy);
  script_close(&script);
}

/* Nothing was sent, so each repeat is one of connecting. */
TEST_LIMIT(A16_proxies_that_fail_are_asked_again, 20) {
  check_tunnel("HTTP/1.1 503 canary-7 " BASIC "\r\nX: " BASIC "\r\n\r\n",
               TNK_ECONN, 10, "refused the tunnel: 503 Service Unavailable");
  check_tunnel("HTTP/1.1 502 Bad Gateway\r\n\r\n", TNK_ECONN, 10,
               "refused the tunnel: 502 Bad Gateway");
}

TEST(A16_proxies_that_refuse_are_not) {
  check_tunnel("HTTP/1.1 407 canary-7 " BASIC "\r\n\r\n", TNK_EPROXY, 0,
               "refused the tunnel: 407 Proxy Authentication Required");
  check_tunnel("HTTP/1.1 403 canary-7\r\n\r\n", TNK_EPROXY, 0,
               "refused the tunnel: 403 Forbidden");
}

/* ---- Opening ---- */

TEST(A16_proxies_that_cannot_be_used) {
  static const char *const proxies[] = {
      "https://u:canary@p:0", "socks4://u:canary@p", "http://u:canary@",
      "http://u:canary%0a@h", "http://u:canary@h:0", "http://u:canary@h/x"};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_hub_options_t hub_options = TNK_HUB_OPTIONS_INIT;
  tnk_service_t *service;
  tnk_hub_t *hub;
  uv_loop_t uv;
  char text[256];

  CHECK_INT(uv_loop_init(&uv), 0);
  options.api_key = script_key();
  for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
    options.proxy = hub_options.proxy = proxies[i];
    CHECK_INT(tnk_service_open(&service, &uv, &options, text, sizeof(text)),
              TNK_EINVAL);
    CHECK(strstr(text, "the proxy's URL") != NULL ||
          strstr(text, "the user name or password in the proxy's URL") != NULL);
    CHECK(strstr(text, "canary") == NULL);
    CHECK_INT(tnk_hub_open(&hub, &uv, &hub_options, text, sizeof(text)),
              TNK_EINVAL);
    CHECK(strstr(text, "proxy's URL") != NULL);
    CHECK(strstr(text, "canary") == NULL);
  }
  uv_run(&uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&uv), 0);
}
