/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_UNICODE_TABLES_H
#define TNK_TOKENIZERS_UNICODE_TABLES_H

#include <stdint.h>

/* Data that gen_unicode.py generates. The index of a two-level table is
 * selected by the high bits of a code point. The block is selected by the index
 * and the low seven bits. */
#define TNK__UNICODE_SHIFT 7
#define TNK__NFC_DECOMP_ROWS 2060
#define TNK__NFC_PAIR_ROWS 940

extern const uint8_t tnk__class_index[8704];
extern const uint8_t tnk__class_block[32384];
/* Pairs of first and last code points, sorted. They list the exceptions of \w:
 * members that are not letters, marks or numbers, and letters, marks or numbers
 * that are not members. */
#define TNK__ODD_WORD_ROWS 82
extern const uint32_t tnk__odd_words[2 * TNK__ODD_WORD_ROWS];
extern const uint8_t tnk__nfc_index[8704];
extern const uint8_t tnk__nfc_block[11904];
/* Indexed by the value of the nfc table. tnk__nfc_ccc is the combining class.
 * tnk__nfc_quick is 0 if the character stays, 1 if it may compose with the one
 * before it, and 2 if it never occurs in composed text. */
extern const uint8_t tnk__nfc_ccc[65];
extern const uint8_t tnk__nfc_quick[65];
/* Pairs of code point and offset in the text << 3 | length, sorted. */
extern const uint32_t tnk__nfc_decomp[2 * TNK__NFC_DECOMP_ROWS];
extern const uint32_t tnk__nfc_decomp_text[3404];
/* Triples of first, second and composite character, sorted. */
extern const uint32_t tnk__nfc_pairs[3 * TNK__NFC_PAIR_ROWS];

#endif
