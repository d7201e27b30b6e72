/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_WIRE_SAID_H
#define TNK_GATEWAY_WIRE_SAID_H

#include "lib/base/buf.h"

/*
 * The output of a model as a list of pieces: thinking, content, tool calls. A
 * stream sends the pieces one by one, and a whole response joins them again.
 */
typedef enum {
  TNK__GW_THINKING = 0,
  TNK__GW_CONTENT,
  TNK__GW_CALL, /* start of a call: the text is the name, followed by the id */
  TNK__GW_ARGUMENTS, /* a fragment of JSON for the call before it */
  TNK__GW_KINDS
} tnk__gw_piece_kind_t;

typedef struct {
  tnk__gw_piece_kind_t kind;
  size_t at; /* offset in the text */
  size_t n;
  size_t n_id; /* call: length of its id */
} tnk__gw_piece_t;

typedef struct {
  tnk__buf_t text;
  tnk__buf_t pieces; /* of tnk__gw_piece_t */
} tnk__gw_said_t;

void tnk__gw_said_init(tnk__gw_said_t *said, const tnk_allocator_t *alloc);
void tnk__gw_said_deinit(tnk__gw_said_t *said);
/* Add a piece. An error is kept; see tnk__gw_said_error(). */
void tnk__gw_said_add(tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                      const char *text, size_t n);
void tnk__gw_said_call(tnk__gw_said_t *said, const char *id, const char *name);
/* Returns TNK_OK, or the first error of adding. */
int tnk__gw_said_error(const tnk__gw_said_t *said);

size_t tnk__gw_said_count(const tnk__gw_said_t *said);
const tnk__gw_piece_t *tnk__gw_said_piece(const tnk__gw_said_t *said, size_t i);
const char *tnk__gw_said_text(const tnk__gw_said_t *said,
                              const tnk__gw_piece_t *piece);
/* Number of pieces of a kind. */
size_t tnk__gw_said_has(const tnk__gw_said_t *said, tnk__gw_piece_kind_t kind);
/* Append all text of a kind from piece `first` on. Arguments end at the next
 * call. */
int tnk__gw_said_join(const tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                      size_t first, tnk__buf_t *out);
/* Cut the content off at the first occurrence of one of these strings at or
 * after byte `from`. Returns the index of that string, or -1. */
int tnk__gw_said_cut(tnk__gw_said_t *said, const char *const *stops, size_t n,
                     size_t from);
/* Number of bytes of all text of a kind. */
size_t tnk__gw_said_length(const tnk__gw_said_t *said,
                           tnk__gw_piece_kind_t kind);
/* Remove the first `n` bytes of a kind. */
void tnk__gw_said_skip(tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                       size_t n);

#endif
