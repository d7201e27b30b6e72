/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/answer.h"

#include <stdio.h>
#include <stdlib.h>

#include "bodies.h"
#include "lib/base/limits.h"

static tnk__arena_t failure_arena;

static tnk__failure_t failure(const void *body, size_t n) {
  tnk__failure_t out;

  tnk__arena_init(&failure_arena, test_allocator(), BODIES_ARENA);
  CHECK_INT(tnk__failure_read(&out, &failure_arena, body, n), TNK_OK);
  return out;
}

/* Some servers repeat the body that they refuse. */
TEST(T3_binary_data_is_left_out_of_errors) {
  static const struct {
    const char *body;
    const char *message;
  } rows[] = {
      {"{\"detail\":\"bad body: \\n\\u0007model-0\"}", "bad body:  ..."},
      {"{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"no JSON: "
       "b'\\\\n\\\\x07model'\"}]}",
       "body: no JSON: b'\\n..."},
      {"{\"error\":\"caf\xef\xbf\xbd\"}", "caf..."},
      {"no JSON: '\\x0a\\x07'", "no JSON: '..."},
      {"a path like C:\\xylo", "a path like C:\\xylo"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const tnk__failure_t out = failure(rows[i].body, strlen(rows[i].body));

    CHECK_STR(out.message, rows[i].message);
    tnk__arena_deinit(&failure_arena);
  }
}

TEST(T3_errors_of_all_servers_are_readable) {
  static const struct {
    const char *body;
    const char *message;
    tnk_category_t category;
    int retry_after_ms;
  } rows[] = {
      {"{\"detail\":\"Not Found\"}", "Not Found", TNK_CATEGORY_UNKNOWN, 0},
      {"{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"x\",0],"
       "\"msg\":\"Field required\",\"input\":{\"error\":\"no\"}},"
       "{\"loc\":[],\"msg\":\"bad\"},{\"y\":1},\"text\"]}",
       "body.x.0: Field required; bad; text", TNK_CATEGORY_UNKNOWN, 0},
      {"{\"error\":\"no tokens\",\"category\":\"user\"}", "no tokens",
       TNK_CATEGORY_USER, 0},
      {"{\"error\":{\"message\":\"m\",\"category\":\"server\"}}", "m",
       TNK_CATEGORY_SERVER, 0},
      {"{\"detail\":{\"message\":\"m\",\"category\":\"user\"}}", "m",
       TNK_CATEGORY_USER, 0},
      {"{\"error\":\"e\",\"category\":\"strange\",\"retry_after\":2}", "e",
       TNK_CATEGORY_UNKNOWN, 2000},
      {"{\"error\":\"e\",\"category\":7,\"retry_after_ms\":250.5}", "e",
       TNK_CATEGORY_UNKNOWN, 250},
      {"{\"error\":\"e\",\"retry_after_ms\":-1}", "e", 0, 0},
      {"{\"error\":\"e\",\"retry_after_ms\":1e300}", "e", 0, 0},
      {"{\"type\":\"RequestFailedResponse\",\"error_message\":\"gone\"}",
       "gone", 0, 0},
      {"{\"detail\":null,\"error\":\"\",\"message\":\"m\"}", "m", 0, 0},
      {"\"a text\"", "a text", 0, 0},
      {"Internal Server Error\n", "Internal Server Error", 0, 0},
      {" \t\r\n x\ny\t ", "x y", 0, 0},
      {"{\"detail\":\"a\\r\\nb\\u0001\\u007f\"}", "a  b...", 0, 0},
      {"{\"reason\":1}", "{\"reason\":1}", 0, 0},
      {"{\"detail\":\"cut", "{\"detail\":\"cut", 0, 0},
      {"{\"detail\":\"\xc3\xa4\"}", "\xc3\xa4", 0, 0},
      {"", NULL, 0, 0},
      {" \n", NULL, 0, 0},
      {"{}", NULL, 0, 0},
      {"<html><body>502</body></html>", NULL, 0, 0},
      {"\n <!DOCTYPE html>", NULL, 0, 0},
      {"\x08\x96\x01", NULL, 0, 0},
      {"a\xff", NULL, 0, 0},
      {"\x1f\x8b\x08", NULL, 0, 0},
  };
  size_t i;

  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__failure_t out = failure(rows[i].body, strlen(rows[i].body));
    CHECK_STR(out.message, rows[i].message);
    CHECK_INT(out.category, rows[i].category);
    CHECK_INT(out.retry_after_ms, rows[i].retry_after_ms);
    tnk__arena_deinit(&failure_arena);
  }
  CHECK(failure("a\0b", 3).message == NULL);
  tnk__arena_deinit(&failure_arena);
  CHECK(failure(NULL, 0).message == NULL);
  tnk__arena_deinit(&failure_arena);
}

