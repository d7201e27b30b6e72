#ifndef TNK_LIB_IO_NET_TUNNEL_H
#define TNK_LIB_IO_NET_TUNNEL_H

#include "lib/io/net/net.h"
#include "lib/io/net/stream.h"

/* Open a stream to a proxy with `below`. The proxy then connects it to the
 * origin in via->request or via->target. The stream is open when the proxy has
 * agreed. Otherwise it works like tnk__stream_open(). */
int tnk__tunnel_open(tnk__stream_t **out, tnk__net_t *net,
                     const tnk__via_t *via, uint64_t connect_timeout_ms,
                     tnk__stream_opener_t below,
                     const tnk__stream_events_t *events, void *user);
/* Describe a proxy that refused `what` with this status. The text contains
 * nothing from the proxy, because the proxy knows the credentials. */
void tnk__tunnel_explain(char *text, size_t size, const tnk__via_t *via,
                         const char *what, int status);

#endif
