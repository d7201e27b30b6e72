#ifndef TNK_LIB_WIRE_FORMAT_JSON_READ_H
#define TNK_LIB_WIRE_FORMAT_JSON_READ_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/*
 * Reading JSON from a peer, by way of jansson. A key that is given twice
 * counts the last time. jansson's memory does not come from our allocator: its
 * hook is process-wide and belongs to the application.
 */

/* Parse `n` bytes, which may hold any kind of value. On success the caller
 * drops *out with json_decref(). TNK_EPROTO for malformed text, numbers out of
 * range and nesting deeper than TNK__MAX_JSON_DEPTH; TNK_ENOMEM where jansson
 * tells, which it does not inside of texts. */
int tnk__json_parse(json_t **out, const void *data, size_t n);
/* Parse bytes that must hold an object. */
int tnk__json_parse_object(json_t **out, const void *data, size_t n);

/* How a member was found. */
typedef enum {
  TNK__JSON_WRONG = -1, /* another type than asked for, or out of range */
  TNK__JSON_ABSENT = 0,
  TNK__JSON_NULL = 1,
  TNK__JSON_FOUND = 2
} tnk__json_has_t;

/* Get a member. All leave *out as it was unless they return TNK__JSON_FOUND, so
 * it may hold a default. What they give out lives as long as `object`. An
 * `object` that is NULL or no object has no members. */
tnk__json_has_t tnk__json_get_text(const json_t *object, const char *key,
                                   const char **out);
tnk__json_has_t tnk__json_get_int(const json_t *object, const char *key,
                                  int64_t min, int64_t max, int64_t *out);
/* Get a number; whole ones count as doubles too. */
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

/* The member, or NULL unless it is there and has the type. */
const char *tnk__json_str(const json_t *object, const char *key);
const json_t *tnk__json_obj(const json_t *object, const char *key);
const json_t *tnk__json_arr(const json_t *object, const char *key);

#endif
