/* SPDX-License-Identifier: MIT */
/* Answers that come as fields and pieces of a body. */
#include "lib/wire/format/h2_read.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "support/test.h"
#include "tnk/error.h"

typedef struct {
  tnk__response_t response;
  tnk__h2_reader_t reader;
} answer_t;

static void open_with(answer_t *answer, size_t max_body, int is_head) {
  tnk__response_init(&answer->response, test_allocator(), max_body);
  tnk__h2_reader_init(&answer->reader, &answer->response, is_head);
}

static int field(answer_t *answer, const char *name, const char *value) {
  return tnk__h2_reader_field(&answer->reader, (const uint8_t *)name,
                              strlen(name), (const uint8_t *)value,
                              strlen(value));
}

static int head(answer_t *answer, const char *status, const char *name,
                const char *value) {
  int err = field(answer, ":status", status);

  if (err == TNK_OK && name != NULL)
    err = field(answer, name, value);
  return err == TNK_OK ? tnk__h2_reader_fields_end(&answer->reader) : err;
}

static int body(answer_t *answer, const void *data, size_t n) {
  return tnk__h2_reader_body(&answer->reader, data, n);
}

TEST(a_head_a_body_and_trailers) {
  answer_t answer;

  open_with(&answer, 100, 0);
  CHECK_INT(field(&answer, ":status", "200"), TNK_OK);
  CHECK_INT(field(&answer, "x-a", " one\t"), TNK_OK);
  CHECK_INT(field(&answer, "x-empty", ""), TNK_OK);
  CHECK_INT(field(&answer, "x-a", "two"), TNK_OK);
  CHECK_INT(answer.response.status, 0);
  CHECK(tnk__response_header(&answer.response, "x-a") == NULL);
  CHECK_INT(tnk__h2_reader_fields_end(&answer.reader), TNK_OK);
  CHECK_INT(answer.response.status, 200);
  CHECK_STR(tnk__response_header(&answer.response, "X-A"), "one, two");
  CHECK_STR(tnk__response_header(&answer.response, "x-empty"), "");
  CHECK_INT(body(&answer, "hel", 3), TNK_OK);
  CHECK_INT(body(&answer, "", 0), TNK_OK);
  CHECK_INT(body(&answer, "lo", 2), TNK_OK);
  CHECK_INT(field(&answer, "x-trailer", "t"), TNK_OK);
  CHECK_INT(tnk__h2_reader_fields_end(&answer.reader), TNK_OK);
  CHECK_INT(tnk__h2_reader_end(&answer.reader), TNK_OK);
  CHECK_INT(answer.reader.state, TNK__HTTP_READ_DONE);
  CHECK(tnk__response_header(&answer.response, "x-trailer") == NULL);
  CHECK_MEM(answer.response.body.data, answer.response.body.len, "hello", 5);
  tnk__response_deinit(&answer.response);
}

TEST(interim_answers_are_dropped) {
  answer_t answer;

  open_with(&answer, 100, 0);
  CHECK_INT(head(&answer, "100", NULL, NULL), TNK_OK);
  CHECK_INT(head(&answer, "103", "link", "x"), TNK_OK);
  CHECK_INT(answer.response.status, 0);
  CHECK_INT(head(&answer, "204", "x-b", "b"), TNK_OK);
  CHECK_INT(answer.response.status, 204);
  CHECK(tnk__response_header(&answer.response, "link") == NULL);
  CHECK_STR(tnk__response_header(&answer.response, "x-b"), "b");
  CHECK_INT(tnk__h2_reader_end(&answer.reader), TNK_OK);
  tnk__response_deinit(&answer.response);
}

