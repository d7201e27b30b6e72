/* SPDX-License-Identifier: MIT */
#include "gateway/schema/pattern.h"

/*
 * An expression is written as a program: a repeat is written as often as it may
 * occur. A search follows all states of the program that a text can lead to
 * (Thompson's algorithm).
 */

enum {
  NO_CHARACTER = -1, /* before the first one and after the last one */
  MAX_VISITS = 16384 /* of parts; a repeat of nothing adds no state */
};

/* What a state is. Those up to NOT_OF consume a character. */
typedef enum {
  CHARACTER, /* `value` */
  OF,        /* a class: `to` ranges from `value` on */
  NOT_OF,
  BOTH, /* continue here, and at `to` */
  JUMP, /* continue at `to` */
  AT_BEGIN,
  AT_END,
  AT_WORD,
  NOT_AT_WORD,
  FOUND
} is_t;

/* ---- Writing the program ---- */

typedef struct {
  tnk__gw_pattern_t *pattern;
  const tnk__gw_expression_t *tree;
  int is_full;
} writer_t;

static void write_items(writer_t *w, uint16_t item);

/* Returns the place of the state, or 0 if there is no space. */
static uint16_t add(writer_t *w, is_t is, uint16_t to, uint32_t value) {
  tnk__gw_pattern_t *p = w->pattern;

  if (p->n_states == TNK__GW_PATTERN_STATES) {
    w->is_full = 1;
    return 0;
  }
  p->states[p->n_states] = (tnk__gw_state_t){(uint16_t)is, to, value};
  return (uint16_t)p->n_states++;
}

/* Let a state continue at the next one that is written. */
static void lead_here(writer_t *w, uint16_t from) {
  w->pattern->states[from].to = (uint16_t)w->pattern->n_states;
}

static void write_group(writer_t *w, uint16_t branch) {
  const tnk__gw_part_t *nodes = w->tree->nodes;
  uint16_t ends = 0; /* a list of jumps, through their `value` */

  for (; branch != 0 && !w->is_full; branch = nodes[branch].next) {
    const int is_last = nodes[branch].next == 0;
    uint16_t both = is_last ? 0 : add(w, BOTH, 0, 0);

    write_items(w, nodes[branch].child);
    if (is_last || w->is_full)
      break;
    ends = add(w, JUMP, 0, ends);
    lead_here(w, both);
  }
  while (ends != 0 && !w->is_full) {
    uint16_t next = (uint16_t)w->pattern->states[ends].value;

    lead_here(w, ends);
    ends = next;
  }
}

static void write_one(writer_t *w, const tnk__gw_part_t *node) {
  switch (node->is) {
  case TNK__GW_NODE_GROUP:
    write_group(w, node->child);
    break;
  case TNK__GW_NODE_CHARACTER:
    (void)add(w, CHARACTER, 0, node->value);
    break;
  case TNK__GW_NODE_CLASS:
    (void)add(w, node->is_not ? NOT_OF : OF, node->n_ranges, node->value);
    break;
  case TNK__GW_NODE_BEGIN:
    (void)add(w, AT_BEGIN, 0, 0);
    break;
  case TNK__GW_NODE_END:
    (void)add(w, AT_END, 0, 0);
    break;
  case TNK__GW_NODE_WORD:
    (void)add(w, node->is_not ? NOT_AT_WORD : AT_WORD, 0, 0);
    break;
  case TNK__GW_NODE_BRANCH:
    break;
  }
}

/* Write an item that may occur any number of times, or at least once. */
static void write_loop(writer_t *w, const tnk__gw_part_t *node) {
  uint16_t both = add(w, BOTH, 0, 0);

  write_one(w, node);
  (void)add(w, JUMP, both, 0);
  lead_here(w, both);
}

static void write_repeat(writer_t *w, const tnk__gw_part_t *node) {
  uint16_t skips = 0; /* a list of states that skip the rest, by `value` */

  for (uint16_t i = 0; i < node->min && !w->is_full; i++) {
    w->is_full |= ++w->pattern->n_visits > MAX_VISITS;
    write_one(w, node);
  }
  if (node->max == TNK__GW_NO_MAX && !w->is_full)
    write_loop(w, node);
  for (uint16_t i = node->min;
       node->max != TNK__GW_NO_MAX && i < node->max && !w->is_full; i++) {
    w->is_full |= ++w->pattern->n_visits > MAX_VISITS;
    skips = add(w, BOTH, 0, skips);
    write_one(w, node);
  }
  while (skips != 0 && !w->is_full) {
    uint16_t next = (uint16_t)w->pattern->states[skips].value;

    lead_here(w, skips);
    skips = next;
  }
}

