/* SPDX-License-Identifier: MIT */
#include "lib/io/http/queue.h"

#include <sys/resource.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/policy/bounds.h"
#include "tnk/error.h"

/* ---- Slots of lanes ---- */

/* The most sample submissions under way, including slots that they take from
 * the polls. */
enum { MAX_SAMPLES = 1024 };

/* Descriptors left to the rest of the program if the limit is low: an eighth of
 * them, but at least this many. */
enum { MIN_SPARE_DESCRIPTORS = 64 };

/* One eighth of all polls is reserved for polls other than sample polls, if the
 * descriptors do not suffice for all. */
enum { TRAIN_POLLS_PART = 8 };

static size_t limit_of_files(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY || (uint64_t)limit.rlim_cur >= SIZE_MAX)
    return SIZE_MAX;
  return (size_t)limit.rlim_cur;
}

/* The number of descriptors left for polls; SIZE_MAX without a limit. */
static size_t left_for_polls(const tnk__http_t *http) {
  const size_t left = limit_of_files();
  size_t others = 0;
  size_t spare;

  if (left == SIZE_MAX)
    return SIZE_MAX;
  for (int i = 0; i < TNK__LANE_POLL; i++)
    others += http->lanes[i].max;
  spare = left / 8 > MIN_SPARE_DESCRIPTORS ? left / 8 : MIN_SPARE_DESCRIPTORS;
  return left > spare + others ? left - spare - others : 0;
}

/* Every slot may need a connection. The other lanes are small and must always
 * work, so only the polls are limited. */
static void find_few(tnk__http_t *http) {
  tnk__http_lane_t *polls = &http->lanes[TNK__LANE_POLL];
  tnk__http_lane_t *others = &http->lanes[TNK__LANE_TRAIN_POLL];
  const size_t left = left_for_polls(http);
  const size_t part = left / TRAIN_POLLS_PART + 1;
  size_t rest;

  polls->few = polls->max;
  others->few = others->max;
  if (left < polls->max + others->max && others->max > part)
    others->few = part;
  rest = left > others->few ? left - others->few : 1;
  if (polls->few > rest)
    polls->few = rest;
}

static void set(tnk__http_lane_t *lane, int are_shared) {
  lane->max = lane->allowed = are_shared ? lane->wished : lane->few;
}

static void warn(tnk__http_t *http) {
  const tnk__http_lane_t *polls = &http->lanes[TNK__LANE_POLL];

  if (polls->few == polls->wished || http->has_told_bound)
    return;
  http->has_told_bound = 1;
  tnk__log(&http->context->logger, TNK_LOG_WARN, "http",
           "this process may open %zu descriptors: at most %zu long "
           "polls are held at once instead of %zu, the others wait; raise "
           "the limit (ulimit -n) to hold more",
           limit_of_files(), polls->few, polls->wished);
}

void tnk__lanes_open(tnk__http_t *http) {
  const int are_shared = http->version == TNK__HTTP_2_PRIOR_KNOWLEDGE;

  find_few(http);
  for (int i = 0; i < TNK__N_LANES; i++) {
    tnk__http_lane_t *lane = &http->lanes[i];

    lane->wished = lane->max;
    if (i < TNK__LANE_POLL)
      lane->few = lane->max;
    http->enough += lane->few;
    set(lane, are_shared);
  }
  http->shares_polls = are_shared;
}

void tnk__lanes_share_polls(tnk__http_t *http, int are_shared) {
  if (!are_shared)
    warn(http);
  if (are_shared == http->shares_polls)
    return;
  http->shares_polls = are_shared;
  set(&http->lanes[TNK__LANE_POLL], are_shared);
  set(&http->lanes[TNK__LANE_TRAIN_POLL], are_shared);
  tnk__defer(http->context, &http->due); /* slots may be free */
}

/* Sample submissions over their own limit take slots of the polls that will
 * follow them. This is possible because a sample is not polled before its
 * submission has ended. */
