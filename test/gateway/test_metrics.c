/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "gateway/telemetry/metrics.h"
#include "support/test.h"
#include "tnk/error.h"

/* The metrics for Prometheus, byte by byte. */

static tnk__gw_metrics_t metrics;
static tnk__buf_t text;

static void begin(void) {
  memset(&metrics, 0, sizeof(metrics));
  tnk__buf_init(&text, test_allocator(), 1 << 20);
}

static void add(tnk__gw_api_t api, int status, int is_stream, uint64_t ms,
                uint64_t n_prompt, uint64_t n_sampled) {
  const tnk__gw_end_of_t end = {api,          status,   is_stream,
                                ms * 1000000, n_prompt, n_sampled};

  tnk__gw_metrics_add(&metrics, &end);
}

static const char *put(const char *model) {
  tnk__buf_clear(&text);
  tnk__gw_metrics_put(&metrics, model, &text);
  CHECK_INT(text.err, TNK_OK);
  return tnk__buf_cstr(&text);
}

/* The value of the time series with these labels. */
static double value_of(const char *series) {
  char line[512];
  const char *at;

  snprintf(line, sizeof(line), "\n%s ", series);
  at = strstr(put("m"), line);
  CHECK(at != NULL);
  return strtod(at + strlen(line), NULL);
}

#define CHAT "gen_ai_operation_name=\"chat\",gen_ai_request_model=\"m\""
#define TEXT                                                                   \
  "gen_ai_operation_name=\"text_completion\",gen_ai_request_model=\"m\""
#define TOOK "gen_ai_server_request_duration"

TEST(the_format_is_exact) {
  static const char expected[] =
      "# HELP " TOOK " Time from a request to its answer, in seconds.\n"
      "# TYPE " TOOK " histogram\n" TOOK "_bucket{" CHAT
      ",le=\"0.01\"} 1\n" TOOK "_bucket{" CHAT ",le=\"0.02\"} 2\n" TOOK
      "_bucket{" CHAT ",le=\"0.04\"} 2\n" TOOK "_bucket{" CHAT
      ",le=\"0.08\"} 2\n" TOOK "_bucket{" CHAT ",le=\"0.16\"} 2\n" TOOK
      "_bucket{" CHAT ",le=\"0.32\"} 2\n" TOOK "_bucket{" CHAT
      ",le=\"0.64\"} 2\n" TOOK "_bucket{" CHAT ",le=\"1.28\"} 2\n" TOOK
      "_bucket{" CHAT ",le=\"2.56\"} 2\n" TOOK "_bucket{" CHAT
      ",le=\"5.12\"} 2\n" TOOK "_bucket{" CHAT ",le=\"10.24\"} 2\n" TOOK
      "_bucket{" CHAT ",le=\"20.48\"} 2\n" TOOK "_bucket{" CHAT
      ",le=\"40.96\"} 2\n" TOOK "_bucket{" CHAT ",le=\"81.92\"} 2\n" TOOK
      "_bucket{" CHAT ",le=\"+Inf\"} 3\n" TOOK "_sum{" CHAT
      "} 90.021000000\n" TOOK "_count{" CHAT "} 3\n" TOOK "_bucket{" TEXT
      ",le=\"0.01\"} 0\n";

  begin();
  add(TNK__GW_CHAT, 200, 0, 10, 1, 1);
  add(TNK__GW_RESPONSE, 200, 0, 11, 1, 1);
  add(TNK__GW_MESSAGE, 200, 0, 90000, 1, 1);
  CHECK(strncmp(put("m"), expected, sizeof(expected) - 1) == 0);
  tnk__buf_clear(&text);
  tnk__gw_metrics_put_value(&text, "a_total", "counter", "Help.", "{b=\"c\"}",
                            UINT64_MAX);
  CHECK_STR(tnk__buf_cstr(&text),
            "# HELP a_total Help.\n# TYPE a_total counter\n"
            "a_total{b=\"c\"} 18446744073709551615\n");
  tnk__buf_deinit(&text);
}

