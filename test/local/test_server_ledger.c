/* SPDX-License-Identifier: MIT */
#include "lib/base/text.h"
#include "links.h"
#include "tnk/error.h"

/* What was used, what was done, and what ran when. */

#define HOUR INT64_C(3600000)

/* START is 2027-01-15T08:00:00Z. */
#define FROM "starting_on=2027-01-15T08:00:00Z"

static void done(bench_t *b, const char *what, int seq, const char *more) {
  rig_free(rig_done(&b->rig, rig_start(&b->rig, what,
                                       "{\"model_id\":\"%s\",\"seq_id\":%d,"
                                       "\"path\":\"n%d\"%s}",
                                       b->model, seq, seq, more)));
}

static void pass(bench_t *b, int seq) {
  rig_free(rig_done(&b->rig, rig_pass(&b->rig, b->model, seq, TEXT)));
}

static exchange_t *usage(bench_t *b, const char *query) {
  char path[256];

  snprintf(path, sizeof(path), "billing/usage/events?%s", query);
  return rig_get(&b->rig, path);
}

/* The amount of the event of this type in this hour after START; -1: none. */
static double amount(const exchange_t *x, int hour, const char *type,
                     const char *what) {
  char bucket[48];
  size_t i;
  json_t *event;

  snprintf(bucket, sizeof(bucket), "2027-01-15T%02d:00:00.000Z", 8 + hour);
  json_array_foreach(json_object_get(x->json, "data"), i, event) {
    json_t *info = json_object_get(event, "event_info");

    if (strcmp(json_string_value(json_object_get(info, "type")), type) == 0 &&
        strcmp(json_string_value(json_object_get(event, "bucket_start")),
               bucket) == 0)
      return json_number_value(json_object_get(info, what));
  }
  return -1;
}

/* ---- Uses ---- */

TEST(N15_tokens_and_checkpoints_are_counted_by_the_hour) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  const double n = sizeof(TEXT) - 2;
  char sampler[96];
  const json_t *session;
  exchange_t *x;
  bench_t b;

  bench_open(&b, options);
  pass(&b, 1);
  pass(&b, 2);
  done(&b, "save_weights", 3, "");
  rig_sampler(&b.rig, b.session, sampler);
  rig_free(
      rig_done(&b.rig, rig_start(&b.rig, "asample",
                                 "{\"sampling_session_id\":\"%s\",\"seq_id\":0,"
                                 "\"num_samples\":2,\"prompt\":{\"chunks\":[{"
                                 "\"tokens\":[104,101,108]}]},"
                                 "\"sampling_params\":{\"max_tokens\":5,"
                                 "\"stop\":[]}}",
                                 sampler)));
  now = START + HOUR;
  pass(&b, 4);
  x = usage(&b, FROM "&ending_before=2027-01-15T10:00:00Z");
  CHECK_INT(x->status, 200);
  CHECK_NEAR(amount(x, 0, "training", "token_count"), 2 * n, 0);
  CHECK_NEAR(amount(x, 1, "training", "token_count"), n, 0);
  CHECK_NEAR(amount(x, 0, "sampling_prefill", "token_count"), 3, 0);
  CHECK_NEAR(amount(x, 0, "sampling_sample", "token_count"), 10, 0);
  CHECK_NEAR(amount(x, 0, "checkpoint", "count"), 1, 0);
  CHECK_NEAR(amount(x, 1, "checkpoint", "count"), -1, 0);
  session = json_object_get(json_object_get(x->json, "sessions"), b.session);
  CHECK_STR(json_string_value(json_object_get(
                json_object_get(session, "user_metadata"), "k")),
            "v");
  rig_free(x);
  /* The end is not part of it. */
  x = usage(&b, FROM "&ending_before=2027-01-15T09:00:00Z");
  CHECK_NEAR(amount(x, 1, "training", "token_count"), -1, 0);
  rig_free(x);
  rig_close(&b.rig);
}

TEST(N15_storage_is_counted_while_it_is_there) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char path[256];
  double whole;
  exchange_t *x;
  bench_t b;

  bench_open(&b, options);
  done(&b, "save_weights", 1, ",\"ttl_seconds\":5400");
  now = START + 4 * HOUR; /* it was there for an hour and a half */
  x = usage(&b, FROM "&ending_before=2027-01-15T12:00:00Z");
  whole = amount(x, 0, "storage", "gigabyte_hours");
  CHECK(whole > 0);
  CHECK_NEAR(amount(x, 1, "storage", "gigabyte_hours"), whole / 2, 1e-12);
  CHECK_NEAR(amount(x, 2, "storage", "gigabyte_hours"), -1, 0);
  rig_free(x);
  done(&b, "save_weights", 2, "");
  now = START + 5 * HOUR + HOUR / 4;
  snprintf(path, sizeof(path),
           "/api/v1/training_runs/%s/checkpoints/weights/n2", b.model);
  CHECK_INT(rig_status(rig_send(&b.rig, "DELETE", path, NULL, "", 0)), 204);
  now = START + 6 * HOUR;
  x = usage(&b, FROM "&ending_before=2027-01-15T14:00:00Z");
  CHECK_NEAR(amount(x, 4, "storage", "gigabyte_hours"), whole, whole / 50);
  CHECK_NEAR(amount(x, 5, "storage", "gigabyte_hours"), whole / 4, whole / 50);
  rig_free(x);
  rig_close(&b.rig);
}

