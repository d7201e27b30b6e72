#ifndef TNK_TOKENIZERS_UNICODE_NFC_H
#define TNK_TOKENIZERS_UNICODE_NFC_H

#include "lib/base/buf.h"

/*
 * Canonical composition of Unicode 9.0, the version that the reference
 * normalizes with. Text is cut before every starter that never composes with
 * what is before it; such a section is normalized on its own.
 */

/* A section that changed: bytes [from, from + n_from) of the source became
 * [to, to + n_to) of the output. */
typedef struct {
  size_t from;
  size_t n_from;
  size_t to;
  size_t n_to;
} tnk__nfc_change_t;

/* How many bytes at the front are normalized already; all of them: nothing is
 * to be done. */
size_t tnk__nfc_check(const uint8_t *text, size_t n);

/*
 * Write the normalized text to `out` and, when `changes` is not NULL, append
 * a record of type tnk__nfc_change_t to it for each section that changed.
 * `work` is memory that is reused. TNK_ENOMEM, TNK_ETOOBIG.
 */
int tnk__nfc(const uint8_t *text, size_t n, tnk__buf_t *out, tnk__buf_t *work,
             tnk__buf_t *changes);

#endif
