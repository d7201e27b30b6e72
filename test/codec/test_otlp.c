/* SPDX-License-Identifier: MIT */
/* OTLP: what is sent, by a reader of our own; the variables; the responses. */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "lib/base/alloc.h"
#include "lib/otlp/encode.h"
#include "lib/otlp/gzip.h"
#include "lib/otlp/response.h"
#include "lib/otlp/settings.h"
#include "support/pb_read.h"
#include "tnk/error.h"

static pb_t whole(const tnk__buf_t *buf) {
  CHECK_INT(buf->err, TNK_OK);
  return (pb_t){buf->data, buf->len};
}

/* ---- Encoding ---- */

#define OF_SPAN                                                                \
  {                                                                            \
    .trace_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},       \
    .span_id = 0x0102030405060708, .parent_id = 0xff00000000000001,            \
    .is_remote = 1, .is_sampled = 1                                            \
  }

static void put_one(tnk__buf_t *out, const tnk_otlp_span_t *span,
                    const tnk_otlp_end_t *end, const tnk__buf_t *events) {
  const tnk__otlp_record_t record = {.span = span,
                                     .end = end,
                                     .start_unix_ns = 1700000000000000001,
                                     .end_unix_ns = 1700000000500000002,
                                     .events = events,
                                     .n_dropped_events = 3};

  tnk__otlp_put_span(out, &record);
}

static void check_request(pb_t all, const tnk_otlp_span_t *span) {
  pb_t scope, value, one, event;

  CHECK_INT(pb_count(all, 1), 1);
  all = pb_sub(all, 1, 0);
  value = pb_attribute(pb_sub(all, 1, 0), 1, "service.name");
  CHECK_STR(pb_text(value, 1), "tnk-gateway");
  scope = pb_sub(all, 2, 0);
  CHECK_STR(pb_text(pb_sub(scope, 1, 0), 1), "tnk");
  CHECK_STR(pb_text(pb_sub(scope, 1, 0), 2), TNK_VERSION_STRING);
  CHECK_INT(pb_count(scope, 2), 2);
  one = pb_sub(scope, 2, 1);
  CHECK_MEM(pb_sub(one, 1, 0).at, pb_sub(one, 1, 0).n, span->trace_id, 16);
  CHECK_MEM(pb_sub(one, 2, 0).at, 8, "\1\2\3\4\5\6\7\10", 8);
  CHECK_MEM(pb_sub(one, 4, 0).at, 8, "\xff\0\0\0\0\0\0\1", 8);
  CHECK_STR(pb_text(one, 5), "chat m");
  CHECK_INT(pb_number(one, 6), 2);
  CHECK_INT(pb_number(one, 7), 1700000000000000001);
  CHECK_INT(pb_number(one, 8), 1700000000500000002);
  CHECK_INT(pb_count(one, 9), 5);
  CHECK_STR(pb_text(pb_attribute(one, 9, "text"), 1), "a?z");
  CHECK_INT((int64_t)pb_number(pb_attribute(one, 9, "integer"), 3), -5);
  CHECK(pb_double(pb_attribute(one, 9, "number"), 4) == 0.25);
  CHECK_INT(pb_number(pb_attribute(one, 9, "bool"), 2), 1);
  value = pb_sub(pb_attribute(one, 9, "texts"), 5, 0);
  CHECK_INT(pb_count(value, 1), 2);
  CHECK_STR(pb_text(pb_sub(value, 1, 1), 1), "length");
  event = pb_sub(one, 11, 0);
  CHECK_INT(pb_number(event, 1), 77);
  CHECK_STR(pb_text(event, 2), "sent");
  CHECK_STR(pb_text(pb_attribute(event, 3, "text"), 1), "a?z");
  CHECK_INT(pb_number(one, 12), 3);
  CHECK_INT(pb_number(pb_sub(one, 15, 0), 3), 2);
  CHECK_INT(pb_field(one, 16, 0).type, 5);
  CHECK_INT(pb_number(one, 16), 0x301);
}

