/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_CALLS_H
#define TNK_LIB_WIRE_MESSAGE_CALLS_H

#include "lib/base/arena.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/common.h"

/* Helpers of the files calls_*.c. */

/* Begin and end a body, which is one object. Values in between are its members.
 * tnk__calls_end() stores any error in out->err. */
void tnk__calls_begin(tnk__json_writer_t *w, tnk__buf_t *out);
void tnk__calls_end(tnk__json_writer_t *w);
/* Write a member. It is omitted if it is NULL or has no pairs. */
void tnk__calls_put_optional(tnk__json_writer_t *w, const char *key,
                             const char *text);
void tnk__calls_put_metadata(tnk__json_writer_t *w, const tnk_pair_t *pairs,
                             size_t n);
void tnk__calls_put_pairs(tnk__json_writer_t *w, const char *key,
                          const tnk_pair_t *pairs, size_t n);
void tnk__calls_put_uint(tnk__json_writer_t *w, const char *key,
                         uint64_t value);

/* Copy a member into the arena. An absent or null member gives NULL. If the
 * member is required, an absent, null or empty one is TNK_EPROTO. */
int tnk__calls_get_text(const char **out, tnk__arena_t *arena,
                        const json_t *object, const char *key);
int tnk__calls_get_required(const char **out, tnk__arena_t *arena,
                            const json_t *object, const char *key);
/* Copy an id. It may also be an integer, because some servers send integers. */
int tnk__calls_get_id(const char **out, tnk__arena_t *arena,
                      const json_t *object, const char *key);

/* Copy an object as JSON text, to pass it on unchanged. `n` may be NULL. */
int tnk__calls_keep_json(const char **out, size_t *n, tnk__arena_t *arena,
                         const json_t *object);

/* Read a response whose only required member is a string. */
int tnk__calls_read_one(const char **out, tnk__arena_t *arena,
                        const uint8_t *body, size_t n, const char *key);

#endif
