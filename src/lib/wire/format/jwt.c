/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/jwt.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/base64.h"
#include "lib/base/limits.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* This limit is far beyond any date, and exact in a double. */
#define MAX_SECONDS 1e15

int tnk__token_is_sound(const char *token) {
  size_t n = strlen(token);
  size_t i;

  for (i = 0; i < n; i++)
    if ((unsigned char)token[i] <= 0x20 || (unsigned char)token[i] >= 0x7f)
      return 0;
  return n > 0 && n <= TNK__MAX_CREDENTIAL;
}

int tnk__token_is_jwt(const char *token) {
  return strncmp(token, "eyJ", 3) == 0;
}

static int64_t seconds_of(const json_t *claims, const char *name) {
  double value = json_number_value(json_object_get(claims, name));

  return value > 0 && value < MAX_SECONDS ? (int64_t)value : 0;
}

int tnk__jwt_claims(tnk__buf_t *out, const char *token) {
  const char *claims = strchr(token, '.');
  const char *end = claims != NULL ? strchr(claims + 1, '.') : NULL;

  if (end == NULL)
    return TNK_EPROTO;
  return tnk__base64_read(out, claims + 1, (size_t)(end - claims - 1));
}

int tnk__jwt_read(tnk__jwt_t *out, const tnk_allocator_t *alloc,
                  const char *token) {
  json_t *root = NULL;
  tnk__buf_t text;
  int err;

  *out = (tnk__jwt_t){0, 0};
  tnk__buf_init(&text, alloc, TNK__MAX_CREDENTIAL);
  err = tnk__jwt_claims(&text, token);
  if (err == TNK_OK)
    err = tnk__json_parse_object(&root, text.data, text.len);
  if (err == TNK_OK) {
    out->expires_s = seconds_of(root, "exp");
    out->issued_s = seconds_of(root, "iat");
  }
  json_decref(root);
  tnk__buf_deinit(&text);
  return err == TNK_ENOMEM ? TNK_ENOMEM : TNK_OK;
}
