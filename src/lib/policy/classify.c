/* SPDX-License-Identifier: MIT */
#include "lib/policy/classify.h"

/*
 * The retry table. A column is an outcome, in the order of tnk__outcome_t; a
 * row is a kind of call. A cell is the action:
 *
 *   S succeed       R retry: the same bytes, number and key, after a delay
 *   F fail          P poll again, at the pace of poll.h
 *   N submit anew   B wait for the shared limiter, then send the same
 *   Z pause: no credit; billing.h says for how long
 *   C conflict on a sequence number: conflict() makes R, F or H of it
 *   H heal: take the number that the server expects (in no cell)
 */

/* Compiles only if there is one letter per outcome. */
#define ROW(letters)                                                           \
  &letters[0 * sizeof(char[sizeof(letters) - 1 == TNK__N_OUTCOMES ? 1 : -1])]
static const char *const actions[TNK__N_CALLS] = {
    /*       3 400 402 404 408 410 422 429 5 ? untrusted   truncated
     *      2 400e 401 403 405 409 413 425 4  unsent refused malformed
     *                                               lost timeout too big */
    [TNK__CALL_QUERY] = ROW("SFFRFFFFFRRFFFFRFRFRFFRRRFF"),
    [TNK__CALL_CREATE_SESSION] = ROW("SFFRFFFFFRRFFFFRFRFRFFRRRFF"),
    [TNK__CALL_CREATE] = ROW("SFFRFFFFFRRFFFFRFRFRFFRRRFF"),
    [TNK__CALL_TRAIN] = ROW("SFFRFZFFFRCFFFFRFRFRFFRRRRF"),
    [TNK__CALL_SAVE] = ROW("SFFRFZFFFRCFFFFRFRFRFFRRRRF"),
    [TNK__CALL_SAMPLE] = ROW("SFFRFZFFFRRFFFFBFRFRFFRRRRF"),
    [TNK__CALL_POLL] = ROW("SFPPFZFPFPFFFFFPFPFPFPPPPFF"),
    [TNK__CALL_POLL_SAMPLE] = ROW("SFPPFZFPFPFNFFFPFPFPFPPPPFF"),
    [TNK__CALL_HEARTBEAT] = ROW("SFFFFFFFFFFFFFFFFFFFFFFFFFF"),
    [TNK__CALL_CANCEL] = ROW("SFFRFFFFFRRFFFFRFRFRFFRRRFF"),
    [TNK__CALL_FINISH] = ROW("SFFRFFFSSRRFFFFRFRFRFFRRRFF"),
    [TNK__CALL_CHANGE] = ROW("SFFRFFFFFRRFFFFRFRFRFFRRRFF"),
    [TNK__CALL_PUBLISH] = ROW("SFFRFFFFFRSFFFFRFRFRFFRRSRS"),
    [TNK__CALL_DELETE] = ROW("SFFRFFFFFRRFFFFRFRFRFFRRSRS"),
};

/* The evidence of a response about earlier attempts whose responses were
 * lost. */
typedef enum {
  TELLS_NOTHING = 0,
  /* A server that recognizes a repeat by its number would have sent the
   * response of the first attempt. Another server may refuse a repeat because
   * of the change that the first attempt made. */
  TELLS_LIKELY,
  /* The same bytes were refused for their form, or were accepted. */
  TELLS_SURELY
} tells_t;

