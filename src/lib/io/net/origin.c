#include "lib/io/net/origin.h"

#include <strings.h>

int tnk__origin_equal(const tnk__origin_t *a, const tnk__origin_t *b) {
  return a->port == b->port && !a->is_tls == !b->is_tls &&
         strcasecmp(a->host, b->host) == 0;
}
