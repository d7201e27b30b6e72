#include "lib/io/http/line.h"

#include "lib/base/alloc.h"
#include "lib/io/http/exchange.h"
#include "lib/policy/bounds.h"

static tnk__exchange_t *exchange_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__exchange_t, link);
}

void tnk__line_init(tnk__line_t *line) {
  tnk__list_init(&line->fresh);
  for (int rank = 0; rank < TNK__N_RANKS; rank++)
    tnk__list_init(&line->waiting[rank]);
  tnk__ceiling_init(&line->ceiling);
  line->n_each = 1;
}

tnk__rank_t tnk__line_rank(const tnk__exchange_t *ex) {
  if (ex->lane == TNK__LANE_POLL)
    return TNK__RANK_POLL;
  return ex->lane == TNK__LANE_TRAIN_POLL ? TNK__RANK_TRAIN_POLL
                                          : TNK__RANK_SHORT;
}

/* ---- Waiting ---- */

static void count(tnk__line_t *line, tnk__exchange_t *ex) {
  ex->state = TNK__EXCHANGE_WAITING;
  tnk__list_remove(&ex->link);
  line->n[tnk__line_rank(ex)]++;
  line->n_waiting++;
  line->n_foreground += !ex->background;
}

void tnk__line_join(tnk__line_t *line, tnk__exchange_t *ex, int wants_fresh) {
  count(line, ex);
  ex->place = ++line->last_place;
  tnk__list_append(wants_fresh ? &line->fresh
                               : &line->waiting[tnk__line_rank(ex)],
                   &ex->link);
}

void tnk__line_return(tnk__line_t *line, tnk__exchange_t *ex) {
  count(line, ex);
  tnk__list_prepend(&line->waiting[tnk__line_rank(ex)], &ex->link);
}

void tnk__line_leave(tnk__line_t *line, tnk__exchange_t *ex) {
  tnk__list_remove(&ex->link);
  line->n[tnk__line_rank(ex)]--;
  line->n_waiting--;
  line->n_foreground -= !ex->background;
}

/* ---- Who may have a connection ---- */

/* How many more polls of a rank may have a connection. */
static size_t n_allowed(const tnk__line_t *line, tnk__rank_t rank) {
  const size_t n_polls =
      line->n_on[TNK__RANK_TRAIN_POLL] + line->n_on[TNK__RANK_POLL];
  const int is_short_waiting = line->n[TNK__RANK_SHORT] > 0;
  size_t n_places;
  size_t max;
  size_t left;

  if (!tnk__ceiling_is_set(&line->ceiling) || rank == TNK__RANK_SHORT)
    return SIZE_MAX;
  n_places = line->ceiling.max * line->n_each;
  max = tnk__ceiling_polls(n_places, is_short_waiting);
  left = max > n_polls ? max - n_polls : 0;
  if (rank == TNK__RANK_TRAIN_POLL)
    return left;
  max = tnk__ceiling_sample_polls(n_places, is_short_waiting);
  max = max > line->n_on[rank] ? max - line->n_on[rank] : 0;
  return left < max ? left : max;
}

/* The first exchange of all. If the ceiling is set, the first of the highest
 * priority that may have a connection. */
static tnk__list_t *first_of(const tnk__line_t *line, tnk__rank_t last,
                             int for_all) {
  tnk__list_t *found = NULL;

  for (int rank = 0; rank <= (int)last; rank++) {
    tnk__list_t *node = tnk__list_first(&line->waiting[rank]);

    if (node == NULL || (!for_all && n_allowed(line, (tnk__rank_t)rank) == 0))
      continue;
    if (tnk__ceiling_is_set(&line->ceiling))
      return node;
    if (found == NULL || exchange_at(node)->place < exchange_at(found)->place)
      found = node;
  }
  return found;
}

tnk__exchange_t *tnk__line_pop(tnk__line_t *line, int is_new,
                               tnk__rank_t last) {
  tnk__list_t *node = NULL;

  /* While new connections are refused, a kept one must suffice. */
  if (is_new || tnk__ceiling_is_set(&line->ceiling))
    node = tnk__list_first(&line->fresh);
  if (node == NULL)
    node = first_of(line, last, 0);
  if (node == NULL)
    return NULL;
  tnk__line_leave(line, exchange_at(node));
  return exchange_at(node);
}

tnk__exchange_t *tnk__line_pop_any(tnk__line_t *line) {
  tnk__list_t *node = tnk__list_first(&line->fresh);

  if (node == NULL)
    node = first_of(line, TNK__RANK_POLL, 1);
  if (node == NULL)
    return NULL;
  tnk__line_leave(line, exchange_at(node));
  return exchange_at(node);
}

size_t tnk__line_n_ready(const tnk__line_t *line) {
  size_t n = 0;

  if (!tnk__ceiling_is_set(&line->ceiling))
    return line->n_waiting;
  for (int rank = 0; rank < TNK__N_RANKS; rank++) {
    const size_t allowed = n_allowed(line, (tnk__rank_t)rank);

    n += line->n[rank] < allowed ? line->n[rank] : allowed;
  }
  return n;
}

uint64_t tnk__line_look_ms(const tnk__line_t *line, uint64_t now_ms) {
  const uint64_t ms = tnk__ceiling_wait_ms(&line->ceiling, now_ms);

  return ms > 0 && ms < TNK__WAITING_LOOK_MS ? ms : TNK__WAITING_LOOK_MS;
}

size_t tnk__line_n_excess(const tnk__line_t *line) {
  const size_t n_wait =
      line->n[TNK__RANK_SHORT] + line->n[TNK__RANK_TRAIN_POLL];
  const size_t n_on = line->n_on[TNK__RANK_POLL];
  size_t max;

  if (!tnk__ceiling_is_set(&line->ceiling) || n_wait == 0)
    return 0;
  max = tnk__ceiling_sample_polls(line->ceiling.max * line->n_each,
                                  line->n[TNK__RANK_SHORT] > 0);
  if (n_on <= max)
    return 0;
  return n_on - max < n_wait ? n_on - max : n_wait;
}
