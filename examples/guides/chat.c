#include <stdio.h>
#include <tnk/chat.h>

int main(void) {
  const tnk_chat_tokenizer_t bytes = {tnk_chat_bytes_plugin(), NULL};
  tnk_chat_options_t options = TNK_CHAT_OPTIONS_INIT;
  tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(NULL);
  tnk_chat_t *chat = tnk_chat_new(NULL);
  tnk_chat_template_t *plain;
  tnk_chat_error_t error;
  size_t n = 0;

  if (tnk_chat_template_open(&plain, NULL, 0, NULL, &error) != TNK_OK ||
      tnk_chat_add(chat, "user", "What is 6 times 7?", &error) != TNK_OK ||
      tnk_chat_add(chat, "assistant", "42", &error) != TNK_OK) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
  if (tnk_chat_encode(tokens, plain, &bytes, chat, &options, &error) !=
      TNK_OK) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  const int32_t *ids = tnk_chat_tokens_ids(tokens, &n);
  const float *weights = tnk_chat_tokens_weights(tokens);
  for (size_t i = 0; i < n; i++) /* Learned bytes are in brackets. */
    printf(weights[i] > 0 ? "[%c]" : "%c", ids[i]);
  printf("\n");
  tnk_chat_tokens_free(tokens);
  tnk_chat_free(chat);
  tnk_chat_template_unref(plain);
  return 0;
}
