/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/base64.h"
#include "tokenizers/format/json.h"
#include "tokenizers/format/ranks.h"
#include "tokenizers/unicode/unicode.h"

/*
 * Mistral's tekken.json: an expression, ranks, and special tokens. The ids of
 * special tokens come first, so the id of a token is its rank plus the number
 * of special tokens. The file has more ranks than are used. As in the
 * reference, no text becomes a special token; their ids are added by id only.
 */
#define MAX_PATTERN 1024

typedef struct {
  tnk_tokenizer_t *tok;
  tnk__jread_t json;
  tnk_tokenizer_error_t *error;
  uint32_t n_vocab;   /* all ids */
  uint32_t n_special; /* those of special tokens */
  int is_old;         /* of a version that may leave out special_tokens */
  const uint8_t *vocab;
  const uint8_t *special;
} tekken_t;

static int malformed(const tekken_t *tekken, const char *place) {
  size_t at = (size_t)(tekken->json.p - tekken->json.base);

  return tnk__fault(tekken->error, TNK_EPROTO, at,
                    "tekken.json, byte %zu: malformed %s", at, place);
}

int tnk__tekken_is(const uint8_t *data, size_t n) {
  static const char *const names[] = {
      "config", "vocab",      "special_tokens",        "image",
      "audio",  "multimodal", "model_settings_builder"};
  tnk__jread_text_t key;
  tnk__jread_t json;
  size_t count = 0;

  tnk__jread_init(&json, data, n);
  if (tnk__utf8_valid(data, n) < n || tnk__jread_take(&json, '{') < 0)
    return 0;
  while (tnk__jread_next_key(&json, &count, &key) > 0) {
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
      if (tnk__jread_is(&key, names[i]))
        return 1;
    /* Both kinds of file may have a version, with another type of value. */
    if ((!tnk__jread_is(&key, "version") && !tnk__jread_is(&key, "type")) ||
        tnk__jread_skip(&json) < 0)
      return 0;
  }
  return 0;
}

/* Read a string into memory of the caller and resolve its escapes. */
static int read_text(tekken_t *tekken, char *out, size_t size,
                     const char *place) {
  tnk__jread_text_t text;
  size_t n;

  if (tnk__jread_text(&tekken->json, &text) < 0 || text.n >= size ||
      tnk__jread_unescape(&text, (uint8_t *)out, &n) < 0 ||
      memchr(out, 0, n) != NULL)
    return malformed(tekken, place);
  out[n] = '\0';
  return TNK_OK;
}

static int read_pattern(tekken_t *tekken) {
  char pattern[MAX_PATTERN];
  int err = read_text(tekken, pattern, sizeof(pattern), "config.pattern");

  if (err < 0)
    return err;
  tekken->tok->shape = tnk__split_find(pattern, strlen(pattern));
  return tekken->tok->shape != TNK__SHAPE_NONE
             ? TNK_OK
             : tnk__fault(tekken->error, TNK_EUNSUPPORTED, 0,
                          "tekken.json: config.pattern %.200s is not "
                          "implemented",
                          pattern);
}

static int read_version(tekken_t *tekken) {
  static const char *const old[] = {"v1", "v2", "v3", "v7"};
  char version[32];
  int err = read_text(tekken, version, sizeof(version), "config.version");

  for (size_t i = 0; err == TNK_OK && i < sizeof(old) / sizeof(old[0]); i++)
    tekken->is_old |= strcmp(version, old[i]) == 0;
  return err;
}

static int read_config(tekken_t *tekken) {
  tnk__jread_text_t key;
  size_t n = 0;
  int more, err = TNK_OK;

  if (tnk__jread_take(&tekken->json, '{') < 0)
    return malformed(tekken, "config");
  while (err == TNK_OK &&
         (more = tnk__jread_next_key(&tekken->json, &n, &key)) != 0) {
    uint32_t *number =
        tnk__jread_is(&key, "default_vocab_size")           ? &tekken->n_vocab
        : tnk__jread_is(&key, "default_num_special_tokens") ? &tekken->n_special
                                                            : NULL;

    if (more < 0)
      return malformed(tekken, "config");
    if (tnk__jread_is(&key, "pattern"))
      err = read_pattern(tekken);
    else if (tnk__jread_is(&key, "version"))
      err = read_version(tekken);
    else if (number != NULL ? tnk__jread_uint(&tekken->json, number) < 0
                            : tnk__jread_skip(&tekken->json) < 0)
      err = malformed(tekken, "config");
  }
  return err;
}

