/* SPDX-License-Identifier: MIT */
/* Converts text with a plug-in. */
#include "tnk/text.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/options.h"
#include "tnk/error.h"

struct tnk_text_tokens {
  tnk_allocator_t alloc;
  tnk_model_input_t input;
  int32_t *ids;
};

static int say(char *why, size_t size, int err, const char *text) {
  if (why != NULL && size > 0)
    snprintf(why, size, "%s", text);
  return err;
}

static int take(const int32_t *ids, size_t n, void *user) {
  tnk__buf_t *buf = user;

  if (n > buf->max / sizeof(*ids))
    return TNK_ETOOBIG;
  return n > 0 ? tnk__buf_append(buf, ids, n * sizeof(*ids)) : TNK_OK;
}

/* Takes ownership of the bytes of `ids`. */
static int make(tnk_prompt_t **out, const tnk_allocator_t *alloc,
                tnk__buf_t *ids) {
  tnk_prompt_t *input = tnk__calloc(alloc, 1, sizeof(*input));
  size_t n = 0;

  if (input == NULL)
    return TNK_ENOMEM;
  input->alloc = *alloc;
  /* The memory comes from the allocator, so it is aligned for any type. */
  input->ids = (int32_t *)(void *)tnk__buf_take(ids, &n);
  input->input = (tnk_model_input_t){.tokens = input->ids,
                                     .n_tokens = n / sizeof(*input->ids)};
  *out = input;
  return TNK_OK;
}

int tnk_prompt_from_text(tnk_prompt_t **out,
                         const tnk_tokenizer_plugin_t *plugin,
                         const void *tokenizer, const char *text, size_t n,
                         unsigned flags, const tnk_allocator_t *allocator,
                         char *why, size_t why_size) {
  tnk_tokenizer_plugin_t own = TNK_TOKENIZER_PLUGIN_INIT;
  char said[400] = "";
  tnk__buf_t ids;
  int err;

  if (out == NULL)
    return say(why, why_size, TNK_EINVAL, "out is NULL");
  *out = NULL;
  say(why, why_size, TNK_OK, "");
  if (allocator == NULL)
    allocator = tnk__allocator_default();
  err = TNK__LOAD(tnk_tokenizer_plugin_t, &own, plugin, said, sizeof(said));
  if (err != TNK_OK)
    return say(why, why_size, err, said);
  if (own.encode == NULL)
    return say(why, why_size, TNK_EINVAL, "the plug-in cannot encode");
  if (tokenizer == NULL || (text == NULL && n > 0))
    return say(why, why_size, TNK_EINVAL, "no tokenizer or no text was given");
  tnk__buf_init(&ids, allocator, (size_t)INT32_MAX * sizeof(int32_t));
  err = own.encode(tokenizer, text != NULL ? text : "", n, flags, take, &ids,
                   said, sizeof(said));
  if (err == TNK_OK)
    err = make(out, allocator, &ids);
  tnk__buf_deinit(&ids);
  said[sizeof(said) - 1] = '\0';
  return err == TNK_OK ? TNK_OK
                       : say(why, why_size, err,
                             said[0] != '\0' ? said : tnk_strerror(err));
}

const tnk_model_input_t *tnk_prompt_input(const tnk_prompt_t *input) {
  return input != NULL ? &input->input : NULL;
}

void tnk_prompt_free(tnk_prompt_t *input) {
  if (input == NULL)
    return;
  const tnk_allocator_t alloc = input->alloc;
  tnk__free(&alloc, input->ids);
  tnk__free(&alloc, input);
}
