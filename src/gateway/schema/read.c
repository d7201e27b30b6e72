/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gateway/schema/keyword.h"
#include "gateway/schema/pattern.h"
#include "gateway/schema/schema.h"
#include "lib/base/limits.h"

/* Checks that every keyword of a schema is known and well-formed. */

typedef struct {
  const json_t *root;
  size_t n; /* values so far */
  char *why;
} reader_t;

static int read_schema(reader_t *reader, const json_t *schema, int depth);

static int refuse(const reader_t *reader, const char *name, const char *what) {
  (void)snprintf(reader->why, TNK__GW_SCHEMA_WHY, "\"%.80s\" %s", name, what);
  return -1;
}

static int is_large(reader_t *reader, size_t n) {
  reader->n += n;
  if (reader->n <= TNK__GW_MAX_SCHEMA)
    return 0;
  (void)snprintf(reader->why, TNK__GW_SCHEMA_WHY, "the schema is too large");
  return 1;
}

static int read_types(const reader_t *reader, const json_t *value) {
  if (json_is_string(value))
    return tnk__gw_knows_type(json_string_value(value))
               ? 0
               : refuse(reader, "type", "names an unknown type");
  if (json_array_size(value) == 0)
    return refuse(reader, "type", "must be a name, or a list of names");
  for (size_t i = 0; i < json_array_size(value); i++) {
    const char *name = json_string_value(json_array_get(value, i));

    if (name == NULL || !tnk__gw_knows_type(name))
      return refuse(reader, "type", "names an unknown type");
  }
  return 0;
}

static int read_names(const reader_t *reader, const char *name,
                      const json_t *value) {
  if (!json_is_array(value))
    return refuse(reader, name, "must be a list of names");
  for (size_t i = 0; i < json_array_size(value); i++)
    if (!json_is_string(json_array_get(value, i)))
      return refuse(reader, name, "must be a list of names");
  return 0;
}

static int read_list(reader_t *reader, const char *name, const json_t *value,
                     int depth) {
  if (json_array_size(value) == 0)
    return refuse(reader, name, "must be a list of schemas");
  for (size_t i = 0; i < json_array_size(value); i++)
    if (read_schema(reader, json_array_get(value, i), depth) != 0)
      return -1;
  return 0;
}

static int read_map(reader_t *reader, const char *name, const json_t *value,
                    int depth) {
  const char *key;
  json_t *schema;

  if (!json_is_object(value))
    return refuse(reader, name, "must be an object of schemas");
  json_object_foreach((json_t *)(uintptr_t)value, key, schema) {
    if (read_schema(reader, schema, depth) != 0)
      return -1;
  }
  return 0;
}

static int read_ref(const reader_t *reader, const json_t *value) {
  const char *ref = json_string_value(value);

  if (ref == NULL || tnk__gw_schema_at(reader->root, ref) == NULL)
    return refuse(reader, ref != NULL ? ref : "$ref",
                  "is not the place of a schema in this schema");
  return 0;
}

static int read_format(const reader_t *reader, const json_t *value) {
  const char *format = json_string_value(value);

  if (format != NULL && tnk__gw_has_format(format, "") >= 0)
    return 0;
  return refuse(reader, format != NULL ? format : "format",
                "is not a format that is supported here");
}

static int read_pattern(reader_t *reader, const json_t *value) {
  tnk__gw_pattern_t pattern;
  const char *why;

  if (!json_is_string(value))
    return refuse(reader, "pattern", "must be a regular expression");
  why = tnk__gw_pattern_read(&pattern, json_string_value(value),
                             json_string_length(value));
  if (is_large(reader, 1 + tnk__gw_pattern_cost(&pattern)))
    return -1;
  return why == NULL ? 0 : refuse(reader, "pattern", why);
}

static int read_keyword(reader_t *reader, const char *name, const json_t *value,
                        int depth) {
  switch (tnk__gw_keyword(name)) {
  case TNK__GW_UNKNOWN:
    return refuse(reader, name, "is not supported in a schema here");
  case TNK__GW_NO_EFFECT:
  case TNK__GW_ANY_VALUE:
    return 0;
  case TNK__GW_A_SCHEMA:
    return read_schema(reader, value, depth);
  case TNK__GW_SCHEMA_OR_LIST:
    return json_is_array(value) ? read_list(reader, name, value, depth)
                                : read_schema(reader, value, depth);
  case TNK__GW_SCHEMA_LIST:
    return read_list(reader, name, value, depth);
  case TNK__GW_SCHEMA_MAP:
    return read_map(reader, name, value, depth);
  case TNK__GW_TYPES:
    return read_types(reader, value);
  case TNK__GW_NAMES:
    return read_names(reader, name, value);
  case TNK__GW_VALUES:
    return json_is_array(value) ? 0 : refuse(reader, name, "must be a list");
  case TNK__GW_COUNT:
    return json_is_integer(value) && json_integer_value(value) >= 0
               ? 0
               : refuse(reader, name, "must be a whole number from 0");
  case TNK__GW_NUMBER:
    return json_is_number(value) ? 0 : refuse(reader, name, "must be a number");
  case TNK__GW_POSITIVE:
    return json_is_number(value) && json_number_value(value) > 0
               ? 0
               : refuse(reader, name, "must be a number above 0");
  case TNK__GW_BOOL:
    return json_is_boolean(value)
               ? 0
               : refuse(reader, name, "must be true or false");
  case TNK__GW_REF:
    return read_ref(reader, value);
  case TNK__GW_FORMAT:
    return read_format(reader, value);
  case TNK__GW_PATTERN:
    return read_pattern(reader, value);
  }
  return -1;
}

static int read_schema(reader_t *reader, const json_t *schema, int depth) {
  const char *name;
  json_t *value;

  if (is_large(reader, 1))
    return -1;
  if (json_is_boolean(schema))
    return 0;
  if (!json_is_object(schema)) {
    (void)snprintf(reader->why, TNK__GW_SCHEMA_WHY,
                   "a schema must be an object, true or false");
    return -1;
  }
  if (depth == TNK__MAX_JSON_DEPTH) {
    (void)snprintf(reader->why, TNK__GW_SCHEMA_WHY,
                   "the schema is nested too deeply");
    return -1;
  }
  json_object_foreach((json_t *)(uintptr_t)schema, name, value) {
    if (is_large(reader, 1 + json_array_size(value)) ||
        read_keyword(reader, name, value, depth + 1) != 0)
      return -1;
  }
  return 0;
}

int tnk__gw_schema_read(const json_t *schema, char *why) {
  reader_t reader = {.root = schema, .why = why};

  why[0] = '\0';
  return read_schema(&reader, schema, 0);
}
