#ifndef TNK_API_CONFIG_H
#define TNK_API_CONFIG_H

#include "base/arena.h"
#include "tnk/service.h"

/*
 * The options of a service after defaults, environment and checks. Strings
 * are in the arena; the key is apart, so that it can be wiped.
 */
typedef struct {
  tnk__arena_t arena;
  const tnk_allocator_t *alloc;
  tnk_service_options_t options; /* its strings point into the arena */
  char *api_key;
  int64_t key_expires_s; /* of a key that is a JWT; 0: does not expire */
  const char **tags;
  size_t n_tags;
  tnk_pair_t *headers; /* of the environment, then the caller's */
  size_t n_headers;
} tnk__config_t;

/* Fill `config` from the caller's options, the environment and the stored
 * credentials. On failure `text` tells what is wrong, nothing is kept, and the
 * code is one of tnk_service_open(). `now_s` is the wall clock. */
int tnk__config_load(tnk__config_t *config, const tnk_allocator_t *alloc,
                     const tnk_service_options_t *options, int64_t now_s,
                     char *text, size_t text_size);
void tnk__config_deinit(tnk__config_t *config);

/* An environment variable, NULL when unset or empty. */
const char *tnk__env(const char *name);

#endif
