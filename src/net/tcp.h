#ifndef TNK_NET_TCP_H
#define TNK_NET_TCP_H

#include "net/net.h"
#include "net/stream.h"

/* A TCP stream; see tnk__stream_open(). Of `origin` and `via` one
 * is enough. */
int tnk__tcp_open(tnk__stream_t **out, tnk__net_t *net,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  uint64_t connect_timeout_ms,
                  const tnk__stream_events_t *events, void *user);

#endif
