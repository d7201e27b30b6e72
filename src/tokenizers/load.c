/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/alloc.h"
#include "lib/base/options.h"
#include "tokenizers/format/ranks.h"
#include "tokenizers/sentencepiece/sp.h"

/* Loading: find the file, detect its format, and call a reader. */
#define MAX_FILE ((uint64_t)256 << 20)
#define MAX_PATH 4096

typedef struct {
  uint8_t *data;
  size_t n;
} file_t;

static int cannot_read(tnk_tokenizer_error_t *error, const char *path,
                       const char *why) {
  return tnk__fault(error, TNK_ENOTFOUND, 0, "cannot read %.256s: %s", path,
                    why);
}

static int read_open_file(file_t *file, FILE *from,
                          const tnk_allocator_t *alloc, const char *path,
                          tnk_tokenizer_error_t *error) {
  struct stat about;

  if (fstat(fileno(from), &about) != 0 || !S_ISREG(about.st_mode))
    return cannot_read(error, path, "it is no regular file");
  if ((uint64_t)about.st_size > MAX_FILE)
    return tnk__fault(error, TNK_ETOOBIG, 0, "%.256s is over 256 MiB", path);
  file->n = (size_t)about.st_size;
  file->data = tnk__malloc(alloc, file->n + 1);
  if (file->data == NULL)
    return tnk__fault_memory(error);
  if (fread(file->data, 1, file->n, from) == file->n)
    return TNK_OK;
  tnk__free(alloc, file->data);
  file->data = NULL;
  return cannot_read(error, path, "it ended early");
}

static int read_file(file_t *file, const tnk_allocator_t *alloc,
                     const char *path, tnk_tokenizer_error_t *error) {
  FILE *from = fopen(path, "rb");
  int err;

  file->data = NULL;
  file->n = 0;
  if (from == NULL)
    return cannot_read(error, path, strerror(errno));
  err = read_open_file(file, from, alloc, path, error);
  (void)fclose(from);
  return err;
}

/* Find the main file of a directory, or the path itself. */
static int find_main(char *out, size_t size, const char *path,
                     tnk_tokenizer_error_t *error) {
  static const char *const names[] = {"", "/tokenizer.json", "/tekken.json",
                                      "/tiktoken.model", "/tokenizer.model"};
  struct stat about;
  int n;

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    n = snprintf(out, size, "%s%s", path, names[i]);
    if (n < 0 || (size_t)n >= size)
      return tnk__fault(error, TNK_EINVAL, 0, "the path is too long");
    if (stat(out, &about) == 0 && !S_ISDIR(about.st_mode))
      return TNK_OK;
    if (i == 0 && stat(out, &about) != 0)
      return cannot_read(error, path, strerror(errno));
  }
  return tnk__fault(error, TNK_ENOTFOUND, 0,
                    "%.256s has no tokenizer.json, tekken.json, "
                    "tiktoken.model or tokenizer.model",
                    path);
}

/* Read tokenizer_config.json of the main file's directory, if it exists. */
static int read_config(file_t *file, const tnk_allocator_t *alloc,
                       const char *main_path, tnk_tokenizer_error_t *error) {
  const char *slash = strrchr(main_path, '/');
  int n_dir = slash == NULL ? 0 : (int)(slash - main_path) + 1;
  char path[MAX_PATH + 32];
  struct stat about;

  file->data = NULL;
  file->n = 0;
  (void)snprintf(path, sizeof(path), "%.*stokenizer_config.json", n_dir,
                 main_path);
  return stat(path, &about) != 0 ? TNK_OK : read_file(file, alloc, path, error);
}

static tnk_tokenizer_format_t guess(const uint8_t *p, size_t n) {
  size_t i = 0;

  while (i < n && (p[i] == ' ' || (p[i] >= '\t' && p[i] <= '\r')))
    i++;
  /* JSON of a different kind, or with a byte order mark, is not a rank file.
   * The JSON reader reports the error. */
  if (i < n && (p[i] == '{' || p[i] == '[' || p[i] == 0xef))
    return TNK_TOKENIZER_HF_JSON;
  /* A SentencePiece model begins with field 1, a message. */
  if (n > 0 && p[0] == 0x0a)
    return TNK_TOKENIZER_SENTENCEPIECE;
  return TNK_TOKENIZER_TIKTOKEN;
}

