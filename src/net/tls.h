#ifndef TNK_NET_TLS_H
#define TNK_NET_TLS_H

#include "net/net.h"
#include "net/stream.h"

/* Open a stream of TLS 1.2 or later over TCP or a tunnel, as tnk__stream_open()
 * does. */
int tnk__tls_open(tnk__stream_t **out, tnk__net_t *net,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  uint64_t connect_timeout_ms,
                  const tnk__stream_events_t *events, void *user);

#endif
