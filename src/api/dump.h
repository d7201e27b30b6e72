#ifndef TNK_API_DUMP_H
#define TNK_API_DUMP_H

#include "base/buf.h"
#include "tnk/service.h"

/* Write what tnk_service_dump() tells; `out` is new, and to be freed whatever
 * becomes of it. */
int tnk__dump_write(const tnk_service_t *service, tnk_dump_format_t format,
                    tnk__buf_t *out);

#endif
