/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_MODEL_NORMAL_H
#define TNK_TOKENIZERS_MODEL_NORMAL_H

#include "lib/base/buf.h"
#include "tokenizers/unicode/nfc.h"

/*
 * The normalizer of a file: steps that change a text before it is cut into
 * pieces. Each step takes the result of the previous one.
 */
#define TNK__MAX_STEPS 4u
#define TNK__MAX_STEP_TEXT 64u

typedef enum {
  TNK__STEP_NFC,
  TNK__STEP_NFKC,
  TNK__STEP_PREPEND, /* `to` before a text that is not empty */
  TNK__STEP_REPLACE  /* every `from` becomes `to` */
} tnk__step_kind_t;

typedef struct {
  tnk__step_kind_t kind;
  size_t n_from;
  size_t n_to;
  uint8_t from[TNK__MAX_STEP_TEXT];
  uint8_t to[TNK__MAX_STEP_TEXT];
} tnk__step_t;

typedef struct {
  tnk__step_t steps[TNK__MAX_STEPS];
  unsigned n;
} tnk__normal_t;

/* Returns whether the step changes the text. It may return 1 for a text that
 * then stays the same. */
int tnk__step_changes(const tnk__step_t *step, const uint8_t *text, size_t n);
/* Append the changed text to `out`, and to `changes`, unless it is NULL, a
 * tnk__nfc_change_t for each change. `work` is reusable memory. Returns TNK_OK,
 * TNK_ENOMEM or TNK_ETOOBIG. */
int tnk__step_run(const tnk__step_t *step, const uint8_t *text, size_t n,
                  tnk__buf_t *out, tnk__buf_t *work, tnk__buf_t *changes);
/* Returns whether all steps leave the text as it is, or TNK_ENOMEM. */
int tnk__normal_keeps(const tnk__normal_t *normal, const uint8_t *text,
                      size_t n, const tnk_allocator_t *alloc);

#endif
