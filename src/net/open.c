/* Apart from the interface, which the kinds of streams know and which does not
 * know them. */
#include "net/stream.h"

#include "net/tcp.h"
#include "net/tls.h"

int tnk__stream_open(tnk__stream_t **out, struct tnk__net *net,
                     const tnk__origin_t *origin, const tnk__via_t *via,
                     uint64_t connect_timeout_ms,
                     const tnk__stream_events_t *events, void *user) {
  if (origin->is_tls)
    return tnk__tls_open(out, net, origin, via, connect_timeout_ms, events,
                         user);
  return tnk__tcp_open(out, net, origin, via, connect_timeout_ms, events, user);
}
