/* SPDX-License-Identifier: MIT */
#include "chat/render/ids.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

static int take_ids(const int32_t *ids, size_t n, void *user) {
  return tnk__buf_append(user, ids, n * sizeof(*ids));
}

static int take_bytes(const char *bytes, size_t n, void *user) {
  return tnk__buf_append(user, bytes, n);
}

/* Report a code of the plug-in or of a buffer, with the plug-in's message if it
 * has one. */
static int failed(tnk__why_t *why, int err, const tnk__coder_t *coder,
                  const char *said) {
  const char *name = coder->calls.name != NULL ? coder->calls.name : "plug-in";

  if (err == TNK_ENOMEM)
    return tnk__why(why, err, 0, "out of memory");
  return tnk__why(why, err, 0, "%s: %s", name,
                  said[0] != '\0' ? said : "it failed");
}

static int encode(const tnk__coder_t *coder, const tnk__buf_t *text,
                  size_t begin, size_t end, unsigned flags, tnk__buf_t *ids,
                  tnk__why_t *why) {
  char said[256] = "";
  int err = TNK_OK;

  if (end > begin)
    err = coder->calls.encode(coder->tokenizer,
                              (const char *)text->data + begin, end - begin,
                              flags, take_ids, ids, said, sizeof(said));
  if (err == TNK_OK && ids->err != TNK_OK)
    err = ids->err;
  return err == TNK_OK ? TNK_OK : failed(why, err, coder, said);
}

static int begins(const tnk__buf_t *ids, const tnk__buf_t *with) {
  return ids->len >= with->len &&
         (with->len == 0 || memcmp(ids->data, with->data, with->len) == 0);
}

/* Encode a piece behind one character, and remove the ids of that. Returns 1 if
 * it has ids of its own, which a tokenizer may have joined with the piece's. */
static int encode_behind(char before, const tnk__coder_t *coder,
                         const tnk__buf_t *piece, unsigned flags,
                         tnk__buf_t *ids, int *err, tnk__why_t *why) {
  tnk__buf_t alone, both;
  int is_apart;

  tnk__buf_init(&alone, ids->alloc, SIZE_MAX / 2);
  tnk__buf_init(&both, ids->alloc, SIZE_MAX / 2);
  piece->data[0] = (uint8_t)before;
  *err = encode(coder, piece, 0, 1, flags, &alone, why);
  if (*err == TNK_OK)
    *err = encode(coder, piece, 0, piece->len, flags, &both, why);
  is_apart = *err == TNK_OK && begins(&both, &alone);
  if (is_apart && both.len > alone.len &&
      tnk__buf_append(ids, both.data + alone.len, both.len - alone.len) !=
          TNK_OK)
    *err = failed(why, ids->err, coder, "");
  tnk__buf_deinit(&alone);
  tnk__buf_deinit(&both);
  return is_apart;
}

/* Encode a piece that has text before it. Some tokenizers add a blank to the
 * start of a text, so the piece is encoded after a character that ends words: a
 * newline, as in other implementations, or a control character, which joins
 * nothing. If the tokenizer refuses that or joins even that, the piece is
 * encoded alone. */
static int encode_inside(const tnk__coder_t *coder, const tnk__buf_t *text,
                         size_t begin, size_t end, unsigned flags,
                         tnk__buf_t *ids, tnk__why_t *why) {
  tnk__buf_t piece;
  int err = TNK_OK;

  if (end <= begin)
    return TNK_OK;
  tnk__buf_init(&piece, ids->alloc, SIZE_MAX / 2);
  (void)tnk__buf_byte(&piece, '\n');
  if (tnk__buf_append(&piece, text->data + begin, end - begin) != TNK_OK)
    err = failed(why, piece.err, coder, "");
  else if (!encode_behind('\n', coder, &piece, flags, ids, &err, why) &&
           err == TNK_OK &&
           !encode_behind('\x02', coder, &piece, flags, ids, &err, why) &&
           err != TNK_ENOMEM)
    err = encode(coder, text, begin, end, flags, ids, why);
  tnk__buf_deinit(&piece);
  return err;
}

