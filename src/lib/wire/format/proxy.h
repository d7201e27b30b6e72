/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_PROXY_H
#define TNK_LIB_WIRE_FORMAT_PROXY_H

#include "lib/wire/format/location.h"

/* The protocol of a proxy. */
typedef enum {
  TNK__PROXY_HTTP = 0, /* with TLS to the proxy if at.is_tls */
  TNK__PROXY_SOCKS5,   /* SOCKS5 by address; names are looked up here */
  TNK__PROXY_SOCKS5H   /* SOCKS5 by name */
} tnk__proxy_kind_t;

/*
 * A proxy from its URL: http://[user[:password]@]host[:port], or https://,
 * socks5://, socks5h://. The default scheme is http://. The default port is 80,
 * 443, or 1080.
 */
typedef struct {
  /* Without the user; `authority` is its name in messages. */
  tnk__location_t at;
  tnk__proxy_kind_t kind;
  /* For SOCKS; NULL: no credentials. Secrets, which are wiped. */
  char *user;
  char *password;
  /* For HTTP proxies: Proxy-Authorization from the user and password, and the
   * caller's headers. Secrets, which are wiped. */
  tnk_pair_t *headers;
  size_t n_headers;
  int has_credentials;
  /* NULL, or why the proxy cannot be used; everything else is empty then. */
  const char *why;
} tnk__proxy_t;

/* Parse the URL of a proxy. `headers` are copied. A Proxy-Authorization among
 * them replaces the one from the URL. Returns TNK_OK, TNK_ENOMEM, or TNK_EINVAL
 * with *why, a static phrase without any part of the text. After an error
 * nothing must be freed. */
int tnk__proxy_parse(tnk__proxy_t *out, const tnk_allocator_t *alloc,
                     const char *text, const tnk_pair_t *headers,
                     size_t n_headers, const char **why);
/* Free and wipe it. A zeroed one is allowed. */
void tnk__proxy_deinit(tnk__proxy_t *proxy, const tnk_allocator_t *alloc);

/*
 * Whether `list` contains the host. It is a list of hosts that are reached
 * without a proxy, separated by commas or blanks. NULL is an empty list.
 *
 * An entry is a name, which includes its subdomains, an address, or a network
 * such as 10.0.0.0/8. With ":port" it applies only to that port. "*" matches
 * every host. `host` has the form of a tnk__url_t's host.
 */
int tnk__no_proxy_has(const char *list, const char *host, uint16_t port);

/* The proxies for each scheme of a URL. */
typedef struct tnk__proxies {
  tnk__proxy_t http; /* zeroed: no proxy */
  tnk__proxy_t https;
  char *no_proxy; /* exceptions, or NULL */
} tnk__proxies_t;

/* The proxy for an origin, or NULL for none. The result may be a proxy that
 * cannot be used. */
const tnk__proxy_t *tnk__proxies_find(const tnk__proxies_t *proxies,
                                      const char *host, uint16_t port,
                                      int is_tls);
void tnk__proxies_deinit(tnk__proxies_t *proxies, const tnk_allocator_t *alloc);

#endif
