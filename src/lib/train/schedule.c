/* SPDX-License-Identifier: MIT */
/* The learning rate of each step: a pure function of the step. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "lib/base/options.h"
#include "tnk/error.h"
#include "tnk/train.h"

#define PI 3.14159265358979323846

/* ---- Schedules ---- */

static int is_valid(const tnk_schedule_t *schedule) {
  return (unsigned)schedule->decay <= TNK_DECAY_COSINE &&
         isfinite(schedule->peak) && schedule->peak >= 0 &&
         (schedule->decay == TNK_DECAY_CONSTANT || schedule->n_steps > 0);
}

/* The rate of a valid schedule. */
static double rate(const tnk_schedule_t *schedule, uint64_t step) {
  const uint64_t warm_up = schedule->n_warm_up;
  double done = 1; /* share of the decay */

  if (step < warm_up)
    return schedule->peak * (double)(step + 1) / (double)warm_up;
  if (step < schedule->n_steps)
    done = (double)(step - warm_up) / (double)(schedule->n_steps - warm_up);
  switch (schedule->decay) {
  case TNK_DECAY_LINEAR:
    return schedule->peak * (1 - done);
  case TNK_DECAY_COSINE:
    return schedule->peak * 0.5 * (1 + cos(PI * done));
  case TNK_DECAY_CONSTANT:
  default:
    return schedule->peak;
  }
}

double tnk_schedule_rate(const tnk_schedule_t *schedule, uint64_t step) {
  tnk_schedule_t own = TNK_SCHEDULE_INIT;

  if (schedule == NULL ||
      TNK__LOAD(tnk_schedule_t, &own, schedule, NULL, 0) != TNK_OK ||
      !is_valid(&own))
    return NAN;
  return rate(&own, step);
}

/* ---- The default ---- */

/* Read digits with an optional fraction; independent of the locale. */
static const char *read_decimal(const char *at, double *out) {
  double unit = 1;

  *out = 0;
  for (; isdigit((unsigned char)*at); at++)
    *out = *out * 10 + (*at - '0');
  if (*at == '.' && isdigit((unsigned char)at[1]))
    for (at++; isdigit((unsigned char)*at); at++)
      *out += (*at - '0') * (unit /= 10);
  return at;
}

/* Billions of parameters: the first number before a "B" that is a word of the
 * name. 0: unknown. */
static double billions_of(const char *model) {
  const char *at = model;

  while (*at != '\0') {
    const int is_start =
        at == model || strchr("-_/ ", at[-1]) != NULL; /* of a word */
    double n;
    const char *end;

    if (!is_start || !isdigit((unsigned char)*at)) {
      at++;
      continue;
    }
    end = read_decimal(at, &n);
    if ((*end == 'B' || *end == 'b') && !isalnum((unsigned char)end[1]))
      return n;
    at = end;
  }
  return 0;
}

double tnk_default_rate(const char *model) {
  const double billions = model != NULL ? billions_of(model) : 0;

  /* The local server's model is tiny. */
  if (model != NULL && strcmp(model, "tnk/byte-lm") == 0)
    return 0.01;
  if (billions <= 0)
    return 1e-4;
  if (billions < 2)
    return 5e-4;
  if (billions < 16)
    return 3e-4;
  return billions < 100 ? 2e-4 : 1e-4;
}