TEST(a_request_of_spans_has_each_field) {
  static const char *const reasons[] = {"stop", "length"};
  const tnk_otlp_attribute_t resource[] = {
      {.key = "service.name", .text = "tnk-gateway"}};
  const tnk_otlp_attribute_t attributes[] = {
      {.key = "text", .text = "a\xffz"},
      {.key = "none", .text = NULL},
      {.key = NULL, .text = "none"},
      {.key = "integer", .type = TNK_OTLP_INTEGER, .integer = -5},
      {.key = "number", .type = TNK_OTLP_NUMBER, .number = 0.25},
      {.key = "bool", .type = TNK_OTLP_BOOL, .integer = 7},
      {.key = "texts", .type = TNK_OTLP_TEXTS, .texts = reasons, .n_texts = 2}};
  const tnk_otlp_span_t span = OF_SPAN;
  const tnk_otlp_end_t end = {.name = "chat m",
                              .kind = TNK_OTLP_SERVER,
                              .is_error = 1,
                              .attributes = attributes,
                              .n_attributes = 7};
  tnk__buf_t head, item, out, events;

  tnk__buf_init(&head, test_allocator(), SIZE_MAX);
  tnk__buf_init(&item, test_allocator(), SIZE_MAX);
  tnk__buf_init(&events, test_allocator(), SIZE_MAX);
  tnk__buf_init(&out, test_allocator(), SIZE_MAX);
  tnk__otlp_put_resource(&head, resource, 1);
  tnk__otlp_put_event(&events, "sent", 77, attributes, 1);
  put_one(&item, &span, &end, &events);
  tnk__otlp_put_head(&out, &head, 2 * item.len);
  tnk__buf_append(&out, item.data, item.len);
  tnk__buf_append(&out, item.data, item.len);

  check_request(whole(&out), &span);
  tnk__buf_deinit(&head);
  tnk__buf_deinit(&item);
  tnk__buf_deinit(&events);
  tnk__buf_deinit(&out);
}

TEST(a_root_span_without_error_has_no_parent_and_no_status) {
  tnk_otlp_span_t span = OF_SPAN;
  const tnk_otlp_end_t end = {.name = "a", .kind = TNK_OTLP_CLIENT};
  tnk__buf_t out;
  pb_t one;

  span.parent_id = 0;
  span.is_remote = 0;
  tnk__buf_init(&out, test_allocator(), SIZE_MAX);
  put_one(&out, &span, &end, NULL);
  one = pb_sub(whole(&out), 2, 0);
  CHECK_INT(pb_count(one, 4), 0);
  CHECK_INT(pb_count(one, 15), 0);
  CHECK_INT(pb_number(one, 16), 0x101);
  tnk__buf_deinit(&out);
}

/* Each length of the length itself, which the message is moved by. */
TEST(a_name_of_any_length_is_whole) {
  static const size_t sizes[] = {0, 1, 126, 127, 128, 129, 400};
  tnk_otlp_span_t span = OF_SPAN;

  for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
    char name[512];
    const tnk_otlp_end_t end = {.name = name, .kind = TNK_OTLP_CLIENT};
    tnk__buf_t out;

    memset(name, 'x', sizes[i]);
    name[sizes[i]] = '\0';
    tnk__buf_init(&out, test_allocator(), SIZE_MAX);
    put_one(&out, &span, &end, NULL);
    CHECK_STR(pb_text(pb_sub(whole(&out), 2, 0), 5), name);
    tnk__buf_deinit(&out);
  }
}

