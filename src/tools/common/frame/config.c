/* SPDX-License-Identifier: MIT */
/* Configuration files: options in JSON, by the names of the command line. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/common/base/input.h"
#include "tools/common/frame/parts.h"

/* Kept until the process ends, because options point into it. */
static struct {
  char **args;
  int n;
} line;

static int add(const char *name, const char *value) {
  const size_t n = strlen(name) + (value != NULL ? strlen(value) : 0) + 4;
  char **more = realloc(line.args, ((size_t)line.n + 2) * sizeof(*line.args));

  if (more == NULL)
    return -1;
  line.args = more;
  more[line.n] = malloc(n);
  if (more[line.n] == NULL)
    return -1;
  snprintf(more[line.n++], n, "%s%s%s", name, value != NULL ? "=" : "",
           value != NULL ? value : "");
  more[line.n] = NULL;
  return 0;
}

/* Add an option with a text or a number. Returns -1 without memory, 1 for
 * another value. */
static int add_value(const char *name, const json_t *value) {
  char *text;
  int status;

  if (json_is_string(value))
    return add(name, json_string_value(value));
  if (!json_is_number(value))
    return 1;
  text = json_dumps(value, JSON_ENCODE_ANY);
  status = text != NULL ? add(name, text) : -1;
  tnk__json_free_string(text);
  return status;
}

static int add_option(const char *key, const json_t *value) {
  char name[64];
  int status = 0;

  if ((size_t)snprintf(name, sizeof(name), "--%s", key) >= sizeof(name))
    return 1;
  if (json_is_null(value) || json_is_false(value))
    return 0;
  if (json_is_true(value))
    return add(name, NULL);
  if (!json_is_array(value))
    return add_value(name, value);
  for (size_t i = 0; i < json_array_size(value) && status == 0; i++)
    status = add_value(name, json_array_get(value, i));
  return status;
}

/* Add the options of an object. *data receives the arguments. */
static int add_all(const json_t *object, const json_t **data,
                   const char **bad) {
  const char *key;
  json_t *value;
  int status = 0;

  json_object_foreach((json_t *)(uintptr_t)object, key, value) {
    if (strcmp(key, "data") == 0)
      *data = value;
    else
      status = add_option(key, value);
    if (status != 0) {
      *bad = key;
      break;
    }
  }
  return status;
}

static int add_words(const json_t *data) {
  int status = add("--", NULL);

  if (json_is_string(data))
    return status == 0 ? add(json_string_value(data), NULL) : status;
  if (!json_is_array(data))
    return 1;
  for (size_t i = 0; i < json_array_size(data) && status == 0; i++)
    status = json_is_string(json_array_get(data, i))
                 ? add(json_string_value(json_array_get(data, i)), NULL)
                 : 1;
  return status;
}

static int take(const json_t *root, const char **bad) {
  const json_t *options = tnk__json_obj(root, "options");
  const json_t *settings = tnk__json_obj(root, "settings");
  const json_t *data = NULL;
  int status = add("", NULL);

  /* The configuration that a run has stored. */
  if (status == 0)
    status = add_all(options != NULL ? options : root, &data, bad);
  if (status == 0 && options != NULL && settings != NULL)
    status = add_all(settings, &data, bad);
  if (status == 0 && data != NULL) {
    *bad = "data";
    status = add_words(data);
  }
  return status;
}

int cli_config_read(const char *path, int *n, char ***args, char *why,
                    size_t n_why) {
  const char *bad = "";
  json_t *root = NULL;
  size_t size;
  char *text = cli_read_file(path, &size, why, n_why);
  int status = -1;

  if (text == NULL)
    return -1;
  if (tnk__json_parse_object(&root, text, size) == TNK_OK)
    status = take(root, &bad);
  if (root == NULL)
    snprintf(why, n_why, "%.200s: it is not a JSON object", path);
  else if (status > 0)
    snprintf(why, n_why, "%.200s: \"%.100s\" has a value of the wrong type",
             path, bad);
  else if (status < 0)
    snprintf(why, n_why, "out of memory");
  free(text);
  json_decref(root);
  *args = line.args;
  *n = line.n;
  return status == 0 ? 0 : -1;
}