TEST(T1_message_is_bounded_and_not_cut_inside_a_character) {
  static const char letter[] = "\xe2\x82\xac";
  const size_t size = (size_t)2 << 20;
  char *body = malloc(size);
  tnk__failure_t out;
  size_t i, n;

  for (i = 0; i < size; i++)
    body[i] = letter[i % 3];
  body[0] = body[1] = body[2] = 'x';
  out = failure(body, size - size % 3);
  n = strlen(out.message);
  CHECK(n <= TNK__MAX_ERROR_TEXT && n > TNK__MAX_ERROR_TEXT - 3);
  CHECK_INT((n - 3) % 3, 0);
  tnk__arena_deinit(&failure_arena);
  memcpy(body, "{\"detail\":[\"", 12);
  memcpy(body + 60000, "\"]}", 3);
  memset(body + 12, 'y', 60000 - 12);
  out = failure(body, 60003);
  CHECK_INT(strlen(out.message), TNK__MAX_ERROR_TEXT);
  CHECK_INT(out.message[0], 'y');
  tnk__arena_deinit(&failure_arena);
  free(body);
}

TEST(a_long_list_of_problems_is_cut) {
  char body[1024] = "[\"0\"";
  tnk__failure_t out;
  int i;

  for (i = 0; i < 100; i++)
    memcpy(body + strlen(body), ",\"x\"", 5);
  memcpy(body + strlen(body), "]", 2);
  out = failure(body, strlen(body));
  CHECK_STR(out.message, "0; x; x; x; x; x; x; x");
  tnk__arena_deinit(&failure_arena);
}

TEST(failure_reports_lack_of_memory) {
  tnk__failure_t out;

  CHECK_READS("{\"detail\":\"Not Found\"}",
              tnk__failure_read(&out, &arena, body, n),
              CHECK_STR(out.message, "Not Found"));
}

TEST(P4_1_accepted_request) {
  tnk__accepted_t out;

#define CALL tnk__accepted_read(&out, &arena, body, n)
  CHECK_READS("{\"request_id\":\"r-1\",\"model_id\":\"m\","
              "\"sample_sequence_ids\":[\"a\",\"b\"],\"future_id\":4}",
              CALL, {
                CHECK_STR(out.request_id, "r-1");
                CHECK_STR(out.model_id, "m");
                CHECK_INT(out.n_sequence_ids, 2);
                CHECK_STR(out.sequence_ids[1], "b");
              });
  CHECK_READS("{\"request_id\":\"17\",\"model_id\":null,"
              "\"sample_sequence_ids\":null}",
              CALL, {
                CHECK_STR(out.request_id, "17");
                CHECK(out.model_id == NULL);
                CHECK_INT(out.n_sequence_ids, 0);
              });
  CHECK_READS("{\"request_id\":\"r\",\"model_id\":\"m\","
              "\"sample_sequence_ids\":[\"a\",\"b\"]}",
              CALL, {
                CHECK_STR(out.request_id, "r");
                CHECK_STR(out.model_id, "m");
                CHECK_INT(out.n_sequence_ids, 2);
                CHECK_STR(out.sequence_ids[0], "a");
                CHECK_STR(out.sequence_ids[1], "b");
              });
  CHECK_READS("{\"request_id\":17}", CALL, CHECK_STR(out.request_id, "17"));
  CHECK_REFUSES("{\"request_id\":\"\"}", CALL);
  CHECK_REFUSES("{\"request_id\":1.5}", CALL);
  CHECK_REFUSES("{\"request_id\":\"r\",\"model_id\":{}}", CALL);
  CHECK_REFUSES("{\"request_id\":\"r\",\"sample_sequence_ids\":7}", CALL);
  CHECK_REFUSES("{\"request_id\":\"r\",\"sample_sequence_ids\":[1]}", CALL);
#undef CALL
}

static void check_same_id(const char *a, const char *b) {
  CHECK_INT(a == NULL, b == NULL);
  if (a != NULL && b != NULL)
    CHECK_STR(a, b);
}

/* Plain answers are read in a way of their own, which a member that nobody
 * knows switches off: both must agree about everything, wrong answers too. */
