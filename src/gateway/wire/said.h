#ifndef TNK_GATEWAY_WIRE_SAID_H
#define TNK_GATEWAY_WIRE_SAID_H

#include "lib/base/buf.h"

/*
 * What a model has said, piece by piece in its order: thinking, content, calls
 * of tools. Streams send the pieces one by one, whole answers put them together
 * again.
 */
typedef enum {
  TNK__GW_THINKING = 0,
  TNK__GW_CONTENT,
  TNK__GW_CALL,     /* begins: the text is the name, the id is behind it */
  TNK__GW_ARGUMENTS /* of the call before: a piece of JSON */
} tnk__gw_piece_kind_t;

typedef struct {
  tnk__gw_piece_kind_t kind;
  size_t at; /* in the text */
  size_t n;
  size_t n_id; /* of a call: bytes of its id */
} tnk__gw_piece_t;

typedef struct {
  tnk__buf_t text;
  tnk__buf_t pieces; /* of tnk__gw_piece_t */
} tnk__gw_said_t;

void tnk__gw_said_init(tnk__gw_said_t *said, const tnk_allocator_t *alloc);
void tnk__gw_said_deinit(tnk__gw_said_t *said);
/* Add a piece. Failures stick; see tnk__gw_said_error(). */
void tnk__gw_said_add(tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                      const char *text, size_t n);
void tnk__gw_said_call(tnk__gw_said_t *said, const char *id, const char *name);
/* TNK_OK, or what adding has failed with. */
int tnk__gw_said_error(const tnk__gw_said_t *said);

size_t tnk__gw_said_count(const tnk__gw_said_t *said);
const tnk__gw_piece_t *tnk__gw_said_piece(const tnk__gw_said_t *said, size_t i);
const char *tnk__gw_said_text(const tnk__gw_said_t *said,
                              const tnk__gw_piece_t *piece);
/* How many pieces there are of a kind. */
size_t tnk__gw_said_has(const tnk__gw_said_t *said, tnk__gw_piece_kind_t kind);
/* Append all texts of a kind from piece `first` on, up to the next call where
 * they are arguments. */
int tnk__gw_said_join(const tnk__gw_said_t *said, tnk__gw_piece_kind_t kind,
                      size_t first, tnk__buf_t *out);
/* Take away the end of the content from the first place on where one of these
 * texts stands. Returns its number, or -1. */
int tnk__gw_said_cut(tnk__gw_said_t *said, const char *const *stops, size_t n);

#endif