TEST(S3_20_what_is_no_answer_is_refused) {
  static const char *const statuses[] = {"",    "20",  "2000", "2x0",
                                         "-20", "099", "600",  "101"};
  answer_t answer;

  for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
    open_with(&answer, 100, 0);
    CHECK_INT(head(&answer, statuses[i], NULL, NULL), TNK_EPROTO);
    CHECK_INT(tnk__h2_reader_end(&answer.reader), TNK_EPROTO);
    tnk__response_deinit(&answer.response);
  }
  /* No status, two of them, one among trailers; a body before the head, an end
   * before it; what is no name. */
  for (int i = 0; i < 6; i++) {
    open_with(&answer, 100, 0);
    if (i == 0)
      CHECK_INT(tnk__h2_reader_fields_end(&answer.reader), TNK_EPROTO);
    if (i == 1)
      CHECK_INT(head(&answer, "200", ":status", "200"), TNK_EPROTO);
    if (i == 2) {
      CHECK_INT(head(&answer, "200", NULL, NULL), TNK_OK);
      CHECK_INT(field(&answer, ":status", "200"), TNK_EPROTO);
    }
    if (i == 3)
      CHECK_INT(body(&answer, "x", 1), TNK_EPROTO);
    if (i == 4)
      CHECK_INT(tnk__h2_reader_end(&answer.reader), TNK_EPROTO);
    if (i == 5)
      CHECK_INT(head(&answer, "200", ":path", "/"), TNK_EPROTO);
    /* The first failure stays. */
    CHECK_INT(body(&answer, "x", 1), TNK_EPROTO);
    tnk__response_deinit(&answer.response);
  }
}

TEST(a_nul_cannot_hide_the_rest_of_a_value) {
  answer_t answer;

  open_with(&answer, 100, 0);
  CHECK_INT(tnk__h2_reader_field(&answer.reader, (const uint8_t *)"x", 1,
                                 (const uint8_t *)"a\0b", 3),
            TNK_EPROTO);
  tnk__response_deinit(&answer.response);
}

/* As over HTTP/1.1, however the fields are spread. */
TEST(fields_are_bounded_by_their_number_and_their_size) {
  static char large[TNK__MAX_RESPONSE_HEAD];
  answer_t answer;
  int err = TNK_OK;
  int n = 0;

  memset(large, 'a', sizeof(large) - 1);
  open_with(&answer, 100, 0);
  CHECK_INT(head(&answer, "200", "x", large), TNK_ETOOBIG);
  tnk__response_deinit(&answer.response);
  open_with(&answer, 100, 0);
  while (err == TNK_OK && n < 10000) {
    err = head(&answer, "103", "x", "y");
    n += 2;
  }
  CHECK_INT(err, TNK_ETOOBIG);
  CHECK(n <= TNK__MAX_RESPONSE_HEADERS + 2);
  tnk__response_deinit(&answer.response);
}

TEST(bodies_are_bounded_before_they_come) {
  answer_t answer;

  open_with(&answer, 100, 0);
  CHECK_INT(head(&answer, "200", "content-length", "101"), TNK_ETOOBIG);
  tnk__response_deinit(&answer.response);
  open_with(&answer, 100, 0);
  CHECK_INT(head(&answer, "200", "content-length", "18446744073709551716"),
            TNK_ETOOBIG);
  tnk__response_deinit(&answer.response);
  open_with(&answer, 100, 0);
  CHECK_INT(head(&answer, "200", "content-length", "1x"), TNK_EPROTO);
  tnk__response_deinit(&answer.response);
  open_with(&answer, 4, 0);
  CHECK_INT(head(&answer, "200", NULL, NULL), TNK_OK);
  CHECK_INT(body(&answer, "12345", 5), TNK_ETOOBIG);
  tnk__response_deinit(&answer.response);
  /* What HEAD announces does not come. */
  open_with(&answer, 4, 1);
  CHECK_INT(head(&answer, "200", "content-length", "1000"), TNK_OK);
  CHECK_INT(body(&answer, "1", 1), TNK_EPROTO);
  tnk__response_deinit(&answer.response);
}

