#ifndef TNK_TOKENIZERS_UNICODE_TABLES_H
#define TNK_TOKENIZERS_UNICODE_TABLES_H

#include <stdint.h>

/* What gen_unicode.py writes. Two-level tables are indexed with the high bits
 * of a code point, then with the block's number and the low seven bits. */
#define TNK__UNICODE_SHIFT 7
#define TNK__NFC_DECOMP_ROWS 2060
#define TNK__NFC_PAIR_ROWS 940

extern const uint8_t tnk__class_index[8704];
extern const uint8_t tnk__class_block[32384];
/* Rows of two: first and last of the characters that \w has although they are
 * no letter, mark or number, or that it lacks although they are. Sorted. */
#define TNK__ODD_WORD_ROWS 82
extern const uint32_t tnk__odd_words[2 * TNK__ODD_WORD_ROWS];
extern const uint8_t tnk__nfc_index[8704];
extern const uint8_t tnk__nfc_block[11904];
/* By the value of the nfc table: combining class; 0 stays, 1 may compose with
 * what is before it, 2 never stands in composed text. */
extern const uint8_t tnk__nfc_ccc[65];
extern const uint8_t tnk__nfc_quick[65];
/* Rows of two: code point, place in the text << 3 | length. Sorted. */
extern const uint32_t tnk__nfc_decomp[2 * TNK__NFC_DECOMP_ROWS];
extern const uint32_t tnk__nfc_decomp_text[3404];
/* Rows of three: first, second, composite. Sorted. */
extern const uint32_t tnk__nfc_pairs[3 * TNK__NFC_PAIR_ROWS];

#endif
