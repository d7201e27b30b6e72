#ifndef TNK_LIB_FILES_HUB_TOKENIZER_H
#define TNK_LIB_FILES_HUB_TOKENIZER_H

#include "lib/files/hub/hub.h"
#include "lib/files/hub/name.h"
#include "tnk/text.h"

/* What is asked for, checked; everything is copied. */
typedef struct {
  const void *plugin;           /* the caller's struct, which names it */
  tnk_tokenizer_plugin_t calls; /* and what it holds, in our size */
  const tnk__name_t *name;      /* resolved */
  const tnk_pair_t *overrides;  /* in any order */
  size_t n_overrides;
} tnk__tokenizer_request_t;

/*
 * Get a tokenizer: from those the hub has, from a load under way, or from a
 * load that begins. Equal are requests with one plug-in, id, revision, folder
 * and set of overrides.
 */
tnk_promise_t *tnk__tokenizer_get(tnk__hub_t *hub,
                                  const tnk__tokenizer_request_t *request);
/* What the plug-in opened; NULL for NULL. */
void *tnk__tokenizer_value(const void *value);
/* Let go of this one, as the plug-in opened it, if it is kept; NULL: of all
 * that are loaded. */
void tnk__tokenizers_forget(tnk__hub_t *hub, const void *tokenizer);
/* Let go of all that is kept or under way; those who wait have been told. */
void tnk__tokenizers_close(tnk__hub_t *hub);

#endif
