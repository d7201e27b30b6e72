/* SPDX-License-Identifier: MIT */
#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/base/list.h"
#include "lib/base/log.h"

#include <string.h>
#include <uv.h>

#include "support/spy.h"
#include "support/test.h"

TEST(alloc_array_checks_overflow) {
  CHECK(tnk__alloc_array(test_allocator(), SIZE_MAX / 2, 3) == NULL);
  CHECK_INT(test_alloc_count(), 0);
}

TEST(buf_grows_up_to_its_ceiling_and_keeps_the_first_error) {
  tnk__buf_t buf;
  char block[100];
  int i;

  memset(block, 'x', sizeof(block));
  tnk__buf_init(&buf, test_allocator(), 1000);
  for (i = 0; i < 10; i++)
    CHECK_INT(tnk__buf_append(&buf, block, sizeof(block)), TNK_OK);
  CHECK_INT(tnk__buf_byte(&buf, 'y'), TNK_ETOOBIG);
  CHECK_INT(buf.len, 1000);
  CHECK_INT(tnk__buf_text(&buf, ""), TNK_ETOOBIG);
  tnk__buf_clear(&buf);
  CHECK_INT(tnk__buf_printf(&buf, "%s-%d", "a", 7), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&buf), "a-7");
  tnk__buf_deinit(&buf);
}

TEST(buf_reports_lack_of_memory) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1000);
  test_alloc_fail_at(0);
  CHECK_INT(tnk__buf_text(&buf, "a"), TNK_ENOMEM);
  CHECK_INT(tnk__buf_text(&buf, "a"), TNK_ENOMEM);
  CHECK(tnk__buf_cstr(&buf) == NULL);
  tnk__buf_deinit(&buf);
}

TEST(buf_consume_and_take) {
  tnk__buf_t buf;
  uint8_t *data;
  size_t len;

  tnk__buf_init(&buf, test_allocator(), 100);
  tnk__buf_text(&buf, "abcdef");
  tnk__buf_consume(&buf, 2);
  CHECK_STR(tnk__buf_cstr(&buf), "cdef");
  data = tnk__buf_take(&buf, &len);
  CHECK_MEM(data, len, "cdef", 4);
  CHECK_INT(buf.len, 0);
  tnk__free(test_allocator(), data);
  tnk__buf_deinit(&buf);
}

/* Wherever a secret was: in memory that became too small, in what was cleared,
 * in what is freed. */
TEST(buf_wipes_a_secret) {
  const tnk_allocator_t spy = spy_on("open sesame");
  tnk__buf_t buf;

  for (int round = 0; round < 2; round++) {
    tnk__buf_init(&buf, &spy, 100000);
    if (round == 0)
      tnk__buf_keep_secret(&buf);
    for (int i = 0; i < 3; i++) {
      CHECK_INT(tnk__buf_text(&buf, "open sesame"), TNK_OK);
      tnk__buf_trim(&buf);
      for (int k = 0; k < 1000; k++)
        CHECK_INT(tnk__buf_byte(&buf, 'x'), TNK_OK);
      CHECK_MEM(buf.data, 11, "open sesame", 11);
      if (i == 1)
        tnk__buf_deinit(&buf);
      else
        tnk__buf_clear(&buf);
    }
    tnk__buf_deinit(&buf);
    CHECK((spy_n_leaks == 0) == (round == 0));
  }
  CHECK(spy_n_looks > 4);
}

TEST(arena_aligns_and_stops_at_its_ceiling) {
  tnk__arena_t arena;
  size_t n = 0;
  int i;

  tnk__arena_init(&arena, test_allocator(), 100000);
  for (i = 1; i < 200; i++) {
    void *p = tnk__arena_alloc(&arena, (size_t)i);
    CHECK(p != NULL);
    CHECK_INT((uintptr_t)p % _Alignof(max_align_t), 0);
    memset(p, i, (size_t)i);
  }
  CHECK_STR(tnk__arena_strndup(&arena, "hello", 4), "hell");
  while (tnk__arena_alloc(&arena, 1000) != NULL)
    n++;
  CHECK(n > 10 && n < 100);
  CHECK(tnk__arena_alloc(&arena, SIZE_MAX) == NULL);
  tnk__arena_deinit(&arena);
}