TEST(plain_answers_mean_what_any_answer_means) {
  static const char *const bodies[] = {
      "{\"request_id\":\"r\"}",
      " { \"request_id\" :\t\"r\" , \"model_id\" : null }\r\n",
      "{\"model_id\":\"\",\"request_id\":\"r\"}",
      "{\"request_id\":\"r\",\"sample_sequence_ids\":[]}",
      "{\"request_id\":\"r\",\"sample_sequence_ids\":null}",
      "{\"sample_sequence_ids\":[ \"a\" ,\"b\"],\"request_id\":\"r\"}",
      "{\"request_id\":\"a\",\"request_id\":\"b\"}",
      "{\"request_id\":\"a\\u0062\\\"\"}",
      "{\"request_id\":\"a b\"}",
      "{\"request_id\":\"\xc3\xa9\"}",
      "{\"request_id\":\"\xff\"}",
      "{\"request_id\":\"a\x7f\"}",
      "{\"request_id\":\"a\nb\"}",
      "{\"request_id\":\"\"}",
      "{\"request_id\":null}",
      "{\"request_id\":\"r\",}",
      "{,\"request_id\":\"r\"}",
      "{\"request_id\":\"r\" \"model_id\":\"m\"}",
      "{\"request_id\" \"r\"}",
      "{\"request_id\":\"r\",\"model_id\":nul}",
      "{\"request_id\":\"r\",\"model_id\":nulls}",
      "{\"request_id\":\"r\",\"sample_sequence_ids\":[\"a\",]}",
      "{\"request_id\":\"r\",\"sample_sequence_ids\":[\"a\" \"b\"]}",
      "{\"request_id\":\"r\",\"sample_sequence_ids\":[null]}",
      "{\"request_id\":\"r}",
      "{\"request_id\":r}",
      "{\"model_id\":\"m\"}",
  };

  for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
    const size_t n = strlen(bodies[i]);
    const char *close = strrchr(bodies[i], '}');
    tnk__accepted_t plain = {0};
    tnk__accepted_t any = {0};
    tnk__arena_t arena;
    char body[256];
    int err;
    tnk__arena_init(&arena, test_allocator(), 4096);
    err = tnk__accepted_read(&plain, &arena, (const uint8_t *)bodies[i], n);
    snprintf(body, sizeof(body), "%.*s,\"x\":0%s", (int)(close - bodies[i]),
             bodies[i], close);
    CHECK_INT(
        tnk__accepted_read(&any, &arena, (const uint8_t *)body, strlen(body)),
        err);
    check_same_id(plain.request_id, any.request_id);
    check_same_id(plain.model_id, any.model_id);
    CHECK_INT(plain.n_sequence_ids, any.n_sequence_ids);
    for (size_t k = 0; k < any.n_sequence_ids; k++)
      CHECK_STR(plain.sequence_ids[k], any.sequence_ids[k]);
    tnk__arena_deinit(&arena);
  }
}

/* Every end of the body before its own is an error, and nothing is read
 * behind it. */
TEST(a_plain_answer_cut_anywhere) {
  static const char whole[] = "{\"request_id\":\"r-1\",\"model_id\":null,"
                              "\"sample_sequence_ids\":[\"a\",\"b\"]}";
  tnk__accepted_t out;
  tnk__arena_t arena;

  tnk__arena_init(&arena, test_allocator(), TNK__MIB);
  for (size_t n = 0; n < sizeof(whole); n++) {
    uint8_t *body = malloc(n > 0 ? n : 1);
    memcpy(body, whole, n);
    CHECK_INT(tnk__accepted_read(&out, &arena, body, n),
              n == sizeof(whole) - 1 ? TNK_OK : TNK_EPROTO);
    free(body);
  }
  tnk__arena_deinit(&arena);
}

TEST(S3_8_answer_may_be_the_result_at_once) {
  static const char *const now[] = {
      "{\"path\":\"tinker://r/weights/x\"}",
      "{\"sampling_session_id\":\"s\"}",
      "{\"metrics\":{}}",
      "{\"error\":\"x\"}",
      "{\"sequences\":[]}",
      "{\"model_id\":\"m\",\"type\":\"create_model\"}"};
  tnk__accepted_t out;
  size_t i;

  for (i = 0; i < sizeof(now) / sizeof(now[0]); i++)
    CHECK_READS(now[i], tnk__accepted_read(&out, &arena, body, n),
                CHECK(out.request_id == NULL));
}

