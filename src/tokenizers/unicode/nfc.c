/* SPDX-License-Identifier: MIT */
#include "tokenizers/unicode/nfc.h"

#include <string.h>

#include "tnk/error.h"
#include "tokenizers/unicode/unicode.h"

#define HANGUL 0xac00u
#define HANGUL_L 0x1100u
#define HANGUL_V 0x1161u
#define HANGUL_T 0x11a7u
#define HANGUL_N 11172u

/* Characters below U+0300 are changed by NFC only if a character above it
 * follows. NFKC changes some from U+00A0 on. */
static inline uint8_t first_lead(tnk__form_t form) {
  return form == TNK__NFC ? 0xcc : 0xc2;
}

/* The highest kind of characters that this form neither changes nor composes
 * with the one before. */
static inline unsigned plain_kind(tnk__form_t form) {
  return form == TNK__NFC ? 1 : 0;
}

static unsigned nfc_kind(uint32_t cp) {
  size_t block = tnk__nfc_index[cp >> TNK__UNICODE_SHIFT];
  size_t low = cp & ((1u << TNK__UNICODE_SHIFT) - 1);

  return tnk__nfc_block[block << TNK__UNICODE_SHIFT | low];
}

/* The end of the section that starts at p. *clean is set if the section is
 * already normalized. */
static const uint8_t *section(tnk__form_t form, const uint8_t *p,
                              const uint8_t *end, int *clean) {
  unsigned last = 0, first = 1;

  *clean = 1;
  while (p < end) {
    unsigned kind = nfc_kind(tnk__utf8_get(p));
    unsigned ccc = tnk__nfc_ccc[kind];
    unsigned quick = kind <= plain_kind(form) ? 0 : tnk__nfc_quick[kind];

    if (!first && ccc == 0 && quick == 0)
      break;
    if (quick >= 2 || (quick == 1 && !first) || (ccc != 0 && ccc < last))
      *clean = 0;
    last = ccc;
    first = 0;
    p += tnk__utf8_length(*p);
  }
  return p;
}

/* Find the first character from p on that may change, or may compose with the
 * one before it. Returns `end` if all are plain. */
static const uint8_t *candidate(tnk__form_t form, const uint8_t *p,
                                const uint8_t *end) {
  const uint8_t lead = first_lead(form);

  while (p < end) {
    uint64_t word = 0x80;

    if (end - p >= 8)
      memcpy(&word, p, 8);
    if ((word & UINT64_C(0x8080808080808080)) == 0) {
      p += 8;
    } else if (*p < lead) {
      p++;
    } else {
      if (nfc_kind(tnk__utf8_get(p)) > plain_kind(form))
        break;
      p += tnk__utf8_length(*p);
    }
  }
  return p;
}

/* Skip plain text at p. Stop one character before the next candidate, as the
 * two may compose. */
static const uint8_t *pass_plain(tnk__form_t form, const uint8_t *p,
                                 const uint8_t *end) {
  const uint8_t *start = p;

  p = candidate(form, p, end);
  while (p > start && p < end) {
    p--;
    if ((*p & 0xc0) != 0x80)
      break;
  }
  return p;
}

size_t tnk__nfc_check(tnk__form_t form, const uint8_t *text, size_t n) {
  const uint8_t *p = text, *end = text + n;

  while (p < end) {
    int clean = 0;
    const uint8_t *next;

    p = pass_plain(form, p, end);
    next = p < end ? section(form, p, end, &clean) : p;
    if (p < end && !clean)
      break;
    p = next;
  }
  return (size_t)(p - text);
}

static int put_cp(tnk__buf_t *work, uint32_t cp) {
  return tnk__buf_append(work, &cp, sizeof(cp));
}

/* The row of a character in a table of decompositions, or `n_rows`. */
static size_t find_row(const uint32_t *rows, size_t n_rows, uint32_t cp) {
  size_t low = 0, high = n_rows;

  while (low < high) {
    size_t mid = (low + high) / 2;

    if (rows[2 * mid] < cp)
      low = mid + 1;
    else
      high = mid;
  }
  return low < n_rows && rows[2 * low] == cp ? low : n_rows;
}

static int put_row(tnk__buf_t *work, const uint32_t *text, uint32_t place) {
  for (uint32_t i = 0; i < (place & 31); i++)
    (void)put_cp(work, text[(place >> 5) + i]);
  return work->err;
}

static int decompose(tnk__form_t form, tnk__buf_t *work, uint32_t cp) {
  size_t row;

  if (cp - HANGUL < HANGUL_N) {
    uint32_t i = cp - HANGUL;

    (void)put_cp(work, HANGUL_L + i / 588);
    (void)put_cp(work, HANGUL_V + i % 588 / 28);
    return i % 28 == 0 ? work->err : put_cp(work, HANGUL_T + i % 28);
  }
  if (form == TNK__NFKC) {
    row = find_row(tnk__nfkc_decomp, TNK__NFKC_DECOMP_ROWS, cp);
    if (row < TNK__NFKC_DECOMP_ROWS)
      return put_row(work, tnk__nfkc_decomp_text,
                     tnk__nfkc_decomp[2 * row + 1]);
  }
  row = find_row(tnk__nfc_decomp, TNK__NFC_DECOMP_ROWS, cp);
  return row < TNK__NFC_DECOMP_ROWS
             ? put_row(work, tnk__nfc_decomp_text, tnk__nfc_decomp[2 * row + 1])
             : put_cp(work, cp);
}

/* Sort marks by combining class, with equal classes in their order. Long runs
 * use a counting sort, so the time is never quadratic. */
