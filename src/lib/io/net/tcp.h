#ifndef TNK_LIB_IO_NET_TCP_H
#define TNK_LIB_IO_NET_TCP_H

#include "lib/io/net/net.h"
#include "lib/io/net/stream.h"

/* Open a TCP stream, like tnk__stream_open(). One of `origin` and `via`
 * suffices. */
int tnk__tcp_open(tnk__stream_t **out, tnk__net_t *net,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  uint64_t connect_timeout_ms,
                  const tnk__stream_events_t *events, void *user);

#endif