/* What is expected comes in one block, within the ceiling. */
TEST(arena_makes_one_block_for_what_is_expected) {
  tnk__arena_t arena;

  tnk__arena_init(&arena, test_allocator(), 100000);
  tnk__arena_expect(&arena, 3200);
  for (int i = 0; i < 200; i++)
    CHECK(tnk__arena_alloc(&arena, 16) != NULL);
  CHECK_INT(arena.total, 3200);
  tnk__arena_deinit(&arena);
  tnk__arena_init(&arena, test_allocator(), 1000);
  tnk__arena_expect(&arena, SIZE_MAX);
  CHECK(tnk__arena_alloc(&arena, 990) != NULL);
  CHECK(tnk__arena_alloc(&arena, 16) == NULL);
  CHECK_INT(arena.total, 1000);
  tnk__arena_deinit(&arena);
}

/* A ceiling below the size of a block, and the rest before a ceiling. */
TEST(arena_gives_all_that_its_ceiling_allows) {
  tnk__arena_t arena;
  size_t n = 0;

  tnk__arena_init(&arena, test_allocator(), 1600);
  while (tnk__arena_alloc(&arena, 16) != NULL)
    n++;
  CHECK_INT(n, 100);
  CHECK_INT(arena.total, 1600);
  tnk__arena_deinit(&arena);
  tnk__arena_init(&arena, test_allocator(), 100);
  CHECK(tnk__arena_alloc(&arena, 90) != NULL);
  CHECK(tnk__arena_alloc(&arena, 1) == NULL);
  tnk__arena_deinit(&arena);
}

struct item {
  int value;
  tnk__list_t link;
};

TEST(list_keeps_order_and_survives_removal_while_walking) {
  struct item items[4];
  tnk__list_t head;
  tnk__list_t moved;
  int sum = 0;
  int i;

  tnk__list_init(&head);
  for (i = 0; i < 4; i++) {
    items[i].value = i;
    tnk__list_append(&head, &items[i].link);
  }
  TNK__LIST_FOREACH_SAFE (node, next, &head) {
    struct item *item = tnk__container_of(node, struct item, link);
    sum = sum * 10 + item->value;
    if (item->value % 2 == 0)
      tnk__list_remove(node);
  }
  CHECK_INT(sum, 123);
  tnk__list_remove(&items[0].link); /* a second time does no harm */
  tnk__list_move(&moved, &head);
  CHECK(tnk__list_empty(&head));
  CHECK(tnk__list_pop(&moved) == &items[1].link);
  CHECK(tnk__list_pop(&moved) == &items[3].link);
  CHECK(tnk__list_pop(&moved) == NULL);
}

TEST(error_codes_are_unique_and_clear_of_libuv_and_mbedtls) {
  static const int codes[] = {
#define XX(name, code, text) code,
      TNK_ERROR_MAP(XX)
#undef XX
  };
  const size_t n = sizeof(codes) / sizeof(codes[0]);
  size_t i;
  size_t j;

  for (i = 0; i < n; i++) {
    CHECK(codes[i] <= -50000 && codes[i] > -51000);
    CHECK(strcmp(tnk_strerror(codes[i]), "unknown error") != 0);
    CHECK(strncmp(tnk_err_name(codes[i]), "TNK_E", 5) == 0);
    for (j = i + 1; j < n; j++)
      CHECK(codes[i] != codes[j]);
  }
#define XX(name, text) CHECK(UV_##name > -4096);
  UV_ERRNO_MAP(XX)
#undef XX
  CHECK_STR(tnk_strerror(0), "success");
  CHECK_STR(tnk_strerror(12345), "unknown error");
  CHECK_STR(tnk_err_name(12345), "TNK_EUNKNOWN");
  CHECK(tnk_err_is_fatal(TNK_EINTERNAL) && !tnk_err_is_fatal(TNK_EINVAL));
  CHECK(tnk_err_is_retryable(TNK_ECONN) && !tnk_err_is_retryable(TNK_EAUTH));
}

TEST(error_sentence_names_operation_status_and_text) {
  tnk_error_t pub = {.code = TNK_EREQUEST,
                     .http_status = 422,
                     .n_attempts = 2,
                     .request_id = "r-1",
                     .message = "bad\nlo\xc2\x9bss"};
  tnk__error_t *error = tnk__error_from(test_allocator(), "optim_step", &pub);

  CHECK_STR(error->pub.text, "optim_step: request rejected by the service "
                             "(HTTP 422): bad lo  ss [request r-1] (2 "
                             "attempts)");
  CHECK_STR(error->pub.message, "bad lo  ss");
  tnk__error_ref(error);
  tnk__error_unref(error);
  tnk__error_unref(error);
}

