/* SPDX-License-Identifier: MIT */
/* An exporter against a scripted collector, by a fake clock. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/api/otlp.h"
#include "support/mock_server.h"
#include "support/pb_read.h"
#include "tnk/tnk.h"

#define SECRET "canary-of-a-header"

enum { STEP_MS = 100, MAX_STEPS = 1000 };

typedef struct {
  uv_loop_t uv;
  mock_server_t *mock;
  tnk_otlp_t *otlp;
  int n_warnings;
  int n_infos;
  char warning[512]; /* the last one */
  size_t n_spans;    /* in accepted requests */
  size_t n_accepted; /* requests */
  uint64_t spent_ms;
  int is_closed;
} stage_t;

static void on_log(tnk_log_level_t level, const char *subject,
                   const char *message, size_t length, void *user) {
  stage_t *stage = user;

  CHECK_STR(subject, "otlp");
  CHECK(length > 0 && strstr(message, SECRET) == NULL);
  stage->n_warnings += level == TNK_LOG_WARN;
  stage->n_infos += level == TNK_LOG_INFO;
  if (level == TNK_LOG_WARN)
    snprintf(stage->warning, sizeof(stage->warning), "%s", message);
}

static size_t n_spans_of(const mock_request_t *request) {
  const pb_t body = {request->body, request->body_len};

  CHECK_STR(request->method, "POST");
  CHECK_STR(mock_header(request, "content-type"), "application/x-protobuf");
  CHECK_STR(mock_header(request, "x-key"), SECRET);
  return pb_count(pb_sub(pb_sub(body, 1, 0), 2, 0), 2);
}

static void accepts(mock_request_t *request, void *user) {
  stage_t *stage = user;

  stage->n_spans += n_spans_of(request);
  stage->n_accepted++;
  mock_reply(request, 200, "Content-Type: application/x-protobuf\r\n", NULL, 0);
}

static void stage_open(stage_t *stage, const char *variable) {
  const tnk_logger_t logger = {TNK_LOG_INFO, on_log, stage};
  tnk_otlp_options_t options = TNK_OTLP_OPTIONS_INIT;
  char url[256], why[256] = "";

  memset(stage, 0, sizeof(*stage));
  CHECK_INT(uv_loop_init(&stage->uv), 0);
  stage->mock = mock_open(&stage->uv);
  snprintf(url, sizeof(url), "%s%s", mock_url(stage->mock),
           strstr(variable, "TRACES") != NULL ? "/v1/traces" : "");
  setenv(variable, url, 1);
  setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=" SECRET, 1);
  options.allocator = test_allocator();
  options.logger = &logger;
  CHECK_INT(tnk_otlp_open(&stage->otlp, &stage->uv, &options, why, sizeof(why)),
            TNK_OK);
  CHECK(stage->otlp != NULL);
  /* Its timers run already. */
  tnk__context_fake_clock(&stage->otlp->root.context,
                          tnk__context_now_ms(&stage->otlp->root.context));
  mock_set_clock(stage->mock, &stage->otlp->root.context);
  mock_on(stage->mock, NULL, "/v1/traces", accepts, stage);
}

static void on_closed(void *user) {
  stage_t *stage = user;

  stage->is_closed = 1;
  stage->otlp = NULL;
}

/* Let some time pass, and all that can happen in it. */
static void step(stage_t *stage) {
  mock_turns(stage->mock, 30);
  if (stage->otlp != NULL) {
    tnk__context_advance(&stage->otlp->root.context, STEP_MS);
    stage->spent_ms += STEP_MS;
  }
  mock_turns(stage->mock, 30);
}

static void step_ms(stage_t *stage, uint64_t ms) {
  for (uint64_t i = 0; i < ms; i += STEP_MS)
    step(stage);
}

static tnk_otlp_stats_t stats_of(const stage_t *stage) {
  tnk_otlp_stats_t stats = TNK_OTLP_STATS_INIT;

  CHECK_INT(tnk_otlp_stats(&stats, stage->otlp), TNK_OK);
  return stats;
}

