/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_OBJECT_H
#define TNK_CHAT_OBJECT_H

#include <stdatomic.h>

#include "chat/render/ids.h"
#include "chat/render/prompt.h"
#include "tnk/chat.h"

#define TNK__CHAT_MAX_FILE ((size_t)64 * 1024 * 1024)

struct tnk_chat_template {
  atomic_size_t refs;
  tnk_allocator_t alloc;
  tnk__heap_t heap;
  tnk__template_t *plain;    /* for conversations without tools */
  tnk__template_t *tool_use; /* for conversations with tools; or NULL */
  tnk__value_t tokens;       /* a dict: bos_token, ... */
  const char *const *stops;  /* ends with NULL */
  const char *rest;          /* as `rest` of tnk__prompt_t; or NULL */
  const char *name;          /* for errors: the path; or NULL */
};

struct tnk_chat {
  tnk_allocator_t alloc;
  tnk__heap_t heap;
  tnk__value_t messages;  /* a list */
  tnk__value_t tools;     /* a list, or NONE */
  tnk__value_t variables; /* a dict */
};

/* End a public call: copy the reason to `error`, which may be NULL. */
int tnk__chat_end(tnk_chat_error_t *error, int err, const tnk__why_t *why);
/* The same for an error of a template. The error starts with the path from
 * which the template was loaded; `path` may be NULL. */
int tnk__chat_end_template(tnk_chat_error_t *error, int err,
                           const tnk__why_t *why, const char *path);
/* Merge a caller's options with the defaults. */
int tnk__chat_options(tnk_chat_options_t *own, const tnk_chat_options_t *given,
                      tnk__why_t *why);
/* Load a caller's tokenizer. */
int tnk__chat_coder(tnk__coder_t *coder, const tnk_chat_tokenizer_t *tokenizer,
                    int needs_encode, tnk__why_t *why);
/* Prepare a rendering of the conversation. The variables are in `heap`, which
 * must live as long as the prompt. */
int tnk__chat_prompt(tnk__prompt_t *prompt, tnk__heap_t *heap,
                     const tnk_chat_template_t *of, const tnk_chat_t *chat,
                     const tnk_chat_options_t *options, tnk__why_t *why);

#endif