TEST(each_value_is_in_its_series) {
  begin();
  add(TNK__GW_CHAT, 200, 1, 20, 65, 4);
  add(TNK__GW_CHAT, 200, 0, 30, 64, 5);
  add(TNK__GW_COMPLETION, 200, 1, 2500, 70000000, 0);
  add(TNK__GW_CHAT, 503, 1, 40, 7, 7);
  add(TNK__GW_CHAT, 418, 0, 50, 7, 7);
  add(TNK__GW_CHAT, TNK__GW_CLIENT_GONE, 0, 60, 7, 7);
  CHECK(value_of(TOOK "_count{" CHAT "}") == 2);
  CHECK(value_of(TOOK "_sum{" CHAT "}") == 0.05);
  CHECK(value_of(TOOK "_sum{" TEXT "}") == 2.5);
  CHECK(value_of(TOOK "_sum{" CHAT ",error_type=\"503\"}") == 0.04);
  CHECK(value_of(TOOK "_sum{" CHAT ",error_type=\"_OTHER\"}") == 0.05);
  CHECK(value_of(TOOK "_sum{" CHAT ",error_type=\"client_gone\"}") == 0.06);
#define FIRST "gen_ai_server_time_to_first_token"
  CHECK(value_of(FIRST "_count{" CHAT "}") == 1);
  CHECK(value_of(FIRST "_sum{" CHAT "}") == 0.02);
  CHECK(value_of(FIRST "_sum{" TEXT "}") == 2.5);
#define USED "gen_ai_client_token_usage"
#define IN ",gen_ai_token_type=\"input\""
#define OUT ",gen_ai_token_type=\"output\""
  CHECK(value_of(USED "_sum{" CHAT IN "}") == 129);
  CHECK(value_of(USED "_sum{" CHAT OUT "}") == 9);
  CHECK(value_of(USED "_bucket{" CHAT IN ",le=\"64\"}") == 1);
  CHECK(value_of(USED "_bucket{" CHAT IN ",le=\"256\"}") == 2);
  CHECK(value_of(USED "_bucket{" TEXT IN ",le=\"67108864\"}") == 0);
  CHECK(value_of(USED "_bucket{" TEXT IN ",le=\"+Inf\"}") == 1);
  CHECK(value_of(USED "_bucket{" TEXT OUT ",le=\"1\"}") == 1);
  CHECK(strstr(put("m"), "error_type=\"400\"") == NULL);
  tnk__buf_deinit(&text);
}

/* However many statuses a service makes up. */
TEST(the_number_of_series_is_bounded) {
  size_t n = 0;

  begin();
  for (int status = -5; status < 1000; status++)
    for (int api = TNK__GW_CHAT; api <= TNK__GW_MESSAGE; api++)
      add((tnk__gw_api_t)api, status, 1, 1, 1, 1);
  for (const char *at = put("m"); (at = strchr(at, '\n')) != NULL; at++)
    n++;
  CHECK_INT(n, 2 * (16 + 1 + 2) * 17 + 6);
  tnk__buf_deinit(&text);
}

TEST(the_name_of_a_model_is_escaped) {
  char name[512];

  begin();
  add(TNK__GW_CHAT, 200, 0, 1, 1, 1);
  CHECK(strstr(put("a\"b\\c\nd\xff"),
               "gen_ai_request_model=\"a\\\"b\\\\c\\nd?\"") != NULL);
  memset(name, '"', sizeof(name) - 1);
  name[sizeof(name) - 1] = '\0';
  CHECK(strstr(put(name), "\\\"\\\"\"") != NULL);
  tnk__buf_deinit(&text);
}

TEST(no_allocation_is_required_to_succeed) {
  begin();
  for (int n = 0, did_fail = 1; did_fail; n++) {
    tnk__buf_deinit(&text);
    test_alloc_fail_at(n);
    tnk__gw_metrics_put(&metrics, "m", &text);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(text.err, did_fail ? TNK_ENOMEM : TNK_OK);
  }
  tnk__buf_deinit(&text);
}