TEST(metrics_have_their_points) {
  static const double bounds[] = {0.5, 1};
  static const uint64_t counts[] = {3, 0, 4};
  const tnk__otlp_period_t period = {11, 22};
  const tnk_otlp_attribute_t attribute = {.key = "k", .text = "v"};
  const tnk_otlp_metric_t counter = {
      .name = "c", .unit = "{span}", .description = "d", .is_counter = 1};
  const tnk_otlp_metric_t gauge = {.name = "g"};
  const tnk_otlp_number_t numbers[] = {{&attribute, 1, 7}, {NULL, 0, -8}};
  const tnk_otlp_histogram_t histogram = {&attribute, 1,      bounds,
                                          2,          counts, 9.5};
  tnk__buf_t out;
  pb_t metric, data, point;

  tnk__buf_init(&out, test_allocator(), SIZE_MAX);
  tnk__otlp_put_numbers(&out, &period, &counter, numbers, 2);
  tnk__otlp_put_numbers(&out, &period, &gauge, numbers, 1);
  tnk__otlp_put_histograms(&out, &period, &counter, &histogram, 1);
  CHECK_INT(pb_count(whole(&out), 2), 3);

  metric = pb_sub(whole(&out), 2, 0);
  CHECK_STR(pb_text(metric, 1), "c");
  CHECK_STR(pb_text(metric, 2), "d");
  CHECK_STR(pb_text(metric, 3), "{span}");
  data = pb_sub(metric, 7, 0);
  CHECK_INT(pb_number(data, 2), 2);
  CHECK_INT(pb_number(data, 3), 1);
  CHECK_INT(pb_count(data, 1), 2);
  point = pb_sub(data, 1, 1);
  CHECK_INT((int64_t)pb_number(point, 6), -8);
  point = pb_sub(data, 1, 0);
  CHECK_INT(pb_number(point, 2), 11);
  CHECK_INT(pb_number(point, 3), 22);
  CHECK_STR(pb_text(pb_attribute(point, 7, "k"), 1), "v");

  metric = pb_sub(whole(&out), 2, 1);
  CHECK_INT(pb_count(metric, 2) + pb_count(metric, 3), 0);
  CHECK_INT(pb_count(pb_sub(metric, 5, 0), 2), 0);

  data = pb_sub(pb_sub(whole(&out), 2, 2), 9, 0);
  CHECK_INT(pb_number(data, 2), 2);
  point = pb_sub(data, 1, 0);
  CHECK_INT(pb_number(point, 4), 7);
  CHECK(pb_double(point, 5) == 9.5);
  CHECK_INT(pb_sub(point, 6, 0).n, 24);
  CHECK_INT(pb_sub(point, 6, 0).at[16], 4);
  CHECK_INT(pb_sub(point, 7, 0).n, 16);
  CHECK_STR(pb_text(pb_attribute(point, 9, "k"), 1), "v");
  tnk__buf_deinit(&out);
}

TEST(a_span_that_is_too_large_is_an_error) {
  tnk_otlp_span_t span = OF_SPAN;
  const tnk_otlp_end_t end = {.name = "a", .kind = TNK_OTLP_CLIENT};
  tnk__buf_t out;

  for (size_t max = 1; max < 100; max++) {
    tnk__buf_init(&out, test_allocator(), max);
    put_one(&out, &span, &end, NULL);
    CHECK(out.err == TNK_ETOOBIG || out.len <= max);
    tnk__buf_deinit(&out);
  }
}

/* ---- gzip ---- */

TEST(what_is_compressed_is_the_same_again) {
  static const size_t sizes[] = {0, 1, 1000, 300000};

  for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
    uint8_t *original = malloc(sizes[i] + 1), *again = malloc(sizes[i] + 1);
    uint64_t random = 1;
    tnk__buf_t buf;
    z_stream stream = {0};

    CHECK(original != NULL && again != NULL);
    for (size_t k = 0; k < sizes[i]; k++)
      original[k] = (uint8_t)(test_random(&random) % 7);
    tnk__buf_init(&buf, test_allocator(), SIZE_MAX);
    tnk__buf_append(&buf, original, sizes[i]);
    CHECK_INT(tnk__otlp_gzip(&buf), TNK_OK);
    CHECK_INT(buf.data[0], 0x1f);
    CHECK_INT(buf.data[1], 0x8b);
    stream.next_in = buf.data;
    stream.avail_in = (uInt)buf.len;
    stream.next_out = again;
    stream.avail_out = (uInt)sizes[i] + 1;
    CHECK_INT(inflateInit2(&stream, 16 + 15), Z_OK);
    CHECK_INT(inflate(&stream, Z_FINISH), Z_STREAM_END);
    CHECK_MEM(again, stream.total_out, original, sizes[i]);
    CHECK_INT(inflateEnd(&stream), Z_OK);
    tnk__buf_deinit(&buf);
    free(original);
    free(again);
  }
}

