#ifndef TNK_LIB_IO_NET_ORIGIN_H
#define TNK_LIB_IO_NET_ORIGIN_H

#include <stdint.h>

/* The server. Two origins are equal if all three parts are equal. */
typedef struct {
  const char *host; /* name or address; IPv6 without brackets */
  uint16_t port;
  int is_tls;
} tnk__origin_t;

/* Whether two origins are equal. The case of host names is ignored. */
int tnk__origin_equal(const tnk__origin_t *a, const tnk__origin_t *b);

#endif
