/* SPDX-License-Identifier: MIT */
#ifndef INTEROP_WIRE_RUN_H
#define INTEROP_WIRE_RUN_H

#include <uv.h>

#include "wire/args.h"

/* A case under way, and what its calls have made. */
typedef struct {
  uv_loop_t loop;
  tnk_service_t *service;
  tnk_training_t *training;
  tnk_sampling_t *sampling;
  tnk_promise_t *last; /* of the call before; or NULL */
  char path[512];      /* of the last save */
  pool_t pool;
} run_t;

typedef tnk_promise_t *(*call_fn)(run_t *run, const json_t *args);

/* The argument "path", where "$" is the path of the last save. */
const char *path_of(const run_t *run, const json_t *args);
/* The call of rest.h with this name in calls.json; or NULL. */
call_fn rest_call(const char *name);

#endif
