/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_HUB_OPERATIONS_H
#define TNK_LIB_FILES_HUB_OPERATIONS_H

#include "lib/files/hub/hub.h"

/* Implements tnk_hub_download(). The arguments are checked; `sum` is in lower
 * case or NULL. All strings are copied. */
tnk_promise_t *tnk__hub_download(tnk__hub_t *hub, const char *url,
                                 const char *path, const char *sum,
                                 const tnk_download_options_t *options);

/* Get a file of a model; the names have passed their checks. */
tnk_promise_t *tnk__hub_file(tnk__hub_t *hub, const char *model,
                             const char *revision, const char *file);

#endif
