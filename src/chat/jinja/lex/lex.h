/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_LEX_LEX_H
#define TNK_CHAT_JINJA_LEX_LEX_H

#include <stddef.h>
#include <stdint.h>

#include "chat/value/value.h"

typedef enum {
  TNK__TOKEN_EOF,
  TNK__TOKEN_DATA, /* value: text */
  TNK__TOKEN_VARIABLE_BEGIN,
  TNK__TOKEN_VARIABLE_END,
  TNK__TOKEN_BLOCK_BEGIN,
  TNK__TOKEN_BLOCK_END,
  TNK__TOKEN_NAME,    /* value: text */
  TNK__TOKEN_TEXT,    /* value: text */
  TNK__TOKEN_WHOLE,   /* value: INT */
  TNK__TOKEN_FLOAT,   /* value: FLOAT */
  TNK__TOKEN_OPERATOR /* op: its character, or a pair from below */
} tnk__token_kind_t;

/* Operators of two characters. */
#define TNK__PAIR(a, b) ((a) << 8 | (b))

typedef struct {
  uint8_t kind;
  uint16_t op;
  uint32_t line;
  tnk__value_t value;
} tnk__token_t;

typedef struct {
  tnk__token_t *items;
  size_t n, cap;
} tnk__tokens_t;

/* Split a template into tokens; the last one is EOF. White space around tags is
 * removed as with trim_blocks and lstrip_blocks of the reference. */
int tnk__lex(tnk__tokens_t *out, tnk__heap_t *heap, const char *text, size_t n,
             tnk__why_t *why);

#endif
