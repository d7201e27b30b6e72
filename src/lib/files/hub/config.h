#ifndef TNK_LIB_FILES_HUB_CONFIG_H
#define TNK_LIB_FILES_HUB_CONFIG_H

#include "lib/base/arena.h"
#include "lib/wire/format/proxy.h"
#include "tnk/hub.h"

/* Configuration of a hub: checked, complete and copied. Strings are in the
 * arena, except for the token, which is wiped. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__arena_t arena;
  tnk_hub_options_t options; /* with the defaults applied */
  tnk__proxies_t proxies;    /* secrets in them are wiped too */
  char *token;               /* NULL: none */
  int is_offline;
} tnk__hub_config_t;

#endif
