/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_JWT_H
#define TNK_LIB_WIRE_FORMAT_JWT_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "tnk/common.h"

/* Returns whether a credential may be written in a header: it has visible ASCII
 * characters only, at least one, and fits in a header. */
int tnk__token_is_sound(const char *token);
/* Returns whether it has the form of a JWT rather than of a plain key. */
int tnk__token_is_jwt(const char *token);

/* The times in a JWT, in Unix seconds; 0 if missing or invalid. The signature
 * is not checked, because that is the server's task. */
typedef struct {
  int64_t expires_s; /* "exp" */
  int64_t issued_s;  /* "iat" */
} tnk__jwt_t;

/* Append the claims of a JWT, which are JSON, to `out`. Returns TNK_OK or
 * TNK_ENOMEM, or TNK_EPROTO if `token` is not a JWT. */
int tnk__jwt_claims(tnk__buf_t *out, const char *token);
/* Read a JWT. Returns TNK_OK or TNK_ENOMEM. If `token` is not a JWT, both times
 * are 0. */
int tnk__jwt_read(tnk__jwt_t *out, const tnk_allocator_t *alloc,
                  const char *token);

#endif