/* The meaning of each outcome without regard to the kind of call. */
static const struct {
  int err;
  tnk__effect_t effect;
  tells_t tells;
} outcomes[TNK__N_OUTCOMES] = {
    [TNK__OUTCOME_2XX] = {TNK_OK, TNK__EFFECT_ACCEPTED, TELLS_SURELY},
    [TNK__OUTCOME_3XX] = {TNK_EREQUEST, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_400] = {TNK_EREQUEST, TNK__EFFECT_NONE, TELLS_LIKELY},
    [TNK__OUTCOME_400_EMPTY] = {TNK_EREQUEST, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_401] = {TNK_EAUTH, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_402] = {TNK_EBILLING, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_403] = {TNK_EAUTH, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_404] = {TNK_ENOTFOUND, TNK__EFFECT_NONE, TELLS_LIKELY},
    [TNK__OUTCOME_405] = {TNK_EUNSUPPORTED, TNK__EFFECT_NONE, TELLS_SURELY},
    [TNK__OUTCOME_408] = {TNK_ESERVER, TNK__EFFECT_UNKNOWN, TELLS_NOTHING},
    [TNK__OUTCOME_409] = {TNK_ECONFLICT, TNK__EFFECT_UNKNOWN, TELLS_NOTHING},
    [TNK__OUTCOME_410] = {TNK_EEXPIRED, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_413] = {TNK_EREQUEST, TNK__EFFECT_NONE, TELLS_SURELY},
    [TNK__OUTCOME_422] = {TNK_EREQUEST, TNK__EFFECT_NONE, TELLS_SURELY},
    [TNK__OUTCOME_425] = {TNK_EREQUEST, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_429] = {TNK_ERATE, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_4XX] = {TNK_EREQUEST, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_5XX] = {TNK_ESERVER, TNK__EFFECT_UNKNOWN, TELLS_NOTHING},
    [TNK__OUTCOME_STRANGE] = {TNK_EPROTO, TNK__EFFECT_UNKNOWN, TELLS_NOTHING},
    [TNK__OUTCOME_UNSENT] = {TNK_ECONN, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_UNTRUSTED] = {TNK_ECERT, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_REFUSED] = {TNK_EPROXY, TNK__EFFECT_NONE, TELLS_NOTHING},
    [TNK__OUTCOME_LOST] = {TNK_ECONN, TNK__EFFECT_UNKNOWN, TELLS_NOTHING},
    [TNK__OUTCOME_TIMEOUT] = {TNK_ETIMEDOUT, TNK__EFFECT_UNKNOWN,
                              TELLS_NOTHING},
    [TNK__OUTCOME_TRUNCATED] = {TNK_ECONN, TNK__EFFECT_ACCEPTED, TELLS_SURELY},
    [TNK__OUTCOME_MALFORMED] = {TNK_EPROTO, TNK__EFFECT_ACCEPTED, TELLS_SURELY},
    [TNK__OUTCOME_TOO_BIG] = {TNK_ETOOBIG, TNK__EFFECT_ACCEPTED, TELLS_SURELY},
};

/* Schedules of R. Calls whose loss costs the most are retried the longest. */
static const tnk__schedule_t schedules[TNK__N_CALLS] = {
    [TNK__CALL_QUERY] = TNK__SCHEDULE_REQUEST,
    [TNK__CALL_CREATE_SESSION] = TNK__SCHEDULE_REQUEST,
    [TNK__CALL_CREATE] = TNK__SCHEDULE_REQUEST,
    [TNK__CALL_TRAIN] = TNK__SCHEDULE_LONG,
    [TNK__CALL_SAVE] = TNK__SCHEDULE_LONG,
    [TNK__CALL_SAMPLE] = TNK__SCHEDULE_LONG,
    [TNK__CALL_CANCEL] = TNK__SCHEDULE_REQUEST,
    [TNK__CALL_FINISH] = TNK__SCHEDULE_REQUEST,
    [TNK__CALL_CHANGE] = TNK__SCHEDULE_REQUEST,
    [TNK__CALL_PUBLISH] = TNK__SCHEDULE_REQUEST,
    [TNK__CALL_DELETE] = TNK__SCHEDULE_REQUEST,
};