TEST(error_of_a_result_leaves_out_its_good_status) {
  tnk_error_t pub = {
      .code = TNK_EFAILED, .http_status = 200, .message = "no such path"};
  tnk__error_t *error = tnk__error_from(test_allocator(), "restore", &pub);

  CHECK_STR(error->pub.text,
            "restore: the operation failed on the service: no such path");
  CHECK_INT(error->pub.http_status, 200);
  tnk__error_unref(error);
  pub.code = TNK_EPROTO; /* Here it tells that there was an answer. */
  error = tnk__error_from(test_allocator(), "restore", &pub);
  CHECK(strstr(error->pub.text, "(HTTP 200)") != NULL);
  tnk__error_unref(error);
}

TEST(error_says_whether_it_was_run) {
  tnk_error_t pub = {
      .code = TNK_ECONN, .request_id = "r-1", .message = "reset"};
  tnk__error_t *plain = tnk__error_from(test_allocator(), "x", &pub);
  tnk__error_t *said = tnk__error_ran(plain, TNK_RAN_NO);
  tnk__error_t *other = tnk__error_ran(said, TNK_RAN_UNKNOWN);
  tnk__error_t *same = tnk__error_ran(other, TNK_RAN_UNKNOWN);
  tnk__error_t *behind = tnk__error_behind(other);

  CHECK_STR(said->pub.text, "x: connection failed or was lost: reset [request "
                            "r-1]; it was not run");
  CHECK_INT(said->pub.ran, TNK_RAN_NO);
  CHECK_STR(said->pub.message, "reset");
  CHECK_STR(said->pub.request_id, "r-1");
  CHECK_STR(other->pub.text, "x: connection failed or was lost: reset [request "
                             "r-1]; it may have been run");
  CHECK(same == other && !tnk__error_says_ran(plain));
  CHECK(tnk__error_says_ran(other));
  CHECK_INT(behind->pub.ran, TNK_RAN_NO);
  CHECK(strstr(behind->pub.text, "; later operations were not run") != NULL);
  test_alloc_fail_at(0);
  tnk__error_unref(said);
  said = tnk__error_ran(plain, TNK_RAN_PARTLY);
  CHECK_STR(said->pub.text,
            "connection failed or was lost; a part of it was run");
  CHECK_INT(said->pub.ran, TNK_RAN_PARTLY);
  CHECK(!tnk__error_says_ran(tnk__error_static(TNK_ECONN)));
  CHECK_STR(tnk__error_static(TNK_ECONN)->pub.text,
            "connection failed or was lost");
  tnk__error_unref(plain);
  tnk__error_unref(other);
  tnk__error_unref(same);
  tnk__error_unref(behind);
}

TEST(error_without_memory_is_static) {
  tnk_error_t pub = {.code = TNK_EREQUEST};
  long n;

  for (n = 0; n < 2; n++) {
    tnk__error_t *error;
    test_alloc_fail_at(n);
    error = tnk__error_from(test_allocator(), "x", &pub);
    CHECK_INT(error->pub.code, TNK_ENOMEM);
    tnk__error_unref(error);
  }
  CHECK_INT(tnk__error_static(TNK_ECLOSED)->pub.code, TNK_ECLOSED);
}

static char last_line[2048];
static int n_lines;

static void keep_line(tnk_log_level_t level, const char *subject,
                      const char *message, size_t length, void *user) {
  (void)level;
  (void)subject;
  (void)user;
  memcpy(last_line, message, length);
  last_line[length] = '\0';
  n_lines++;
}

TEST(log_tests_the_level_first_and_is_one_line) {
  tnk_logger_t logger = {TNK_LOG_WARN, keep_line, NULL};

  tnk__log(NULL, TNK_LOG_ERROR, "x", "y");
  tnk__log(&logger, TNK_LOG_INFO, "x", "y");
  CHECK_INT(n_lines, 0);
  tnk__log(&logger, TNK_LOG_WARN, "x", "a\nb%d", 1);
  CHECK_STR(last_line, "a b1");
}
