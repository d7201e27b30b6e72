/* SPDX-License-Identifier: MIT */
/* Downloads through a proxy, which is the bench's other server. */
#include "hub/bench.h"

#define TEXT "hello, file"
/* user:canary-7 */
#define BASIC "dXNlcjpjYW5hcnktNw=="

static void open_behind(bench_t *bench, const char *no_proxy) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  char proxy[64];

  bench_open(bench);
  snprintf(proxy, sizeof(proxy), "user:canary-7@127.0.0.1:%d",
           (int)mock_port(bench->cdn));
  options.proxy = proxy;
  options.no_proxy = no_proxy;
  bench_reopen_hub(bench, &options);
}

TEST(A16_a_file_comes_through_the_proxy) {
  const mock_request_t *request;
  bench_t bench;
  outcome_t outcome;
  char target[128];

  open_behind(&bench, NULL);
  mock_on(bench.cdn, "GET", "/f", bench_reply, (void *)TEXT);
  bench_get(&bench, &outcome, "/f?s=" SIGNATURE, NULL);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check_file(&bench, "out/file", TEXT);
  CHECK_INT(mock_n_requests(bench.mock), 0);
  request = mock_request(bench.cdn, 0);
  snprintf(target, sizeof(target), "%s/f?s=" SIGNATURE, mock_url(bench.mock));
  CHECK_STR(request->target, target);
  CHECK_STR(mock_header(request, "proxy-authorization"), "Basic " BASIC);
  CHECK(mock_header(request, "authorization") == NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(A16_a_proxy_that_refuses_is_not_asked_again) {
  bench_t bench;
  outcome_t outcome;

  open_behind(&bench, NULL);
  mock_json(bench.cdn, NULL, NULL, 407, "\"canary-7 " BASIC "\"");
  bench_get(&bench, &outcome, "/f", NULL);
  CHECK_INT(outcome.status, TNK_EPROXY);
  CHECK(strstr(outcome.text, "refused the request: 407") != NULL);
  CHECK(strstr(outcome.text, BASIC) == NULL);
  CHECK_INT(mock_n_requests(bench.cdn), 1);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(NO_PROXY_files_come_directly) {
  bench_t bench;
  outcome_t outcome;

  open_behind(&bench, "10.0.0.0/8, 127.0.0.0/8");
  mock_on(bench.mock, "GET", "/f", bench_reply, (void *)TEXT);
  bench_get(&bench, &outcome, "/f", NULL);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK_INT(mock_n_requests(bench.cdn), 0);
  CHECK_STR(mock_request(bench.mock, 0)->target, "/f");
  CHECK(mock_header(mock_request(bench.mock, 0), "proxy-authorization") ==
        NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}
