/* SPDX-License-Identifier: MIT */
/* Loading of templates: finds the file and the files in the same folder. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "chat/object.h"
#include "lib/base/alloc.h"
#include "lib/base/options.h"

#define MAX_PATH 4096

/* The files of a template. A missing file has no bytes. */
typedef struct {
  char folder[MAX_PATH];
  char path[MAX_PATH + 64];
  tnk__buf_t text, tool_text, config;
  int has_text, has_tool_text, has_config;
} files_t;

static int cannot_read(tnk__why_t *why, const char *path, const char *reason) {
  return tnk__why(why, TNK_ENOTFOUND, 0, "cannot read %.256s: %s", path,
                  reason);
}

static int read_open(FILE *from, const char *path, tnk__buf_t *out,
                     tnk__why_t *why) {
  struct stat about;
  size_t n;

  if (fstat(fileno(from), &about) != 0 || !S_ISREG(about.st_mode))
    return cannot_read(why, path, "it is no regular file");
  if (about.st_size < 0 || (uint64_t)about.st_size > TNK__CHAT_MAX_FILE)
    return tnk__why(why, TNK_ETOOBIG, 0, "%.256s is over 64 MiB", path);
  n = (size_t)about.st_size;
  if (tnk__buf_reserve(out, n + 1) == NULL)
    return tnk__why(why, TNK_ENOMEM, 0, "out of memory");
  if (fread(out->data, 1, n, from) != n)
    return cannot_read(why, path, "it ended early");
  out->len = n;
  return TNK_OK;
}

static int read_file(const char *path, tnk__buf_t *out, tnk__why_t *why) {
  FILE *from = fopen(path, "rb");
  int err;

  if (from == NULL)
    return cannot_read(why, path, strerror(errno));
  err = read_open(from, path, out, why);
  (void)fclose(from);
  return err;
}

/* Read a file of the folder, if it exists. */
static int read_beside(files_t *files, const char *name, tnk__buf_t *out,
                       int *is_there, tnk__why_t *why) {
  const int n =
      snprintf(files->path, sizeof(files->path), "%s%s", files->folder, name);
  struct stat about;

  *is_there = 0;
  if (n < 0 || (size_t)n >= sizeof(files->path))
    return tnk__why(why, TNK_ETOOBIG, 0, "the name of the folder is too long");
  *is_there = stat(files->path, &about) == 0;
  return *is_there ? read_file(files->path, out, why) : TNK_OK;
}

