/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tokenizers/format/ranks.h"

/*
 * The encodings that tiktoken and Whisper know by name: the expression and the
 * special tokens of a rank file, which has neither.
 */
typedef struct {
  const char *text;
  uint32_t id;
} special_t;

#define END_OF_TEXT "<|endoftext|>"
#define FILL_IN(prefix)                                                        \
  {"<|fim_prefix|>", prefix}, {"<|fim_middle|>", (prefix) + 1}, {              \
    "<|fim_suffix|>", (prefix) + 2                                             \
  }
#define MAX_SPECIALS 16

typedef struct {
  const char *name;
  tnk__shape_t shape;
  unsigned n_languages;            /* Whisper: its tokens follow the ranks */
  uint32_t reserved[2];            /* first and last id of reserved tokens */
  special_t special[MAX_SPECIALS]; /* up to the first without text */
} encoding_t;

static const encoding_t encodings[] = {
    {"gpt2", TNK__SHAPE_GPT2, 0, {0}, {{END_OF_TEXT, 50256}}},
    {"r50k_base", TNK__SHAPE_GPT2, 0, {0}, {{END_OF_TEXT, 50256}}},
    {"p50k_base", TNK__SHAPE_GPT2, 0, {0}, {{END_OF_TEXT, 50256}}},
    {"p50k_edit",
     TNK__SHAPE_GPT2,
     0,
     {0},
     {{END_OF_TEXT, 50256}, FILL_IN(50281)}},
    {"cl100k_base",
     TNK__SHAPE_CL100K_END,
     0,
     {0},
     {{END_OF_TEXT, 100257}, FILL_IN(100258), {"<|endofprompt|>", 100276}}},
    {"o200k_base",
     TNK__SHAPE_O200K,
     0,
     {0},
     {{END_OF_TEXT, 199999}, {"<|endofprompt|>", 200018}}},
    /* Id 200018 has two names. Decoding gives the first. */
    {"o200k_harmony",
     TNK__SHAPE_O200K,
     0,
     {200013, 201087},
     {{"<|startoftext|>", 199998},
      {END_OF_TEXT, 199999},
      {"<|endofprompt|>", 200018},
      {"<|reserved_200000|>", 200000},
      {"<|reserved_200001|>", 200001},
      {"<|return|>", 200002},
      {"<|constrain|>", 200003},
      {"<|reserved_200004|>", 200004},
      {"<|channel|>", 200005},
      {"<|start|>", 200006},
      {"<|end|>", 200007},
      {"<|message|>", 200008},
      {"<|reserved_200009|>", 200009},
      {"<|reserved_200010|>", 200010},
      {"<|reserved_200011|>", 200011},
      {"<|call|>", 200012}}},
    {"whisper", TNK__SHAPE_GPT2, 99, {0}, {{NULL, 0}}},
    {"whisper_en", TNK__SHAPE_GPT2, 99, {0}, {{NULL, 0}}},
    {"whisper_v3", TNK__SHAPE_GPT2, 100, {0}, {{NULL, 0}}},
};

/* Names of files that differ from those of their encodings. */
static const struct {
  const char *file;
  const char *encoding;
} files[] = {
    {"multilingual.tiktoken", "whisper"},
    {"gpt2.tiktoken", "whisper_en"},
};

static const encoding_t *find(const char *name, size_t n) {
  for (size_t i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++)
    if (strlen(encodings[i].name) == n &&
        memcmp(encodings[i].name, name, n) == 0)
      return &encodings[i];
  return NULL;
}

const char *tnk__encoding_of_file(const char *path) {
  static const char suffix[] = ".tiktoken";
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  size_t n = strlen(name), n_suffix = sizeof(suffix) - 1;
  const encoding_t *encoding;

  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
    if (strcmp(name, files[i].file) == 0)
      return files[i].encoding;
  if (n < n_suffix || strcmp(name + n - n_suffix, suffix) != 0)
    return NULL;
  encoding = find(name, n - n_suffix);
  return encoding == NULL ? NULL : encoding->name;
}

tnk__shape_t tnk__encoding_shape(const char *name) {
  const encoding_t *encoding = find(name, strlen(name));

  return encoding == NULL ? TNK__SHAPE_NONE : encoding->shape;
}

static int put(tnk_tokenizer_t *tok, uint32_t id, const char *text) {
  return tnk__ranks_special(tok, id, (const uint8_t *)text, strlen(text),
                            TNK__ADDED_SPECIAL);
}

/* The tokens of the languages, which are as many as the first version of the
 * model with this vocabulary has. Returns the next id, or a negative code. */
static int put_languages(tnk_tokenizer_t *tok, int id, unsigned n) {
  static const char codes[] =
      "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk "
      "el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn "
      "sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn "
      "yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my "
      "bo tl mg as tt haw ln ha ba jw su yue";
  const char *p = codes;
  int err = TNK_OK;

  for (unsigned i = 0; i < n && err == TNK_OK; i++) {
    size_t length = strcspn(p, " ");
    char text[16];

    (void)snprintf(text, sizeof(text), "<|%.*s|>", (int)length, p);
    err = put(tok, (uint32_t)id++, text);
    p += length + (p[length] == ' ');
  }
  return err < 0 ? err : id;
}

/* Whisper's special tokens follow the ranks. The last are times, in steps of 20
 * ms up to 30 s. */
static int put_whisper(tnk_tokenizer_t *tok, unsigned n_languages) {
  static const char *const before[] = {END_OF_TEXT, "<|startoftranscript|>"};
  static const char *const behind[] = {"<|translate|>", "<|transcribe|>",
                                       "<|startoflm|>", "<|startofprev|>",
                                       "<|nospeech|>",  "<|notimestamps|>"};
  int id = (int)tok->n_ranks, err = TNK_OK;

  for (size_t i = 0; i < 2 && err == TNK_OK; i++)
    err = put(tok, (uint32_t)id++, before[i]);
  if (err == TNK_OK)
    id = put_languages(tok, id, n_languages);
  err = id < 0 ? id : err;
  for (size_t i = 0; i < 6 && err == TNK_OK; i++)
    err = put(tok, (uint32_t)id++, behind[i]);
  for (unsigned i = 0; i <= 1500 && err == TNK_OK; i++) {
    char text[16];

    (void)snprintf(text, sizeof(text), "<|%u.%02u|>", i / 50, i % 50 * 2);
    err = put(tok, (uint32_t)id++, text);
  }
  return err;
}

int tnk__encoding_specials(tnk_tokenizer_t *tok, const char *name) {
  const encoding_t *encoding = find(name, strlen(name));
  int err = TNK_OK;

  if (encoding->n_languages > 0)
    return put_whisper(tok, encoding->n_languages);
  for (size_t i = 0;
       i < MAX_SPECIALS && encoding->special[i].text != NULL && err == TNK_OK;
       i++)
    err = put(tok, encoding->special[i].id, encoding->special[i].text);
  for (uint32_t id = encoding->reserved[0];
       id > 0 && id <= encoding->reserved[1] && err == TNK_OK; id++) {
    char text[32];

    (void)snprintf(text, sizeof(text), "<|reserved_%u|>", (unsigned)id);
    err = tnk__vocab_has(&tok->vocab, id)
              ? tnk__added_put(&tok->raw, (const uint8_t *)text, strlen(text),
                               id, TNK__ADDED_SPECIAL)
              : put(tok, id, text);
  }
  return err;
}
