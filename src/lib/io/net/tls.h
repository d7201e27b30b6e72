#ifndef TNK_LIB_IO_NET_TLS_H
#define TNK_LIB_IO_NET_TLS_H

#include "lib/io/net/net.h"
#include "lib/io/net/stream.h"

/* The position in a stack of streams. A carrier leads to a proxy and may have
 * another TLS stream on top. */
typedef enum { TNK__TLS_TOP = 0, TNK__TLS_CARRIER } tnk__tls_place_t;

/* Open a stream of TLS 1.2 or later, like tnk__stream_open(), over the stream
 * that `below` opens. A carrier requires tnk__net_reserve_carrier(). */
int tnk__tls_open(tnk__stream_t **out, tnk__net_t *net,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  uint64_t connect_timeout_ms, tnk__stream_opener_t below,
                  tnk__tls_place_t place, const tnk__stream_events_t *events,
                  void *user);

#endif
