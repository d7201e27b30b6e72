/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_JSON_WRITE_H
#define TNK_LIB_WIRE_FORMAT_JSON_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/*
 * Appends compact JSON to a buffer. Commas and colons are written
 * automatically. The functions return no error. The first failure is kept in
 * the buffer, and tnk__json_finish() reports it.
 *
 *     tnk__json_writer_init(&w, &buf);
 *     tnk__json_begin_object(&w);
 *     tnk__json_key(&w, "seq_id");
 *     tnk__json_int(&w, 7);
 *     tnk__json_end(&w);
 *     err = tnk__json_finish(&w);
 *
 * Failures: TNK_ENOMEM and TNK_ETOOBIG of the buffer. TNK_EINVAL for text that
 * is not UTF-8, or nesting deeper than TNK__MAX_JSON_DEPTH. TNK_EINTERNAL for
 * calls that would write malformed JSON, for example a member without a key.
 */
typedef struct {
  tnk__buf_t *buf;   /* not owned */
  size_t depth;      /* number of open objects and arrays */
  uint64_t objects;  /* bit d - 1: level d is an object */
  uint64_t nonempty; /* bit d - 1: level d has an element already */
  int has_key;       /* a key waits for its value */
  int done;          /* the top-level value is complete or open */
} tnk__json_writer_t;

void tnk__json_writer_init(tnk__json_writer_t *w, tnk__buf_t *buf);
/* Finish the value. Returns the buffer's error, or TNK_EINTERNAL if the value
 * is incomplete. */
int tnk__json_finish(tnk__json_writer_t *w);

void tnk__json_begin_object(tnk__json_writer_t *w);
void tnk__json_begin_array(tnk__json_writer_t *w);
/* Close the innermost object or array. */
void tnk__json_end(tnk__json_writer_t *w);
void tnk__json_key(tnk__json_writer_t *w, const char *key);
void tnk__json_key_n(tnk__json_writer_t *w, const char *key, size_t n);

/* Write a string. NULL writes null. */
void tnk__json_text(tnk__json_writer_t *w, const char *text);
void tnk__json_text_n(tnk__json_writer_t *w, const char *text, size_t n);
void tnk__json_int(tnk__json_writer_t *w, int64_t value);
void tnk__json_uint(tnk__json_writer_t *w, uint64_t value);
/* Write a float so that it reads back as the same float, also if it is read as
 * a double. */
void tnk__json_float(tnk__json_writer_t *w, float value);
void tnk__json_null(tnk__json_writer_t *w);
/* Write bytes that are JSON already. They are not checked. */
void tnk__json_raw(tnk__json_writer_t *w, const void *json, size_t n);

/* Write whole arrays without a call for each element. */
void tnk__json_int32s(tnk__json_writer_t *w, const int32_t *values, size_t n);
void tnk__json_int64s(tnk__json_writer_t *w, const int64_t *values, size_t n);

/* Write a key and its value. */
void tnk__json_put_text(tnk__json_writer_t *w, const char *key,
                        const char *text);
void tnk__json_put_int(tnk__json_writer_t *w, const char *key, int64_t value);
/* Write the shortest text that reads back as the same number, always with a
 * point or an exponent: 1.0, 0.0001, 1e-12. NaN and infinities become null. */
void tnk__json_put_double(tnk__json_writer_t *w, const char *key, double value);
void tnk__json_put_bool(tnk__json_writer_t *w, const char *key, int value);
/* Write a string that is JSON already. It is not checked. NULL writes null. */
void tnk__json_put_raw(tnk__json_writer_t *w, const char *key,
                       const char *json);
/* Write a key, and begin its object or array, which tnk__json_end() closes. */
void tnk__json_put_object(tnk__json_writer_t *w, const char *key);
void tnk__json_put_array(tnk__json_writer_t *w, const char *key);

/*
 * Append a copy of a JSON object that this writer has written, without its
 * top-level member `member`. If `value` is not NULL, the member must have this
 * value. Returns 1. Returns 0 if there is no such member; nothing was appended
 * then. A failure is kept in the buffer.
 */
int tnk__json_cut(tnk__buf_t *out, const uint8_t *body, size_t n,
                  const char *member, const char *value);

#endif
