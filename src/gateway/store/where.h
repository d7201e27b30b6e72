/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STORE_WHERE_H
#define TNK_GATEWAY_STORE_WHERE_H

#include <stddef.h>
#include <stdint.h>

enum {
  TNK__GW_MAX_HOST = 255,
  TNK__GW_MAX_SECRET = 511,
  TNK__GW_MAX_RECORD_NAME = 128
};

/* The address of a shared record:
 * valkey://[[USER]:PASSWORD@]HOST[:PORT]/NAME, or redis://; with TLS valkeys://
 * or rediss://. The user and the password may be percent-encoded. The password
 * is a secret: wipe this after use. */
typedef struct {
  char host[TNK__GW_MAX_HOST + 1]; /* an IPv6 address has no brackets */
  uint16_t port;
  int is_tls;
  char name[TNK__GW_MAX_RECORD_NAME + 1];
  char user[TNK__GW_MAX_SECRET + 1];     /* "": none */
  char password[TNK__GW_MAX_SECRET + 1]; /* "": none */
  /* For messages: the address without user and password. */
  char shown[TNK__GW_MAX_HOST + TNK__GW_MAX_RECORD_NAME + 32];
} tnk__gw_where_t;

/* Returns whether a text is an address of a shared record, and not the path of
 * a file. */
int tnk__gw_is_where(const char *text);
/* Returns whether the address asks for TLS. */
int tnk__gw_is_secure_where(const char *text);
/* Read an address. Returns NULL, or what is wrong with it, in words that do not
 * quote it. */
const char *tnk__gw_where_read(const char *text, tnk__gw_where_t *out);

#endif
