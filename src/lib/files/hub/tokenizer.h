/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_HUB_TOKENIZER_H
#define TNK_LIB_FILES_HUB_TOKENIZER_H

#include "lib/files/hub/hub.h"
#include "lib/files/hub/name.h"
#include "tnk/text.h"

/* The request for a tokenizer, checked; everything is copied. */
typedef struct {
  const void *plugin;           /* the caller's struct; part of the key */
  tnk_tokenizer_plugin_t calls; /* its contents, extended to our struct size */
  const tnk__name_t *name;      /* the resolved name */
  const tnk_pair_t *overrides;  /* in any order */
  size_t n_overrides;
} tnk__tokenizer_request_t;

/*
 * Get a tokenizer: a loaded one, a pending load, or a new load. Requests are
 * equal if the plug-in, id, revision, folder and set of overrides are equal.
 */
tnk_promise_t *tnk__tokenizer_get(tnk__hub_t *hub,
                                  const tnk__tokenizer_request_t *request);
/* The object that the plug-in opened; NULL for NULL. */
void *tnk__tokenizer_value(const void *value);
/* Release this tokenizer, given as the plug-in opened it, if it is loaded.
 * NULL: release all. */
void tnk__tokenizers_forget(tnk__hub_t *hub, const void *tokenizer);
/* Release all loads; the waiting promises have been rejected. */
void tnk__tokenizers_close(tnk__hub_t *hub);

#endif
