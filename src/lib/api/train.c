/* SPDX-License-Identifier: MIT */
/* The entry points of include/tnk/train.h that need a service. */
#include "tnk/train.h"

#include <stdio.h>
#include <string.h>

#include "lib/api/service.h"
#include "lib/base/options.h"
#include "lib/train/numbers.h"

/* ---- Metrics ---- */

enum { MAX_PATH = 4096 };

tnk_promise_t *tnk_numbers_sync(tnk_service_t *service, const char *path) {
  tnk_promise_t *refusal;
  char why[TNK__MAX_WHY] = "";
  int err = TNK_OK;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  if (path == NULL || path[0] == '\0' || strlen(path) >= MAX_PATH) {
    snprintf(why, sizeof(why), "path is %s",
             path == NULL      ? "NULL"
             : path[0] == '\0' ? "empty"
                               : "too long");
    err = TNK_EINVAL;
  }
  refusal = tnk__service_refuses(&service->session, "numbers_sync", err, why);
  return refusal != NULL ? refusal
                         : tnk__numbers_sync(&service->root.context, path);
}
