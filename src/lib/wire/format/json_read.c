/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/json_read.h"

#include <string.h>

#include "lib/base/limits.h"
#include "tnk/error.h"

/* jansson recurses up to its own depth limit of 2,048. Counting brackets
 * outside strings keeps its use of the stack small. jansson finds malformed
 * input itself. */
static int is_too_deep(const char *text, size_t n) {
  size_t depth = 0;
  int quoted = 0;
  size_t i;

  for (i = 0; i < n; i++) {
    char c = text[i];
    if (quoted) {
      if (c == '\\')
        i++;
      else if (c == '"')
        quoted = 0;
    } else if (c == '"') {
      quoted = 1;
    } else if (c == '[' || c == '{') {
      if (++depth > TNK__MAX_JSON_DEPTH)
        return 1;
    } else if ((c == ']' || c == '}') && depth > 0) {
      depth--;
    }
  }
  return 0;
}

int tnk__json_parse(json_t **out, const void *data, size_t n) {
  /* jansson sets a code only together with a text, so the code must be zero
   * before. */
  json_error_t error = {.line = 0};

  *out = NULL;
  /* jansson would take a NUL byte for the end of the text. */
  if (n == 0 || memchr(data, '\0', n) != NULL || is_too_deep(data, n))
    return TNK_EPROTO;
  *out = json_loadb(data, n, JSON_DECODE_ANY, &error);
  if (*out != NULL)
    return TNK_OK;
  /* Most of its allocation failures set no code at all. */
  return json_error_code(&error) == json_error_out_of_memory ||
                 json_error_code(&error) == json_error_unknown
             ? TNK_ENOMEM
             : TNK_EPROTO;
}

int tnk__json_parse_object(json_t **out, const void *data, size_t n) {
  int err = tnk__json_parse(out, data, n);

  if (err == TNK_OK && !json_is_object(*out)) {
    json_decref(*out);
    *out = NULL;
    err = TNK_EPROTO;
  }
  return err;
}

/* Find the member and classify it: missing, null, or present. */
static tnk__json_has_t find(const json_t *object, const char *key,
                            const json_t **member) {
  *member = json_object_get(object, key);
  if (*member == NULL)
    return TNK__JSON_ABSENT;
  return json_is_null(*member) ? TNK__JSON_NULL : TNK__JSON_FOUND;
}

tnk__json_has_t tnk__json_get_text(const json_t *object, const char *key,
                                   const char **out) {
  const json_t *member;
  tnk__json_has_t has = find(object, key, &member);

  if (has != TNK__JSON_FOUND)
    return has;
  if (!json_is_string(member))
    return TNK__JSON_WRONG;
  *out = json_string_value(member);
  return TNK__JSON_FOUND;
}

tnk__json_has_t tnk__json_get_int(const json_t *object, const char *key,
                                  int64_t min, int64_t max, int64_t *out) {
  const json_t *member;
  tnk__json_has_t has = find(object, key, &member);

  if (has != TNK__JSON_FOUND)
    return has;
  if (!json_is_integer(member) || json_integer_value(member) < min ||
      json_integer_value(member) > max)
    return TNK__JSON_WRONG;
  *out = json_integer_value(member);
  return TNK__JSON_FOUND;
}

tnk__json_has_t tnk__json_get_double(const json_t *object, const char *key,
                                     double *out) {
  const json_t *member;
  tnk__json_has_t has = find(object, key, &member);

  if (has != TNK__JSON_FOUND)
    return has;
  if (!json_is_number(member))
    return TNK__JSON_WRONG;
  *out = json_number_value(member);
  return TNK__JSON_FOUND;
}

tnk__json_has_t tnk__json_get_bool(const json_t *object, const char *key,
                                   int *out) {
  const json_t *member;
  tnk__json_has_t has = find(object, key, &member);

  if (has != TNK__JSON_FOUND)
    return has;
  if (!json_is_boolean(member))
    return TNK__JSON_WRONG;
  *out = json_is_true(member);
  return TNK__JSON_FOUND;
}

static tnk__json_has_t get_of(const json_t *object, const char *key,
                              json_type type, const json_t **out) {
  const json_t *member;
  tnk__json_has_t has = find(object, key, &member);

  if (has != TNK__JSON_FOUND)
    return has;
  if (json_typeof(member) != type)
    return TNK__JSON_WRONG;
  *out = member;
  return TNK__JSON_FOUND;
}

tnk__json_has_t tnk__json_get_object(const json_t *object, const char *key,
                                     const json_t **out) {
  return get_of(object, key, JSON_OBJECT, out);
}

tnk__json_has_t tnk__json_get_array(const json_t *object, const char *key,
                                    const json_t **out) {
  return get_of(object, key, JSON_ARRAY, out);
}

const char *tnk__json_str(const json_t *object, const char *key) {
  const char *text = NULL;

  tnk__json_get_text(object, key, &text);
  return text;
}

const json_t *tnk__json_obj(const json_t *object, const char *key) {
  const json_t *member = NULL;

  tnk__json_get_object(object, key, &member);
  return member;
}

const json_t *tnk__json_arr(const json_t *object, const char *key) {
  const json_t *member = NULL;

  tnk__json_get_array(object, key, &member);
  return member;
}

void tnk__json_free_string(char *string) {
  json_malloc_t allocate;
  json_free_t release;

  if (string == NULL)
    return;
  json_get_alloc_funcs(&allocate, &release);
  release(string);
}