TEST(without_memory_nothing_is_compressed) {
  for (long i = 0; i < 20; i++) {
    tnk__buf_t buf;
    int err;

    tnk__buf_init(&buf, test_allocator(), SIZE_MAX);
    tnk__buf_text(&buf, "plain");
    test_alloc_fail_at(i);
    err = tnk__otlp_gzip(&buf);
    if (!test_alloc_did_fail()) {
      CHECK_INT(err, TNK_OK);
      CHECK(i > 2);
      test_alloc_fail_at(-1);
      tnk__buf_deinit(&buf);
      return;
    }
    test_alloc_fail_at(-1);
    CHECK_INT(err, TNK_ENOMEM);
    CHECK_MEM(buf.data, buf.len, "plain", 5);
    tnk__buf_deinit(&buf);
  }
  test_fail(__FILE__, __LINE__, "it never had enough memory");
}

/* ---- Responses ---- */

TEST(responses) {
  static const struct {
    const char *body; /* in hexadecimal */
    int err;
    int64_t n_rejected;
    const char *message;
  } rows[] = {{"", TNK_OK, 0, ""},
              {"0a00", TNK_OK, 0, ""},
              {"0a020805", TNK_OK, 5, ""},
              {"0a0608051202"
               "6869",
               TNK_OK, 5, "hi"},
              {"0a04120268"
               "69",
               TNK_OK, 0, "hi"},
              /* fields of other numbers and types */
              {"1001"
               "0a0b"
               "1802"
               "210000000000000000",
               TNK_OK, 0, ""},
              {"0a0b08ffffffffffffffffff01", TNK_OK, 0, ""},
              {"0a", TNK_EPROTO, 0, ""},
              {"0a04120268", TNK_EPROTO, 0, ""},
              {"0a05", TNK_EPROTO, 0, ""},
              {"0a0208", TNK_EPROTO, 0, ""},
              {"0a0b08ffffffffffffffffff02", TNK_EPROTO, 0, ""},
              {"0b0c", TNK_EPROTO, 0, ""},
              {"0001", TNK_EPROTO, 0, ""},
              {"25000000", TNK_EPROTO, 0, ""},
              {"0a0412ffffff7f", TNK_EPROTO, 0, ""}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    uint8_t body[64];
    const size_t n = test_unhex(body, sizeof(body), rows[i].body);
    tnk__otlp_response_t response;

    test_context(rows[i].body);
    CHECK_INT(tnk__otlp_response_read(&response, body, n), rows[i].err);
    if (rows[i].err != TNK_OK)
      continue;
    CHECK_INT(response.n_rejected, rows[i].n_rejected);
    CHECK_MEM(response.message, response.n_message, rows[i].message,
              strlen(rows[i].message));
  }
}

/* ---- The variables ---- */

static const char *const *variables; /* pairs of name and value, then NULL */

static const char *env(const char *name) {
  for (size_t i = 0; variables[i] != NULL; i += 2)
    if (strcmp(variables[i], name) == 0)
      return variables[i + 1];
  return NULL;
}

#define E "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"