static int sort_marks(tnk__buf_t *work, size_t at, size_t n) {
  uint32_t *cps = (uint32_t *)(void *)work->data + at, *sorted;
  size_t starts[257] = {0};

  if (n <= 16) {
    for (size_t i = 1; i < n; i++) {
      uint32_t cp = cps[i];
      unsigned ccc = tnk__nfc_ccc[nfc_kind(cp)];
      size_t j = i;

      for (; j > 0 && tnk__nfc_ccc[nfc_kind(cps[j - 1])] > ccc; j--)
        cps[j] = cps[j - 1];
      cps[j] = cp;
    }
    return TNK_OK;
  }
  sorted = (uint32_t *)(void *)tnk__buf_reserve(work, n * sizeof(*cps));
  if (sorted == NULL)
    return work->err;
  cps = (uint32_t *)(void *)work->data + at;
  for (size_t i = 0; i < n; i++)
    starts[tnk__nfc_ccc[nfc_kind(cps[i])] + 1u]++;
  for (size_t i = 1; i < 257; i++)
    starts[i] += starts[i - 1];
  for (size_t i = 0; i < n; i++)
    sorted[starts[tnk__nfc_ccc[nfc_kind(cps[i])]]++] = cps[i];
  memcpy(cps, sorted, n * sizeof(*cps));
  return TNK_OK;
}

static int reorder(tnk__buf_t *work) {
  size_t n = work->len / sizeof(uint32_t), i = 0;

  while (i < n) {
    const uint32_t *cps = (const uint32_t *)(const void *)work->data;
    size_t start = i;

    while (i < n && tnk__nfc_ccc[nfc_kind(cps[i])] != 0)
      i++;
    if (i - start > 1 && sort_marks(work, start, i - start) < 0)
      return work->err;
    if (i == start)
      i++;
  }
  return TNK_OK;
}

/* The composition of two characters. 0: none. */
static uint32_t compose_pair(uint32_t a, uint32_t b) {
  size_t low = 0, high = TNK__NFC_PAIR_ROWS;

  if (a - HANGUL_L < 19 && b - HANGUL_V < 21)
    return HANGUL + ((a - HANGUL_L) * 21 + (b - HANGUL_V)) * 28;
  if (a - HANGUL < HANGUL_N && (a - HANGUL) % 28 == 0 && b - HANGUL_T - 1 < 27)
    return a + (b - HANGUL_T);
  while (low < high) {
    size_t mid = (low + high) / 2;
    const uint32_t *row = tnk__nfc_pairs + 3 * mid;

    if (row[0] < a || (row[0] == a && row[1] < b))
      low = mid + 1;
    else
      high = mid;
  }
  if (low < TNK__NFC_PAIR_ROWS && tnk__nfc_pairs[3 * low] == a &&
      tnk__nfc_pairs[3 * low + 1] == b)
    return tnk__nfc_pairs[3 * low + 2];
  return 0;
}

/* A mark composes with the last starter, unless a character between them has
 * the same or a higher class. */
static size_t compose(uint32_t *cps, size_t n) {
  size_t n_out = 0, starter = SIZE_MAX;
  unsigned last = 0;

  for (size_t i = 0; i < n; i++) {
    uint32_t cp = cps[i];
    unsigned ccc = tnk__nfc_ccc[nfc_kind(cp)];

    if (starter != SIZE_MAX && (n_out == starter + 1 || last < ccc)) {
      uint32_t whole = compose_pair(cps[starter], cp);

      if (whole != 0) {
        cps[starter] = whole;
        continue;
      }
    }
    if (ccc == 0)
      starter = n_out;
    last = ccc;
    cps[n_out++] = cp;
  }
  return n_out;
}

static int write_section(tnk__form_t form, const uint8_t *p, const uint8_t *end,
                         tnk__buf_t *out, tnk__buf_t *work) {
  const uint32_t *cps;
  size_t n;

  tnk__buf_clear(work);
  for (; p < end; p += tnk__utf8_length(*p))
    if (decompose(form, work, tnk__utf8_get(p)) < 0)
      return work->err;
  if (reorder(work) < 0)
    return work->err;
  n = compose((uint32_t *)(void *)work->data, work->len / sizeof(*cps));
  cps = (const uint32_t *)(const void *)work->data;
  for (size_t i = 0; i < n; i++) {
    uint8_t bytes[4];

    (void)tnk__buf_append(out, bytes, tnk__utf8_put(bytes, cps[i]));
  }
  return out->err;
}

int tnk__nfc(tnk__form_t form, const uint8_t *text, size_t n, tnk__buf_t *out,
             tnk__buf_t *work, tnk__buf_t *changes) {
  const uint8_t *p = text, *end = text + n;

  while (p < end) {
    tnk__nfc_change_t change;
    const uint8_t *start = p;
    int clean, err;

    p += tnk__nfc_check(form, p, (size_t)(end - p));
    if (tnk__buf_append(out, start, (size_t)(p - start)) < 0)
      return out->err;
    if (p == end)
      break;
    start = p;
    p = section(form, p, end, &clean);
    change.from = (size_t)(start - text);
    change.n_from = (size_t)(p - start);
    change.to = out->len;
    err = write_section(form, start, p, out, work);
    change.n_to = out->len - change.to;
    if (err == TNK_OK && changes != NULL &&
        (change.n_from != change.n_to ||
         memcmp(start, out->data + change.to, change.n_to) != 0))
      err = tnk__buf_append(changes, &change, sizeof(change));
    if (err < 0)
      return err;
  }
  return out->err;
}