TEST(N15_a_window_is_of_whole_hours_and_at_most_14_days) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  static const struct {
    const char *query;
    int status;
  } rows[] = {
      {FROM "&ending_before=2027-01-29T08:00:00Z", 200},
      {"starting_on=2027-01-15T08:00&ending_before=2027-01-15T09:00", 200},
      {"starting_on=2027-01-15&ending_before=2027-01-16", 200},
      {"starting_on=2027-01-15T09:00:00%2B01:00&"
       "ending_before=2027-01-15T09:00:00Z",
       200},
      {FROM "&ending_before=2027-01-29T09:00:00Z", 400},
      {FROM "&ending_before=2027-01-15T08:00:00Z", 400},
      {FROM "&ending_before=2027-01-15T08:30:00Z", 400},
      {FROM, 400},
      {"starting_on=2027-01-15T09:00:00Z&ending_before=2027-01-15T10:00:00Z",
       400},
      {"starting_on=x&ending_before=2027-01-15T10:00:00Z", 400},
  };
  bench_t b;

  bench_open(&b, options);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    exchange_t *x = usage(&b, rows[i].query);

    if (x->status != rows[i].status)
      test_fail(__FILE__, __LINE__, "%s: %s", rows[i].query, x->body);
    rig_free(x);
  }
  rig_close(&b.rig);
}

/* ---- Events ---- */

static void check_events(bench_t *b, const char *query, const char *want) {
  char path[160];
  char got[512];
  tnk__text_t text;
  size_t i;
  json_t *entry;
  exchange_t *x;

  snprintf(path, sizeof(path), "audit?%s", query);
  x = rig_get(&b->rig, path);
  CHECK_INT(x->status, 200);
  tnk__text_init(&text, got, sizeof(got));
  json_array_foreach(json_object_get(x->json, "entries"), i, entry) {
    tnk__text_printf(&text, "%s ",
                     json_string_value(json_object_get(entry, "event")));
  }
  CHECK_STR(got, want);
  rig_free(x);
}

TEST(N16_what_is_done_to_checkpoints_and_projects_is_written_down) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char path[256];
  bench_t b;

  bench_open(&b, options);
  done(&b, "save_weights_external", 1, "");
  snprintf(path, sizeof(path),
           "training_runs/%s/checkpoints/external_weights/n1/"
           "external_weights_urls",
           b.model);
  rig_free(rig_get(&b.rig, path));
  snprintf(path, sizeof(path),
           "/api/v1/training_runs/%s/checkpoints/external_weights/n1/publish",
           b.model);
  CHECK_INT(rig_status(rig_send(&b.rig, "POST", path, NULL, "", 0)), 200);
  CHECK_INT(rig_status(rig_send(&b.rig, "DELETE", path, NULL, "", 0)), 200);
  now = START + 16 * HOUR; /* the next day */
  snprintf(path, sizeof(path), "/api/v1/sessions/%s/project", b.session);
  CHECK_INT(rig_status(rig_send(&b.rig, "PUT", path, NULL,
                                "{\"project_id\":\"p\"}", 18)),
            200);
  snprintf(path, sizeof(path),
           "/api/v1/training_runs/%s/checkpoints/external_weights/n1", b.model);
  CHECK_INT(rig_status(rig_send(&b.rig, "DELETE", path, NULL, "", 0)), 204);
  check_events(&b, "event_type=all&day=2027-01-15",
               "checkpoint_create checkpoint_read checkpoint_publish "
               "checkpoint_unpublish ");
  check_events(&b, "", "project_move_session checkpoint_delete ");
  check_events(&b, "event_type=projects", "project_move_session ");
  check_events(&b, "event_type=teams", "");
  CHECK_INT(rig_status(rig_get(&b.rig, "audit?event_type=x")), 422);
  CHECK_INT(rig_status(rig_get(&b.rig, "audit?day=2027-01-15T08:00")), 422);
  rig_close(&b.rig);
}

