/* SPDX-License-Identifier: MIT */
#include "lib/io/net/stream.h"

#include <strings.h>

/* Streams are stacked here, so no kind knows another. */

static int open_tcp(tnk__stream_t **out, struct tnk__net *net,
                    const tnk__origin_t *origin, const tnk__via_t *via,
                    const tnk__stream_events_t *events, void *user) {
  return tnk__tcp_open(out, net, origin, via, 0, events, user);
}

/* Open TLS to a proxy, as the carrier of the tunnel. */
static int open_secure_proxy(tnk__stream_t **out, struct tnk__net *net,
                             const tnk__via_t *via, uint64_t connect_timeout_ms,
                             const tnk__stream_events_t *events, void *user) {
  const tnk__origin_t proxy = {via->host, via->port, 1};

  return tnk__tls_open(out, net, &proxy, NULL, connect_timeout_ms, open_tcp,
                       TNK__TLS_CARRIER, events, user);
}

/* Open the stream to a proxy, below a tunnel. */
static int open_proxy(tnk__stream_t **out, struct tnk__net *net,
                      const tnk__origin_t *origin, const tnk__via_t *via,
                      const tnk__stream_events_t *events, void *user) {
  if (via->is_tls)
    return open_secure_proxy(out, net, via, 0, events, user);
  return tnk__tcp_open(out, net, origin, via, 0, events, user);
}

static int open_tunnel(tnk__stream_t **out, struct tnk__net *net,
                       const tnk__origin_t *origin, const tnk__via_t *via,
                       const tnk__stream_events_t *events, void *user) {
  (void)origin;
  return tnk__tunnel_open(out, net, via, 0, open_proxy, events, user);
}

int tnk__stream_open(tnk__stream_t **out, struct tnk__net *net,
                     const tnk__origin_t *origin, const tnk__via_t *via,
                     uint64_t connect_timeout_ms,
                     const tnk__stream_events_t *events, void *user) {
  if (origin->is_tls)
    return tnk__tls_open(out, net, origin, via, connect_timeout_ms,
                         via != NULL ? open_tunnel : open_tcp, TNK__TLS_TOP,
                         events, user);
  if (via != NULL && via->kind != TNK__PROXY_HTTP)
    return tnk__tunnel_open(out, net, via, connect_timeout_ms, open_proxy,
                            events, user);
  if (via != NULL && via->is_tls)
    return open_secure_proxy(out, net, via, connect_timeout_ms, events, user);
  return tnk__tcp_open(out, net, origin, via, connect_timeout_ms, events, user);
}

int tnk__origin_equal(const tnk__origin_t *a, const tnk__origin_t *b) {
  return a->port == b->port && !a->is_tls == !b->is_tls &&
         strcasecmp(a->host, b->host) == 0;
}
