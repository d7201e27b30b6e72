/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CHAT_TOY_H
#define TNK_TEST_CHAT_TOY_H

#include "tnk/chat.h"

/* A tokenizer for tests: bytes, two marks of turns, and an empty line, which is
 * one token wherever it stands. */
enum { TOY_START = 1000, TOY_END = 1001, TOY_LINES = 1002 };

extern const tnk_tokenizer_plugin_t toy_plugin;
extern const tnk_chat_tokenizer_t toy;

/* Templates with turns between marks: the plainest; with thoughts that are left
 * out once a user speaks; with generation blocks. */
extern const char toy_turns[];
extern const char toy_thinks[];
extern const char toy_blocks[];

tnk_chat_template_t *toy_open(const char *text);
/* A conversation: pairs of role and text, up to a NULL. */
tnk_chat_t *toy_chat(const char *const *pairs);
/* The text of ids, NUL-terminated; static. */
const char *toy_text(const int32_t *ids, size_t n);
/* The same of the ids that have a weight; a bar stands between runs. */
const char *toy_trained(const tnk_chat_tokens_t *tokens);

#endif
