#ifndef EXAMPLES_SCRIPT_H
#define EXAMPLES_SCRIPT_H

#include <tnk/tnk.h>
#include <uv.h>

/* What a program that reads from top to bottom wants: to go on with what it
 * asked for, or to end with the reason on stderr. */

/* Wait for a promise and hand it on; `what` begins the reason. */
tnk_promise_t *done(tnk_promise_t *promise, const char *what);
/* A service as the environment says, whose warnings go to stderr. */
tnk_service_t *open_service(uv_loop_t *loop);
/* The first model of the server that can be trained; `promise` is that of
 * tnk_service_capabilities(), and the name lives as long. */
const char *first_model(tnk_promise_t *promise);

#endif