static void write_items(writer_t *w, uint16_t item) {
  for (; item != 0 && !w->is_full; item = w->tree->nodes[item].next) {
    w->is_full |= ++w->pattern->n_visits > MAX_VISITS;
    write_repeat(w, &w->tree->nodes[item]);
  }
}

const char *tnk__gw_pattern_read(tnk__gw_pattern_t *pattern, const char *text,
                                 size_t n) {
  tnk__gw_expression_t tree;
  writer_t w = {.pattern = pattern, .tree = &tree};
  const char *why = tnk__gw_expression_read(&tree, &pattern->ranges, text, n);

  pattern->n_states = pattern->n_visits = 0;
  if (why != NULL)
    return why;
  /* No list leads to the state 0, and none ends there. */
  (void)add(&w, JUMP, 1, 0);
  write_group(&w, tree.root);
  (void)add(&w, FOUND, 0, 0);
  return w.is_full ? "is too large" : NULL;
}

size_t tnk__gw_pattern_cost(const tnk__gw_pattern_t *pattern) {
  /* The memory has to be cleared even for a small pattern. */
  return 8 + (pattern->n_states + pattern->n_visits) / TNK__GW_VISITS;
}

/* ---- Searching ---- */

typedef struct {
  const tnk__gw_pattern_t *pattern;
  uint32_t step;
  uint32_t seen[TNK__GW_PATTERN_STATES]; /* the last step that was there */
  uint16_t todo[TNK__GW_PATTERN_STATES];
  uint16_t at[TNK__GW_PATTERN_STATES]; /* states that wait for a character */
  size_t n_todo;
  size_t n_at;
  int32_t before;
  int32_t after;
} search_t;

/* Each state is taken once in a step. */
static void push(search_t *s, size_t state) {
  if (s->seen[state] == s->step)
    return;
  s->seen[state] = s->step;
  s->todo[s->n_todo++] = (uint16_t)state;
}

static int is_of_word(int32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_';
}

static int holds(const search_t *s, is_t is) {
  const int is_word = is_of_word(s->before) != is_of_word(s->after);

  return is == AT_BEGIN  ? s->before == NO_CHARACTER
         : is == AT_END  ? s->after == NO_CHARACTER
         : is == AT_WORD ? is_word
                         : !is_word;
}

/* Follow all states that need no character. Returns whether the end is one of
 * them. */
static int follow(search_t *s, size_t *n_visits) {
  while (s->n_todo > 0) {
    const uint16_t place = s->todo[--s->n_todo];
    const tnk__gw_state_t *state = &s->pattern->states[place];
    const is_t is = (is_t)state->is;

    ++*n_visits;
    if (is == FOUND)
      return 1;
    if (is <= NOT_OF)
      s->at[s->n_at++] = place;
    else if (is == JUMP || is == BOTH)
      push(s, state->to);
    else if (holds(s, is))
      push(s, (size_t)place + 1);
    if (is == BOTH)
      push(s, (size_t)place + 1);
  }
  return 0;
}

static int takes(const tnk__gw_pattern_t *pattern, const tnk__gw_state_t *state,
                 uint32_t c, size_t *n_visits) {
  const tnk__gw_range_t *ranges;

  if (state->is == CHARACTER)
    return state->value == c;
  ranges = &pattern->ranges.all[state->value];
  *n_visits += state->to / 8U;
  for (size_t i = 0; i < state->to; i++)
    if (c >= ranges[i].first && c <= ranges[i].last)
      return state->is == OF;
  return state->is == NOT_OF;
}

int tnk__gw_pattern_find(const tnk__gw_pattern_t *pattern, const char *text,
                         size_t n, size_t *budget) {
  search_t s = {.pattern = pattern, .step = 1, .before = NO_CHARACTER};
  size_t at = 0;

  for (;;) {
    size_t n_visits = 1;

    s.after =
        at < n ? (int32_t)tnk__gw_next_character(text, n, &at) : NO_CHARACTER;
    /* It may begin at each character. */
    push(&s, 0);
    s.n_at = 0;
    if (follow(&s, &n_visits))
      return 1;
    if (s.after == NO_CHARACTER)
      return 0;
    s.step++;
    for (size_t i = 0; i < s.n_at; i++)
      if (takes(pattern, &pattern->states[s.at[i]], (uint32_t)s.after,
                &n_visits))
        push(&s, (size_t)s.at[i] + 1);
    s.before = s.after;
    if (n_visits > *budget)
      return -1;
    *budget -= n_visits;
  }
}
