/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_DATA_SECRET_H
#define TNK_LIB_WIRE_DATA_SECRET_H

/* Whether a text that should be a public key contains a secret key of age or of
 * SSH. The key may be truncated or damaged. Such a text is never sent and never
 * shown. */
int tnk__is_secret_key(const char *text);

#endif