tnk__outcome_t tnk__outcome_of_status(int status, size_t n_body) {
  static const struct {
    int status;
    tnk__outcome_t outcome;
  } known[] = {
      {401, TNK__OUTCOME_401}, {402, TNK__OUTCOME_402}, {403, TNK__OUTCOME_403},
      {404, TNK__OUTCOME_404}, {405, TNK__OUTCOME_405}, {408, TNK__OUTCOME_408},
      {409, TNK__OUTCOME_409}, {410, TNK__OUTCOME_410}, {413, TNK__OUTCOME_413},
      {422, TNK__OUTCOME_422}, {425, TNK__OUTCOME_425}, {429, TNK__OUTCOME_429},
  };

  if (status == 400)
    return n_body > 0 ? TNK__OUTCOME_400 : TNK__OUTCOME_400_EMPTY;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (known[i].status == status)
      return known[i].outcome;
  }
  switch (status / 100) {
  case 2:
    return TNK__OUTCOME_2XX;
  case 3:
    return TNK__OUTCOME_3XX;
  case 4:
    return TNK__OUTCOME_4XX;
  case 5:
    return TNK__OUTCOME_5XX;
  default:
    return TNK__OUTCOME_STRANGE;
  }
}

static int is_poll(tnk__call_kind_t call) {
  return call == TNK__CALL_POLL || call == TNK__CALL_POLL_SAMPLE;
}

tnk__outcome_t tnk__outcome_of_cut(tnk__call_kind_t call, int status) {
  tnk__outcome_t outcome = tnk__outcome_of_status(status, 1);

  if (outcome == TNK__OUTCOME_2XX)
    return TNK__OUTCOME_TRUNCATED;
  /* The conflict may be about the name or about the number. */
  if (call == TNK__CALL_SAVE && outcome == TNK__OUTCOME_409)
    return TNK__OUTCOME_LOST;
  if (!is_poll(call))
    return outcome;
  switch (outcome) {
  case TNK__OUTCOME_402:
  case TNK__OUTCOME_408:
  case TNK__OUTCOME_429:
  case TNK__OUTCOME_5XX:
    return outcome; /* polled again in any case, at its own pace */
  default:
    return TNK__OUTCOME_TRUNCATED;
  }
}

int tnk__outcome_is_refusal(tnk__outcome_t outcome) {
  return outcome > TNK__OUTCOME_2XX && outcome < TNK__OUTCOME_UNSENT;
}

/* Returns whether the end of the session explains a refusal. It does not for
 * calls that need no session, nor for polls that report a failed operation. */
static int is_lost_session(const tnk__attempt_t *attempt) {
  if (!attempt->session_ended ||
      (attempt->call == TNK__CALL_QUERY && !attempt->in_session) ||
      attempt->call == TNK__CALL_CREATE_SESSION ||
      attempt->call >= TNK__CALL_CHANGE)
    return 0;
  switch (attempt->outcome) {
  case TNK__OUTCOME_404:
  case TNK__OUTCOME_410:
    return 1;
  case TNK__OUTCOME_400:
  case TNK__OUTCOME_409:
  case TNK__OUTCOME_422:
    return !is_poll(attempt->call);
  default:
    return 0;
  }
}

/* The error code where it depends on the kind of call. */
static int code_of(const tnk__attempt_t *attempt) {
  tnk__outcome_t outcome = attempt->outcome;

  /* Some servers report a failed operation with an error status. */
  if (is_poll(attempt->call) &&
      (outcome == TNK__OUTCOME_400 || outcome == TNK__OUTCOME_422))
    return TNK_EFAILED;
  if (is_lost_session(attempt))
    return TNK_ESESSION;
  if (attempt->optional && outcome == TNK__OUTCOME_404)
    return TNK_EUNSUPPORTED;
  if (attempt->call == TNK__CALL_HEARTBEAT && outcome == TNK__OUTCOME_410)
    return TNK_ESESSION;
  /* The 410 is about an object of the service, not about a result. */
  if (outcome == TNK__OUTCOME_410 &&
      (attempt->call == TNK__CALL_QUERY || attempt->call >= TNK__CALL_CHANGE))
    return TNK_ENOTFOUND;
  return outcomes[outcome].err;
}

