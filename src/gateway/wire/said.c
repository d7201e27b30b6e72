/* SPDX-License-Identifier: MIT */
#include "gateway/wire/said.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

enum { MAX_TEXT = 64 << 20, MAX_PIECES = 64 << 20 };

void tnk__gw_said_init(tnk__gw_said_t *said, const tnk_allocator_t *alloc) {
  tnk__buf_init(&said->text, alloc, MAX_TEXT);
  tnk__buf_init(&said->pieces, alloc, MAX_PIECES);
}

void tnk__gw_said_deinit(tnk__gw_said_t *said) {
  tnk__buf_deinit(&said->text);
  tnk__buf_deinit(&said->pieces);
}

/* Bytes that JSON readers reject, including NUL, become U+FFFD. */
static void append(tnk__gw_said_t *said, const char *text, size_t n) {
  size_t at = 0;

  while (at < n) {
    const uint8_t *rest = (const uint8_t *)text + at;
    size_t good = tnk__utf8_valid(rest, n - at);
    const uint8_t *nul = good > 0 ? memchr(rest, 0, good) : NULL;
    size_t bad = 1;
    int cut;

    if (nul != NULL)
      good = (size_t)(nul - rest);
    tnk__buf_append(&said->text, rest, good);
    at += good;
    if (at == n)
      break;
    if (nul == NULL)
      (void)tnk__utf8_check(rest + good, n - at, &bad, &cut);
    tnk__buf_text(&said->text, "\xef\xbf\xbd");
    at += bad;
  }
}

void tnk__gw_said_add(tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                      const char *text, size_t n) {
  tnk__gw_piece_t piece = {kind, said->text.len, 0, 0};

  if (n == 0)
    return;
  append(said, text, n);
  piece.n = said->text.len - piece.at;
  tnk__buf_append(&said->pieces, &piece, sizeof(piece));
}

void tnk__gw_said_call(tnk__gw_said_t *said, const char *id, const char *name) {
  tnk__gw_piece_t piece = {TNK__GW_CALL, said->text.len, 0, 0};

  append(said, name, strlen(name));
  piece.n = said->text.len - piece.at;
  append(said, id, strlen(id));
  piece.n_id = said->text.len - piece.at - piece.n;
  tnk__buf_append(&said->pieces, &piece, sizeof(piece));
}

int tnk__gw_said_error(const tnk__gw_said_t *said) {
  return said->text.err != TNK_OK ? said->text.err : said->pieces.err;
}

size_t tnk__gw_said_count(const tnk__gw_said_t *said) {
  return said->pieces.len / sizeof(tnk__gw_piece_t);
}

const tnk__gw_piece_t *tnk__gw_said_piece(const tnk__gw_said_t *said,
                                          size_t i) {
  return (const tnk__gw_piece_t *)(const void *)said->pieces.data + i;
}

const char *tnk__gw_said_text(const tnk__gw_said_t *said,
                              const tnk__gw_piece_t *piece) {
  return (const char *)said->text.data + piece->at;
}

size_t tnk__gw_said_has(const tnk__gw_said_t *said, tnk__gw_piece_kind_t kind) {
  size_t n = 0;

  for (size_t i = 0; i < tnk__gw_said_count(said); i++)
    n += tnk__gw_said_piece(said, i)->kind == kind;
  return n;
}

int tnk__gw_said_join(const tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                      size_t first, tnk__buf_t *out) {
  for (size_t i = first; i < tnk__gw_said_count(said); i++) {
    const tnk__gw_piece_t *piece = tnk__gw_said_piece(said, i);

    if (piece->kind == kind)
      tnk__buf_append(out, tnk__gw_said_text(said, piece), piece->n);
    else if (kind == TNK__GW_ARGUMENTS && piece->kind == TNK__GW_CALL)
      break;
  }
  return out->err;
}

size_t tnk__gw_said_length(const tnk__gw_said_t *said,
                           tnk__gw_piece_kind_t kind) {
  size_t n = 0;

  for (size_t i = 0; i < tnk__gw_said_count(said); i++)
    if (tnk__gw_said_piece(said, i)->kind == kind)
      n += tnk__gw_said_piece(said, i)->n;
  return n;
}

void tnk__gw_said_skip(tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                       size_t n) {
  tnk__gw_piece_t *pieces = (tnk__gw_piece_t *)(void *)said->pieces.data;
  size_t n_kept = 0;

  for (size_t i = 0; i < tnk__gw_said_count(said); i++) {
    tnk__gw_piece_t piece = pieces[i];
    size_t n_cut = piece.kind == kind ? (piece.n < n ? piece.n : n) : 0;

    n -= n_cut;
    piece.at += n_cut;
    piece.n -= n_cut;
    if (piece.n > 0 || n_cut == 0)
      pieces[n_kept++] = piece;
  }
  said->pieces.len = n_kept * sizeof(*pieces);
}

/* ---- Stops ---- */

/* Find a string in text that may contain NUL. Returns `n` if it is not
 * there. */
static size_t find(const char *text, size_t n, const char *what, size_t from) {
  size_t n_what = strlen(what);

  for (size_t i = from; i + n_what <= n; i++)
    if (memcmp(text + i, what, n_what) == 0)
      return i;
  return n;
}

/* Keep only the first `n_kept` bytes of the content. */
static void keep(tnk__gw_said_t *said, size_t n_kept) {
  for (size_t i = 0; i < tnk__gw_said_count(said); i++) {
    tnk__gw_piece_t *piece = (tnk__gw_piece_t *)(void *)said->pieces.data + i;

    if (piece->kind != TNK__GW_CONTENT)
      continue;
    if (piece->n > n_kept)
      piece->n = n_kept;
    n_kept -= piece->n;
  }
}

int tnk__gw_said_cut(tnk__gw_said_t *said, const char *const *stops, size_t n,
                     size_t from) {
  tnk__buf_t content;
  size_t first;
  int found = -1;

  tnk__buf_init(&content, said->text.alloc, MAX_TEXT);
  (void)tnk__gw_said_join(said, TNK__GW_CONTENT, 0, &content);
  first = content.len;
  for (size_t i = 0; i < n && content.len > 0; i++) {
    size_t at = find((const char *)content.data, content.len, stops[i], from);

    if (at < first) {
      first = at;
      found = (int)i;
    }
  }
  if (found >= 0)
    keep(said, first);
  tnk__buf_deinit(&content);
  return found;
}
