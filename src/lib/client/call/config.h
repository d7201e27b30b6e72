/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_CALL_CONFIG_H
#define TNK_LIB_CLIENT_CALL_CONFIG_H

#include "lib/base/arena.h"
#include "lib/wire/format/proxy.h"
#include "lib/observe/traceparent.h"
#include "lib/wire/format/url.h"
#include "tnk/service.h"

/*
 * The options of a service after defaults, environment and checks. The api
 * layer fills it. Strings are in the arena. The key and the command are
 * allocated separately, so that they can be wiped; at least one of them is set.
 */
typedef struct {
  tnk__arena_t arena;
  const tnk_allocator_t *alloc;
  tnk_service_options_t options; /* its strings point into the arena */
  tnk__url_t url;                /* options.base_url, parsed */
  tnk__proxies_t proxies;
  char *api_key;            /* NULL: the command's output is used */
  char *credential_cmd;     /* or NULL */
  int64_t key_expires_s;    /* expiry of a key that is a JWT; 0: does not
                               expire */
  tnk__traceparent_t trace; /* the trace that requests belong to */
  const char **tags;
  size_t n_tags;
  tnk_pair_t *headers; /* the environment's, then the caller's */
  size_t n_headers;
  char complaint[240]; /* why the options were refused */
} tnk__config_t;

#endif
