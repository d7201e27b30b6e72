/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_API_CONFIG_H
#define TNK_LIB_API_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "lib/client/call/config.h"
#include "lib/wire/format/proxy.h"
#include "lib/wire/format/url.h"
#include "tnk/common.h"

/* The value of an environment variable; NULL if it is unset or empty. */
const char *tnk__env(const char *name);

/* Check the syntax of a key. Returns TNK_OK, TNK_ECREDENTIAL or TNK_ENOMEM.
 * *expires_s is set for a JWT, and is 0 for a plain key. *why is the reason for
 * TNK_ECREDENTIAL, without the key. */
int tnk__key_check(const tnk_allocator_t *alloc, const char *key,
                   int64_t *expires_s, const char **why);

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

/* Fill `config` from the caller's options, the environment and the stored
 * credentials. The options are in `options`, with their size set. On failure
 * *why may be set to the reason and nothing is kept. The error codes are those
 * of tnk_service_open(). `now_s` is the wall-clock time. */
int tnk__config_load(tnk__config_t *config, const tnk_allocator_t *alloc,
                     const tnk_service_options_t *options, int64_t now_s,
                     const char **why);
void tnk__config_deinit(tnk__config_t *config);

#endif
