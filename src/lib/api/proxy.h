#ifndef TNK_LIB_API_PROXY_H
#define TNK_LIB_API_PROXY_H

#include "lib/wire/format/proxy.h"

/* The fields of this name in the options of a service and of a hub. */
typedef struct {
  const char *proxy;
  const char *no_proxy;
  const tnk_pair_t *headers;
  size_t n_headers;
} tnk__proxy_options_t;

/* Read what the options say of proxies, else the environment. TNK_OK,
 * TNK_ENOMEM, or TNK_EINVAL with *why: what the options name cannot be used, or
 * what is meant for `url`. Another proxy of the environment does no harm until
 * it is needed. *out is to be freed in each case. */
int tnk__proxies_load(tnk__proxies_t *out, const tnk_allocator_t *alloc,
                      const tnk__proxy_options_t *options,
                      const tnk__url_t *url, const char **why);

#endif
