#include "lib/io/loop/promise.h"

int tnk__context_open(tnk__context_t *context, uv_loop_t *uv,
                      const tnk_allocator_t *alloc,
                      const tnk_logger_t *logger) {
  int err = tnk__context_init(context, uv, alloc, logger);

  if (err == TNK_OK)
    err = tnk__promise_reserve(context);
  if (err == TNK_OK)
    tnk__context_start(context);
  return err;
}
