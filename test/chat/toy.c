/* SPDX-License-Identifier: MIT */
#include "toy.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"

static const char *const marks[] = {"<|im_start|>", "<|im_end|>", "\n\n"};

const char toy_turns[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + "
    "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}";
const char toy_thinks[] =
    "{% set ns = namespace(user=0) %}{% for m in messages %}"
    "{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}"
    "{% endfor %}{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
    "{% if m.reasoning_content and loop.index0 > ns.user %}"
    "{{ '<think>' + m.reasoning_content + '</think>' }}{% endif %}"
    "{{ m.content + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
const char toy_blocks[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% endgeneration %}{% else %}{{ m.content }}{% endif %}"
    "{{ '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

static int encode(const void *tokenizer, const char *text, size_t n,
                  unsigned flags, tnk_take_ids_cb take, void *user, char *why,
                  size_t why_size) {
  int err = TNK_OK;

  (void)tokenizer;
  for (size_t i = 0; i < n && err == TNK_OK;) {
    int32_t id = (unsigned char)text[i];
    size_t len = 1;

    for (int32_t m = 0; m < 3; m++)
      if ((flags == 0 || m == 2) && strlen(marks[m]) <= n - i &&
          memcmp(text + i, marks[m], strlen(marks[m])) == 0) {
        id = TOY_START + m;
        len = strlen(marks[m]);
      }
    if (text[i] == '\x01') {
      snprintf(why, why_size, "no control characters");
      return TNK_EUNSUPPORTED;
    }
    err = take(&id, 1, user);
    i += len;
  }
  return err;
}

static int decode(const void *tokenizer, const int32_t *ids, size_t n,
                  unsigned flags, tnk_take_bytes_cb take, void *user, char *why,
                  size_t why_size) {
  int err = TNK_OK;

  (void)tokenizer;
  (void)flags;
  (void)why;
  (void)why_size;
  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    const char byte = (char)(unsigned char)(ids[i] & 0xff);

    if (ids[i] >= TOY_START && ids[i] <= TOY_LINES)
      err = take(marks[ids[i] - TOY_START], strlen(marks[ids[i] - TOY_START]),
                 user);
    else
      err = take(&byte, 1, user);
  }
  return err;
}

/* The empty line is one too, but blanks alone are no control token. */
static const char *added(const void *tokenizer, size_t index, size_t *n,
                         int32_t *id) {
  (void)tokenizer;
  if (index >= 3)
    return NULL;
  *n = strlen(marks[index]);
  *id = TOY_START + (int32_t)index;
  return marks[index];
}

const tnk_tokenizer_plugin_t toy_plugin = {.size = sizeof(toy_plugin),
                                           .name = "toy",
                                           .encode = encode,
                                           .decode = decode,
                                           .added = added,
                                           .plain_flags = 1};
const tnk_chat_tokenizer_t toy = {&toy_plugin, NULL};

tnk_chat_template_t *toy_open(const char *text) {
  static const char *const stops[] = {"<|im_end|>", NULL};
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  tnk_chat_template_t *of;
  tnk_chat_error_t error;

  options.allocator = test_allocator();
  options.stops = text != NULL ? stops : NULL;
  if (tnk_chat_template_open(&of, text, text != NULL ? strlen(text) : 0,
                             &options, &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", error.text);
  return of;
}

tnk_chat_t *toy_chat(const char *const *pairs) {
  tnk_chat_t *chat = tnk_chat_new(test_allocator());

  CHECK(chat != NULL);
  for (; pairs[0] != NULL; pairs += 2)
    CHECK_INT(tnk_chat_add(chat, pairs[0], pairs[1], NULL), TNK_OK);
  return chat;
}

static size_t put_id(char *text, int32_t id) {
  if (id >= TOY_START)
    return (size_t)snprintf(text, 16, "%s", marks[id - TOY_START]);
  text[0] = (char)id;
  return 1;
}

const char *toy_text(const int32_t *ids, size_t n) {
  static char text[8192];
  size_t len = 0;

  for (size_t i = 0; i < n && len + 32 < sizeof(text); i++)
    len += put_id(text + len, ids[i]);
  text[len] = '\0';
  return text;
}

const char *toy_trained(const tnk_chat_tokens_t *tokens) {
  static char text[8192];
  size_t len = 0, n;
  const int32_t *ids = tnk_chat_tokens_ids(tokens, &n);
  const float *weights = tnk_chat_tokens_weights(tokens);

  for (size_t i = 0; i < n && len + 32 < sizeof(text); i++) {
    if (weights[i] > 0)
      len += put_id(text + len, ids[i]);
    else if (i > 0 && weights[i - 1] > 0)
      text[len++] = '|';
  }
  text[len] = '\0';
  return text;
}
