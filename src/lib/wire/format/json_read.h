/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_JSON_READ_H
#define TNK_LIB_WIRE_FORMAT_JSON_READ_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/*
 * Reads JSON from a peer with jansson. If a key occurs twice, the last one
 * counts. jansson's memory does not come from our allocator, because its hook
 * is process-wide and belongs to the application.
 */

/* Parse `n` bytes, which may contain any kind of value. On success the caller
 * frees *out with json_decref(). Returns TNK_EPROTO for malformed text, numbers
 * out of range and nesting deeper than TNK__MAX_JSON_DEPTH. Returns TNK_ENOMEM
 * if jansson reports it, which it does not inside strings. */
int tnk__json_parse(json_t **out, const void *data, size_t n);
/* Parse bytes that must contain an object. */
int tnk__json_parse_object(json_t **out, const void *data, size_t n);

/* The result of looking up a member. */
typedef enum {
  TNK__JSON_WRONG = -1, /* wrong type, or out of range */
  TNK__JSON_ABSENT = 0,
  TNK__JSON_NULL = 1,
  TNK__JSON_FOUND = 2
} tnk__json_has_t;

/* Look up a member. *out stays unchanged unless TNK__JSON_FOUND is returned, so
 * it may hold a default. The result is valid as long as `object`. If `object`
 * is NULL or not an object, it has no members. */
tnk__json_has_t tnk__json_get_text(const json_t *object, const char *key,
                                   const char **out);
tnk__json_has_t tnk__json_get_int(const json_t *object, const char *key,
                                  int64_t min, int64_t max, int64_t *out);
/* Look up a number. Integers are accepted as doubles too. */
tnk__json_has_t tnk__json_get_double(const json_t *object, const char *key,
                                     double *out);
tnk__json_has_t tnk__json_get_bool(const json_t *object, const char *key,
                                   int *out);
tnk__json_has_t tnk__json_get_object(const json_t *object, const char *key,
                                     const json_t **out);
tnk__json_has_t tnk__json_get_array(const json_t *object, const char *key,
                                    const json_t **out);

/* Free a string that json_dumps() returned. It comes from the allocator that
 * the program gave to jansson, so free() may be the wrong function. NULL does
 * nothing. */
void tnk__json_free_string(char *string);

/* The member, or NULL if it is missing or has another type. */
const char *tnk__json_str(const json_t *object, const char *key);
const json_t *tnk__json_obj(const json_t *object, const char *key);
const json_t *tnk__json_arr(const json_t *object, const char *key);

#endif
