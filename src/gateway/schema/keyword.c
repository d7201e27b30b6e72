/* SPDX-License-Identifier: MIT */
#include "gateway/schema/keyword.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  tnk__gw_keyword_t is;
} keywords[] = {
    {"$schema", TNK__GW_NO_EFFECT},
    {"$comment", TNK__GW_NO_EFFECT},
    {"title", TNK__GW_NO_EFFECT},
    {"description", TNK__GW_NO_EFFECT},
    {"default", TNK__GW_NO_EFFECT},
    {"examples", TNK__GW_NO_EFFECT},
    {"deprecated", TNK__GW_NO_EFFECT},
    {"readOnly", TNK__GW_NO_EFFECT},
    {"writeOnly", TNK__GW_NO_EFFECT},
    /* OpenAPI's hint about the branch of oneOf. */
    {"discriminator", TNK__GW_NO_EFFECT},
    {"$defs", TNK__GW_SCHEMA_MAP},
    {"definitions", TNK__GW_SCHEMA_MAP},
    {"properties", TNK__GW_SCHEMA_MAP},
    {"additionalProperties", TNK__GW_A_SCHEMA},
    {"items", TNK__GW_SCHEMA_OR_LIST},
    {"additionalItems", TNK__GW_A_SCHEMA},
    {"not", TNK__GW_A_SCHEMA},
    {"prefixItems", TNK__GW_SCHEMA_LIST},
    {"anyOf", TNK__GW_SCHEMA_LIST},
    {"oneOf", TNK__GW_SCHEMA_LIST},
    {"allOf", TNK__GW_SCHEMA_LIST},
    {"type", TNK__GW_TYPES},
    {"required", TNK__GW_NAMES},
    {"enum", TNK__GW_VALUES},
    {"const", TNK__GW_ANY_VALUE},
    {"minimum", TNK__GW_NUMBER},
    {"maximum", TNK__GW_NUMBER},
    {"exclusiveMinimum", TNK__GW_NUMBER},
    {"exclusiveMaximum", TNK__GW_NUMBER},
    {"multipleOf", TNK__GW_POSITIVE},
    {"minLength", TNK__GW_COUNT},
    {"maxLength", TNK__GW_COUNT},
    {"minItems", TNK__GW_COUNT},
    {"maxItems", TNK__GW_COUNT},
    {"minProperties", TNK__GW_COUNT},
    {"maxProperties", TNK__GW_COUNT},
    {"uniqueItems", TNK__GW_BOOL},
    {"$ref", TNK__GW_REF},
    {"format", TNK__GW_FORMAT},
    {"pattern", TNK__GW_PATTERN},
};

tnk__gw_keyword_t tnk__gw_keyword(const char *name) {
  for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
    if (strcmp(keywords[i].name, name) == 0)
      return keywords[i].is;
  return TNK__GW_UNKNOWN;
}

/* ---- Types ---- */

static int is_whole(const json_t *value) {
  double number;

  if (json_is_integer(value))
    return 1;
  number = json_real_value(value);
  return json_is_real(value) && floor(number) == number;
}

int tnk__gw_is_type(const json_t *value, const char *name) {
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    return strcmp(name, "object") == 0;
  case JSON_ARRAY:
    return strcmp(name, "array") == 0;
  case JSON_STRING:
    return strcmp(name, "string") == 0;
  case JSON_INTEGER:
  case JSON_REAL:
    return strcmp(name, "number") == 0 ||
           (strcmp(name, "integer") == 0 && is_whole(value));
  case JSON_TRUE:
  case JSON_FALSE:
    return strcmp(name, "boolean") == 0;
  case JSON_NULL:
    break;
  }
  return strcmp(name, "null") == 0;
}

int tnk__gw_knows_type(const char *name) {
  static const char *const types[] = {"object",  "array",   "string", "number",
                                      "integer", "boolean", "null"};

  for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
    if (strcmp(types[i], name) == 0)
      return 1;
  return 0;
}

/* ---- References ---- */

enum { MAX_NAME = 256 };

/* Read the next step of a JSON pointer. Returns what follows it, or NULL. */
static const char *read_step(const char *at, char *out) {
  size_t n = 0;

  if (*at != '/')
    return NULL;
  for (at++; *at != '\0' && *at != '/'; at++) {
    char c = *at;

    if (c == '%' || n == MAX_NAME - 1)
      return NULL;
    if (c == '~') {
      at++;
      if (*at != '0' && *at != '1')
        return NULL;
      c = *at == '0' ? '~' : '/';
    }
    out[n++] = c;
  }
  out[n] = '\0';
  return at;
}

static const json_t *item_at(const json_t *list, const char *digits) {
  size_t i = 0;

  if (*digits == '\0' || strlen(digits) > 6)
    return NULL;
  for (; *digits != '\0'; digits++) {
    if (*digits < '0' || *digits > '9')
      return NULL;
    i = i * 10 + (size_t)(*digits - '0');
  }
  return json_array_get(list, i);
}

const json_t *tnk__gw_schema_at(const json_t *root, const char *ref) {
  const json_t *at = root;
  char step[MAX_NAME];

  if (*ref++ != '#')
    return NULL;
  while (at != NULL && *ref != '\0') {
    tnk__gw_keyword_t is;

    ref = read_step(ref, step);
    if (ref == NULL)
      return NULL;
    is = tnk__gw_keyword(step);
    at = json_object_get(at, step);
    if (is == TNK__GW_A_SCHEMA ||
        (is == TNK__GW_SCHEMA_OR_LIST && !json_is_array(at)))
      continue;
    if (is != TNK__GW_SCHEMA_MAP && is != TNK__GW_SCHEMA_LIST &&
        is != TNK__GW_SCHEMA_OR_LIST)
      return NULL;
    ref = read_step(ref, step);
    if (ref == NULL)
      return NULL;
    at = is == TNK__GW_SCHEMA_MAP ? json_object_get(at, step)
                                  : item_at(at, step);
  }
  return at;
}
