#ifndef TNK_LIB_WIRE_FORMAT_SOCKS_H
#define TNK_LIB_WIRE_FORMAT_SOCKS_H

#include <stddef.h>
#include <stdint.h>

/*
 * One connection asked of a SOCKS5 proxy (RFC 1928), with a user and password
 * if it wants them (RFC 1929). Bytes in, bytes out: the owner does the reading
 * and writing, and begins with tnk__socks_hello().
 */

/* The longest message of ours. */
#define TNK__SOCKS_MAX_MESSAGE ((size_t)513)
/* Bytes that a user, a password and a name may have. */
#define TNK__SOCKS_MAX_TEXT ((size_t)255)

/* Where to, and who asks. The texts belong to the owner. */
typedef struct {
  const char *user; /* NULL: nobody in particular */
  const char *password;
  const char *host; /* for the proxy to look up; or NULL: */
  const uint8_t *address;
  size_t n_address; /* 4 or 16 */
  uint16_t port;
} tnk__socks_target_t;

typedef enum {
  TNK__SOCKS_MORE = 0, /* the answer has not come as a whole */
  TNK__SOCKS_SAY,      /* write `out`, then go on reading */
  TNK__SOCKS_AGREED,   /* connected; bytes go through as they are */
  TNK__SOCKS_FAILED    /* see `err` and `text` */
} tnk__socks_result_t;

typedef struct {
  int stage;
  uint8_t in[262]; /* the answer that is being read */
  size_t n_in;
  size_t n_need;
  uint8_t out[TNK__SOCKS_MAX_MESSAGE]; /* may hold the password: wipe it */
  size_t n_out;
  /* TNK_EPROXY: it refuses, and will again; TNK_ECONN: it could not connect,
   * which may pass; TNK_EPROTO: no SOCKS5. */
  int err;
  const char *text; /* static: what the proxy did, behind its name */
} tnk__socks_t;

/* Begin: `out` is to be written. */
void tnk__socks_hello(tnk__socks_t *socks, const tnk__socks_target_t *target);
/* Read some bytes. Nothing may follow an answer before we have said more. */
tnk__socks_result_t tnk__socks_feed(tnk__socks_t *socks,
                                    const tnk__socks_target_t *target,
                                    const uint8_t *data, size_t n);

#endif