TEST(what_was_used_and_done_outlives_the_server) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char dir[1024];
  char command[1100];
  exchange_t *x;
  uv_fs_t req;
  bench_t b;

  CHECK_INT(uv_fs_mkdtemp(NULL, &req, "/tmp/tnk-ledger-XXXXXX", NULL), 0);
  snprintf(dir, sizeof(dir), "%s", req.path);
  uv_fs_req_cleanup(&req);
  options.data = dir;
  bench_open(&b, options);
  pass(&b, 1);
  done(&b, "save_weights", 2, "");
  rig_close(&b.rig);
  bench_open(&b, options);
  x = usage(&b, FROM "&ending_before=2027-01-15T09:00:00Z");
  CHECK_NEAR(amount(x, 0, "training", "token_count"), sizeof(TEXT) - 2, 0);
  CHECK_NEAR(amount(x, 0, "checkpoint", "count"), 1, 0);
  /* Of the session nobody knows more. */
  CHECK_INT(json_object_size(json_object_get(x->json, "sessions")), 1);
  rig_free(x);
  check_events(&b, "", "checkpoint_create ");
  rig_close(&b.rig);
  snprintf(command, sizeof(command), "rm -r '%s'", dir);
  CHECK_INT(system(command), 0);
}

/* ---- Traces ---- */

/* Fields of protobuf, one after the other: the number, and a varint's value or
 * the bytes. 0 at the end. */
static uint64_t varint(const uint8_t **at) {
  uint64_t value = 0;
  unsigned shift = 0;

  do
    value |= (uint64_t)(**at & 127) << shift, shift += 7;
  while (*(*at)++ & 128);
  return value;
}

static unsigned field(const uint8_t **at, const uint8_t *end, uint64_t *value,
                      const uint8_t **bytes) {
  uint64_t tag;

  if (*at >= end)
    return 0;
  tag = varint(at);
  CHECK(tag % 8 == 0 || tag % 8 == 2);
  *value = varint(at);
  *bytes = *at;
  if (tag % 8 == 2)
    *at += *value;
  CHECK(*at <= end);
  return (unsigned)(tag / 8);
}

/* What one packet says, as text: "+forward_backward@0" ... */
static void read_packet(const uint8_t *at, const uint8_t *end,
                        tnk__text_t *text) {
  const uint8_t *bytes;
  uint64_t value;
  uint64_t ns = 0;
  unsigned number;

  while ((number = field(&at, end, &value, &bytes)) != 0) {
    const uint8_t *inner = bytes;
    const uint8_t *inner_end = bytes + value;
    const uint8_t *name;
    uint64_t type = 0;
    uint64_t n;

    if (number == 8)
      ns = value;
    if (number != 11)
      continue;
    while ((number = field(&inner, inner_end, &n, &name)) != 0) {
      if (number == 9)
        type = n;
      else if (number == 23)
        tnk__text_printf(text, "%.*s", (int)n, (const char *)name);
    }
    tnk__text_printf(text, type == 1 ? "@%d " : "/%d ",
                     (int)((int64_t)(ns / 1000000) - START));
  }
}

TEST(N13_a_trace_tells_what_ran_when) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  const uint8_t *at;
  const uint8_t *end;
  const uint8_t *bytes;
  char path[160];
  char target[1024];
  char got[256];
  tnk__text_t text;
  uint64_t value;
  exchange_t *x;
  bench_t b;
  size_t n;

  options.faults = local_faults_new(test_allocator());
  CHECK(options.faults != NULL);
  bench_open(&b, options);
  now = START + 5;
  pass(&b, 1);
  CHECK_INT(local_faults_set(options.faults, "pending@1", NULL, 0), TNK_OK);
  snprintf(path, sizeof(path), "sessions/%s/trace_export", b.session);
  for (int i = 0; i < 2; i++) {
    x = rig_get(&b.rig, path);
    CHECK_INT(x->status, 200);
    CHECK_STR(rig_text(x, "status"), i == 0 ? "pending" : "ready");
    if (i == 1)
      snprintf(target, sizeof(target), "%s", rig_text(x, "url") + 8);
    rig_free(x);
  }
  x = fetch(&b, "GET", target, "");
  CHECK_INT(x->status, 200);
  at = (const uint8_t *)body_of(x, &n);
  end = at + n;
  tnk__text_init(&text, got, sizeof(got));
  while (field(&at, end, &value, &bytes) == 1)
    read_packet(bytes, bytes + value, &text);
  CHECK_STR(got, "create_model@0 /0 forward_backward@5 /5 ");
  rig_free(x);
  CHECK_INT(rig_status(rig_get(&b.rig, "sessions/none/trace_export")), 404);
  rig_close(&b.rig);
  local_faults_free(options.faults);
}
