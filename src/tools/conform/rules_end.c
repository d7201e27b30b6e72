/* Rules about all answers of the run, checked at the end. */
#include "tools/conform/state.h"

static conform_verdict_t types(conform_t *c, const conform_rule_t *rule) {
  const conform_seen_t *s = &c->seen;

  (void)rule;
  if (s->n_wrong_types > 0)
    return conform_tell(c, CONFORM_DIFFERS,
                        "JSON called something else, %u times, first %s",
                        s->n_wrong_types, s->wrong_type);
  return conform_tell(c, CONFORM_HOLDS, "always");
}

static conform_verdict_t readable(conform_t *c, const conform_rule_t *rule) {
  (void)rule;
  if (c->seen.n_unreadable > 0)
    return conform_tell(c, CONFORM_DIFFERS, "%u cannot be read",
                        c->seen.n_unreadable);
  return conform_tell(c, CONFORM_HOLDS, "always");
}

static conform_verdict_t lengths(conform_t *c, const conform_rule_t *rule) {
  const conform_seen_t *s = &c->seen;

  (void)rule;
  if (s->n_lengths == s->n_answers)
    return conform_tell(c, CONFORM_HOLDS, "always");
  return conform_tell(c, CONFORM_ALLOWED, "%u of %u answers do not",
                      s->n_answers - s->n_lengths, s->n_answers);
}

static conform_verdict_t errors(conform_t *c, const conform_rule_t *rule) {
  const conform_seen_t *s = &c->seen;

  (void)rule;
  if (s->n_empty_errors > 0)
    return conform_tell(c, CONFORM_DIFFERS, "%u without, first %s",
                        s->n_empty_errors, s->empty_error);
  return conform_tell(c, CONFORM_HOLDS, "always");
}

static conform_verdict_t failures(conform_t *c, const conform_rule_t *rule) {
  const conform_seen_t *s = &c->seen;

  (void)rule;
  if (s->n_server_errors > 0)
    return conform_tell(c, CONFORM_ALLOWED, "%u, first %s", s->n_server_errors,
                        s->server_error);
  return conform_tell(c, CONFORM_HOLDS, "none");
}

static conform_verdict_t waits(conform_t *c, const conform_rule_t *rule) {
  const conform_seen_t *s = &c->seen;

  (void)rule;
  if (s->n_waits == 0)
    return conform_tell(c, CONFORM_SKIPPED, "nobody was told to wait");
  if (s->n_waits_odd > 0)
    return conform_tell(c, CONFORM_DIFFERS,
                        "%u of %u cannot be read, or are over a minute (%s)",
                        s->n_waits_odd, s->n_waits, s->wait_form);
  if (s->n_waits_told < s->n_waits)
    return conform_tell(c, CONFORM_ALLOWED, "%u of %u answers do not say",
                        s->n_waits - s->n_waits_told, s->n_waits);
  return conform_tell(c, CONFORM_HOLDS, "%s%s", s->wait_form,
                      s->n_waits_state > 0 ? ", and the queue's state" : "");
}

static conform_verdict_t states(conform_t *c, const conform_rule_t *rule) {
  const conform_seen_t *s = &c->seen;

  (void)rule;
  if (s->n_states == 0)
    return conform_tell(c, CONFORM_SKIPPED, "none was told");
  if (s->odd_state[0] != '\0')
    return conform_tell(c, CONFORM_DIFFERS, "\"%s\" is none", s->odd_state);
  return conform_tell(c, CONFORM_HOLDS, "they are");
}

static conform_verdict_t left(conform_t *c, const conform_rule_t *rule) {
  (void)rule;
  if (c->n_left == 0)
    return conform_tell(c, CONFORM_HOLDS, "nothing is left");
  return conform_tell(c, CONFORM_ALLOWED, "%zu could not be removed",
                      c->n_left);
}

static const conform_rule_t rules[] = {
    {"all-types", "JSON is called application/json", "transport 2.1",
     CONFORM_FREE, types, NULL},
    {"all-readable", "and can be read", "transport 2.6", CONFORM_FREE, readable,
     NULL},
    {"all-lengths", "answers tell their length", "reference 14", CONFORM_FREE,
     lengths, NULL},
    {"all-errors", "errors have words", "transport 2.4", CONFORM_FREE, errors,
     NULL},
    {"all-failures", "no answer is a 5xx", "transport 2.3", CONFORM_FREE,
     failures, NULL},
    {"all-waits", "who is told to wait learns how long", "transport 2.3",
     CONFORM_FREE, waits, NULL},
    {"all-states", "queue states are those that clients know", "futures 8.5",
     CONFORM_FREE, states, NULL},
    {"all-removed", "what was made can be removed", "rest 9", CONFORM_FREE,
     left, NULL},
};

const conform_group_t conform_end = {"all answers", rules,
                                     sizeof(rules) / sizeof(*rules)};
