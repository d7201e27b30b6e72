#ifndef TNK_LIB_IO_HTTP_REFUSED_H
#define TNK_LIB_IO_HTTP_REFUSED_H

#include "lib/io/http/pool_parts.h"

/*
 * How connections are refused where something on the way limits their number:
 * a new one fails while others to its origin work.
 */

/* It could not be made. */
int tnk__refused_by_failing(const tnk__pool_t *pool, int err);
/* It was closed under its first exchange at once, before anything had come, and
 * that can go out again. One that was to have a fresh one has met a failure
 * before: its owner decides. */
int tnk__refused_by_closing(const tnk__pool_t *pool, const tnk__exchange_t *ex,
                            int was_reused, int err);
/* Its first answer says so, and it ends. The answer is the caller's all the
 * same: it may be the service's word. */
int tnk__refused_by_answer(const tnk__pool_t *pool, const tnk__exchange_t *ex,
                           int was_reused, int is_open);
/* A proxy that gets the requests themselves has refused one, as it limits the
 * connections of a client: it counts those that are open with each request, so
 * that old ones are met as well. */
int tnk__refused_by_proxy(const tnk__pool_t *pool, const tnk__exchange_t *ex);
/* Note one that was. `text` says how, or is NULL. */
void tnk__refused_note(tnk__pool_t *pool, const char *text);

#endif
