#ifndef TNK_LIB_WIRE_FORMAT_PROXY_H
#define TNK_LIB_WIRE_FORMAT_PROXY_H

#include "lib/wire/format/location.h"

/* What a proxy speaks. */
typedef enum {
  TNK__PROXY_HTTP = 0, /* also behind TLS of its own: at.is_tls */
  TNK__PROXY_SOCKS5,   /* gets addresses, which are looked up here */
  TNK__PROXY_SOCKS5H   /* gets names */
} tnk__proxy_kind_t;

/*
 * A proxy, out of its URL: http://[user[:password]@]host[:port], or https://,
 * socks5://, socks5h://. The scheme may be missing, and is http:// then. The
 * port is 80, 443, or 1080 unless it is there.
 */
typedef struct {
  tnk__location_t at; /* without the user; `authority` is its name */
  tnk__proxy_kind_t kind;
  /* Of SOCKS, NULL: nobody. Secrets: wiped. */
  char *user;
  char *password;
  /* For a proxy of HTTP alone: Proxy-Authorization, made of the user and
   * password, and what the caller adds. Secrets: wiped. */
  tnk_pair_t *headers;
  size_t n_headers;
  int has_credentials;
  /* NULL, or why it cannot be used: then there is nothing else in it. */
  const char *why;
} tnk__proxy_t;

/* Read the URL of a proxy. `headers` are copied; a Proxy-Authorization among
 * them replaces that of the URL. TNK_OK, TNK_ENOMEM, or TNK_EINVAL with *why, a
 * static phrase in which nothing of the text is told. After a failure there is
 * nothing to be freed. */
int tnk__proxy_parse(tnk__proxy_t *out, const tnk_allocator_t *alloc,
                     const char *text, const tnk_pair_t *headers,
                     size_t n_headers, const char **why);
/* Free and wipe it; a zeroed one may be given too. */
void tnk__proxy_deinit(tnk__proxy_t *proxy, const tnk_allocator_t *alloc);

/*
 * Whether a list of hosts that are reached without a proxy has this one: names,
 * which stand for what is below them too, addresses, and networks such as
 * 10.0.0.0/8, each with ":port" if only that is meant; "*" is every host. They
 * stand between commas or blanks. `host` as in a tnk__url_t. NULL is empty.
 */
int tnk__no_proxy_has(const char *list, const char *host, uint16_t port);

/* Who is asked, depending on the scheme of what is wanted. */
typedef struct tnk__proxies {
  tnk__proxy_t http; /* zeroed: none */
  tnk__proxy_t https;
  char *no_proxy; /* the list of exceptions, or NULL */
} tnk__proxies_t;

/* The proxy for an origin, NULL: none. It may be one that cannot be used. */
const tnk__proxy_t *tnk__proxies_find(const tnk__proxies_t *proxies,
                                      const char *host, uint16_t port,
                                      int is_tls);
void tnk__proxies_deinit(tnk__proxies_t *proxies, const tnk_allocator_t *alloc);

#endif
