/* SPDX-License-Identifier: MIT */
#include "lib/files/push/card.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

static const char scheme[] = "tinker://";

static const char *model_of(const tnk_push_options_t *o) {
  return o->base_model != NULL ? o->base_model : "unknown";
}

static const char *python_of(tnk_choice_t choice) {
  return choice == TNK_YES ? "True" : choice == TNK_NO ? "False" : "None";
}

static void put_details(tnk__buf_t *out, const tnk_push_options_t *o) {
  tnk__buf_printf(out, "## Details\n\n- Base model: %s\n", model_of(o));
  if (o->lora_rank > 0)
    tnk__buf_printf(out, "- LoRA rank: %u\n", (unsigned)o->lora_rank);
  if (o->trained_attn != TNK_DEFAULT || o->trained_mlp != TNK_DEFAULT ||
      o->trained_unembed != TNK_DEFAULT)
    tnk__buf_printf(out, "- Trained modules: attn=%s, mlp=%s, unembed=%s\n",
                    python_of(o->trained_attn), python_of(o->trained_mlp),
                    python_of(o->trained_unembed));
}

void tnk__push_card(tnk__buf_t *out, const char *repo,
                    const tnk_push_options_t *o) {
  tnk__buf_printf(out,
                  "---\nbase_model: %s\nlibrary_name: peft\ntags:\n- tinker\n"
                  "- peft\n- lora\n",
                  model_of(o));
  if (o->base_model != NULL)
    tnk__buf_printf(out, "- base_model:adapter:%s\n", o->base_model);
  tnk__buf_printf(out,
                  "tinker_path: %s\n---\n\n# LoRA adapter\n\n"
                  "A LoRA adapter in the layout of PEFT, trained with Tinker."
                  "\n\n## Usage\n\n```python\n"
                  "from transformers import AutoModelForCausalLM\n\n"
                  "model = AutoModelForCausalLM.from_pretrained(\"%s\", "
                  "device_map=\"auto\")\n```\n\n## Source\n\n```\n%s\n```\n\n",
                  o->checkpoint, repo, o->checkpoint);
  put_details(out, o);
}

static int append(const char *data, size_t n, void *user) {
  return tnk__buf_append(user, data, n) == TNK_OK ? 0 : -1;
}

int tnk__push_config(tnk__buf_t *out, const char *text, size_t n,
                     const char *base_model) {
  static const char key[] = "base_model_name_or_path";
  json_t *config;
  int err = tnk__json_parse_object(&config, text, n);

  if (err != TNK_OK)
    return err == TNK_ENOMEM ? err : TNK_OK;
  if (!json_is_string(json_object_get(config, key))) {
    if (json_object_set_new(
            config, key,
            json_string(base_model != NULL ? base_model : "unknown")) != 0 ||
        json_dump_callback(config, append, out,
                           JSON_INDENT(2) | JSON_SORT_KEYS |
                               JSON_ENSURE_ASCII) != 0)
      err = TNK_ENOMEM;
    tnk__buf_byte(out, '\n');
  }
  json_decref(config);
  return err != TNK_OK ? err : out->err;
}

static size_t find_path(const char *text, size_t n, const char **path) {
  const size_t n_scheme = sizeof(scheme) - 1;

  for (size_t i = 0; i + n_scheme < n; i++) {
    size_t end = i + n_scheme;
    if (memcmp(text + i, scheme, n_scheme) != 0)
      continue;
    while (end < n && (unsigned char)text[end] > ' ' && text[end] != '`')
      end++;
    *path = text + i;
    return end - i;
  }
  return 0;
}

size_t tnk__push_find_other(const char *text, size_t n, const char *own,
                            const char **path) {
  const size_t n_path = find_path(text, n, path);

  return n_path == strlen(own) && memcmp(*path, own, n_path) == 0 ? 0 : n_path;
}

/* ---- Names ---- */

static int is_kept(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z') || c == '_' || c == '.';
}

static int is_trimmed(char c) {
  return c == '-' || c == '_' || c == '.';
}

/* Replaces invalid characters by "-", collapses runs of "-", and trims "-_." at
 * both ends. */
static void clean(char out[TNK__PUSH_NAME + 1], const char *text) {
  size_t n = 0;

  while (*text != '\0' && n < TNK__PUSH_NAME) {
    const size_t n_char = tnk__utf8_char(text, strlen(text));
    const char c = is_kept(*text) ? *text : '-';
    text += n_char > 0 ? n_char : 1;
    if ((n == 0 && is_trimmed(c)) || (c == '-' && n > 0 && out[n - 1] == '-'))
      continue;
    out[n++] = c;
  }
  while (n > 0 && is_trimmed(out[n - 1]))
    n--;
  out[n] = '\0';
}

int tnk__push_is_name(const char *text) {
  char name[TNK__PUSH_NAME + 1];

  clean(name, text);
  return name[0] != '\0' && strcmp(name, text) == 0;
}

void tnk__push_default_repo(char out[TNK__PUSH_NAME + 1],
                            const tnk_push_options_t *o) {
  const char *run = o->checkpoint + sizeof(scheme) - 1;
  const char *model = o->base_model != NULL ? o->base_model : "adapter";
  const char *slash = strrchr(model, '/');
  const int n_run = (int)strcspn(run, "/");
  char text[512];

  snprintf(text, sizeof(text), "tinker-%.200s-%.*s",
           slash != NULL ? slash + 1 : model, n_run < 200 ? n_run : 200, run);
  clean(out, text);
}

void tnk__push_default_revision(char out[TNK__PUSH_NAME + 1],
                                const tnk_push_options_t *o) {
  const char *run = o->checkpoint + sizeof(scheme) - 1;

  clean(out, run + strcspn(run, "/"));
}