static int read_format(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                       const tnk_tokenizer_options_t *options,
                       tnk_tokenizer_error_t *error) {
  tnk_tokenizer_format_t format =
      options->format == TNK_TOKENIZER_AUTO ? guess(data, n) : options->format;

  if (n == 0)
    return tnk__fault(error, TNK_EPROTO, 0, "the file is empty");
  switch (format) {
  case TNK_TOKENIZER_HF_JSON:
    return tnk__tekken_is(data, n) ? tnk__tekken_load(tok, data, n, error)
                                   : tnk__hf_load(tok, data, n, error);
  case TNK_TOKENIZER_TIKTOKEN:
    return tnk__tiktoken_load(tok, data, n, options, error);
  case TNK_TOKENIZER_SENTENCEPIECE:
    return tnk__sp_load(tok, data, n, error);
  default:
    return tnk__fault(error, TNK_EINVAL, 0, "unknown format");
  }
}

static int load(tnk_tokenizer_t **out, const void *data, size_t n,
                const tnk_tokenizer_options_t *options,
                tnk_tokenizer_error_t *error) {
  const tnk_allocator_t *alloc = options->allocator != NULL
                                     ? options->allocator
                                     : tnk__allocator_default();
  tnk_tokenizer_t *tok = tnk__tokenizer_new(alloc);
  int err;

  if (tok == NULL)
    return tnk__fault_memory(error);
  err = read_format(tok, data, n, options, error);
  if (err == TNK_OK && options->config != NULL)
    err = tnk__config_names(tok, options->config, options->n_config, error);
  if (err < 0)
    tnk_tokenizer_unref(tok);
  else
    *out = tok;
  return err;
}

static int take_options(tnk_tokenizer_options_t *to,
                        const tnk_tokenizer_options_t *from,
                        tnk_tokenizer_error_t *error) {
  const tnk_tokenizer_options_t defaults = TNK_TOKENIZER_OPTIONS_INIT;
  char why[TNK__MAX_WHY];
  int err;

  *to = defaults;
  err = TNK__LOAD(tnk_tokenizer_options_t, to, from, why, sizeof(why));
  if (err < 0)
    return tnk__fault(error, err, 0, "%s", why);
  if (to->config == NULL && to->n_config > 0)
    return tnk__fault(error, TNK_EINVAL, 0, "n_config without config");
  return TNK_OK;
}

int tnk_tokenizer_load_memory(tnk_tokenizer_t **out, const void *data, size_t n,
                              const tnk_tokenizer_options_t *options,
                              tnk_tokenizer_error_t *error) {
  tnk_tokenizer_options_t own;
  int err;

  tnk__fault_clear(error);
  if (out == NULL)
    return tnk__fault(error, TNK_EINVAL, 0, "nowhere to put the tokenizer");
  *out = NULL;
  if (data == NULL)
    return tnk__fault(error, TNK_EINVAL, 0, "no data");
  if (n > MAX_FILE)
    return tnk__fault(error, TNK_ETOOBIG, 0, "the file is over 256 MiB");
  err = take_options(&own, options, error);
  return err < 0 ? err : load(out, data, n, &own, error);
}

int tnk_tokenizer_load(tnk_tokenizer_t **out, const char *path,
                       const tnk_tokenizer_options_t *options,
                       tnk_tokenizer_error_t *error) {
  tnk_tokenizer_options_t own;
  file_t main_file = {NULL, 0}, config = {NULL, 0};
  char main_path[MAX_PATH];
  const tnk_allocator_t *alloc;
  int err;

  tnk__fault_clear(error);
  if (out == NULL)
    return tnk__fault(error, TNK_EINVAL, 0, "nowhere to put the tokenizer");
  *out = NULL;
  if (path == NULL)
    return tnk__fault(error, TNK_EINVAL, 0, "no path");
  err = take_options(&own, options, error);
  if (err == TNK_OK)
    err = find_main(main_path, sizeof(main_path), path, error);
  if (err < 0)
    return err;
  alloc = own.allocator != NULL ? own.allocator : tnk__allocator_default();
  err = read_file(&main_file, alloc, main_path, error);
  if (err == TNK_OK && own.config == NULL) {
    err = read_config(&config, alloc, main_path, error);
    own.config = config.data;
    own.n_config = config.n;
  }
  if (own.pattern == NULL)
    own.pattern = tnk__encoding_of_file(main_path);
  if (err == TNK_OK)
    err = load(out, main_file.data, main_file.n, &own, error);
  tnk__free(alloc, main_file.data);
  tnk__free(alloc, config.data);
  return err;
}