int tnk__lane_has_slot(const tnk__http_t *http, tnk__lane_t i) {
  const tnk__http_lane_t *samples = &http->lanes[TNK__LANE_SAMPLE];
  const tnk__http_lane_t *polls = &http->lanes[TNK__LANE_POLL];
  size_t more = 0;

  if (http->shares_places && samples->n_in_flight > samples->max)
    more = samples->n_in_flight - samples->max;
  if (i == TNK__LANE_POLL)
    return polls->n_in_flight + more < polls->allowed;
  if (http->lanes[i].n_in_flight < http->lanes[i].allowed)
    return 1;
  return i == TNK__LANE_SAMPLE && http->shares_places &&
         samples->n_in_flight < MAX_SAMPLES &&
         polls->n_in_flight + more < polls->max;
}

void tnk__lane_enter(const tnk__exchange_t *ex) {
  ex->http->lanes[ex->lane].n_in_flight++;
}

void tnk__lane_leave(const tnk__exchange_t *ex) {
  if (ex->state == TNK__EXCHANGE_WAITING || ex->state == TNK__EXCHANGE_ACTIVE)
    ex->http->lanes[ex->lane].n_in_flight--;
}

void tnk__lane_note_upload(const tnk__exchange_t *ex, int err) {
  tnk__http_lane_t *lane = &ex->http->lanes[ex->lane];

  if (err == TNK_ETIMEDOUT)
    lane->allowed = 1;
  else if (err == TNK_OK)
    lane->allowed =
        lane->allowed > lane->max / 2 ? lane->max : lane->allowed * 2;
}

/* ---- Waiting for a connection ---- */

static tnk__exchange_t *exchange_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__exchange_t, link);
}

void tnk__queue_init(tnk__queue_t *queue) {
  tnk__list_init(&queue->fresh);
  for (int rank = 0; rank < TNK__N_RANKS; rank++)
    tnk__list_init(&queue->waiting[rank]);
  tnk__ceiling_init(&queue->ceiling);
  queue->n_each = 1;
}

tnk__rank_t tnk__queue_rank(const tnk__exchange_t *ex) {
  if (ex->lane == TNK__LANE_POLL)
    return TNK__RANK_POLL;
  return ex->lane == TNK__LANE_TRAIN_POLL ? TNK__RANK_TRAIN_POLL
                                          : TNK__RANK_SHORT;
}

static void count(tnk__queue_t *queue, tnk__exchange_t *ex) {
  ex->state = TNK__EXCHANGE_WAITING;
  tnk__list_remove(&ex->link);
  queue->n[tnk__queue_rank(ex)]++;
  queue->n_waiting++;
  queue->n_foreground += !ex->background;
}

void tnk__queue_join(tnk__queue_t *queue, tnk__exchange_t *ex,
                     int wants_fresh) {
  count(queue, ex);
  ex->place = ++queue->last_place;
  tnk__list_append(wants_fresh ? &queue->fresh
                               : &queue->waiting[tnk__queue_rank(ex)],
                   &ex->link);
}

void tnk__queue_return(tnk__queue_t *queue, tnk__exchange_t *ex) {
  count(queue, ex);
  tnk__list_prepend(&queue->waiting[tnk__queue_rank(ex)], &ex->link);
}

void tnk__queue_leave(tnk__queue_t *queue, tnk__exchange_t *ex) {
  tnk__list_remove(&ex->link);
  queue->n[tnk__queue_rank(ex)]--;
  queue->n_waiting--;
  queue->n_foreground -= !ex->background;
}

/* ---- Who may have a connection ---- */

