/* SPDX-License-Identifier: MIT */
/* This library as a plug-in of libtnk. The libraries are not linked with each
 * other. */
#include <stdio.h>
#include <string.h>

#include "tnk/tokenizers.h"
#include "tokenizers/model/tokenizer.h"

static const char *const main_files[] = {
    "tokenizer.json", "tekken.json", "tiktoken.model", "tokenizer.model", NULL};
static const char *const more_files[] = {"tokenizer_config.json", NULL};

static int say(char *why, size_t size, int err, const char *text) {
  if (size > 0)
    (void)snprintf(why, size, "%s", text);
  return err;
}

/* Returns -1 for an unknown name. */
static int read_format(const char *name) {
  static const char *const names[] = {[TNK_TOKENIZER_AUTO] = "auto",
                                      [TNK_TOKENIZER_HF_JSON] = "hf_json",
                                      [TNK_TOKENIZER_TIKTOKEN] = "tiktoken",
                                      [TNK_TOKENIZER_SENTENCEPIECE] =
                                          "sentencepiece"};

  for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
    if (strcmp(name, names[i]) == 0)
      return i;
  return -1;
}

static int read_override(tnk_tokenizer_options_t *options,
                         const tnk_pair_t *override, char *why, size_t size) {
  int format;

  if (strcmp(override->name, "pattern") == 0) {
    options->pattern = override->value;
    return TNK_OK;
  }
  if (strcmp(override->name, "format") != 0) {
    (void)snprintf(why, size, "there is no override \"%.64s\"", override->name);
    return TNK_ENOTSUP;
  }
  format = read_format(override->value);
  if (format < 0) {
    (void)snprintf(why, size, "there is no format \"%.64s\"", override->value);
    return TNK_EINVAL;
  }
  options->format = (tnk_tokenizer_format_t)format;
  return TNK_OK;
}

static int open_file(void **tokenizer, const char *path,
                     const tnk_pair_t *overrides, size_t n_overrides,
                     const tnk_allocator_t *allocator, char *why,
                     size_t why_size) {
  tnk_tokenizer_options_t options = TNK_TOKENIZER_OPTIONS_INIT;
  tnk_tokenizer_t *tok = NULL;
  tnk_tokenizer_error_t error;
  int err;

  *tokenizer = NULL;
  options.allocator = allocator;
  for (size_t i = 0; i < n_overrides; i++) {
    err = read_override(&options, &overrides[i], why, why_size);
    if (err != TNK_OK)
      return err;
  }
  err = tnk_tokenizer_load(&tok, path, &options, &error);
  if (err != TNK_OK)
    return say(why, why_size, err, error.text);
  *tokenizer = tok;
  return TNK_OK;
}

static void close_it(void *tokenizer) {
  tnk_tokenizer_unref(tokenizer);
}

static int encode(const void *tokenizer, const char *text, size_t n,
                  unsigned flags, tnk_take_ids_cb take, void *user, char *why,
                  size_t why_size) {
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);
  tnk_tokenizer_error_t error;
  const int32_t *ids;
  size_t n_ids;
  int err;

  if (tokens == NULL)
    return say(why, why_size, TNK_ENOMEM, "out of memory");
  err = tnk_tokenizer_encode(tokenizer, tokens, text, n,
                             flags & ~(unsigned)TNK_ENCODE_OFFSETS, &error);
  if (err == TNK_OK) {
    ids = tnk_tokens_ids(tokens, &n_ids);
    err = take(ids, n_ids, user);
  } else {
    (void)say(why, why_size, err, error.text);
  }
  tnk_tokens_free(tokens);
  return err;
}

/* Decode each token separately. A decoder treats the start of a text specially,
 * and that would be wrong in the middle of one. */
static int decode(const void *tokenizer, const int32_t *ids, size_t n,
                  unsigned flags, tnk_take_bytes_cb take, void *user, char *why,
                  size_t why_size) {
  int err = TNK_OK;

  if ((flags & ~(unsigned)TNK_DECODE_SKIP_SPECIAL) != 0)
    return say(why, why_size, TNK_EINVAL, "unknown flag of decoding");
  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    unsigned kind = 0;
    size_t n_bytes;
    const char *bytes = tnk_tokenizer_token(tokenizer, ids[i], &n_bytes, &kind);

    if (bytes != NULL && ((flags & TNK_DECODE_SKIP_SPECIAL) == 0 ||
                          (kind & TNK_TOKEN_SPECIAL) == 0))
      err = take(bytes, n_bytes, user);
  }
  return err;
}

static const char *added(const void *tokenizer, size_t index, size_t *n,
                         int32_t *id) {
  const tnk_tokenizer_t *tok = tokenizer;
  const tnk__added_t *of = &tok->raw;
  const tnk__added_token_t *token;

  if (index >= of->n) {
    index -= of->n;
    of = &tok->normalized;
  }
  if (index >= of->n)
    return NULL;
  token = &of->tokens[index];
  *n = token->n;
  *id = (int32_t)token->id;
  return (const char *)of->blob + token->offset;
}

static const tnk_tokenizer_plugin_t plugin = {
    .size = sizeof(plugin),
    .name = "tnk-tokenizers",
    .main_files = main_files,
    .more_files = more_files,
    .open = open_file,
    .close = close_it,
    .encode = encode,
    .decode = decode,
    .added = added,
    .plain_flags = TNK_ENCODE_PLAIN,
};

const tnk_tokenizer_plugin_t *tnk_tokenizer_plugin(void) {
  return &plugin;
}
