/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_UNICODE_UNICODE_H
#define TNK_TOKENIZERS_UNICODE_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/utf8.h"

/* Data that gen_unicode.py generates. The index of a two-level table is
 * selected by the high bits of a code point. The block is selected by the index
 * and the low seven bits. */
#define TNK__UNICODE_SHIFT 7
#define TNK__NFC_DECOMP_ROWS 2060
#define TNK__NFKC_DECOMP_ROWS 3678
#define TNK__NFC_PAIR_ROWS 940

extern const uint8_t tnk__class_index[8704];
extern const uint8_t tnk__class_block[32384];
extern const uint8_t tnk__nfc_index[8704];
extern const uint8_t tnk__nfc_block[16768];
/* Indexed by the value of the nfc table. tnk__nfc_ccc is the combining class.
 * tnk__nfc_quick is 0 if the character stays, 1 if it may compose with the one
 * before it, 2 if it never occurs in composed text, and 3 if only NFKC changes
 * it. The value 1 of the table means combining class 0 and 3. */
extern const uint8_t tnk__nfc_ccc[66];
extern const uint8_t tnk__nfc_quick[66];
/* Pairs of code point and offset in the text << 5 | length, sorted. */
extern const uint32_t tnk__nfc_decomp[2 * TNK__NFC_DECOMP_ROWS];
extern const uint32_t tnk__nfc_decomp_text[3404];
/* The same for characters that NFKC decomposes differently. */
extern const uint32_t tnk__nfkc_decomp[2 * TNK__NFKC_DECOMP_ROWS];
extern const uint32_t tnk__nfkc_decomp_text[5599];
/* Triples of first, second and composite character, sorted. */
extern const uint32_t tnk__nfc_pairs[3 * TNK__NFC_PAIR_ROWS];

/* Classes of a character, as bits. A letter has one of the first three. */
#define TNK__C_UPPER 1u   /* Lu, Lt */
#define TNK__C_LOWER 2u   /* Ll */
#define TNK__C_OTHER 4u   /* Lm, Lo */
#define TNK__C_MARK 8u    /* M */
#define TNK__C_NUMBER 16u /* N */
#define TNK__C_SPACE 32u  /* White_Space */
#define TNK__C_PUNCT 64u  /* P, S */
#define TNK__C_HAN 128u   /* Script=Han */
#define TNK__C_LETTER (TNK__C_UPPER | TNK__C_LOWER | TNK__C_OTHER)

static inline unsigned tnk__char_class(uint32_t cp) {
  size_t block = tnk__class_index[cp >> TNK__UNICODE_SHIFT];
  size_t low = cp & ((1u << TNK__UNICODE_SHIFT) - 1);

  return tnk__class_block[block << TNK__UNICODE_SHIFT | low];
}

/* Membership in \w of the reference: the characters of words. */
int tnk__is_word(uint32_t cp);

/* The number of bytes of a character with this lead byte, in valid text. */
static inline size_t tnk__utf8_length(uint8_t lead) {
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The character at p. p must be at the start of a character in valid text. */
static inline uint32_t tnk__utf8_get(const uint8_t *p) {
  uint32_t c = p[0];

  if (c < 0x80)
    return c;
  if (c < 0xe0)
    return (c & 0x1f) << 6 | (p[1] & 0x3fu);
  if (c < 0xf0)
    return (c & 0x0f) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
  return (c & 0x07) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 |
         (p[3] & 0x3fu);
}

#endif
