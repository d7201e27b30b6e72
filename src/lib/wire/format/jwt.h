#ifndef TNK_LIB_WIRE_FORMAT_JWT_H
#define TNK_LIB_WIRE_FORMAT_JWT_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "tnk/common.h"

/* Whether a credential may go into a header: some visible ASCII characters and
 * no more than a header may hold. */
int tnk__token_is_sound(const char *token);
/* Whether it has the form by which a JWT is told from a plain key. */
int tnk__token_is_jwt(const char *token);

/* What a JWT says of its life, in Unix seconds; 0 for what is missing or no
 * time. Its signature is the server's affair. */
typedef struct {
  int64_t expires_s; /* "exp" */
  int64_t issued_s;  /* "iat" */
} tnk__jwt_t;

/* Write what a JWT says, which is JSON, behind what `out` has. TNK_OK;
 * TNK_EPROTO when `token` is none; or TNK_ENOMEM. */
int tnk__jwt_claims(tnk__buf_t *out, const char *token);
/* Read it. TNK_OK, also with both unknown when `token` is no JWT; or
 * TNK_ENOMEM. */
int tnk__jwt_read(tnk__jwt_t *out, const tnk_allocator_t *alloc,
                  const char *token);

#endif
