/* SPDX-License-Identifier: MIT */
/*
 * Answers of what stands between us and the service, or in its place. The codes
 * and the words that the program gets, by the way through the whole client.
 */
#include "task/kinds.h"

#define HTML "Content-Type: text/html\r\n"
#define NGINX HTML "Server: nginx/1.22.1\r\n"
#define SQUID                                                                  \
  HTML "Server: squid/5.7\r\nVia: 1.1 host (squid/5.7)\r\n"                    \
       "X-Squid-Error: ERR_ACCESS_DENIED 0\r\n"
#define TITLE(text)                                                            \
  "<html>\n<head><title>" text "</title></head><body>" text "</body></html>"

typedef struct {
  int status;
  const char *headers;
  const char *body;
  int code;
  const char *text; /* a part of the sentence */
} row_t;

static void answer(mock_request_t *request, void *user) {
  const row_t *row = user;

  mock_reply(request, row->status, row->headers, row->body, strlen(row->body));
}

/* All of it, but more was announced. */
static void answer_cut(mock_request_t *request, void *user) {
  const row_t *row = user;
  char text[512];
  const int n =
      snprintf(text, sizeof(text), "Content-Length: 1000\r\n%s", row->headers);

  CHECK(n > 0 && (size_t)n < sizeof(text));
  mock_begin(request, row->status, text);
  mock_piece(request, row->body, strlen(row->body));
  mock_break(request);
}

static void check_sentence(const outcome_t *outcome, const row_t *row) {
  const tnk_error_t *error = tnk_promise_error(outcome->promise);

  if (strstr(outcome->text, row->text) == NULL)
    test_fail(__FILE__, __LINE__, "%s", outcome->text);
  CHECK_INT(error->http_status, row->status);
  /* Words of ours, and of others, are not the service's. */
  CHECK(row->body[0] == '{' || error->message == NULL);
}

/* One step, which is refused like this; after that the client goes on. */
static void check_step(mock_handler_t handler, const row_t *row) {
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  mock_once(script.mock, "POST", "/api/v1/optim_step", handler,
            (void *)(uintptr_t)row);
  script_fails(&script, &outcome, script_step(&script), row->code);
  check_sentence(&outcome, row);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/optim_step"), 1);
  outcome_drop(&outcome);
  script_ok(&script, &outcome, script_step(&script));
  outcome_drop(&outcome);
  script_close(&script);
}

