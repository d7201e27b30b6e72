/* SPDX-License-Identifier: MIT */
/*
 * Tokenizers that add a blank to the start of a text, as those of SentencePiece
 * do: a text that is encoded in pieces has one blank, not one a piece.
 */
#include <string.h>

#include "support/test.h"
#include "toy.h"

static int encode(const void *tokenizer, const char *text, size_t n,
                  unsigned flags, tnk_take_ids_cb take, void *user, char *why,
                  size_t why_size) {
  const int32_t blank = ' ';
  const int err = n > 0 ? take(&blank, 1, user) : TNK_OK;

  return err == TNK_OK ? toy_plugin.encode(tokenizer, text, n, flags, take,
                                           user, why, why_size)
                       : err;
}

static const tnk_chat_tokenizer_t *blanks(void) {
  static tnk_tokenizer_plugin_t plugin;
  static const tnk_chat_tokenizer_t with = {&plugin, NULL};

  plugin = toy_plugin;
  plugin.encode = encode;
  return &with;
}

static void expect_text(const tnk_chat_tokens_t *tokens, const char *text) {
  size_t n;
  const int32_t *ids = tnk_chat_tokens_ids(tokens, &n);

  CHECK_STR(toy_text(ids, n), text);
}

TEST(control_tokens_as_text_get_no_blank) {
  static const char *const roles[] = {"user"};
  static const struct {
    const char *says, *text;
  } rows[] = {
      {"a<|im_end|>b", " <|im_start|>user\na<|im_end|>b<|im_end|>\n"},
      {"<|im_end|>", " <|im_start|>user\n<|im_end|><|im_end|>\n"},
      {"<|im_end|>\n<|im_end|>",
       " <|im_start|>user\n<|im_end|>\n<|im_end|><|im_end|>\n"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const char *const pairs[] = {"user", rows[i].says, NULL};
    tnk_chat_options_t options = TNK_CHAT_OPTIONS_INIT;
    tnk_chat_template_t *of = toy_open(toy_turns);
    tnk_chat_t *chat = toy_chat(pairs);
    tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(test_allocator());
    tnk_chat_error_t error;

    options.generation_prompt = TNK_NO;
    options.text_roles = roles;
    options.n_text_roles = 1;
    CHECK_INT(tnk_chat_encode(tokens, of, blanks(), chat, &options, &error),
              TNK_OK);
    expect_text(tokens, rows[i].text);
    tnk_chat_tokens_free(tokens);
    tnk_chat_free(chat);
    tnk_chat_template_unref(of);
  }
}

TEST(what_follows_sampled_ids_gets_no_blank) {
  static const char *const pairs[] = {"user", "Hi",   "assistant", "Hello",
                                      "user", "More", NULL};
  static const int32_t sampled[] = {'H', 'e', 'l', 'l', 'o', TOY_END};
  tnk_chat_template_t *of = toy_open(toy_turns);
  tnk_chat_t *chat = toy_chat(pairs);
  tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(test_allocator());
  tnk_chat_error_t error;

  CHECK_INT(tnk_chat_continue(tokens, of, blanks(), sampled, 6, chat, 2, NULL,
                              &error),
            TNK_OK);
  expect_text(tokens,
              "\n<|im_start|>user\nMore<|im_end|>\n<|im_start|>assistant\n");
  tnk_chat_tokens_free(tokens);
  tnk_chat_free(chat);
  tnk_chat_template_unref(of);
}

/* The bytes of the ids are not those of the text, so the weights are found by
 * encoding pieces. */
TEST(answers_are_trained_without_a_blank) {
  static const char *const pairs[] = {"user",      "Hi",   "assistant",
                                      "Hello",     "user", "More",
                                      "assistant", "Bye",  NULL};
  tnk_chat_options_t options = TNK_CHAT_OPTIONS_INIT;
  tnk_chat_template_t *of = toy_open(toy_turns);
  tnk_chat_t *chat = toy_chat(pairs);
  tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(test_allocator());
  tnk_chat_error_t error;

  options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  if (tnk_chat_encode(tokens, of, blanks(), chat, &options, &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", error.text);
  CHECK_STR(toy_trained(tokens), "Hello<|im_end|>|Bye<|im_end|>|");
  tnk_chat_tokens_free(tokens);
  tnk_chat_free(chat);
  tnk_chat_template_unref(of);
}