TEST(encodings_are_those_that_were_asked_for) {
  answer_t answer;

  open_with(&answer, 100, 0);
  CHECK_INT(head(&answer, "200", "content-encoding", "gzip"), TNK_EPROTO);
  tnk__response_deinit(&answer.response);
  open_with(&answer, 100, 0);
  CHECK_INT(head(&answer, "200", "content-encoding", "identity"), TNK_OK);
  CHECK_INT(body(&answer, "plain", 5), TNK_OK);
  CHECK_INT(tnk__h2_reader_end(&answer.reader), TNK_OK);
  tnk__response_deinit(&answer.response);
  /* A streamed one is read as it comes. */
  open_with(&answer, 100, 0);
  answer.reader.is_streamed = 1;
  CHECK_INT(head(&answer, "200", "content-encoding", "zstd"), TNK_EPROTO);
  tnk__response_deinit(&answer.response);
  /* One that breaks off is none. */
  open_with(&answer, 100, 0);
  CHECK_INT(head(&answer, "200", "content-encoding", "zstd"), TNK_OK);
  CHECK_INT(body(&answer, "\x28\xb5\x2f\xfd", 4), TNK_OK);
  CHECK_INT(tnk__h2_reader_end(&answer.reader), TNK_EPROTO);
  tnk__response_deinit(&answer.response);
}

/* So many that they need memory of their own, and a repeat of the first. */
static int many_fields(answer_t *answer, size_t n) {
  int err = TNK_OK;
  char name[32];

  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    snprintf(name, sizeof(name), "x-%zu", i);
    err = field(answer, name, name + 2);
  }
  return err == TNK_OK ? field(answer, "x-0", "again") : err;
}

TEST(few_and_many_fields_are_found) {
  for (size_t n = 1; n < TNK__MAX_RESPONSE_HEADERS - 1; n++) {
    answer_t answer;
    char name[32];

    open_with(&answer, 100, 0);
    CHECK_INT(many_fields(&answer, n), TNK_OK);
    CHECK_INT(head(&answer, "200", NULL, NULL), TNK_OK);
    for (size_t i = 0; i < n; i++) {
      snprintf(name, sizeof(name), "X-%zu", i);
      CHECK_STR(tnk__response_header(&answer.response, name),
                i == 0 ? "0, again" : name + 2);
    }
    /* Names that begin like one, or end where a text ends. */
    CHECK(tnk__response_header(&answer.response, "x-") == NULL);
    CHECK(tnk__response_header(&answer.response, "x-0-") == NULL);
    CHECK(tnk__response_header(&answer.response, "x-0_again") == NULL);
    CHECK(tnk__response_header(&answer.response, "") == NULL);
    tnk__response_deinit(&answer.response);
  }
}

/* Those of an interim answer are forgotten, however many they are. */
TEST(many_fields_of_an_interim_answer_are_forgotten) {
  answer_t answer;

  open_with(&answer, 100, 0);
  CHECK_INT(many_fields(&answer, 20), TNK_OK);
  CHECK_INT(head(&answer, "103", NULL, NULL), TNK_OK);
  CHECK_INT(head(&answer, "200", "x-a", "1"), TNK_OK);
  CHECK_STR(tnk__response_header(&answer.response, "x-a"), "1");
  CHECK(tnk__response_header(&answer.response, "x-1") == NULL);
  tnk__response_deinit(&answer.response);
}

TEST(every_lack_of_memory_is_told) {
  for (long n = 0;; n++) {
    answer_t answer;
    int err;
    open_with(&answer, 100, 0);
    test_alloc_fail_at(n);
    err = many_fields(&answer, TNK__FEW_HEADERS);
    if (err == TNK_OK)
      err = head(&answer, "200", "x-a", "1");
    if (err == TNK_OK)
      err = body(&answer, "body", 4);
    test_alloc_fail_at(-1);
    tnk__response_deinit(&answer.response);
    if (err == TNK_OK) {
      CHECK(n > 2);
      return;
    }
    CHECK_INT(err, TNK_ENOMEM);
  }
}
