/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_SOCKS_H
#define TNK_LIB_WIRE_FORMAT_SOCKS_H

#include <stddef.h>
#include <stdint.h>

/*
 * A connection through a SOCKS5 proxy (RFC 1928), with a user and password if
 * the proxy requires them (RFC 1929). Works on bytes: the owner reads and
 * writes them, and begins with tnk__socks_hello().
 */

/* The longest message to the proxy. */
#define TNK__SOCKS_MAX_MESSAGE ((size_t)513)
/* Maximum length of a user, a password and a name. */
#define TNK__SOCKS_MAX_TEXT ((size_t)255)

/* The target and the credentials. The strings belong to the owner. */
typedef struct {
  const char *user; /* NULL: no credentials */
  const char *password;
  const char *host; /* name for the proxy to look up; NULL: use the address */
  const uint8_t *address;
  size_t n_address; /* 4 or 16 */
  uint16_t port;
} tnk__socks_target_t;

typedef enum {
  TNK__SOCKS_MORE = 0, /* the reply is incomplete */
  TNK__SOCKS_SAY,      /* write `out`, then continue reading */
  TNK__SOCKS_AGREED,   /* connected; bytes pass unchanged from here on */
  TNK__SOCKS_FAILED    /* see `err` and `text` */
} tnk__socks_result_t;

typedef struct {
  int stage;
  uint8_t in[262]; /* reply that is being read */
  size_t n_in;
  size_t n_need;
  /* May contain the password, so wipe it. */
  uint8_t out[TNK__SOCKS_MAX_MESSAGE];
  size_t n_out;
  /* TNK_EPROXY: it refused, and will again. TNK_ECONN: it could not connect,
   * which may be temporary. TNK_EPROTO: not SOCKS5. */
  int err;
  const char *text; /* static predicate that follows the proxy's name */
} tnk__socks_t;

/* Begin. The owner must then write `out`. */
void tnk__socks_hello(tnk__socks_t *socks, const tnk__socks_target_t *target);
/* Read some bytes. It is an error if bytes follow a reply before the next
 * message is sent. */
tnk__socks_result_t tnk__socks_feed(tnk__socks_t *socks,
                                    const tnk__socks_target_t *target,
                                    const uint8_t *data, size_t n);

#endif