TEST(S3_5_lost_request_id_is_no_success) {
  tnk__accepted_t out;

#define CALL tnk__accepted_read(&out, &arena, body, n)
  CHECK_REFUSES("{}", CALL);
  CHECK_REFUSES("[]", CALL);
  CHECK_REFUSES("{\"request_id\":null,\"model_id\":\"m\"}", CALL);
  CHECK_REFUSES("{\"metrics\":null,\"path\":null}", CALL);
#undef CALL
}

TEST(P8_2_kinds_of_answers) {
  static const struct {
    const char *body;
    tnk__answer_kind_t kind;
  } rows[] = {
      {"{\"type\":\"try_again\"}", TNK__ANSWER_PENDING},
      {"{\"type\":\"try_again\",\"error\":\"x\"}", TNK__ANSWER_PENDING},
      {"{\"status\":\"pending\",\"request_id\":\"1\"}", TNK__ANSWER_PENDING},
      {"{\"queue_state\":\"active\"}", TNK__ANSWER_PENDING},
      {"{\"status\":\"complete_metadata\"}", TNK__ANSWER_METADATA},
      {"{\"error\":\"x\"}", TNK__ANSWER_FAILED},
      {"{\"error\":{}}", TNK__ANSWER_FAILED},
      {"{\"error\":\"x\",\"queue_state\":\"active\"}", TNK__ANSWER_FAILED},
      {"{\"type\":\"RequestFailedResponse\"}", TNK__ANSWER_FAILED},
      {"{\"status\":\"failed\"}", TNK__ANSWER_FAILED},
      {"{}", TNK__ANSWER_RESULT},
      {"{\"error\":null,\"path\":\"x\"}", TNK__ANSWER_RESULT},
      {"{\"type\":7,\"status\":[]}", TNK__ANSWER_RESULT},
      {"{\"status\":\"unloaded\",\"model_id\":\"m\"}", TNK__ANSWER_RESULT}};
  size_t i;

  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__answer_t out;
    CHECK_READS(rows[i].body, tnk__answer_read(&out, &arena, body, n), {
      CHECK_INT(out.kind, rows[i].kind);
      CHECK(out.result == body && out.result_len == n);
    });
  }
}

TEST(P8_2_members_of_answers) {
  tnk__answer_t out;

#define CALL tnk__answer_read(&out, &arena, body, n)
  CHECK_READS("{\"type\":\"try_again\",\"request_id\":\"r\","
              "\"queue_state\":\"paused_capacity\","
              "\"queue_state_reason\":\"busy\",\"retry_after_ms\":500}",
              CALL, {
                CHECK_STR(out.queue_state, "paused_capacity");
                CHECK_STR(out.queue_reason, "busy");
                CHECK_INT(out.retry_after_ms, 500);
              });
  CHECK_READS("{\"type\":\"try_again\",\"queue_state\":1,"
              "\"queue_state_reason\":null,\"retry_after\":\"soon\"}",
              CALL, {
                CHECK(out.queue_state == NULL && out.queue_reason == NULL);
                CHECK_INT(out.retry_after_ms, 0);
              });
  CHECK_READS("{\"detail\":\"timeout\",\"queue_state\":\"active\"}", CALL,
              CHECK_STR(out.queue_state, "active"));
  CHECK_READS("{\"status\":\"complete_metadata\","
              "\"response_payload_size\":123}",
              CALL, CHECK_INT(out.result_bytes, 123));
  CHECK_READS("{\"status\":\"complete_metadata\","
              "\"response_payload_size\":-123}",
              CALL, CHECK_INT(out.result_bytes, 0));
  CHECK_READS("{\"error\":\"bad token\",\"category\":\"user\"}", CALL, {
    CHECK_STR(out.failure.message, "bad token");
    CHECK_INT(out.failure.category, TNK_CATEGORY_USER);
  });
  CHECK_REFUSES("[1]", CALL);
  CHECK_REFUSES("\"try_again\"", CALL);
#undef CALL
}

TEST(F15_wrapped_results_are_unwrapped) {
  static const char inner[] = "{\"metrics\":{\"a\":0.5},\"s\":\"\\n\"}";
  tnk__answer_t out;

  CHECK_READS("{\"status\":\"completed\",\"result\":"
              "{\"metrics\": {\"a\": 0.5}, \"s\": \"\\n\"}}",
              tnk__answer_read(&out, &arena, body, n), {
                CHECK_INT(out.kind, TNK__ANSWER_RESULT);
                CHECK_MEM(out.result, out.result_len, inner, strlen(inner));
              });
}
