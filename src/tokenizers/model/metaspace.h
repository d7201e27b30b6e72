/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_MODEL_METASPACE_H
#define TNK_TOKENIZERS_MODEL_METASPACE_H

#include "tokenizers/model/normal.h"

/*
 * The pre-tokenizer Metaspace. It replaces spaces by another character, and may
 * put this character before a text. Unlike a normalizer it runs on the text
 * between added tokens of normalized text.
 */
typedef enum {
  TNK__PREPEND_NEVER,
  TNK__PREPEND_FIRST, /* only to what begins where the whole text begins */
  TNK__PREPEND_ALWAYS
} tnk__prepend_t;

typedef struct {
  int is_on;
  int splits;          /* cut before each replacement */
  tnk__prepend_t when; /* unless the text already begins with it */
  tnk__step_t step;    /* a space, and its replacement */
} tnk__metaspace_t;

/* Write the changed text to `out`, which is cleared before, and to `changes`,
 * unless it is NULL, a tnk__nfc_change_t for each change. Returns TNK_OK,
 * TNK_ENOMEM or TNK_ETOOBIG. */
int tnk__metaspace_run(const tnk__metaspace_t *meta, const uint8_t *text,
                       size_t n, int is_first, tnk__buf_t *out,
                       tnk__buf_t *changes);

#endif