static void until_sent(stage_t *stage) {
  for (int i = 0; i < MAX_STEPS && stats_of(stage).n_queued > 0; i++)
    step(stage);
  CHECK_INT(stats_of(stage).n_queued, 0);
}

static void until_closed(stage_t *stage) {
  for (int i = 0; i < MAX_STEPS && !stage->is_closed; i++)
    step(stage);
  CHECK(stage->is_closed);
}

static void stage_close(stage_t *stage) {
  if (!stage->is_closed) {
    tnk_otlp_close(stage->otlp, on_closed, stage);
    CHECK(!stage->is_closed);
    until_closed(stage);
  }
  mock_close(stage->mock);
  CHECK_INT(uv_run(&stage->uv, UV_RUN_DEFAULT), 0);
  CHECK_INT(uv_loop_close(&stage->uv), 0);
}

static void end_spans(stage_t *stage, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const tnk_otlp_end_t end = {.name = "a", .kind = TNK_OTLP_SERVER};
    tnk_otlp_span_t span;

    tnk_otlp_begin(&span, stage->otlp, NULL);
    CHECK(span.span_id != 0);
    tnk_otlp_end(stage->otlp, &span, &end);
  }
}

/* ---- What collectors do, in each moment ---- */

static void says_400(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 400, NULL, SECRET, sizeof(SECRET) - 1);
}

static void says_429(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 429, "Retry-After: 2\r\n", NULL, 0);
}

static void says_503(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 503, NULL, NULL, 0);
}

static void is_slow(mock_request_t *request, void *user) {
  stage_t *stage = user;

  stage->n_spans += n_spans_of(request);
  stage->n_accepted++;
  mock_reply_json_after(request, 5000, 200, "");
}

/* It rejects one item, and repeats a header in its text. */
static void takes_some(mock_request_t *request, void *user) {
  static const char body[] = "\x0a\x16\x08\x01\x12\x12" SECRET;
  stage_t *stage = user;

  stage->n_spans += n_spans_of(request) - 1;
  stage->n_accepted++;
  mock_reply(request, 200, NULL, body, sizeof(body) - 1);
}

static void says_nonsense(mock_request_t *request, void *user) {
  stage_t *stage = user;

  stage->n_spans += n_spans_of(request);
  stage->n_accepted++;
  mock_reply(request, 200, NULL, "<html>", 6);
}

static const struct {
  const char *name;
  mock_handler_t once;   /* the first answer; NULL: as `always` */
  mock_handler_t always; /* NULL: it accepts */
  int refuses;           /* there is no listener for three seconds */
  int n_lost;            /* of each request's spans; -1: all */
  int n_warnings;
  int n_infos;
  uint64_t least_ms; /* until all is sent, apart from the delay of a batch */
  uint64_t most_ms;
} rows[] = {{"accepts", NULL, NULL, 0, 0, 0, 0, 0, 1000},
            {"400", NULL, says_400, 0, -1, 1, 0, 0, 1000},
            {"400 once", says_400, NULL, 0, -1, 1, 0, 0, 1000},
            {"429", says_429, NULL, 0, 0, 1, 1, 2000, 4000},
            {"503", says_503, NULL, 0, 0, 1, 1, 700, 4000},
            {"503 always", NULL, says_503, 0, -1, 1, 0, 1000, 65000},
            {"closes", mock_cut, NULL, 0, 0, 1, 1, 700, 4000},
            {"resets", mock_reset, NULL, 0, 0, 1, 1, 700, 4000},
            {"is silent", mock_hold, NULL, 0, 0, 1, 1, 10000, 16000},
            {"is slow", NULL, is_slow, 0, 0, 0, 0, 5000, 12000},
            {"takes some", NULL, takes_some, 0, 1, 1, 0, 0, 1000},
            {"says nonsense", NULL, says_nonsense, 0, 0, 0, 0, 0, 1000},
            {"refuses", NULL, NULL, 1, 0, 1, 1, 3000, 9000}};

