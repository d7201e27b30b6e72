/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_SCHEMA_EXPRESSION_H
#define TNK_GATEWAY_SCHEMA_EXPRESSION_H

#include <stddef.h>
#include <stdint.h>

/*
 * A regular expression as a tree. Its syntax is that of ECMAScript with the
 * flag `u`. Lookaround, back references, properties of Unicode and flags are
 * refused by name, and so is what other languages read in another way.
 */
enum {
  TNK__GW_EXPRESSION_NODES = 1024,
  TNK__GW_EXPRESSION_RANGES = 1024, /* of characters, in all classes */
  TNK__GW_NO_MAX = UINT16_MAX
};

typedef struct {
  uint32_t first;
  uint32_t last;
} tnk__gw_range_t;

typedef struct {
  tnk__gw_range_t all[TNK__GW_EXPRESSION_RANGES];
  size_t n;
} tnk__gw_ranges_t;

typedef enum {
  TNK__GW_NODE_GROUP,  /* `child` is its first branch */
  TNK__GW_NODE_BRANCH, /* `child` is its first item */
  TNK__GW_NODE_CHARACTER,
  TNK__GW_NODE_CLASS, /* `n_ranges` ranges from `value` on */
  TNK__GW_NODE_BEGIN,
  TNK__GW_NODE_END,
  TNK__GW_NODE_WORD
} tnk__gw_node_is_t;

/* 0 is no node. */
typedef struct {
  tnk__gw_node_is_t is;
  int is_not;    /* of CLASS and WORD */
  uint16_t next; /* the next branch or item */
  uint16_t child;
  uint16_t min; /* how often it occurs; 1 and 1 without a quantifier */
  uint16_t max;
  uint16_t n_ranges;
  uint32_t value;
} tnk__gw_part_t;

typedef struct {
  tnk__gw_part_t nodes[TNK__GW_EXPRESSION_NODES];
  size_t n;
  uint16_t root; /* the first branch */
} tnk__gw_expression_t;

/* Read an expression, which is valid UTF-8. Its classes have their ranges in
 * `ranges`. Returns NULL, or a static text that says what is wrong with it,
 * such as "has a back reference, ...". */
const char *tnk__gw_expression_read(tnk__gw_expression_t *out,
                                    tnk__gw_ranges_t *ranges, const char *text,
                                    size_t n);

/* Returns the character at *at of valid UTF-8, and moves *at behind it. */
uint32_t tnk__gw_next_character(const char *text, size_t n, size_t *at);

#endif
