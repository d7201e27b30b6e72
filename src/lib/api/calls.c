/* SPDX-License-Identifier: MIT */
/* Calls of functions by name. gen_calls.py writes the table from the public
 * headers. */
#include "lib/api/calls.h"

#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"

typedef struct {
  const char *name;
  void (*run)(const tnk_value_t *a, tnk_value_t *r);
  uint32_t n_args;
  int gives_promise;
} callee_t;

/* In the order of the names. */
#include "calls.inc"

static int by_name(const void *name, const void *callee) {
  return strcmp(name, ((const callee_t *)callee)->name);
}

static const callee_t *find(const tnk_call_t *call) {
  const callee_t *callee = NULL;

  if (call->function != NULL)
    callee =
        bsearch(call->function, callees, sizeof(callees) / sizeof(callees[0]),
                sizeof(callees[0]), by_name);
  return callee != NULL && callee->n_args == call->n_args ? callee : NULL;
}

int tnk__call_by_name(tnk_call_t *call) {
  const callee_t *callee = find(call);

  if (callee == NULL)
    return TNK_EINVAL;
  memset(&call->result, 0, sizeof(call->result));
  callee->run(call->args, &call->result);
  return TNK_OK;
}

int tnk__callee_gives_promise(const tnk_call_t *call) {
  const callee_t *callee = find(call);

  return callee != NULL && callee->gives_promise;
}
