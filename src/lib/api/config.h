#ifndef TNK_LIB_API_CONFIG_H
#define TNK_LIB_API_CONFIG_H

#include <stdint.h>

#include "lib/client/call/config.h"

/* Fill `config` from the caller's options, the environment and the stored
 * credentials. The options are in `options`, with their size set. On failure
 * *why may be set to the reason and nothing is kept. The error codes are those
 * of tnk_service_open(). `now_s` is the wall-clock time. */
int tnk__config_load(tnk__config_t *config, const tnk_allocator_t *alloc,
                     const tnk_service_options_t *options, int64_t now_s,
                     const char **why);
void tnk__config_deinit(tnk__config_t *config);

#endif
