/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/normal.h"

#include <string.h>

#include "tnk/error.h"

/* The next place of step->from, or `end`. */
static const uint8_t *find_from(const tnk__step_t *step, const uint8_t *p,
                                const uint8_t *end) {
  while ((size_t)(end - p) >= step->n_from) {
    p = memchr(p, step->from[0], (size_t)(end - p) - step->n_from + 1);
    if (p == NULL)
      return end;
    if (memcmp(p, step->from, step->n_from) == 0)
      return p;
    p++;
  }
  return end;
}

static tnk__form_t form_of(const tnk__step_t *step) {
  return step->kind == TNK__STEP_NFKC ? TNK__NFKC : TNK__NFC;
}

int tnk__step_changes(const tnk__step_t *step, const uint8_t *text, size_t n) {
  switch (step->kind) {
  case TNK__STEP_PREPEND:
    return n > 0;
  case TNK__STEP_REPLACE:
    return find_from(step, text, text + n) < text + n;
  default:
    return tnk__nfc_check(form_of(step), text, n) < n;
  }
}

/* Append step->to in place of n_from bytes at `from`. */
static void put_change(const tnk__step_t *step, size_t from, size_t n_from,
                       tnk__buf_t *out, tnk__buf_t *changes) {
  tnk__nfc_change_t change = {from, n_from, out->len, step->n_to};

  (void)tnk__buf_append(out, step->to, step->n_to);
  if (changes != NULL)
    (void)tnk__buf_append(changes, &change, sizeof(change));
}

int tnk__step_run(const tnk__step_t *step, const uint8_t *text, size_t n,
                  tnk__buf_t *out, tnk__buf_t *work, tnk__buf_t *changes) {
  const uint8_t *p = text, *end = text + n;

  if (step->kind == TNK__STEP_NFC || step->kind == TNK__STEP_NFKC)
    return tnk__nfc(form_of(step), text, n, out, work, changes);
  if (step->kind == TNK__STEP_PREPEND && n > 0)
    put_change(step, 0, 0, out, changes);
  while (p < end) {
    const uint8_t *next =
        step->kind == TNK__STEP_REPLACE ? find_from(step, p, end) : end;

    (void)tnk__buf_append(out, p, (size_t)(next - p));
    p = next;
    if (p < end) {
      put_change(step, (size_t)(p - text), step->n_from, out, changes);
      p += step->n_from;
    }
  }
  if (out->err == TNK_OK && changes != NULL)
    return changes->err;
  return out->err;
}

int tnk__normal_keeps(const tnk__normal_t *normal, const uint8_t *text,
                      size_t n, const tnk_allocator_t *alloc) {
  int same = 1;

  /* A step that changes the text may be undone by a later one. Finding that out
   * costs too much. */
  for (unsigned i = 0; i < normal->n && same == 1; i++) {
    tnk__buf_t out, work;
    int err;

    if (!tnk__step_changes(&normal->steps[i], text, n))
      continue;
    tnk__buf_init(&out, alloc, SIZE_MAX / 2);
    tnk__buf_init(&work, alloc, SIZE_MAX / 2);
    err = tnk__step_run(&normal->steps[i], text, n, &out, &work, NULL);
    same = err < 0 ? err : out.len == n && memcmp(out.data, text, n) == 0;
    tnk__buf_deinit(&out);
    tnk__buf_deinit(&work);
  }
  return same;
}
