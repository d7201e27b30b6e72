/* SPDX-License-Identifier: MIT */
/* Public templates: found in a file or a folder, compiled with the tokens of a
 * config, and optionally a second template for conversations with tools. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "chat/object.h"
#include "lib/base/alloc.h"
#include "lib/base/options.h"
#include "lib/base/utf8.h"

/* Memory for the source and the compiled form of the templates of a file. */
#define MAX_HEAP ((size_t)64 * 1024 * 1024)

/* The plain template of roles. Tools are listed in front as JSON. Calls are
 * JSON between marks. */
static const char plain[] =
    "{{- bos_token }}{%- if tools %}Tools:{% for tool in tools %} {{ tool | "
    "tojson }}"
    "{% endfor %}{{ '\n\n' }}{% endif %}"
    "{%- for message in messages %}{{ message.role | capitalize }}:"
    "{%- if message.content is string %}{{ ' ' ~ message.content }}"
    "{%- elif message.content %}{% for part in message.content %}"
    "{%- if part.type != 'text' %}"
    "{{- raise_exception('the plain template has text alone') }}{% endif %}"
    "{{- ' ' ~ part.text }}{% endfor %}{% endif %}"
    "{%- for call in message.tool_calls or [] %}{{ '\n<tool_call>' }}"
    "{{- {'name': call.function.name, 'arguments': call.function.arguments}"
    " | tojson }}{{ '</tool_call>' }}{% endfor %}{{ '\n\n' }}{% endfor %}"
    "{%- if add_generation_prompt %}Assistant:{% endif %}";
static const char *const plain_stops[] = {"\n\nUser:", NULL};
static const char plain_rest[] = "User:"; /* follows the text of an answer */

static const char *const token_names[] = {"bos_token", "eos_token", "unk_token",
                                          "sep_token", "pad_token", "cls_token",
                                          "mask_token"};

/* A token is a string, or a dict with the string in `content`. */
static tnk__value_t token_text(tnk__value_t token) {
  return token.kind == TNK__VALUE_DICT ? tnk__value_get(token, "content")
                                       : token;
}

static void read_tokens(tnk_chat_template_t *of, tnk__value_t config) {
  const tnk__value_t more = tnk__value_get(config, "additional_special_tokens");
  tnk__value_t texts = tnk__value_list(&of->heap);

  for (size_t i = 0; i < sizeof(token_names) / sizeof(*token_names); i++) {
    const tnk__value_t text =
        token_text(tnk__value_get(config, token_names[i]));

    if (text.kind == TNK__VALUE_TEXT)
      tnk__value_set(&of->heap, of->tokens, token_names[i], text);
  }
  if (more.kind != TNK__VALUE_LIST)
    return;
  for (size_t i = 0; i < more.as.list->n; i++)
    if (token_text(more.as.list->items[i]).kind == TNK__VALUE_TEXT)
      tnk__value_append(&of->heap, texts, token_text(more.as.list->items[i]));
  if (texts.as.list != NULL && texts.as.list->n > 0)
    tnk__value_set(&of->heap, of->tokens, "additional_special_tokens", texts);
}

static const char *copy_stop(tnk_chat_template_t *of, const char *text,
                             size_t n) {
  char *copy = tnk__heap_alloc(&of->heap, n + 1);

  if (copy != NULL) {
    memcpy(copy, text, n);
    copy[n] = '\0';
  }
  return copy;
}

static int read_stops(tnk_chat_template_t *of, const char *const *given,
                      int is_plain, tnk__why_t *why) {
  const tnk__value_t eos = tnk__value_get(of->tokens, "eos_token");
  const char **stops;
  size_t n = 0;

  if (given == NULL && is_plain)
    given = plain_stops;
  for (; given != NULL && given[n] != NULL; n++)
    if (given[n][0] == '\0')
      return tnk__why(why, TNK_EINVAL, 0, "stops[%zu] is empty", n);
  stops = tnk__heap_alloc(&of->heap, (n + 2) * sizeof(*stops));
  if (stops == NULL)
    return tnk__why(why, TNK_ENOMEM, 0, "out of memory");
  for (size_t i = 0; i < n; i++)
    stops[i] = copy_stop(of, given[i], strlen(given[i]));
  if (given == NULL && eos.kind == TNK__VALUE_TEXT && eos.n_text > 0)
    stops[n++] = copy_stop(of, eos.as.text, eos.n_text);
  stops[n] = NULL;
  of->stops = stops;
  return of->heap.err == TNK_OK
             ? TNK_OK
             : tnk__why(why, of->heap.err, 0, "out of memory");
}

/* Find a template of a config by its name. Undefined if it is missing. */
static tnk__value_t find_named(tnk__value_t list, const char *name) {
  for (size_t i = 0; i < list.as.list->n; i++)
    if (tnk__value_is(tnk__value_get(list.as.list->items[i], "name"), name))
      return tnk__value_get(list.as.list->items[i], "template");
  return tnk__value_undefined();
}

static int compile(tnk__template_t **out, const tnk_chat_template_t *of,
                   const char *text, size_t n, tnk__why_t *why) {
  if (tnk__utf8_valid((const uint8_t *)text, n) != n)
    return tnk__why(why, TNK_EINVAL, 0, "the template is not UTF-8");
  return tnk__template_compile(out, &of->alloc, text, n, why);
}