/* ---- Control tokens as text ---- */

static const tnk__control_t *control_at(const tnk__coder_t *coder, size_t i) {
  return (const tnk__control_t *)(const void *)coder->controls->data + i;
}

static size_t barrier_at(const tnk__coder_t *coder, size_t i) {
  return ((const size_t *)(const void *)coder->barriers->data)[i];
}

static size_t n_barriers(const tnk__coder_t *coder) {
  return coder->barriers == NULL ? 0 : coder->barriers->len / sizeof(size_t);
}

/* Find the first control token in [from, to) whose byte `k` is at least `byte`.
 * All of them agree in their first `k` bytes. */
static size_t narrow(const tnk__coder_t *coder, size_t from, size_t to,
                     size_t k, unsigned byte) {
  while (from < to) {
    const size_t middle = from + (to - from) / 2;
    const tnk__control_t *control = control_at(coder, middle);

    if (control->n <= k || (unsigned char)control->text[k] < byte)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

/* The longest control token at `at` that ends at or before `end`. NULL:
 * none. */
static const tnk__control_t *find_control(const tnk__coder_t *coder,
                                          const tnk__buf_t *text, size_t at,
                                          size_t end) {
  size_t from = 0, to = coder->controls->len / sizeof(tnk__control_t);
  const tnk__control_t *found = NULL;

  for (size_t k = 0; from < to && at + k < end; k++) {
    from = narrow(coder, from, to, k, text->data[at + k]);
    to = narrow(coder, from, to, k, text->data[at + k] + 1u);
    if (from < to && control_at(coder, from)->n == k + 1)
      found = control_at(coder, from);
  }
  return found;
}

/* Returns whether a control token at [at, at + n) comes from a message that is
 * plain text. `next` is the first barrier after `at`. A token of one character
 * has no inside; it then has a barrier on both sides. */
static int is_text(const tnk__coder_t *coder, const tnk__buf_t *text, size_t at,
                   size_t n, size_t next) {
  if (barrier_at(coder, next) < at + n)
    return 1;
  return next > 0 && barrier_at(coder, next - 1) == at &&
         barrier_at(coder, next) == at + n &&
         tnk__utf8_char((const char *)text->data + at, n) == n;
}

/* Append the ids of a control token as plain text. If the tokenizer still finds
 * it as a single token, it is cut at the barrier. */
static int encode_text(const tnk__coder_t *coder, const tnk__buf_t *text,
                       size_t begin, const tnk__control_t *control,
                       size_t barrier, tnk__buf_t *ids, tnk__why_t *why) {
  const size_t before = ids->len, end = begin + control->n;
  const unsigned flags = coder->calls.plain_flags;
  int err = encode_inside(coder, text, begin, end, flags, ids, why);
  int is_same = 0;

  for (size_t i = before / sizeof(int32_t); i < tnk__n_ids(ids); i++)
    is_same |= tnk__ids(ids)[i] == control->id;
  if (err != TNK_OK || !is_same)
    return err;
  if (barrier >= end)
    return tnk__why(why, TNK_EUNSUPPORTED, 0,
                    "the tokenizer has no other token for the control token "
                    "\"%.*s\" in a message",
                    (int)control->n, control->text);
  ids->len = before;
  err = encode_inside(coder, text, begin, barrier, flags, ids, why);
  return err == TNK_OK
             ? encode_inside(coder, text, barrier, end, flags, ids, why)
             : err;
}

static size_t longest_control(const tnk__coder_t *coder) {
  const size_t n = n_barriers(coder) == 0
                       ? 0
                       : coder->controls->len / sizeof(tnk__control_t);
  size_t longest = 0;

  for (size_t i = 0; i < n; i++)
    if (control_at(coder, i)->n > longest)
      longest = control_at(coder, i)->n;
  return longest;
}

static int encode_range(const tnk__coder_t *coder, const tnk__buf_t *text,
                        size_t begin, size_t end, int is_inside,
                        tnk__buf_t *ids, tnk__why_t *why) {
  const size_t longest = longest_control(coder);
  size_t next = 0;
  int err = TNK_OK;

  for (size_t at = begin; at < end && err == TNK_OK;) {
    const tnk__control_t *control;

    while (next < n_barriers(coder) && barrier_at(coder, next) <= at)
      next++;
    if (next == n_barriers(coder))
      break;
    if (barrier_at(coder, next) > at + longest)
      at = barrier_at(coder, next) - longest;
    if (at >= end)
      break;
    control = find_control(coder, text, at, end);
    if (control == NULL || !is_text(coder, text, at, control->n, next)) {
      at++;
      continue;
    }
    err = is_inside ? encode_inside(coder, text, begin, at, 0, ids, why)
                    : encode(coder, text, begin, at, 0, ids, why);
    is_inside = 1;
    if (err == TNK_OK)
      err = encode_text(coder, text, at, control, barrier_at(coder, next), ids,
                        why);
    at += control->n;
    begin = at;
  }
  if (err != TNK_OK)
    return err;
  return is_inside ? encode_inside(coder, text, begin, end, 0, ids, why)
                   : encode(coder, text, begin, end, 0, ids, why);
}

int tnk__ids_encode(const tnk__coder_t *coder, const tnk__buf_t *text,
                    size_t begin, size_t end, tnk__buf_t *ids,
                    tnk__why_t *why) {
  return encode_range(coder, text, begin, end, 0, ids, why);
}

int tnk__ids_continue(const tnk__coder_t *coder, const tnk__buf_t *text,
                      size_t begin, size_t end, tnk__buf_t *ids,
                      tnk__why_t *why) {
  return encode_range(coder, text, begin, end, 1, ids, why);
}

int tnk__ids_decode(const tnk__coder_t *coder, const int32_t *ids, size_t n,
                    tnk__buf_t *bytes, tnk__why_t *why) {
  char said[256] = "";
  int err = TNK_OK;

  if (n > 0)
    err = coder->calls.decode(coder->tokenizer, ids, n, 0, take_bytes, bytes,
                              said, sizeof(said));
  if (err == TNK_OK && bytes->err != TNK_OK)
    err = bytes->err;
  return err == TNK_OK ? TNK_OK : failed(why, err, coder, said);
}

/* Find the end of the id that starts at *at. Returns 0 if its bytes differ. */
static int find_end(const tnk__coder_t *coder, int32_t id, const char *text,
                    size_t n, size_t *at, tnk__buf_t *bytes, int *err,
                    tnk__why_t *why) {
  tnk__buf_clear(bytes);
  *err = tnk__ids_decode(coder, &id, 1, bytes, why);
  if (*err != TNK_OK || bytes->len > n - *at ||
      (bytes->len > 0 && memcmp(bytes->data, text + *at, bytes->len) != 0))
    return 0;
  *at += bytes->len;
  return 1;
}

int tnk__ids_ends(const tnk__coder_t *coder, const tnk__buf_t *ids,
                  const char *text, size_t n, tnk__buf_t *ends,
                  tnk__why_t *why) {
  const size_t before = ends->len;
  tnk__buf_t bytes;
  size_t at = 0;
  int err = TNK_OK, is_same = 1;

  tnk__buf_init(&bytes, ends->alloc, SIZE_MAX / 2);
  for (size_t i = 0; is_same && i < tnk__n_ids(ids); i++) {
    is_same =
        find_end(coder, tnk__ids(ids)[i], text, n, &at, &bytes, &err, why);
    if (is_same)
      (void)tnk__buf_append(ends, &at, sizeof(at));
  }
  tnk__buf_deinit(&bytes);
  if (!is_same || at < n)
    ends->len = before;
  if (err == TNK_OK && ends->err != TNK_OK)
    err = tnk__why(why, ends->err, 0, "out of memory");
  return err;
}