/* Check the numbers, which come before or after what they count. */
static int check_config(const tekken_t *tekken) {
  if (tekken->tok->shape == TNK__SHAPE_NONE || tekken->vocab == NULL)
    return tnk__fault(tekken->error, TNK_EPROTO, 0,
                      "tekken.json: config.pattern or vocab is missing");
  if (tekken->n_vocab >= TNK__MAX_VOCAB || tekken->n_special > tekken->n_vocab)
    return tnk__fault(tekken->error, TNK_EPROTO, 0,
                      "tekken.json: config.default_vocab_size or "
                      "default_num_special_tokens is out of range");
  if (tekken->special == NULL && !tekken->is_old)
    return tnk__fault(tekken->error, TNK_EPROTO, 0,
                      "tekken.json: special_tokens are missing");
  return TNK_OK;
}

/* {"rank": 5, "token_bytes": "..."} must be the rank that is next. */
static int read_rank(tekken_t *tekken, uint32_t rank) {
  tnk__vocab_t *vocab = &tekken->tok->vocab;
  tnk__jread_text_t key, bytes = {NULL, 0, 0};
  uint32_t given = UINT32_MAX;
  size_t n = 0, n_bytes;
  uint8_t *out;
  int more, err;

  if (tnk__jread_take(&tekken->json, '{') < 0)
    return malformed(tekken, "vocab");
  while ((more = tnk__jread_next_key(&tekken->json, &n, &key)) > 0) {
    if (tnk__jread_is(&key, "rank"))
      err = tnk__jread_uint(&tekken->json, &given);
    else if (tnk__jread_is(&key, "token_bytes"))
      err = tnk__jread_text(&tekken->json, &bytes);
    else
      err = tnk__jread_skip(&tekken->json);
    if (err < 0)
      return malformed(tekken, "vocab");
  }
  if (more < 0 || given != rank || bytes.p == NULL || bytes.n % 4 != 0)
    return malformed(tekken, "vocab");
  out = tnk__vocab_reserve(vocab, bytes.n + 1);
  if (out == NULL)
    return tnk__fault_memory(tekken->error);
  n_bytes = tnk__base64_decode(out, (const char *)bytes.p, bytes.n);
  if (n_bytes == SIZE_MAX || n_bytes == 0)
    return malformed(tekken, "vocab: no base64");
  err = tnk__vocab_put(vocab, rank + tekken->n_special, n_bytes, 0, 1);
  if (err == TNK_ENOMEM)
    return tnk__fault_memory(tekken->error);
  return err < 0 ? malformed(tekken, "vocab: a token twice, or too large")
                 : TNK_OK;
}

static int read_vocab(tekken_t *tekken) {
  uint32_t n_ranks = tekken->n_vocab - tekken->n_special;
  size_t n = 0;
  int more;

  tekken->json.p = tekken->vocab;
  if (tnk__jread_take(&tekken->json, '[') < 0)
    return malformed(tekken, "vocab");
  for (uint32_t rank = 0; rank < n_ranks; rank++) {
    int err;

    more = tnk__jread_next_item(&tekken->json, &n);
    if (more <= 0)
      return malformed(tekken, more < 0 ? "vocab" : "vocab: it is too short");
    err = read_rank(tekken, rank);
    if (err < 0)
      return err;
  }
  return TNK_OK;
}

static int put_special(tekken_t *tekken, uint32_t id, const char *text) {
  size_t n = strlen(text);
  uint8_t *room = tnk__vocab_reserve(&tekken->tok->vocab, n + 1);
  int err;

  if (room == NULL)
    return tnk__fault_memory(tekken->error);
  memcpy(room, text, n);
  if (id >= tekken->n_special)
    return malformed(tekken, "special_tokens: a rank is too large");
  err = tnk__vocab_put(&tekken->tok->vocab, id, n,
                       TNK__TOKEN_LITERAL | TNK__TOKEN_SPECIAL, 1);
  if (err == TNK_ENOMEM)
    return tnk__fault_memory(tekken->error);
  return err < 0 ? malformed(tekken, "special_tokens: a name or rank is there "
                                     "twice, or too large")
                 : TNK_OK;
}

/* The special tokens of old files, which do not list them. */
static int put_old_specials(tekken_t *tekken, uint32_t *n) {
  static const char *const names[] = {"<unk>",
                                      "<s>",
                                      "</s>",
                                      "[INST]",
                                      "[/INST]",
                                      "[AVAILABLE_TOOLS]",
                                      "[/AVAILABLE_TOOLS]",
                                      "[TOOL_RESULTS]",
                                      "[/TOOL_RESULTS]",
                                      "[TOOL_CALLS]",
                                      "[IMG]",
                                      "<pad>",
                                      "[IMG_BREAK]",
                                      "[IMG_END]",
                                      "[PREFIX]",
                                      "[MIDDLE]",
                                      "[SUFFIX]",
                                      "[SYSTEM_PROMPT]",
                                      "[/SYSTEM_PROMPT]",
                                      "[TOOL_CONTENT]"};
  int err = TNK_OK;

  for (*n = 0; *n < sizeof(names) / sizeof(names[0]) && err == TNK_OK; (*n)++)
    err = put_special(tekken, *n, names[*n]);
  return err;
}