TEST_LIMIT(pages_are_not_told_as_the_words_of_the_service, 30) {
  static const row_t rows[] = {
      {403, SQUID, TITLE("ERROR: The requested URL could not be retrieved"),
       TNK_EPROXY,
       "not the service but squid/5.7 says \"ERROR: The requested URL could "
       "not be retrieved\" (ERR_ACCESS_DENIED)"},
      {401, NGINX "WWW-Authenticate: Basic realm=\"x\"\r\n",
       TITLE("401 Authorization Required"), TNK_EPROXY,
       "not the service but nginx/1.22.1 says \"401 Authorization Required\""},
      {400, NGINX, TITLE("400 No required SSL certificate was sent"),
       TNK_EREQUEST, "says \"400 No required SSL certificate was sent\""},
      {400, NGINX, TITLE("400 The plain HTTP request was sent to HTTPS port"),
       TNK_EREQUEST, "begin TINKER_BASE_URL with https://"},
      {413, NGINX, TITLE("413 Request Entity Too Large"), TNK_EREQUEST,
       "bytes is too large for nginx/1.22.1"},
      {404, NGINX, TITLE("404 Not Found"), TNK_ENOTFOUND,
       "nginx/1.22.1 says \"404 Not Found\"; is http://127.0.0.1:"},
      {301, NGINX "Location: https://h.test/p/api/v1/optim_step?a=b\r\n",
       TITLE("301 Moved Permanently"), TNK_EREQUEST,
       "redirects to https://h.test/p; set TINKER_BASE_URL to that"},
      {307, "Location: https://h.test/\r\n", "{\"detail\":\"elsewhere\"}",
       TNK_EREQUEST, "redirects to https://h.test/, which is no call"},
      {403, "", "{\"detail\":\"no such key\"}", TNK_EAUTH,
       "rejected by the service (HTTP 403): no such key"},
      {401, "Server: uvicorn\r\n", "", TNK_EAUTH,
       "rejected by the service (HTTP 401): without words, from uvicorn"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    check_step(answer, &rows[i]);
}

/* As tinyproxy does: it answers before it has read the request, and resets. */
TEST_LIMIT(a_refusal_that_is_cut_off_keeps_its_code, 30) {
  static const row_t rows[] = {
      {403, HTML "Server: tinyproxy/1.11.1\r\n", TITLE("403 Filtered"),
       TNK_EPROXY, "tinyproxy/1.11.1"},
      {401, HTML "Server: tinyproxy/1.11.1\r\n", TITLE("401 Unauthorized"),
       TNK_EPROXY, "(HTTP 401)"},
      {407, HTML "Server: tinyproxy/1.11.1\r\n",
       TITLE("407 Proxy Authentication Required"), TNK_EPROXY,
       "not the service but tinyproxy/1.11.1 says \"407 Proxy "
       "Authentication Required\""},
      {403, "Content-Type: application/json\r\n",
       "{\"detail\":\"no such key\"}", TNK_EAUTH,
       "credential rejected by the service (HTTP 403)"},
      {422, "Content-Type: application/json\r\n",
       "{\"detail\":\"no such key\"}", TNK_EREQUEST, "(HTTP 422)"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    check_step(answer_cut, &rows[i]);
}

/* Its body came whole and cannot be read: that is told, not the status. */
TEST_LIMIT(a_refusal_in_an_unknown_encoding_is_told_as_that, 30) {
  static const row_t row = {422, "Content-Encoding: gzip\r\n", "gzip?",
                            TNK_EPROTO, "malformed answer"};

  check_step(answer, &row);
}

static int n_pages;

static void answer_thrice(mock_request_t *request, void *user) {
  if (n_pages++ < 3)
    answer(request, user);
  else
    script_result(request, NULL);
}

/* What the service has accepted is not given up because a proxy refuses. */
TEST(a_poll_outlives_pages_that_refuse) {
  static const row_t row = {403, SQUID, TITLE("ERROR"), TNK_EPROXY, ""};
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", answer_thrice,
          (void *)(uintptr_t)&row);
  outcome_of(&outcome, script_step(&script));
  script_settle(&script, &outcome);
  outcome_ok(&script, &outcome);
  CHECK_INT(n_pages, 4);
  outcome_drop(&outcome);
  script_close(&script);
}

/* What is repeated says so in the end, and in the log. */
TEST(a_page_of_a_gateway_is_told_after_the_last_attempt) {
  static const row_t row = {
      502, NGINX, TITLE("502 Bad Gateway"), TNK_ESERVER,
      "not the service but nginx/1.22.1 says \"502 Bad Gateway\""};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script.log_text = "attempt 3 failed (HTTP 502: not the service but nginx";
  mock_on(script.mock, "GET", "/api/v1/get_server_capabilities", answer,
          (void *)(uintptr_t)&row);
  outcome_of(&outcome, tnk_service_capabilities(script.service));
  for (int i = 0; i < 40 && outcome.n_done == 0; i++)
    script_advance(&script, 30000);
  outcome_fails(&script, &outcome, row.code);
  check_sentence(&outcome, &row);
  CHECK_INT(script.n_log_texts, 1);
  outcome_drop(&outcome);
  script_close(&script);
}

/* A portal, which lets everything succeed. */
TEST(a_page_instead_of_a_result_is_told) {
  static const row_t row = {200, HTML "Server: portal\r\n", TITLE("Log in"),
                            TNK_EPROTO,
                            "not the service but portal says \"Log in\""};
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  mock_on(script.mock, "POST", "/api/v1/optim_step", answer,
          (void *)(uintptr_t)&row);
  outcome_of(&outcome, script_step(&script));
  script_settle(&script, &outcome);
  outcome_fails(&script, &outcome, row.code);
  check_sentence(&outcome, &row);
  outcome_drop(&outcome);
  script_close(&script);
}

/* A page may say again what it was asked with. */
TEST(a_secret_in_a_page_is_blotted_out) {
  static const row_t row = {403, NGINX,
                            TITLE("no tml-canary-key-0123456789 and no "
                                  "canary-of-a-header"),
                            TNK_EPROXY, "says \"no ****"};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const tnk_pair_t header = {"X-Secret", "canary-of-a-header"};
  script_t script;
  outcome_t outcome;

  options.headers = &header;
  options.n_headers = 1;
  script_open_with(&script, options);
  mock_on(script.mock, "GET", "/api/v1/get_server_capabilities", answer,
          (void *)(uintptr_t)&row);
  script_fails(&script, &outcome, tnk_service_capabilities(script.service),
               row.code);
  check_sentence(&outcome, &row);
  CHECK(strstr(outcome.text, "canary") == NULL);
  outcome_drop(&outcome);
  script_close(&script);
}
