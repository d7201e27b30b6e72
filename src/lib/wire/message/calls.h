#ifndef TNK_LIB_WIRE_MESSAGE_CALLS_H
#define TNK_LIB_WIRE_MESSAGE_CALLS_H

#include "lib/base/arena.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/common.h"

/* What the files calls_*.c share. */

/* Begin and end a body, which is one object: everything between these two is
 * its members. The second one leaves what went wrong in out->err. */
void tnk__calls_begin(tnk__json_writer_t *w, tnk__buf_t *out);
void tnk__calls_end(tnk__json_writer_t *w);
/* Put a member; it is left out when it is NULL or there are no pairs. */
void tnk__calls_put_optional(tnk__json_writer_t *w, const char *key,
                             const char *text);
void tnk__calls_put_metadata(tnk__json_writer_t *w, const tnk_pair_t *pairs,
                             size_t n);
void tnk__calls_put_pairs(tnk__json_writer_t *w, const char *key,
                          const tnk_pair_t *pairs, size_t n);
void tnk__calls_put_uint(tnk__json_writer_t *w, const char *key,
                         uint64_t value);

/* Copy a member into the arena. An absent or null one gives NULL, which is
 * TNK_EPROTO where it is required; so is an empty required one. */
int tnk__calls_get_text(const char **out, tnk__arena_t *arena,
                        const json_t *object, const char *key);
int tnk__calls_get_required(const char **out, tnk__arena_t *arena,
                            const json_t *object, const char *key);
/* Copy an id, which may be a whole number too, as some servers send them. */
int tnk__calls_get_id(const char **out, tnk__arena_t *arena,
                      const json_t *object, const char *key);

/* Copy an object as text, so that it can be handed on whole; `n` may be
 * NULL. */
int tnk__calls_keep_json(const char **out, size_t *n, tnk__arena_t *arena,
                         const json_t *object);

/* Read a whole answer that has one required text. */
int tnk__calls_read_one(const char **out, tnk__arena_t *arena,
                        const uint8_t *body, size_t n, const char *key);

#endif