static tnk__effect_t effect_of(const tnk__attempt_t *attempt) {
  if (attempt->was_accepted)
    return TNK__EFFECT_ACCEPTED;
  /* A refusal for another reason does not show that an earlier attempt was not
   * executed. */
  if (attempt->was_unknown && outcomes[attempt->outcome].tells == TELLS_NOTHING)
    return TNK__EFFECT_UNKNOWN;
  return outcomes[attempt->outcome].effect;
}

/*
 * A 409 about a number. If the server expects a lower number, it does not have
 * ours, and may have our request under the number it expects. If it expects a
 * higher one, ours is taken: by an earlier attempt that it may have received,
 * else by another program. If it names none, the conflict may be temporary,
 * except for saves.
 */
static char conflict(const tnk__attempt_t *attempt, tnk__effect_t *effect) {
  int is_ours = attempt->was_unknown || attempt->was_accepted ||
                (attempt->was_replayed && attempt->conflict > 0);

  if (attempt->conflict < 0 && !attempt->was_accepted) {
    *effect = TNK__EFFECT_NONE;
    return 'H';
  }
  if (attempt->conflict == 0 && attempt->call != TNK__CALL_SAVE) {
    if (!attempt->doubts_number || is_ours)
      return 'R';
    *effect = TNK__EFFECT_NONE;
    return 'F';
  }
  *effect = is_ours ? TNK__EFFECT_ACCEPTED : TNK__EFFECT_NONE;
  return is_ours ? 'F' : 'H';
}

/*
 * A 409 of a save that names no number means that the name exists. Either an
 * earlier attempt created it, and the server has the number. Or the name is
 * older, and the server may not have the number. The response does not show
 * which. So the number is given back. A server without the number would wait
 * for it forever. A server with it refuses it next time, and then it is
 * skipped.
 */
static int is_name_taken(const tnk__attempt_t *attempt) {
  return attempt->call == TNK__CALL_SAVE &&
         attempt->outcome == TNK__OUTCOME_409 && attempt->conflict == 0 &&
         !attempt->is_taken;
}

/* Other bytes have the number. If the server had received ours before, it would
 * have recognized them. */
static int is_number_taken(const tnk__attempt_t *attempt) {
  return attempt->is_taken && !attempt->was_accepted &&
         (attempt->call == TNK__CALL_TRAIN || attempt->call == TNK__CALL_SAVE ||
          attempt->call == TNK__CALL_SAMPLE);
}

/* The object to be deleted does not exist, and an earlier attempt may have
 * deleted it. */
static int is_gone(const tnk__attempt_t *attempt) {
  return attempt->call == TNK__CALL_DELETE &&
         attempt->outcome == TNK__OUTCOME_404 &&
         (attempt->was_unknown || attempt->was_replayed ||
          attempt->was_accepted);
}

/* x-should-retry takes precedence over the status. The category "user" takes
 * precedence over a 5xx. Polls have their own rules. */
static char apply_header(const tnk__attempt_t *attempt, char action,
                         tnk__effect_t *effect) {
  if (!tnk__outcome_is_refusal(attempt->outcome) || is_poll(attempt->call) ||
      attempt->call == TNK__CALL_HEARTBEAT)
    return action;
  if (attempt->should_retry == TNK__SHOULD_RETRY_YES)
    return action == 'F' ? 'R' : action;
  if (attempt->outcome == TNK__OUTCOME_5XX &&
      attempt->category == TNK_CATEGORY_USER) {
    if (!attempt->was_accepted)
      *effect = TNK__EFFECT_NONE;
    return 'F';
  }
  if (attempt->should_retry == TNK__SHOULD_RETRY_NO &&
      (action == 'R' || action == 'B' || action == 'Z'))
    return 'F';
  return action;
}

/* Returns whether a request ends with a number that is only probably free. */
static int is_in_doubt(const tnk__attempt_t *attempt) {
  return attempt->was_unknown && !attempt->was_accepted &&
         outcomes[attempt->outcome].tells == TELLS_LIKELY;
}

