#include "lib/io/http/bound.h"

#include <sys/resource.h>

#include "lib/base/log.h"

/* Descriptors left to the rest of the program if the limit is low: an eighth of
 * them, but at least this many. */
enum { MIN_SPARE_DESCRIPTORS = 64 };

/* One eighth of all polls is reserved for polls other than sample polls, if the
 * descriptors do not suffice for all. */
enum { TRAIN_POLLS_PART = 8 };

static size_t limit_of_files(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= SIZE_MAX)
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

void tnk__bound_open(tnk__http_t *http) {
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

void tnk__bound_polls(tnk__http_t *http, int are_shared) {
  if (!are_shared)
    warn(http);
  if (are_shared == http->shares_polls)
    return;
  http->shares_polls = are_shared;
  set(&http->lanes[TNK__LANE_POLL], are_shared);
  set(&http->lanes[TNK__LANE_TRAIN_POLL], are_shared);
  tnk__defer(http->context, &http->due); /* slots may be free */
}
