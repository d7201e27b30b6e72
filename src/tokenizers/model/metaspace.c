/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/metaspace.h"

#include <string.h>

#include "tnk/error.h"

static int begins_with(const uint8_t *text, size_t n, const uint8_t *start,
                       size_t n_start) {
  return n >= n_start && memcmp(text, start, n_start) == 0;
}

int tnk__metaspace_run(const tnk__metaspace_t *meta, const uint8_t *text,
                       size_t n, int is_first, tnk__buf_t *out,
                       tnk__buf_t *changes) {
  const tnk__step_t *step = &meta->step;
  const tnk__nfc_change_t before = {0, 0, 0, step->n_to};

  tnk__buf_clear(out);
  if (changes != NULL)
    tnk__buf_clear(changes);
  if ((meta->when == TNK__PREPEND_ALWAYS ||
       (meta->when == TNK__PREPEND_FIRST && is_first)) &&
      !begins_with(text, n, step->from, step->n_from) &&
      !begins_with(text, n, step->to, step->n_to)) {
    (void)tnk__buf_append(out, step->to, step->n_to);
    if (changes != NULL)
      (void)tnk__buf_append(changes, &before, sizeof(before));
  }
  return tnk__step_run(step, text, n, out, NULL, changes);
}