/* An unknown letter is a mistake in this file. */
static tnk__action_t action_of(char letter, int *err) {
  switch (letter) {
  case 'S':
    return TNK__ACTION_SUCCEED;
  case 'R':
    return TNK__ACTION_RETRY;
  case 'P':
    return TNK__ACTION_REPOLL;
  case 'B':
    return TNK__ACTION_BACK_OFF;
  case 'Z':
    return TNK__ACTION_PAUSE;
  case 'N':
    return TNK__ACTION_RESUBMIT;
  case 'H':
    return TNK__ACTION_HEAL;
  case 'F':
    return TNK__ACTION_FAIL;
  default:
    *err = TNK_EINTERNAL;
    return TNK__ACTION_FAIL;
  }
}

/* The request may have been run even if its number is probably free. The result
 * must say so. */
static tnk_ran_t ran_of(const tnk__attempt_t *attempt,
                        const tnk__verdict_t *verdict) {
  if (attempt->outcome == TNK__OUTCOME_MALFORMED && !attempt->was_accepted)
    return TNK_RAN_UNKNOWN; /* a proxy may have sent the response */
  switch (verdict->effect) {
  case TNK__EFFECT_ACCEPTED:
    return TNK_RAN_YES;
  case TNK__EFFECT_NONE:
    break;
  default:
    return TNK_RAN_UNKNOWN;
  }
  if (verdict->in_doubt)
    return TNK_RAN_UNKNOWN;
  return attempt->was_replayed && verdict->action != TNK__ACTION_HEAL &&
                 outcomes[attempt->outcome].tells != TELLS_SURELY
             ? TNK_RAN_UNKNOWN
             : TNK_RAN_NO;
}

tnk__verdict_t tnk__classify(const tnk__attempt_t *attempt) {
  char letter = actions[attempt->call][attempt->outcome];
  tnk__effect_t effect = effect_of(attempt);
  tnk__verdict_t verdict = {0};

  verdict.in_doubt = is_in_doubt(attempt);
  if (is_number_taken(attempt)) {
    verdict.in_doubt = 0;
    letter = attempt->call == TNK__CALL_SAMPLE ? 'N' : 'H';
    effect = TNK__EFFECT_NONE;
  } else if (is_name_taken(attempt)) {
    letter = 'F';
    effect = attempt->was_accepted ? TNK__EFFECT_ACCEPTED : TNK__EFFECT_NONE;
    verdict.in_doubt = !attempt->was_accepted &&
                       (attempt->was_unknown || attempt->was_replayed);
  } else if (letter == 'C') {
    letter = conflict(attempt, &effect);
  } else if (is_gone(attempt)) {
    letter = 'S';
  }
  letter = apply_header(attempt, letter, &effect);
  if ((letter == 'N' || letter == 'P') && is_lost_session(attempt))
    letter = 'F'; /* a repeat would end the same way */
  verdict.err = letter == 'S' ? TNK_OK : code_of(attempt);
  verdict.action = action_of(letter, &verdict.err);
  if (verdict.action == TNK__ACTION_RETRY)
    verdict.schedule = schedules[attempt->call];
  verdict.effect = effect;
  verdict.ran = ran_of(attempt, &verdict);
  verdict.counts = letter == 'R' || letter == 'N' || letter == 'H';
  verdict.backs_off = attempt->call == TNK__CALL_SAMPLE &&
                      (attempt->outcome == TNK__OUTCOME_429 ||
                       attempt->outcome == TNK__OUTCOME_402);
  return verdict;
}

int tnk__sample_may_resubmit(int err) {
  return err == TNK_ETIMEDOUT || err == TNK_ECONN || err == TNK_EDNS ||
         err == TNK_ETLS || err == TNK_EEXPIRED || err == TNK_ERATE ||
         err == TNK_ECONFLICT || err == TNK_ESERVER;
}