/* {"rank": 5, "token_str": "..."} */
static int read_special(tekken_t *tekken) {
  tnk__jread_text_t key;
  char text[256] = "";
  uint32_t rank = UINT32_MAX;
  size_t n = 0;
  int more, err = TNK_OK;

  if (tnk__jread_take(&tekken->json, '{') < 0)
    return malformed(tekken, "special_tokens");
  while (err == TNK_OK &&
         (more = tnk__jread_next_key(&tekken->json, &n, &key)) != 0) {
    if (more < 0)
      return malformed(tekken, "special_tokens");
    if (tnk__jread_is(&key, "token_str"))
      err = read_text(tekken, text, sizeof(text), "special_tokens");
    else if (tnk__jread_is(&key, "rank")
                 ? tnk__jread_uint(&tekken->json, &rank) < 0
                 : tnk__jread_skip(&tekken->json) < 0)
      err = malformed(tekken, "special_tokens");
  }
  if (err < 0)
    return err;
  return text[0] == '\0' || rank == UINT32_MAX
             ? malformed(tekken, "special_tokens: one has no name or rank")
             : put_special(tekken, rank, text);
}

static int read_specials(tekken_t *tekken, uint32_t *n) {
  size_t count = 0;
  int more, err = TNK_OK;

  *n = 0;
  tekken->json.p = tekken->special;
  if (tnk__jread_take(&tekken->json, '[') < 0)
    return malformed(tekken, "special_tokens");
  while (err == TNK_OK &&
         (more = tnk__jread_next_item(&tekken->json, &count)) != 0) {
    err = more < 0 ? malformed(tekken, "special_tokens") : read_special(tekken);
    (*n)++;
  }
  return err;
}

/* Names for the ids that are left. */
static int fill_specials(tekken_t *tekken) {
  uint32_t n;
  int err = tekken->special == NULL ? put_old_specials(tekken, &n)
                                    : read_specials(tekken, &n);

  for (; err == TNK_OK && n < tekken->n_special; n++) {
    char name[32];

    (void)snprintf(name, sizeof(name), "<SPECIAL_%u>", (unsigned)n);
    err = put_special(tekken, n, name);
  }
  return err;
}

static int read_members(tekken_t *tekken) {
  tnk__jread_t *json = &tekken->json;
  tnk__jread_text_t key;
  size_t n = 0;
  int more, err;

  if (tnk__jread_take(json, '{') < 0)
    return malformed(tekken, "JSON");
  while ((more = tnk__jread_next_key(json, &n, &key)) > 0) {
    (void)tnk__jread_peek(json);
    if (tnk__jread_is(&key, "config")) {
      err = read_config(tekken);
      if (err < 0)
        return err;
      continue;
    }
    if (tnk__jread_is(&key, "vocab"))
      tekken->vocab = json->p;
    else if (tnk__jread_is(&key, "special_tokens") &&
             tnk__jread_peek(json) != 'n')
      tekken->special = json->p;
    if (tnk__jread_skip(json) < 0)
      return malformed(tekken, "JSON");
  }
  if (more < 0 || tnk__jread_peek(json) != 0 || json->p != json->end)
    return malformed(tekken, "JSON");
  return TNK_OK;
}

int tnk__tekken_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                     tnk_tokenizer_error_t *error) {
  tekken_t tekken = {.tok = tok, .error = error};
  int err;

  tnk__jread_init(&tekken.json, data, n);
  err = read_members(&tekken);
  if (err == TNK_OK)
    err = check_config(&tekken);
  if (err == TNK_OK)
    err = read_vocab(&tekken);
  if (err == TNK_OK)
    err = tnk__ranks_finish(tok, "tekken.json", error);
  if (err == TNK_OK)
    err = fill_specials(&tekken);
  if (err < 0)
    return err;
  tok->ignore_merges = 1;
  tok->bos = tnk_tokenizer_id(tok, "<s>", 3);
  tok->eos = tnk_tokenizer_id(tok, "</s>", 4);
  if (tok->bos >= 0)
    tok->before[tok->n_before++] = tok->bos;
  tnk__added_finish(&tok->raw);
  tnk__added_finish(&tok->normalized);
  tnk__vocab_trim(&tok->vocab);
  return TNK_OK;
}
