/* SPDX-License-Identifier: MIT */
/* Additional functions for bindings to other languages. */
#include "tnk/bindings.h"

#include <string.h>
#include <uv.h>

#include "lib/base/options.h"
#include "lib/io/http/client.h"
#include "tnk/error.h"

#define DEFAULTS(type, init, ...) static const type begin_##type = init;
TNK__STRUCTS_IN(DEFAULTS)
TNK__STRUCTS_OUT(DEFAULTS)

#define ROW(type, ...) [TNK__STRUCT_##type] = &begin_##type,
static const void *const defaults[TNK__N_STRUCTS] = {TNK__STRUCTS_IN(ROW)
                                                         TNK__STRUCTS_OUT(ROW)};

int tnk_init(const char *type, void *out, size_t size) {
  if (type == NULL || out == NULL)
    return TNK_EINVAL;
  for (int i = 0; i < TNK__N_STRUCTS; i++) {
    const tnk__struct_t *row = tnk__struct((tnk__struct_id_t)i);

    if (strcmp(row->name, type) != 0)
      continue;
    if (size < row->first)
      return TNK_EINVAL;
    memset(out, 0, size);
    memcpy(out, defaults[i], size < row->size ? size : row->size);
    memcpy(out, &size, sizeof(size));
    return TNK_OK;
  }
  return TNK_EINVAL;
}

const char *tnk_libuv_version(void) {
  return uv_version_string();
}

const char *tnk_http2_version(void) {
  return tnk__http2_library();
}