static int ends_with(const char *text, const char *end) {
  const size_t n = strlen(text), n_end = strlen(end);

  return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Read a named file: a config, or a template. */
static int read_named(files_t *files, const char *path, tnk__why_t *why) {
  const char *slash = strrchr(path, '/');
  int err;

  (void)snprintf(files->folder, sizeof(files->folder), "%.*s",
                 slash == NULL ? 0 : (int)(slash - path) + 1, path);
  if (ends_with(path, ".json")) {
    err = read_file(path, &files->config, why);
    files->has_config = err == TNK_OK;
    return err;
  }
  err = read_file(path, &files->text, why);
  files->has_text = err == TNK_OK;
  return err != TNK_OK ? err
                       : read_beside(files, "tokenizer_config.json",
                                     &files->config, &files->has_config, why);
}

static int read_folder(files_t *files, const char *path, const char *name,
                       tnk__why_t *why) {
  char more[160];
  int err = TNK_OK;

  (void)snprintf(files->folder, sizeof(files->folder), "%s/", path);
  if (name == NULL || strcmp(name, "default") == 0)
    err = read_beside(files, "chat_template.jinja", &files->text,
                      &files->has_text, why);
  (void)snprintf(more, sizeof(more), "additional_chat_templates/%.100s.jinja",
                 name == NULL ? "tool_use" : name);
  if (err == TNK_OK && name == NULL)
    err =
        read_beside(files, more, &files->tool_text, &files->has_tool_text, why);
  else if (err == TNK_OK && !files->has_text && strchr(name, '/') == NULL)
    err = read_beside(files, more, &files->text, &files->has_text, why);
  if (err == TNK_OK)
    err = read_beside(files, "tokenizer_config.json", &files->config,
                      &files->has_config, why);
  if (err == TNK_OK && !files->has_text && !files->has_config)
    err = tnk__why(why, TNK_ENOTFOUND, 0,
                   "%.256s has no chat_template.jinja and no "
                   "tokenizer_config.json",
                   path);
  return err;
}

static int read_files(files_t *files, const char *path, const char *name,
                      tnk__why_t *why) {
  struct stat about;

  if (strlen(path) + 2 > MAX_PATH)
    return tnk__why(why, TNK_EINVAL, 0, "the path is too long");
  if (stat(path, &about) != 0)
    return cannot_read(why, path, strerror(errno));
  return S_ISDIR(about.st_mode) ? read_folder(files, path, name, why)
                                : read_named(files, path, why);
}

static int load(tnk_chat_template_t **out, files_t *files, const char *path,
                tnk_chat_template_options_t *options, tnk__why_t *why) {
  int err = read_files(files, path, options->name, why);

  if (err != TNK_OK)
    return err;
  if (options->config == NULL && files->has_config) {
    options->config = (const char *)files->config.data;
    options->n_config = files->config.len;
  }
  return tnk__chat_compile(
      out, files->has_text ? (const char *)files->text.data : NULL,
      files->text.len,
      files->has_tool_text ? (const char *)files->tool_text.data : NULL,
      files->tool_text.len, options, why);
}

/* Errors of the template name its path. */
static int name(tnk_chat_template_t *of, const char *path, tnk__why_t *why) {
  char *copy = tnk__heap_alloc(&of->heap, strlen(path) + 1);

  if (copy == NULL)
    return tnk__why(why, TNK_ENOMEM, 0, "out of memory");
  memcpy(copy, path, strlen(path) + 1);
  of->name = copy;
  return TNK_OK;
}

int tnk_chat_template_load(tnk_chat_template_t **out, const char *path,
                           const tnk_chat_template_options_t *options,
                           tnk_chat_error_t *error) {
  tnk_chat_template_options_t own = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  const tnk_allocator_t *alloc;
  char said[TNK__MAX_WHY];
  tnk__why_t why = {0};
  files_t *files;
  int err;

  if (out != NULL)
    *out = NULL;
  if (out == NULL || path == NULL)
    return tnk__chat_end(
        error, tnk__why(&why, TNK_EINVAL, 0, "no place or path"), &why);
  err =
      TNK__LOAD(tnk_chat_template_options_t, &own, options, said, sizeof(said));
  if (err != TNK_OK)
    return tnk__chat_end(error, tnk__why(&why, err, 0, "%s", said), &why);
  alloc = own.allocator != NULL ? own.allocator : tnk__allocator_default();
  files = tnk__calloc(alloc, 1, sizeof(*files));
  if (files == NULL)
    return tnk__chat_end(error, tnk__why(&why, TNK_ENOMEM, 0, "out of memory"),
                         &why);
  tnk__buf_init(&files->text, alloc, TNK__CHAT_MAX_FILE + 1);
  tnk__buf_init(&files->tool_text, alloc, TNK__CHAT_MAX_FILE + 1);
  tnk__buf_init(&files->config, alloc, TNK__CHAT_MAX_FILE + 1);
  err = load(out, files, path, &own, &why);
  tnk__buf_deinit(&files->text);
  tnk__buf_deinit(&files->tool_text);
  tnk__buf_deinit(&files->config);
  tnk__free(alloc, files);
  if (err == TNK_OK)
    err = name(*out, path, &why);
  if (err != TNK_OK) {
    tnk_chat_template_unref(*out);
    *out = NULL;
  }
  return tnk__chat_end_template(error, err, &why, path);
}
