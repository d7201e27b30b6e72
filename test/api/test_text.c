/* SPDX-License-Identifier: MIT */
/*
 * Model inputs from text, by way of a plug-in.
 */
#include <stdio.h>

#include "support/test.h"
#include "tnk/error.h"
#include "tnk/text.h"

/* One id a byte, given in pieces; a "!" is refused. */
static int encode(const void *tokenizer, const char *text, size_t n,
                  unsigned flags, tnk_take_ids_cb take, void *user, char *why,
                  size_t why_size) {
  const int32_t first = *(const int32_t *)tokenizer + (int32_t)flags;
  int err = take(NULL, 0, user);

  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    const int32_t id = first + text[i];
    if (text[i] == '!') {
      if (why_size > 0)
        snprintf(why, why_size, "no shouting");
      return TNK_EUNSUPPORTED;
    }
    err = take(&id, 1, user);
  }
  return err;
}

static const int32_t tokenizer = 1000;
static const tnk_tokenizer_plugin_t plugin = {
    .size = sizeof(plugin), .name = "bytes", .encode = encode};

static int make(tnk_prompt_t **out, const char *text, size_t n, unsigned flags,
                char *why, size_t size) {
  return tnk_prompt_from_text(out, &plugin, &tokenizer, text, n, flags,
                              test_allocator(), why, size);
}

TEST(J1_a_text_becomes_a_model_input_of_one_chunk) {
  tnk_prompt_t *input;
  const tnk_model_input_t *view;
  char why[50] = "x";

  CHECK_INT(make(&input, "ab\0c", 4, 1, why, sizeof(why)), TNK_OK);
  CHECK_STR(why, "");
  view = tnk_prompt_input(input);
  CHECK_INT(view->n_chunks, 0);
  CHECK_INT(view->n_tokens, 4);
  CHECK_INT(view->tokens[0], 1001 + 'a');
  CHECK_INT(view->tokens[2], 1001);
  CHECK_INT(view->tokens[3], 1001 + 'c');
  tnk_prompt_free(input);
  CHECK_INT(make(&input, NULL, 0, 0, NULL, 0), TNK_OK);
  CHECK_INT(tnk_prompt_input(input)->n_tokens, 0);
  tnk_prompt_free(input);
  tnk_prompt_free(NULL);
  CHECK(tnk_prompt_input(NULL) == NULL);
}

TEST(J1_what_cannot_be_encoded_is_told) {
  tnk_tokenizer_plugin_t mute = {.size = sizeof(mute)};
  tnk_tokenizer_plugin_t newer = plugin;
  tnk_prompt_t *input;
  char why[50];

  CHECK_INT(make(&input, "ab!", 3, 0, why, sizeof(why)), TNK_EUNSUPPORTED);
  CHECK_STR(why, "no shouting");
  CHECK(input == NULL);
  CHECK_INT(make(&input, "ab!", 3, 0, why, 4), TNK_EUNSUPPORTED);
  CHECK_STR(why, "no ");
  CHECK_INT(make(&input, NULL, 3, 0, why, sizeof(why)), TNK_EINVAL);
  CHECK_INT(tnk_prompt_from_text(&input, &mute, &tokenizer, "a", 1, 0, NULL,
                                 why, sizeof(why)),
            TNK_EINVAL);
  CHECK_INT(tnk_prompt_from_text(&input, NULL, &tokenizer, "a", 1, 0, NULL, why,
                                 sizeof(why)),
            TNK_EINVAL);
  CHECK_INT(
      tnk_prompt_from_text(&input, &plugin, NULL, "a", 1, 0, NULL, NULL, 0),
      TNK_EINVAL);
  newer.size = 3;
  CHECK_INT(tnk_prompt_from_text(&input, &newer, &tokenizer, "a", 1, 0, NULL,
                                 why, sizeof(why)),
            TNK_EINVAL);
  CHECK(input == NULL);
}

TEST(J1_a_prompt_that_nobody_gets_is_not_made) {
  char why[80];

  CHECK_INT(
      tnk_prompt_from_text(NULL, NULL, NULL, "a", 1, 0, NULL, why, sizeof(why)),
      TNK_EINVAL);
  CHECK_STR(why, "out is NULL");
  CHECK_INT(tnk_prompt_from_text(NULL, NULL, NULL, "a", 1, 0, NULL, NULL, 0),
            TNK_EINVAL);
}

TEST(S3_26a_text_without_memory) {
  tnk_prompt_t *input;
  int err;

  for (long n = 0;; n++) {
    test_alloc_fail_at(n);
    err = make(&input, "abc", 3, 0, NULL, 0);
    if (!test_alloc_did_fail())
      break;
    CHECK_INT(err, TNK_ENOMEM);
    CHECK(input == NULL);
    CHECK_INT(test_alloc_live(), 0);
  }
  test_alloc_fail_at(-1);
  CHECK_INT(err, TNK_OK);
  tnk_prompt_free(input);
}