/* Returns how many more polls of a rank may have a connection. */
static size_t n_allowed(const tnk__queue_t *queue, tnk__rank_t rank) {
  const size_t n_polls =
      queue->n_on[TNK__RANK_TRAIN_POLL] + queue->n_on[TNK__RANK_POLL];
  const int is_short_waiting = queue->n[TNK__RANK_SHORT] > 0;
  size_t n_places;
  size_t max;
  size_t left;

  if (!tnk__queue_is_limited(queue) || rank == TNK__RANK_SHORT)
    return SIZE_MAX;
  n_places = queue->ceiling.max * queue->n_each;
  max = tnk__ceiling_polls(n_places, is_short_waiting);
  left = max > n_polls ? max - n_polls : 0;
  if (rank == TNK__RANK_TRAIN_POLL)
    return left;
  max = tnk__ceiling_sample_polls(n_places, is_short_waiting);
  max = max > queue->n_on[rank] ? max - queue->n_on[rank] : 0;
  return left < max ? left : max;
}

/* The first exchange of all. If the ceiling is set, the first of the highest
 * priority that may have a connection. */
static tnk__list_t *first_of(const tnk__queue_t *queue, tnk__rank_t last,
                             int for_all) {
  tnk__list_t *found = NULL;

  for (int rank = 0; rank <= (int)last; rank++) {
    tnk__list_t *node = tnk__list_first(&queue->waiting[rank]);

    if (node == NULL || (!for_all && n_allowed(queue, (tnk__rank_t)rank) == 0))
      continue;
    if (tnk__queue_is_limited(queue))
      return node;
    if (found == NULL || exchange_at(node)->place < exchange_at(found)->place)
      found = node;
  }
  return found;
}

tnk__exchange_t *tnk__queue_pop(tnk__queue_t *queue, int is_new,
                                tnk__rank_t last) {
  tnk__list_t *node = NULL;

  /* While new connections are refused, a kept one must suffice. */
  if (is_new || tnk__queue_is_limited(queue))
    node = tnk__list_first(&queue->fresh);
  if (node == NULL)
    node = first_of(queue, last, 0);
  if (node == NULL)
    return NULL;
  tnk__queue_leave(queue, exchange_at(node));
  return exchange_at(node);
}

tnk__exchange_t *tnk__queue_pop_any(tnk__queue_t *queue) {
  tnk__list_t *node = tnk__list_first(&queue->fresh);

  if (node == NULL)
    node = first_of(queue, TNK__RANK_POLL, 1);
  if (node == NULL)
    return NULL;
  tnk__queue_leave(queue, exchange_at(node));
  return exchange_at(node);
}

size_t tnk__queue_n_ready(const tnk__queue_t *queue) {
  size_t n = 0;

  if (!tnk__queue_is_limited(queue))
    return queue->n_waiting;
  for (int rank = 0; rank < TNK__N_RANKS; rank++) {
    const size_t allowed = n_allowed(queue, (tnk__rank_t)rank);

    n += queue->n[rank] < allowed ? queue->n[rank] : allowed;
  }
  return n;
}

int tnk__queue_is_limited(const tnk__queue_t *queue) {
  return tnk__ceiling_is_set(&queue->ceiling);
}

uint64_t tnk__queue_look_ms(const tnk__queue_t *queue, uint64_t now_ms) {
  const uint64_t ms = tnk__ceiling_wait_ms(&queue->ceiling, now_ms);

  return ms > 0 && ms < TNK__WAITING_LOOK_MS ? ms : TNK__WAITING_LOOK_MS;
}

size_t tnk__queue_n_excess(const tnk__queue_t *queue) {
  const size_t n_wait =
      queue->n[TNK__RANK_SHORT] + queue->n[TNK__RANK_TRAIN_POLL];
  const size_t n_on = queue->n_on[TNK__RANK_POLL];
  size_t max;

  if (!tnk__queue_is_limited(queue) || n_wait == 0)
    return 0;
  max = tnk__ceiling_sample_polls(queue->ceiling.max * queue->n_each,
                                  queue->n[TNK__RANK_SHORT] > 0);
  if (n_on <= max)
    return 0;
  return n_on - max < n_wait ? n_on - max : n_wait;
}
