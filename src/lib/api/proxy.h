#ifndef TNK_LIB_API_PROXY_H
#define TNK_LIB_API_PROXY_H

#include "lib/wire/format/proxy.h"

/* The proxy fields that the options of a service and of a hub share. */
typedef struct {
  const char *proxy;
  const char *no_proxy;
  const tnk_pair_t *headers;
  size_t n_headers;
} tnk__proxy_options_t;

/* Read the proxies from the options, else from the environment. Returns TNK_OK,
 * TNK_ENOMEM, or TNK_EINVAL with *why: a proxy in the options, or the proxy for
 * `url`, is invalid. Any other invalid proxy in the environment is an error
 * only when it is needed. The caller must free *out in every case. */
int tnk__proxies_load(tnk__proxies_t *out, const tnk_allocator_t *alloc,
                      const tnk__proxy_options_t *options,
                      const tnk__url_t *url, const char **why);

#endif
