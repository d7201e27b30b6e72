/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_SCHEMA_PATTERN_H
#define TNK_GATEWAY_SCHEMA_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "gateway/schema/expression.h"

/*
 * The regular expressions of `pattern`. Both the pattern and the text come from
 * strangers. So a pattern is a program of bounded size, and a search follows
 * all of its states at once: the time is at most the size of the program for
 * each character of the text, whatever the pattern is.
 */
enum {
  TNK__GW_PATTERN_STATES = 2048,
  TNK__GW_VISITS = 16 /* those that cost as much as a comparison of values */
};

typedef struct {
  uint16_t is; /* see pattern.c */
  uint16_t to;
  uint32_t value;
} tnk__gw_state_t;

/* 24 KiB. It owns no other memory. */
typedef struct {
  tnk__gw_state_t states[TNK__GW_PATTERN_STATES];
  size_t n_states;
  size_t n_visits; /* of parts of the expression, to write the program */
  tnk__gw_ranges_t ranges;
} tnk__gw_pattern_t;

/* Read a pattern, which is valid UTF-8. Returns NULL, or a static text that
 * says what is wrong with it, such as "has a back reference, ...". */
const char *tnk__gw_pattern_read(tnk__gw_pattern_t *pattern, const char *text,
                                 size_t n);

/* Returns the cost of reading a pattern, in comparisons of values. Reading
 * fails at a bounded cost too. */
size_t tnk__gw_pattern_cost(const tnk__gw_pattern_t *pattern);

/* Find the pattern anywhere in a text, which is valid UTF-8. Each visit of a
 * state takes one from *budget. Returns whether it is there, or -1 if the
 * budget is used up. */
int tnk__gw_pattern_find(const tnk__gw_pattern_t *pattern, const char *text,
                         size_t n, size_t *budget);

#endif
