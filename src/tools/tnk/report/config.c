/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

enum { MAX_NAME = 256 };

/* ---- Secrets ---- */

static int is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns whether a name has a word, such as "key" in "api_key" and "apiKey",
 * but not in "keyboard". */
static int has_word(const char *name, const char *word) {
  const size_t n = strlen(word);

  for (const char *at = name; *at != '\0'; at++) {
    const int begins = at == name || !is_letter(at[-1]) ||
                       (*at >= 'A' && *at <= 'Z' && at[-1] >= 'a');

    if (begins && strncasecmp(at, word, n) == 0 &&
        !(at[n] >= 'a' && at[n] <= 'z'))
      return 1;
  }
  return 0;
}

static int is_secret_name(const char *name) {
  static const char *const words[] = {
      "key",    "apikey",     "secret", "secrets",       "password",
      "passwd", "credential", "token",  "authorization", "cookie"};

  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
    if (has_word(name, words[i]))
      return 1;
  return 0;
}

/* Returns whether a string has a key of a known service anywhere. */
static int has_key(const char *text) {
  static const char *const begins[] = {"tml-", "hf_",     "sk-",
                                       "ghp_", "Bearer ", "AGE-SECRET-KEY-"};

  for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
    for (const char *at = strstr(text, begins[i]); at != NULL;
         at = strstr(at + 1, begins[i]))
      if (at == text || !is_letter(at[-1]))
        return 1;
  return 0;
}

/* Returns whether a URL has a user or a password before its host. */
static int has_password(const char *text) {
  const char *host = strstr(text, "://");
  size_t n;

  if (host == NULL)
    return 0;
  n = strcspn(host + 3, "/?# ");
  return memchr(host + 3, '@', n) != NULL;
}

static int is_secret(const char *name, const json_t *value) {
  const char *text = json_string_value(value);

  /* Numbers and switches are not secrets: "max_tokens" may be called
   * "token". */
  return text != NULL && text[0] != '\0' &&
         (is_secret_name(name) || has_key(text) || has_password(text));
}

/* ---- Settings ---- */

static char *text_of(const char *name, const json_t *value) {
  char *dumped, *copy;

  if (is_secret(name, value))
    return strdup("(hidden)");
  if (json_is_string(value))
    return strdup(json_string_value(value));
  if (json_is_real(value)) {
    char text[64];

    snprintf(text, sizeof(text), "%.6g", json_real_value(value));
    return strdup(text);
  }
  dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  copy = dumped != NULL ? strdup(dumped) : NULL;
  tnk__json_free_string(dumped);
  return copy;
}

static int add(report_config_t *config, const char *name, const json_t *value) {
  report_setting_t *setting;

  if (config->n == REPORT_MAX_SETTINGS) {
    config->is_cut = 1;
    return TNK_OK;
  }
  if (config->settings == NULL)
    config->settings = calloc(REPORT_MAX_SETTINGS, sizeof(*setting));
  if (config->settings == NULL)
    return TNK_ENOMEM;
  setting = &config->settings[config->n++];
  setting->name = strdup(name);
  setting->value = text_of(name, value);
  return setting->name != NULL && setting->value != NULL ? TNK_OK : TNK_ENOMEM;
}

/* Names on the way to the current value. */
typedef struct {
  char text[MAX_NAME];
  size_t n;
} name_t;

/* Append a part and return the old length; a long name is cut. */
static size_t append(name_t *name, const char *part) {
  const size_t before = name->n;
  const int n = snprintf(name->text + before, sizeof(name->text) - before,
                         "%s%s", before > 0 ? "." : "", part);

  name->n += (size_t)n;
  if (name->n >= sizeof(name->text))
    name->n = sizeof(name->text) - 1;
  return before;
}

static int is_simple(const json_t *value) {
  return !json_is_object(value) && !json_is_array(value);
}

static int has_only_simple(const json_t *array) {
  for (size_t i = 0; i < json_array_size(array); i++)
    if (!json_is_number(json_array_get(array, i)))
      return 0;
  return 1;
}

/* The recursion is as deep as REPORT_MAX_DEPTH; what is deeper is one value. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static int flatten(report_config_t *config, name_t *name, const json_t *value,
                   int depth) {
  const char *key;
  json_t *member;
  int err = TNK_OK;

  if (is_simple(value) || (json_is_array(value) && has_only_simple(value)))
    return add(config, name->text, value);
  if (depth == REPORT_MAX_DEPTH) {
    config->is_cut = 1;
    return TNK_OK;
  }
  if (json_is_object(value)) {
    json_object_foreach((json_t *)value, key, member) {
      const size_t before = append(name, key);

      if (err == TNK_OK)
        err = flatten(config, name, member, depth + 1);
      name->text[name->n = before] = '\0';
    }
    return err;
  }
  for (size_t i = 0; i < json_array_size(value) && err == TNK_OK; i++) {
    char index[32];
    size_t before;

    snprintf(index, sizeof(index), "%zu", i);
    before = append(name, index);
    err = flatten(config, name, json_array_get(value, i), depth + 1);
    name->text[name->n = before] = '\0';
  }
  return err;
}

/* ---- The file ---- */

/* Read at most REPORT_MAX_CONFIG bytes. Returns NULL with *err set. */
static char *read_text(const char *path, size_t *n, int *err) {
  FILE *file = fopen(path, "r");
  char *text = malloc(REPORT_MAX_CONFIG + 1);

  *err = text == NULL ? TNK_ENOMEM : TNK_OK;
  if (file == NULL)
    *err = TNK_EFILE;
  if (*err == TNK_OK) {
    *n = fread(text, 1, REPORT_MAX_CONFIG + 1, file);
    if (ferror(file))
      *err = TNK_EFILE;
  }
  if (file != NULL)
    fclose(file);
  if (*err == TNK_OK)
    return text;
  free(text);
  return NULL;
}

int report_config_read(report_config_t *config, const char *path) {
  name_t name = {.n = 0};
  size_t n = 0;
  char *text;
  int err;

  *config = (report_config_t){0};
  text = read_text(path, &n, &err);
  if (text == NULL)
    return err == TNK_EFILE && errno == ENOENT ? TNK_OK : err;
  config->is_bad = n > REPORT_MAX_CONFIG ||
                   tnk__json_parse_object(&config->root, text, n) != TNK_OK;
  free(text);
  return config->is_bad ? TNK_OK : flatten(config, &name, config->root, 0);
}

const char *report_config_find(const report_config_t *config,
                               const char *name) {
  for (size_t i = 0; i < config->n; i++)
    if (strcmp(config->settings[i].name, name) == 0)
      return config->settings[i].value;
  return NULL;
}

void report_config_free(report_config_t *config) {
  for (size_t i = 0; i < config->n; i++) {
    free(config->settings[i].name);
    free(config->settings[i].value);
  }
  free(config->settings);
  json_decref(config->root);
  *config = (report_config_t){0};
}