/* Every variable that has a wrong value, and what is said. */
static const struct {
  const char *variables[7];
  const char *why;
} wrong[] = {
    {{"OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318"},
     "OTEL_EXPORTER_OTLP_ENDPOINT is not an http:// or https:// URL without "
     "a user, such as http://127.0.0.1:4318"},
    {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://me:secret@h/"},
     "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an http:// or https:// URL "
     "without a user, such as http://127.0.0.1:4318"},
    {{E, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
     "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not \"grpc\""},
    {{E, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json"},
     "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL must be http/protobuf, not "
     "\"http/json\""},
    {{E, "OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"},
     "OTEL_EXPORTER_OTLP_COMPRESSION must be gzip or none, not \"zstd\""},
    {{E, "OTEL_EXPORTER_OTLP_HEADERS", "secret"},
     "OTEL_EXPORTER_OTLP_HEADERS is not a list such as "
     "name=value,name=value"},
    {{E, "OTEL_EXPORTER_OTLP_HEADERS", "a=1,b=secret%0asecret"},
     "header 2 of OTEL_EXPORTER_OTLP_HEADERS cannot be sent"},
    {{E, "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a secret=1"},
     "header 1 of OTEL_EXPORTER_OTLP_TRACES_HEADERS cannot be sent"},
    {{E, "OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
     "OTEL_EXPORTER_OTLP_TIMEOUT is not a number from 1 to 86400000"},
    {{E, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"},
     "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE must be cumulative, "
     "not \"delta\""},
    {{E, "OTEL_TRACES_EXPORTER", "zipkin"},
     "OTEL_TRACES_EXPORTER must be otlp or none, not \"zipkin\""},
    {{E, "OTEL_TRACES_SAMPLER", "jaeger_remote"},
     "OTEL_TRACES_SAMPLER must be always_on, always_off, traceidratio, or "
     "one of them after parentbased_, not \"jaeger_remote\""},
    {{E, "OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG",
      "1.5"},
     "OTEL_TRACES_SAMPLER_ARG is not a decimal number from 0 to 1"},
    {{E, "OTEL_RESOURCE_ATTRIBUTES", "a=1,b"},
     "OTEL_RESOURCE_ATTRIBUTES is not a list such as name=value,name=value"},
    {{E, "OTEL_BSP_MAX_QUEUE_SIZE", "0"},
     "OTEL_BSP_MAX_QUEUE_SIZE is not a number from 1 to 1048576"},
    {{E, "OTEL_METRIC_EXPORT_INTERVAL", "-1"},
     "OTEL_METRIC_EXPORT_INTERVAL is not a number from 1 to 86400000"},
    {{E, "OTEL_EXPORTER_OTLP_CLIENT_KEY", "/k"},
     "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and "
     "OTEL_EXPORTER_OTLP_CLIENT_KEY need each other"}};

TEST(wrong_variables_are_named) {
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
    tnk__otlp_settings_t settings;
    char why[256] = "";

    test_context(wrong[i].why);
    variables = wrong[i].variables;
    CHECK_INT(tnk__otlp_settings_read(&settings, test_allocator(), env, why,
                                      sizeof(why)),
              TNK_EINVAL);
    CHECK_STR(why, wrong[i].why);
    tnk__otlp_settings_deinit(&settings);
  }
}

/* Which targets are on, and where they are. */
TEST(targets) {
  static const struct {
    const char *variables[7];
    const char *traces, *metrics; /* NULL: off */
  } rows[] = {
      {{"OTEL_SERVICE_NAME", "a"}, NULL, NULL},
      {{"OTEL_EXPORTER_OTLP_ENDPOINT", ""}, NULL, NULL},
      {{E},
       "http://127.0.0.1:4318/v1/traces",
       "http://127.0.0.1:4318/v1/metrics"},
      {{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://h/otlp/"},
       "https://h/otlp/v1/traces",
       "https://h/otlp/v1/metrics"},
      {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h:1/x?y=1"},
       "http://h:1/x?y=1",
       NULL},
      {{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://h:1"},
       NULL,
       "http://h:1/"},
      {{E, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h:1/x"},
       "http://h:1/x",
       "http://127.0.0.1:4318/v1/metrics"},
      {{E, "OTEL_SDK_DISABLED", "True"}, NULL, NULL},
      {{E, "OTEL_SDK_DISABLED", "no"},
       "http://127.0.0.1:4318/v1/traces",
       "http://127.0.0.1:4318/v1/metrics"},
      {{E, "OTEL_TRACES_EXPORTER", "none"},
       NULL,
       "http://127.0.0.1:4318/v1/metrics"},
      {{E, "OTEL_METRICS_EXPORTER", "none", "OTEL_TRACES_EXPORTER", "otlp"},
       "http://127.0.0.1:4318/v1/traces",
       NULL},
      /* Nothing is read, so nothing is wrong. */
      {{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, NULL, NULL}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    const char *const urls[] = {rows[i].traces, rows[i].metrics};
    tnk__otlp_settings_t settings;
    char why[256] = "", context[16];

    (void)snprintf(context, sizeof(context), "row %zu", i);
    test_context(context);
    variables = rows[i].variables;
    CHECK_INT(tnk__otlp_settings_read(&settings, test_allocator(), env, why,
                                      sizeof(why)),
              TNK_OK);
    CHECK_STR(why, "");
    for (int k = 0; k < TNK__OTLP_SIGNALS; k++) {
      CHECK_INT(settings.targets[k].is_on, urls[k] != NULL);
      if (urls[k] != NULL)
        CHECK_STR(settings.targets[k].at.text, urls[k]);
    }
    CHECK_INT(tnk__otlp_settings_are_on(&settings),
              urls[0] != NULL || urls[1] != NULL);
    tnk__otlp_settings_deinit(&settings);
  }
}

TEST(the_variable_of_a_kind_comes_first) {
  static const char *const all[] = {E,
                                    "OTEL_EXPORTER_OTLP_HEADERS",
                                    "x-key=general, b = c%20d ",
                                    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                                    "x-key=own=1",
                                    "OTEL_EXPORTER_OTLP_TIMEOUT",
                                    "7",
                                    "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
                                    "8",
                                    "OTEL_EXPORTER_OTLP_COMPRESSION",
                                    "gzip",
                                    "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
                                    "none",
                                    "OTEL_EXPORTER_OTLP_PROTOCOL",
                                    "http/protobuf",
                                    "OTEL_SERVICE_NAME",
                                    "me",
                                    "OTEL_RESOURCE_ATTRIBUTES",
                                    "a=1,b=x%2Cy,c=100%,",
                                    "OTEL_TRACES_SAMPLER",
                                    "traceidratio",
                                    "OTEL_TRACES_SAMPLER_ARG",
                                    "0.25",
                                    "OTEL_BSP_MAX_QUEUE_SIZE",
                                    "100",
                                    NULL};
  tnk__otlp_settings_t s;
  const tnk__otlp_target_t *traces = &s.targets[TNK__OTLP_TRACES];
  const tnk__otlp_target_t *metrics = &s.targets[TNK__OTLP_METRICS];

  variables = all;
  CHECK_INT(tnk__otlp_settings_read(&s, test_allocator(), env, NULL, 0),
            TNK_OK);
  CHECK_INT(traces->n_headers, 1);
  CHECK_STR(traces->headers[0].value, "own=1");
  CHECK_INT(metrics->n_headers, 2);
  CHECK_STR(metrics->headers[0].value, "general");
  CHECK_STR(metrics->headers[1].name, "b");
  CHECK_STR(metrics->headers[1].value, "c d");
  CHECK(tnk__otlp_target_leaks(metrics, "it says general too"));
  CHECK(!tnk__otlp_target_leaks(metrics, "it says nothing"));
  CHECK_INT(traces->timeout_ms, 7);
  CHECK_INT(metrics->timeout_ms, 8);
  CHECK_INT(traces->is_gzip, 0);
  CHECK_INT(metrics->is_gzip, 1);
  CHECK_STR(s.service_name, "me");
  CHECK_INT(s.n_resource, 3);
  CHECK_STR(s.resource[1].text, "x,y");
  CHECK_STR(s.resource[2].text, "100%");
  CHECK_INT(s.sampler, TNK__OTLP_RATIO);
  CHECK_INT(s.follows_parent, 0);
  CHECK(s.ratio == 0.25);
  CHECK_INT(s.max_queue, 100);
  CHECK_INT(s.max_batch, 100);
  CHECK_INT(s.batch_delay_ms, 5000);
  tnk__otlp_settings_deinit(&s);
}

TEST(without_memory_the_variables_are_an_error) {
  static const char *const all[] = {
      E,     "OTEL_EXPORTER_OTLP_HEADERS", "a=b", "OTEL_RESOURCE_ATTRIBUTES",
      "a=1", "OTEL_SERVICE_NAME",          "me",  NULL};

  variables = all;
  for (long i = 0;; i++) {
    tnk__otlp_settings_t settings;
    int err;

    test_alloc_fail_at(i);
    err = tnk__otlp_settings_read(&settings, test_allocator(), env, NULL, 0);
    tnk__otlp_settings_deinit(&settings);
    if (!test_alloc_did_fail()) {
      CHECK_INT(err, TNK_OK);
      CHECK(i > 4);
      break;
    }
    CHECK_INT(err, TNK_ENOMEM);
  }
  test_alloc_fail_at(-1);
}
