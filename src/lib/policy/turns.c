/* SPDX-License-Identifier: MIT */
#include "lib/policy/turns.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number.h"

/*
 * States of a queue: running; failed (err set). While it runs:
 *
 *   numbers below `next` are open, accepted, or in a hole; numbers from
 *   `next` on were never taken, or all of them were given back;
 *   a hole ends below next - 1, and holes do not touch each other;
 *   n_open is the sum of the n_open of the operations in the queue.
 *
 * A renumbering by the server waits until no number is open. The effect of a
 * number refers to the numbering in which it was taken. A downward change drops
 * all holes and begins a new epoch. An upward change drops the holes below the
 * new floor.
 */

static tnk__turn_t *turn_of(tnk__list_t *link) {
  return tnk__container_of(link, tnk__turn_t, link);
}

void tnk__turns_init(tnk__turns_t *turns, uint64_t first) {
  memset(turns, 0, sizeof(*turns));
  tnk__list_init(&turns->queue);
  turns->next = first;
}

void tnk__turn_init(tnk__turn_t *turn, void (*ready)(tnk__turn_t *self)) {
  tnk__list_init(&turn->link);
  turn->ready = ready;
  turn->n_open = 0;
  turn->epoch = 0;
}

/* ---- The queue ---- */

int tnk__turns_has_turn(const tnk__turns_t *turns, const tnk__turn_t *turn) {
  return turns->queue.next == &turn->link;
}

int tnk__turns_enter(tnk__turns_t *turns, tnk__turn_t *turn) {
  if (turns->err != TNK_OK)
    return turns->err;
  if (tnk__list_empty(&turn->link)) {
    tnk__list_append(&turns->queue, &turn->link);
    turns->n_queued++;
  }
  return tnk__turns_has_turn(turns, turn);
}

void tnk__turns_fail(tnk__turns_t *turns, int err) {
  if (turns->err == TNK_OK)
    turns->err = err != TNK_OK ? err : TNK_EINTERNAL;
}

void tnk__turns_resume(tnk__turns_t *turns) {
  turns->err = TNK_OK;
}

void tnk__turns_restart(tnk__turns_t *turns, uint64_t first) {
  if (turns->n_open > 0) {
    tnk__turns_fail(turns, TNK_EINTERNAL);
    return;
  }
  turns->next = first;
  turns->n_holes = 0;
  turns->n_doubts = 0;
  turns->has_heal = 0;
  turns->floor = 0;
  turns->epoch++;
  turns->err = TNK_OK;
}

static void take_out(tnk__turns_t *turns, tnk__turn_t *turn) {
  tnk__list_remove(&turn->link);
  turns->n_queued--;
}

void tnk__turns_leave(tnk__turns_t *turns, tnk__turn_t *turn) {
  int had_turn = tnk__turns_has_turn(turns, turn);

  if (tnk__list_empty(&turn->link))
    return;
  take_out(turns, turn);
  if (turn->n_open != 0) {
    /* A violation of the contract: these numbers can never be settled. */
    turns->n_open -= turn->n_open;
    turn->n_open = 0;
    tnk__turns_fail(turns, TNK_EINTERNAL);
  }
  if (had_turn && turns->err == TNK_OK && !tnk__list_empty(&turns->queue)) {
    tnk__turn_t *next = turn_of(turns->queue.next);

    next->ready(next);
  }
}

tnk__turn_t *tnk__turns_next_failed(tnk__turns_t *turns) {
  if (turns->err == TNK_OK)
    return NULL;
  TNK__LIST_FOREACH (link, &turns->queue) {
    tnk__turn_t *turn = turn_of(link);

    if (turn->n_open == 0) {
      take_out(turns, turn);
      return turn;
    }
  }
  return NULL;
}

/* ---- The numbers ---- */

static void remove_hole(tnk__turns_t *turns, uint32_t i) {
  turns->n_holes--;
  memmove(&turns->holes[i], &turns->holes[i + 1],
          (turns->n_holes - i) * sizeof(turns->holes[0]));
}

static uint64_t lowest(tnk__turns_t *turns) {
  tnk__turns_hole_t *hole = &turns->holes[0];
  uint64_t number;

  if (turns->n_holes == 0)
    return turns->next++;
  number = hole->first++;
  if (hole->first > hole->last)
    remove_hole(turns, 0);
  return number;
}

int tnk__turns_take(tnk__turns_t *turns, tnk__turn_t *turn, uint64_t *number) {
  if (turns->err != TNK_OK)
    return turns->err;
  if (!tnk__turns_has_turn(turns, turn))
    return TNK_EINTERNAL;
  *number = lowest(turns);
  turn->epoch = turns->epoch;
  turn->n_open++;
  turns->n_open++;
  return TNK_OK;
}

/* The first hole that ends at or above the number. */
static uint32_t find_hole(const tnk__turns_t *turns, uint64_t number) {
  uint32_t i = 0;

  while (i < turns->n_holes && turns->holes[i].last < number)
    i++;
  return i;
}

static int is_free(const tnk__turns_t *turns, uint64_t number) {
  uint32_t i = find_hole(turns, number);

  return number >= turns->next ||
         (i < turns->n_holes && turns->holes[i].first <= number);
}

/* Give back the highest number. A hole right below it joins the range of free
 * numbers. */
static void lower_next(tnk__turns_t *turns) {
  tnk__turns_hole_t *last;

  turns->next--;
  if (turns->n_holes == 0)
    return;
  last = &turns->holes[turns->n_holes - 1];
  if (last->last + 1 == turns->next) {
    turns->next = last->first;
    turns->n_holes--;
  }
}

