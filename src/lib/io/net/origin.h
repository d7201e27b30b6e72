#ifndef TNK_LIB_IO_NET_ORIGIN_H
#define TNK_LIB_IO_NET_ORIGIN_H

#include <stdint.h>

/* The far end. Two origins are equal when all three parts agree. */
typedef struct {
  const char *host; /* a name or an address; IPv6 without brackets */
  uint16_t port;
  int is_tls;
} tnk__origin_t;

/* Whether two origins are one. Host names are compared without regard to
 * case. */
int tnk__origin_equal(const tnk__origin_t *a, const tnk__origin_t *b);

#endif