/* Compile the templates of a config: one, or several with names. */
static int compile_config(tnk_chat_template_t *of, tnk__value_t found,
                          const char *name, tnk__why_t *why) {
  tnk__value_t text = found, tools = tnk__value_undefined();
  int err;

  if (found.kind == TNK__VALUE_LIST) {
    text = find_named(found, name != NULL ? name : "default");
    if (name == NULL)
      tools = find_named(found, "tool_use");
  }
  if (text.kind != TNK__VALUE_TEXT)
    return tnk__why(why, TNK_ENOTFOUND, 0, "there is no template \"%.64s\"",
                    name != NULL ? name : "default");
  err = compile(&of->plain, of, text.as.text, text.n_text, why);
  if (err == TNK_OK && tools.kind == TNK__VALUE_TEXT)
    err = compile(&of->tool_use, of, tools.as.text, tools.n_text, why);
  return err;
}

static int fill(tnk_chat_template_t *of, const char *text, size_t n,
                const tnk_chat_template_options_t *options, tnk__why_t *why) {
  tnk__value_t config = tnk__value_undefined(), found;
  int is_plain = 0, err = TNK_OK;

  if (options->config != NULL &&
      tnk__utf8_valid((const uint8_t *)options->config, options->n_config) !=
          options->n_config)
    return tnk__why(why, TNK_EPROTO, 0, "the config is not UTF-8");
  if (options->config != NULL)
    err = tnk__value_from_json(&of->heap, options->config, options->n_config,
                               &config);
  if (err == TNK_OK && options->config != NULL &&
      config.kind != TNK__VALUE_DICT)
    err = TNK_EINVAL;
  if (err == TNK_EINVAL)
    return tnk__why(why, TNK_EPROTO, 0, "the config is no JSON object");
  if (err != TNK_OK)
    return tnk__why(why, err, 0, "the config is too large, or memory is out");
  of->tokens = tnk__value_dict(&of->heap);
  if (of->heap.err == TNK_OK)
    read_tokens(of, config);
  found = tnk__value_get(config, "chat_template");
  if (text != NULL) {
    err = compile(&of->plain, of, text, n, why);
  } else if (found.kind == TNK__VALUE_TEXT || found.kind == TNK__VALUE_LIST) {
    err = compile_config(of, found, options->name, why);
  } else if (options->config != NULL) {
    err = tnk__why(why, TNK_ENOTFOUND, 0, "the config has no chat_template");
  } else {
    is_plain = 1;
    if (options->stops == NULL)
      of->rest = plain_rest;
    err = compile(&of->plain, of, plain, sizeof(plain) - 1, why);
  }
  return err != TNK_OK ? err : read_stops(of, options->stops, is_plain, why);
}

static tnk_chat_template_t *make(const tnk_allocator_t *alloc) {
  tnk_chat_template_t *of = tnk__calloc(alloc, 1, sizeof(*of));

  if (of == NULL)
    return NULL;
  of->alloc = *alloc;
  atomic_init(&of->refs, 1);
  tnk__heap_init(&of->heap, &of->alloc, MAX_HEAP);
  return of;
}

/* Compile a template, and one for conversations with tools unless it is NULL.
 * The options must have the library's own size. */
static int compile_all(tnk_chat_template_t **out, const char *text, size_t n,
                       const char *tool_text, size_t n_tool,
                       const tnk_chat_template_options_t *options,
                       tnk__why_t *why) {
  tnk_chat_template_t *of;
  int err;

  of = make(options->allocator != NULL ? options->allocator
                                       : tnk__allocator_default());
  if (of == NULL)
    return tnk__why(why, TNK_ENOMEM, 0, "out of memory");
  err = fill(of, text, n, options, why);
  if (err == TNK_OK && tool_text != NULL)
    err = compile(&of->tool_use, of, tool_text, n_tool, why);
  if (err == TNK_OK)
    *out = of;
  else
    tnk_chat_template_unref(of);
  return err;
}

int tnk_chat_template_open(tnk_chat_template_t **out, const char *text,
                           size_t n, const tnk_chat_template_options_t *options,
                           tnk_chat_error_t *error) {
  tnk_chat_template_options_t own = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  char said[TNK__MAX_WHY];
  tnk__why_t why = {0};
  int err;

  if (out == NULL)
    return tnk__chat_end(
        error, tnk__why(&why, TNK_EINVAL, 0, "no place for the template"),
        &why);
  *out = NULL;
  err =
      TNK__LOAD(tnk_chat_template_options_t, &own, options, said, sizeof(said));
  err = err != TNK_OK ? tnk__why(&why, err, 0, "%s", said)
                      : compile_all(out, text, n, NULL, 0, &own, &why);
  return tnk__chat_end(error, err, &why);
}

tnk_chat_template_t *tnk_chat_template_ref(tnk_chat_template_t *template_) {
  if (template_ != NULL)
    atomic_fetch_add_explicit(&template_->refs, 1, memory_order_relaxed);
  return template_;
}

void tnk_chat_template_unref(tnk_chat_template_t *template_) {
  tnk_allocator_t alloc;

  if (template_ == NULL ||
      atomic_fetch_sub_explicit(&template_->refs, 1, memory_order_acq_rel) != 1)
    return;
  alloc = template_->alloc;
  if (template_->plain != NULL)
    tnk__template_free(template_->plain);
  if (template_->tool_use != NULL)
    tnk__template_free(template_->tool_use);
  tnk__heap_deinit(&template_->heap);
  tnk__free(&alloc, template_);
}

const char *const *
tnk_chat_template_stops(const tnk_chat_template_t *template_) {
  static const char *const none[] = {NULL};

  return template_ == NULL ? none : template_->stops;
}

/* ---- Loading: finds the file and the files in the same folder ---- */

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
  return compile_all(
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