/* Record that a number is free. Returns 0 when there are too many holes. */
static int give_back(tnk__turns_t *turns, uint64_t number) {
  uint32_t i = find_hole(turns, number);
  int joins_left = i > 0 && turns->holes[i - 1].last + 1 == number;
  int joins_right = i < turns->n_holes && turns->holes[i].first == number + 1;

  if (number + 1 == turns->next) {
    lower_next(turns);
    return 1;
  }
  if (joins_left && joins_right) {
    turns->holes[i - 1].last = turns->holes[i].last;
    remove_hole(turns, i);
  } else if (joins_left) {
    turns->holes[i - 1].last = number;
  } else if (joins_right) {
    turns->holes[i].first = number;
  } else if (turns->n_holes < TNK__TURNS_MAX_HOLES) {
    memmove(&turns->holes[i + 1], &turns->holes[i],
            (turns->n_holes - i) * sizeof(turns->holes[0]));
    turns->holes[i].first = number;
    turns->holes[i].last = number;
    turns->n_holes++;
  } else {
    return 0;
  }
  return 1;
}

/* Numbers from `first` up to, but not including, `end` are no longer in
 * doubt. */
static void end_doubts(tnk__turns_t *turns, uint64_t first, uint64_t end) {
  uint32_t n = 0;
  uint32_t i;

  for (i = 0; i < turns->n_doubts; i++)
    if (turns->doubts[i].number < first || turns->doubts[i].number >= end)
      turns->doubts[n++] = turns->doubts[i];
  turns->n_doubts = n;
}

static void raise_to_floor(tnk__turns_t *turns) {
  end_doubts(turns, 0, turns->floor);
  while (turns->n_holes > 0 && turns->holes[0].last < turns->floor)
    remove_hole(turns, 0);
  if (turns->n_holes > 0 && turns->holes[0].first < turns->floor)
    turns->holes[0].first = turns->floor;
  if (turns->next < turns->floor)
    turns->next = turns->floor;
  turns->floor = 0;
}

static void heal_if_idle(tnk__turns_t *turns) {
  if (turns->n_open != 0)
    return;
  if (turns->has_heal) {
    turns->next = turns->heal;
    turns->n_holes = 0;
    turns->n_doubts = 0;
    turns->has_heal = 0;
    turns->epoch++;
  }
  raise_to_floor(turns);
}

int tnk__turns_settle(tnk__turns_t *turns, tnk__turn_t *turn, uint64_t number,
                      tnk__effect_t effect, int err) {
  if (turn->n_open == 0 || is_free(turns, number)) {
    /* A violation of the contract: the counts are no longer valid. */
    tnk__turns_fail(turns, TNK_EINTERNAL);
    return turns->err;
  }
  turn->n_open--;
  turns->n_open--;
  if (effect == TNK__EFFECT_UNKNOWN ||
      (effect == TNK__EFFECT_NONE && !give_back(turns, number)))
    tnk__turns_fail(turns, err);
  if (effect == TNK__EFFECT_ACCEPTED)
    end_doubts(turns, number, number + 1);
  /* The number that the server asked for has been accepted in the meantime. */
  if (effect == TNK__EFFECT_ACCEPTED && turns->has_heal &&
      turns->heal == number)
    turns->heal++;
  heal_if_idle(turns);
  return turns->err;
}

const tnk__doubt_t *tnk__turns_doubt_of(const tnk__turns_t *turns,
                                        uint64_t number) {
  uint32_t i;

  for (i = 0; i < turns->n_doubts; i++)
    if (turns->doubts[i].number == number)
      return &turns->doubts[i];
  return NULL;
}

int tnk__turns_doubt(tnk__turns_t *turns, tnk__turn_t *turn, uint64_t number,
                     uint64_t mark, int err) {
  tnk__effect_t effect = TNK__EFFECT_NONE;

  end_doubts(turns, number, number + 1);
  if (turns->n_doubts == TNK__TURNS_MAX_DOUBTS)
    effect = TNK__EFFECT_UNKNOWN;
  else
    turns->doubts[turns->n_doubts++] = (tnk__doubt_t){number, mark};
  return tnk__turns_settle(turns, turn, number, effect, err);
}

int tnk__turns_heal(tnk__turns_t *turns, uint32_t epoch, uint64_t number,
                    uint64_t expected) {
  if (turns->err != TNK_OK || epoch != turns->epoch || expected == number)
    return 0;
  if (expected < number) {
    turns->heal = expected;
    turns->has_heal = 1;
  } else {
    if (expected <= turns->floor)
      return 0;
    turns->floor = expected;
  }
  heal_if_idle(turns);
  return 1;
}

/* ---- The server's words ---- */

/* Read digits after spaces. NULL when there are none or too many. */
static const char *read_number(const char *p, uint64_t *number) {
  while (*p == ' ')
    p++;
  return tnk__read_u64(&p, NULL, INT64_MAX - 1, number) == TNK_OK ? p : NULL;
}

int tnk__turns_parse_conflict(const char *text, uint64_t *expected,
                              uint64_t *got) {
  static const char word[] = "expected ";
  static const char link[] = ", got ";

  while (text != NULL && (text = strstr(text, word)) != NULL) {
    const char *end;

    text += sizeof(word) - 1;
    end = read_number(text, expected);
    if (end != NULL && strncmp(end, link, sizeof(link) - 1) == 0 &&
        read_number(end + sizeof(link) - 1, got) != NULL)
      return 1;
  }
  return 0;
}

int tnk__turns_parse_taken(const char *text) {
  static const char *const words[] = {"was reused", "already used",
                                      "already been used"};
  size_t i;

  text = text != NULL ? strstr(text, "sequence number") : NULL;
  for (i = 0; text != NULL && i < sizeof(words) / sizeof(words[0]); i++)
    if (strstr(text, words[i]) != NULL)
      return 1;
  return 0;
}