typedef enum { IDLE = 0, MID_BATCH, AT_SHUTDOWN, MOMENTS } moment_t;

static const char *const moments[MOMENTS] = {"idle", "mid-batch",
                                             "at shutdown"};

static void begin_row(stage_t *stage, size_t i) {
  stage_open(stage, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  if (rows[i].always != NULL)
    mock_on(stage->mock, NULL, "/v1/traces", rows[i].always, stage);
  if (rows[i].once != NULL)
    mock_once(stage->mock, NULL, "/v1/traces", rows[i].once, stage);
  if (rows[i].refuses)
    mock_stop_listening(stage->mock);
}

static void run_cell(size_t i, moment_t moment) {
  const uint64_t delay_ms = moment == AT_SHUTDOWN ? 0 : 5000;
  const uint64_t n_batches = moment == MID_BATCH ? 2 : 1;
  size_t n = 2;
  uint64_t n_lost;
  stage_t stage;

  begin_row(&stage, i);
  end_spans(&stage, n);
  CHECK_INT(mock_n_requests(stage.mock), 0);
  if (moment == MID_BATCH) {
    step_ms(&stage, delay_ms);
    CHECK_INT(mock_n_requests(stage.mock), !rows[i].refuses);
    end_spans(&stage, n);
  } else if (moment == AT_SHUTDOWN) {
    tnk_otlp_close(stage.otlp, on_closed, &stage);
    CHECK(!stage.is_closed);
  }
  if (rows[i].refuses) {
    step_ms(&stage, 3000 + (moment == IDLE ? delay_ms : 0));
    mock_listen_again(stage.mock);
  }
  if (moment == AT_SHUTDOWN)
    until_closed(&stage);
  else
    until_sent(&stage);
  n_lost = rows[i].n_lost < 0 ? n : (uint64_t)rows[i].n_lost;
  if (rows[i].once == NULL)
    n_lost *= n_batches;
  n *= n_batches;
  CHECK_INT(stage.n_spans, n - n_lost);
  if (moment != AT_SHUTDOWN) {
    CHECK_INT(stats_of(&stage).n_exported, n - n_lost);
    CHECK_INT(stats_of(&stage).n_dropped, n_lost);
  }
  CHECK(stage.spent_ms >= delay_ms + rows[i].least_ms);
  CHECK(stage.spent_ms <= n_batches * (delay_ms + rows[i].most_ms));
  /* A later success is logged; "400 once" has one in the second batch. */
  CHECK_INT(stage.n_warnings, rows[i].n_warnings);
  CHECK_INT(stage.n_infos,
            rows[i].once == says_400 && n_batches == 2 ? 1 : rows[i].n_infos);
  stage_close(&stage);
}

TEST_LIMIT(collectors_in_each_moment, 300) {
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    for (int moment = 0; moment < MOMENTS; moment++) {
      char context[64];

      snprintf(context, sizeof(context), "%s, %s", rows[i].name,
               moments[moment]);
      test_context(context);
      run_cell(i, (moment_t)moment);
    }
}

/* ---- Pauses and limits ---- */

/* A pause that is longer than the batch lives holds back the next one too. */
TEST(a_long_pause_holds_back_the_next_batch) {
  stage_t stage;

  setenv("OTEL_BSP_EXPORT_TIMEOUT", "1000", 1);
  stage_open(&stage, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  mock_once(stage.mock, NULL, "/v1/traces", says_429, NULL);
  end_spans(&stage, 1);
  step_ms(&stage, 5000);
  CHECK_INT(mock_n_requests(stage.mock), 1);
  CHECK_INT(stats_of(&stage).n_dropped, 1);
  setenv("OTEL_BSP_SCHEDULE_DELAY", "1", 1);
  end_spans(&stage, 600); /* a batch is full */
  step_ms(&stage, 1500);
  CHECK_INT(mock_n_requests(stage.mock), 1);
  until_sent(&stage);
  CHECK_INT(stage.n_spans, 600);
  stage_close(&stage);
}

TEST(a_full_batch_is_sent_at_once_and_not_inside_the_call) {
  stage_t stage;

  setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4", 1);
  stage_open(&stage, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  /* A batch that is not full waits already. */
  end_spans(&stage, 1);
  mock_turns(stage.mock, 60);
  CHECK_INT(stage.n_accepted, 0);
  end_spans(&stage, 9);
  CHECK_INT(stage.otlp->core.senders[0].state, TNK__OTLP_IDLE);
  mock_turns(stage.mock, 60);
  CHECK_INT(stage.n_accepted, 2);
  CHECK_INT(stage.n_spans, 8);
  CHECK_INT(stage.spent_ms, 0);
  until_sent(&stage);
  CHECK_INT(stage.n_accepted, 3);
  CHECK_INT(stage.n_spans, 10);
  stage_close(&stage);
}

TEST(a_full_queue_drops_and_counts_with_one_warning) {
  stage_t stage;

  setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8", 1);
  setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4", 1);
  stage_open(&stage, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  mock_once(stage.mock, NULL, "/v1/traces", mock_hold, NULL);
  end_spans(&stage, 4);
  mock_wait(stage.mock, 1);
  end_spans(&stage, 20);
  CHECK_INT(stats_of(&stage).n_dropped, 12);
  CHECK_INT(stats_of(&stage).n_queued, 12);
  CHECK_INT(stage.n_warnings, 1);
  CHECK(strstr(stage.warning, "the queue is full") != NULL);
  until_sent(&stage);
  CHECK_INT(stats_of(&stage).n_exported, 12);
  /* The next outage is logged again. */
  mock_once(stage.mock, NULL, "/v1/traces", mock_hold, NULL);
  end_spans(&stage, 4);
  mock_wait(stage.mock, 5);
  stage.n_warnings = 0;
  end_spans(&stage, 20);
  CHECK_INT(stage.n_warnings, 1);
  stage_close(&stage);
}

/* What a collector that is gone costs at the end. */
TEST(closing_ends_in_time_whatever_the_collector_does) {
  static const mock_handler_t handlers[] = {mock_hold, says_429, says_503,
                                            mock_cut};

  for (size_t i = 0; i < sizeof(handlers) / sizeof(*handlers); i++) {
    stage_t stage;

    setenv("OTEL_BSP_EXPORT_TIMEOUT", "1500", 1);
    stage_open(&stage, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    mock_on(stage.mock, NULL, NULL, handlers[i], NULL);
    end_spans(&stage, 3);
    tnk_otlp_close(stage.otlp, on_closed, &stage);
    tnk_otlp_close(stage.otlp, on_closed, &stage);
    until_closed(&stage);
    CHECK(stage.spent_ms <= 1500 + STEP_MS);
    CHECK(stage.n_warnings >= 1);
    stage_close(&stage);
  }
}

/* An exporter alone keeps no loop alive. The clock is the system's. */
TEST(the_loop_ends_with_spans_in_the_queue) {
  stage_t stage = {.is_closed = 0};

  setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", 1);
  setenv("OTEL_BSP_EXPORT_TIMEOUT", "1", 1);
  CHECK_INT(uv_loop_init(&stage.uv), 0);
  CHECK_INT(tnk_otlp_open(&stage.otlp, &stage.uv, NULL, NULL, 0), TNK_OK);
  CHECK_INT(uv_run(&stage.uv, UV_RUN_DEFAULT), 0);
  end_spans(&stage, 3);
  CHECK_INT(uv_run(&stage.uv, UV_RUN_DEFAULT), 0);
  CHECK_INT(stats_of(&stage).n_queued, 3);
  tnk_otlp_close(stage.otlp, on_closed, &stage);
  CHECK_INT(uv_run(&stage.uv, UV_RUN_DEFAULT), 0);
  CHECK(stage.is_closed);
  CHECK_INT(uv_loop_close(&stage.uv), 0);
}

/* ---- Metrics ---- */

static void put_value(tnk_otlp_metrics_t *out, void *user) {
  static const double bounds[] = {1};
  static const uint64_t counts[] = {2, 3};
  const tnk_otlp_metric_t metric = {.name = "v", .is_counter = 1};
  const tnk_otlp_number_t number = {.value = ++*(int *)user};
  const tnk_otlp_histogram_t histogram = {
      .bounds = bounds, .n_bounds = 1, .counts = counts, .sum = 4};

  tnk_otlp_put_numbers(out, &metric, &number, 1);
  tnk_otlp_put_histograms(out, &metric, &histogram, 1);
}

/* The value of the counter "v" in a request, or 0. */
static uint64_t value_in(const mock_request_t *request) {
  const pb_t body = {request->body, request->body_len};
  const pb_t scope = pb_sub(pb_sub(body, 1, 0), 2, 0);

  for (size_t i = 0; i < pb_count(scope, 2); i++) {
    const pb_t metric = pb_sub(scope, 2, i);

    if (strcmp(pb_text(metric, 1), "v") == 0)
      return pb_number(pb_sub(pb_sub(metric, 7, 0), 1, 0), 6);
  }
  return 0;
}

TEST(metrics_come_each_interval_and_once_more_at_the_end) {
  stage_t stage;
  int value = 0;

  stage_open(&stage, "OTEL_EXPORTER_OTLP_ENDPOINT");
  mock_json(stage.mock, "POST", "/v1/metrics", 200, "");
  CHECK_INT(tnk_otlp_add_source(stage.otlp, put_value, &value), TNK_OK);
  CHECK_INT(tnk_otlp_add_source(stage.otlp, NULL, NULL), TNK_EINVAL);
  step_ms(&stage, 59000);
  CHECK_INT(mock_n_requests(stage.mock), 0);
  step_ms(&stage, 2000);
  CHECK_INT(mock_n_requests(stage.mock), 1);
  CHECK_INT(value_in(mock_request(stage.mock, 0)), 1);
  /* Another source is not affected. */
  tnk_otlp_remove_source(stage.otlp, put_value, NULL);
  tnk_otlp_remove_source(stage.otlp, put_value, &value);
  CHECK_INT(value, 2);
  stage_close(&stage);
  CHECK_INT(value, 2);
}

/* The last values of a source that was removed are sent when closing. */
TEST(the_last_values_are_not_lost) {
  static const mock_handler_t firsts[] = {NULL, says_503, mock_cut, mock_hold};

  for (size_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++) {
    stage_t stage;
    int value = 40;
    size_t n;

    stage_open(&stage, "OTEL_EXPORTER_OTLP_ENDPOINT");
    mock_json(stage.mock, "POST", "/v1/metrics", 200, "");
    if (firsts[i] != NULL)
      mock_once(stage.mock, "POST", "/v1/metrics", firsts[i], NULL);
    CHECK_INT(tnk_otlp_add_source(stage.otlp, put_value, &value), TNK_OK);
    tnk_otlp_remove_source(stage.otlp, put_value, &value);
    end_spans(&stage, 1);
    tnk_otlp_close(stage.otlp, on_closed, &stage);
    until_closed(&stage);
    n = mock_count(stage.mock, "POST", "/v1/metrics");
    CHECK_INT(n, firsts[i] != NULL ? 2 : 1);
    CHECK_INT(value_in(mock_find(stage.mock, "POST", "/v1/metrics", n - 1)),
              41);
    CHECK_INT(stage.n_spans, 1);
    stage_close(&stage);
  }
}

/* ---- Sampling and parents ---- */

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"

TEST(samplers_by_parent) {
  static const struct {
    const char *sampler, *arg;
    int root, yes, no; /* sampled without a parent, below one that is, is not */
  } all[] = {{NULL, NULL, 1, 1, 0},
             {"always_on", NULL, 1, 1, 1},
             {"always_off", NULL, 0, 0, 0},
             {"traceidratio", "0", 0, 0, 0},
             {"traceidratio", "1", 1, 1, 1},
             {"parentbased_always_on", NULL, 1, 1, 0},
             {"parentbased_always_off", NULL, 0, 1, 0},
             {"parentbased_traceidratio", "0.0", 0, 1, 0}};

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    const char *const headers[] = {NULL, TRACE "01", TRACE "00", TRACE "0x"};
    const int expected[] = {all[i].root, all[i].yes, all[i].no, all[i].root};
    stage_t stage;

    unsetenv("OTEL_TRACES_SAMPLER");
    unsetenv("OTEL_TRACES_SAMPLER_ARG");
    if (all[i].sampler != NULL)
      setenv("OTEL_TRACES_SAMPLER", all[i].sampler, 1);
    if (all[i].arg != NULL)
      setenv("OTEL_TRACES_SAMPLER_ARG", all[i].arg, 1);
    stage_open(&stage, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    for (size_t k = 0; k < 4; k++) {
      const int has_parent = k == 1 || k == 2;
      tnk_otlp_span_t span;

      tnk_otlp_begin(&span, stage.otlp, headers[k]);
      CHECK(span.span_id != 0);
      CHECK_INT(span.is_sampled, expected[k]);
      CHECK_INT(span.is_remote, has_parent);
      CHECK_INT(span.parent_id, has_parent ? 0xb7ad6b7169203331 : 0);
      CHECK_INT(span.trace_id[0] == 0x0a && span.trace_id[15] == 0x9c,
                has_parent);
    }
    stage_close(&stage);
  }
}

TEST(a_ratio_takes_about_its_share_and_decides_by_the_trace) {
  stage_t stage;
  int n = 0;

  setenv("OTEL_TRACES_SAMPLER", "traceidratio", 1);
  setenv("OTEL_TRACES_SAMPLER_ARG", "0.25", 1);
  stage_open(&stage, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  for (int i = 0; i < 4000; i++) {
    tnk_otlp_span_t span, below;

    tnk_otlp_begin(&span, stage.otlp, NULL);
    tnk__otlp_begin_below(&stage.otlp->core, &below, &span);
    CHECK_INT(below.is_sampled, span.is_sampled);
    CHECK_INT(below.parent_id, span.span_id);
    n += span.is_sampled;
  }
  CHECK(n > 800 && n < 1200);
  stage_close(&stage);
}

/* ---- Opening ---- */

TEST(nothing_is_opened_without_an_endpoint) {
  tnk_otlp_t *otlp = (tnk_otlp_t *)&otlp;
  tnk_otlp_options_t options = TNK_OTLP_OPTIONS_INIT;
  uv_loop_t uv;

  options.allocator = test_allocator();
  CHECK_INT(uv_loop_init(&uv), 0);
  CHECK_INT(tnk_otlp_open(&otlp, &uv, &options, NULL, 0), TNK_OK);
  CHECK(otlp == NULL);
  CHECK_INT(uv_loop_close(&uv), 0);
}

TEST(a_wrong_variable_is_said) {
  tnk_otlp_options_t options = TNK_OTLP_OPTIONS_INIT;
  tnk_otlp_t *otlp;
  uv_loop_t uv;
  char why[256];

  options.allocator = test_allocator();
  setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", 1);
  setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
  CHECK_INT(uv_loop_init(&uv), 0);
  CHECK_INT(tnk_otlp_open(&otlp, &uv, &options, why, sizeof(why)), TNK_EINVAL);
  CHECK(otlp == NULL);
  CHECK_STR(why,
            "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not \"grpc\"");
  setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", 1);
  setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/dev/null/none", 1);
  CHECK_INT(tnk_otlp_open(&otlp, &uv, &options, why, sizeof(why)), TNK_ECERT);
  CHECK(strstr(why, "OTEL_EXPORTER_OTLP_CERTIFICATE") != NULL);
  unsetenv("OTEL_EXPORTER_OTLP_CERTIFICATE");
  options.traceparent = "00-no";
  CHECK_INT(tnk_otlp_open(&otlp, &uv, &options, why, sizeof(why)), TNK_EINVAL);
  CHECK(strstr(why, "traceparent") != NULL);
  CHECK_INT(uv_run(&uv, UV_RUN_DEFAULT), 0);
  CHECK_INT(uv_loop_close(&uv), 0);
}

/* Each allocation fails once: opening says so, and an export drops. */
TEST(without_memory) {
  for (long i = 0;; i++) {
    tnk_otlp_options_t options = TNK_OTLP_OPTIONS_INIT;
    const tnk_otlp_end_t end = {.name = "a", .kind = TNK_OTLP_SERVER};
    tnk_otlp_stats_t stats = TNK_OTLP_STATS_INIT;
    tnk_otlp_span_t span;
    tnk_otlp_t *otlp;
    uv_loop_t uv;
    int value = 0, err;

    options.allocator = test_allocator();
    /* A port that nobody has; what is queued is lost at the end. */
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", 1);
    setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", 1);
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "1", 1);
    setenv("OTEL_METRIC_EXPORT_TIMEOUT", "1", 1);
    CHECK_INT(uv_loop_init(&uv), 0);
    test_alloc_fail_at(i);
    err = tnk_otlp_open(&otlp, &uv, &options, NULL, 0);
    if (err == TNK_OK) {
      const int added = tnk_otlp_add_source(otlp, put_value, &value);

      CHECK(added == TNK_OK || added == TNK_ENOMEM);
      tnk_otlp_begin(&span, otlp, NULL);
      tnk_otlp_end(otlp, &span, &end);
      CHECK_INT(tnk_otlp_stats(&stats, otlp), TNK_OK);
      CHECK_INT(stats.n_queued + stats.n_dropped, 1);
      tnk_otlp_remove_source(otlp, put_value, &value);
      tnk_otlp_close(otlp, NULL, NULL);
    } else {
      CHECK_INT(err, TNK_ENOMEM);
      CHECK(otlp == NULL);
    }
    CHECK_INT(uv_run(&uv, UV_RUN_DEFAULT), 0);
    CHECK_INT(uv_loop_close(&uv), 0);
    if (!test_alloc_did_fail()) {
      CHECK(i > 10);
      break;
    }
  }
  test_alloc_fail_at(-1);
}

/* ---- Operations of a service ---- */

static void send_event(stage_t *stage, uint64_t operation, tnk_phase_t phase,
                       tnk_event_t event) {
  event.operation = operation;
  event.phase = phase;
  event.name = "forward_backward";
  event.time_ns = uv_hrtime();
  tnk_otlp_event(&event, stage->otlp);
}

static pb_t span_in(const mock_request_t *request, size_t i) {
  const pb_t body = {request->body, request->body_len};

  return pb_sub(pb_sub(pb_sub(body, 1, 0), 2, 0), 2, i);
}

TEST(operations_are_spans_with_their_phases) {
  stage_t stage;
  tnk_otlp_span_t parent;
  pb_t good, bad;

  stage_open(&stage, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  tnk_otlp_begin(&parent, stage.otlp, TRACE "01");
  tnk_otlp_set_parent(stage.otlp, &parent);
  send_event(&stage, 1, TNK_PHASE_QUEUED, (tnk_event_t){.client = "model-1"});
  tnk_otlp_set_parent(stage.otlp, NULL);
  send_event(&stage, 2, TNK_PHASE_QUEUED, (tnk_event_t){.status = 0});
  send_event(&stage, 1, TNK_PHASE_SENT,
             (tnk_event_t){.attempt = 1, .bytes = 100});
  send_event(&stage, 2, TNK_PHASE_WAITS,
             (tnk_event_t){.waits_for = TNK_WAITS_FOR_RETRY,
                           .attempt = 1,
                           .status = 503,
                           .code = TNK_ESERVER});
  send_event(&stage, 1, TNK_PHASE_DECODED, (tnk_event_t){.request_id = "r"});
  send_event(&stage, 2, TNK_PHASE_FAILED, (tnk_event_t){.code = TNK_ESERVER});
  /* Of operations that have ended or never began. */
  send_event(&stage, 1, TNK_PHASE_DELIVERED, (tnk_event_t){.status = 0});
  send_event(&stage, 9, TNK_PHASE_FAILED, (tnk_event_t){.status = 0});
  until_sent(&stage);
  CHECK_INT(stage.n_spans, 2);
  CHECK_INT(stage.otlp->core.operations.n, 0);

  good = span_in(mock_request(stage.mock, 0), 0);
  CHECK_STR(pb_text(good, 5), "forward_backward");
  CHECK_INT(pb_number(good, 6), TNK_OTLP_CLIENT);
  CHECK_MEM(pb_sub(good, 1, 0).at, 16, parent.trace_id, 16);
  CHECK_INT(pb_sub(good, 4, 0).at[7], parent.span_id & 0xff);
  CHECK_INT(pb_count(good, 15), 0);
  CHECK_STR(pb_text(pb_attribute(good, 9, "tnk.client"), 1), "model-1");
  CHECK_INT(pb_count(good, 11), 1);
  CHECK_STR(pb_text(pb_sub(good, 11, 0), 2), "sent");
  CHECK_INT(pb_number(pb_attribute(pb_sub(good, 11, 0), 3, "tnk.bytes"), 3),
            100);
  bad = span_in(mock_request(stage.mock, 0), 1);
  CHECK_INT(pb_count(bad, 4), 0);
  CHECK_INT(pb_number(pb_sub(bad, 15, 0), 3), 2);
  CHECK_STR(pb_text(pb_attribute(bad, 9, "error.type"), 1), "TNK_ESERVER");
  CHECK_INT(pb_number(pb_attribute(bad, 9, "tnk.retries"), 3), 1);
  CHECK_INT(pb_number(pb_attribute(bad, 9, "http.response.status_code"), 3),
            503);
  CHECK_STR(pb_text(pb_attribute(pb_sub(bad, 11, 0), 3, "tnk.waits_for"), 1),
            "retry");
  stage_close(&stage);
}

/* Many operations at once, and more phases than a span has room for. */
TEST(operations_are_found_again_and_their_events_are_bounded) {
  stage_t stage;
  pb_t span;

  stage_open(&stage, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  for (uint64_t i = 1; i <= 1000; i++)
    send_event(&stage, i, TNK_PHASE_QUEUED, (tnk_event_t){.status = 0});
  for (int i = 0; i < 100; i++)
    send_event(&stage, 500, TNK_PHASE_HELD, (tnk_event_t){.attempt = 1});
  CHECK_INT(stage.otlp->core.operations.n, 1000);
  send_event(&stage, 500, TNK_PHASE_DECODED, (tnk_event_t){.status = 0});
  for (uint64_t i = 1; i <= 999; i++)
    send_event(&stage, i, TNK_PHASE_DECODED, (tnk_event_t){.status = 0});
  CHECK_INT(stage.otlp->core.operations.n, 1);
  until_sent(&stage);
  CHECK_INT(stage.n_spans, 999);
  span = span_in(mock_request(stage.mock, 0), 0);
  CHECK_INT(pb_count(span, 11) + pb_number(span, 12), 100);
  CHECK_INT(pb_count(span, 11), 64);
  stage_close(&stage);
}
