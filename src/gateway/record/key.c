/* SPDX-License-Identifier: MIT */
#include "gateway/record/key.h"

#include <string.h>

#include "gateway/base/map.h"
#include "lib/wire/format/json_read.h"

static uint64_t add_text(uint64_t key, const char *text, size_t n) {
  /* Hash the length too, so that strings in a row cannot be split differently
   * and have the same hash. */
  key = tnk__gw_hash(key, &n, sizeof(n));
  return tnk__gw_hash(key, text, n);
}

static uint64_t add_json(uint64_t key, const json_t *value) {
  char *text =
      value != NULL
          ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY)
          : NULL;

  key =
      add_text(key, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
  tnk__json_free_string(text);
  return key;
}

static int is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Clients may lose white space around a message. */
static uint64_t add_trimmed(uint64_t key, const char *text, size_t n) {
  while (n > 0 && is_blank(text[n - 1]))
    n--;
  while (n > 0 && is_blank(*text)) {
    text++;
    n--;
  }
  return add_text(key, text, n);
}

static const json_t *text_of_part(const json_t *part) {
  const json_t *type = json_object_get(part, "type");
  const json_t *text = json_object_get(part, "text");

  return json_is_string(type) && strcmp(json_string_value(type), "text") == 0 &&
                 json_is_string(text)
             ? text
             : NULL;
}

/* A list of one text part has the same key as a plain string. */
static uint64_t add_parts(uint64_t key, const json_t *parts) {
  size_t n = json_array_size(parts);
  const json_t *text = n == 1 ? text_of_part(json_array_get(parts, 0)) : NULL;

  return text != NULL ? add_trimmed(key, json_string_value(text),
                                    json_string_length(text))
                      : add_json(key, parts);
}

static uint64_t add_calls(uint64_t key, const json_t *calls) {
  for (size_t i = 0; i < json_array_size(calls); i++) {
    const json_t *function =
        json_object_get(json_array_get(calls, i), "function");

    key = add_json(key, json_object_get(function, "name"));
    key = add_json(key, json_object_get(function, "arguments"));
  }
  return key;
}

uint64_t tnk__gw_key_begin(const json_t *tools) {
  return add_json(1, json_array_size(tools) > 0 ? tools : NULL);
}

uint64_t tnk__gw_key_add(uint64_t key, const json_t *message) {
  const json_t *content = json_object_get(message, "content");

  key = add_json(key, json_object_get(message, "role"));
  if (json_is_string(content))
    key = add_trimmed(key, json_string_value(content),
                      json_string_length(content));
  else if (json_array_size(content) > 0)
    key = add_parts(key, content);
  else
    key = add_text(key, "", 0);
  key = add_json(key, json_object_get(message, "tool_call_id"));
  return add_calls(key, json_object_get(message, "tool_calls"));
}
