/* SPDX-License-Identifier: MIT */
/* Rules about all answers of the run, checked at the end. */
#include "tools/conform/state.h"

static conform_verdict_t types(conform_t *c) {
  if (c->seen.n_wrong_types == 0)
    return conform_tell(c, CONFORM_HOLDS, "always");
  return conform_tell(c, CONFORM_DIFFERS,
                      "JSON with another type, %u times, first %s",
                      c->seen.n_wrong_types, c->seen.wrong_type);
}

static conform_verdict_t readable(conform_t *c) {
  if (c->seen.n_unreadable == 0)
    return conform_tell(c, CONFORM_HOLDS, "always");
  return conform_tell(c, CONFORM_DIFFERS, "%u cannot be parsed",
                      c->seen.n_unreadable);
}

static conform_verdict_t lengths(conform_t *c) {
  const conform_seen_t *s = &c->seen;

  if (s->n_lengths == s->n_answers)
    return conform_tell(c, CONFORM_HOLDS, "always");
  return conform_tell(c, CONFORM_ALLOWED, "%u of %u responses do not",
                      s->n_answers - s->n_lengths, s->n_answers);
}

static conform_verdict_t errors(conform_t *c) {
  if (c->seen.n_empty_errors == 0)
    return conform_tell(c, CONFORM_HOLDS, "always");
  return conform_tell(c, CONFORM_DIFFERS, "%u without a body, first %s",
                      c->seen.n_empty_errors, c->seen.empty_error);
}

static conform_verdict_t failures(conform_t *c) {
  if (c->seen.n_server_errors == 0)
    return conform_tell(c, CONFORM_HOLDS, "none");
  return conform_tell(c, CONFORM_ALLOWED, "%u, first %s",
                      c->seen.n_server_errors, c->seen.server_error);
}

static conform_verdict_t waits(conform_t *c) {
  const conform_seen_t *s = &c->seen;

  if (s->n_waits == 0)
    return conform_tell(c, CONFORM_SKIPPED, "no response asked to wait");
  if (s->n_waits_odd > 0)
    return conform_tell(c, CONFORM_DIFFERS,
                        "%u of %u cannot be parsed, or exceed a minute (%s)",
                        s->n_waits_odd, s->n_waits, s->wait_form);
  if (s->n_waits_told < s->n_waits)
    return conform_tell(c, CONFORM_ALLOWED, "%u of %u responses do not say",
                        s->n_waits - s->n_waits_told, s->n_waits);
  return conform_tell(c, CONFORM_HOLDS, "%s%s", s->wait_form,
                      s->n_waits_state > 0 ? ", and the queue state" : "");
}

static conform_verdict_t states(conform_t *c) {
  if (c->seen.n_states == 0)
    return conform_tell(c, CONFORM_SKIPPED, "no response had a queue state");
  if (c->seen.odd_state[0] != '\0')
    return conform_tell(c, CONFORM_DIFFERS, "\"%s\" is unknown",
                        c->seen.odd_state);
  return conform_tell(c, CONFORM_HOLDS, "all known");
}

static conform_verdict_t left(conform_t *c) {
  if (c->n_left == 0)
    return conform_tell(c, CONFORM_HOLDS, "nothing is left");
  return conform_tell(c, CONFORM_ALLOWED, "%zu could not be removed",
                      c->n_left);
}

#define RULE(id, title, section, judge)                                        \
  { id, title, section, CONFORM_FREE, NULL, NULL, judge, NULL }

static const conform_rule_t rules[] = {
    RULE("all-types", "JSON has the type application/json", "transport 2.1",
         types),
    RULE("all-readable", "JSON can be parsed", "transport 2.6", readable),
    RULE("all-lengths", "responses announce their length", "reference 14",
         lengths),
    RULE("all-errors", "errors have a body", "transport 2.4", errors),
    RULE("all-failures", "no response is a 5xx", "transport 2.3", failures),
    RULE("all-waits", "a request to wait says how long", "transport 2.3",
         waits),
    RULE("all-states", "clients know all queue states", "futures 8.5", states),
    RULE("all-removed", "created objects can be removed", "rest 9", left),
};

const conform_group_t conform_end = {"all responses", rules,
                                     sizeof(rules) / sizeof(*rules)};
