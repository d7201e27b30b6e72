/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_UNICODE_NFC_H
#define TNK_TOKENIZERS_UNICODE_NFC_H

#include "lib/base/buf.h"

/*
 * Canonical composition (NFC) and compatibility composition (NFKC) of Unicode
 * 9.0, the version that the reference uses. Text is cut before every starter
 * that never composes with the characters before it. Each such section is
 * normalized separately.
 */
typedef enum { TNK__NFC, TNK__NFKC } tnk__form_t;

/* A changed section: bytes [from, from + n_from) of the source became [to, to +
 * n_to) of the output. */
typedef struct {
  size_t from;
  size_t n_from;
  size_t to;
  size_t n_to;
} tnk__nfc_change_t;

/* The number of leading bytes that are already normalized. If it is n, there is
 * nothing to do. */
size_t tnk__nfc_check(tnk__form_t form, const uint8_t *text, size_t n);

/*
 * Write the normalized text to `out`. If `changes` is not NULL, append a
 * tnk__nfc_change_t for each section that changed. `work` is reusable memory.
 * Returns TNK_OK, TNK_ENOMEM or TNK_ETOOBIG.
 */
int tnk__nfc(tnk__form_t form, const uint8_t *text, size_t n, tnk__buf_t *out,
             tnk__buf_t *work, tnk__buf_t *changes);

#endif
