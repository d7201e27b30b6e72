#ifndef TNK_TASK_FETCH_TELL_H
#define TNK_TASK_FETCH_TELL_H

#include "task/fetch/fetch.h"

/* What an observer hears of a fetch, as far as it is one of an operation's: for
 * fetch.c alone. */

/* A request is about to be sent. */
void tnk__fetch_tell_begin(tnk__fetch_t *fetch);
/* It was answered. */
void tnk__fetch_tell_answer(const tnk__fetch_t *fetch,
                            const tnk__http_result_t *result);
/* The next attempt follows. */
void tnk__fetch_tell_repeat(const tnk__fetch_t *fetch,
                            const tnk__http_result_t *result);

#endif
