/* SPDX-License-Identifier: MIT */
#include "lib/policy/classify.h"

#include <string.h>

#include "support/test.h"

/*
 * The table again, the other way round and from the text of the protocol: a
 * row is a status, a column is a kind of call. Letters as in classify.c, but
 * R is a retry on the request's schedule and L one on the long schedule.
 *
 *   q query, s create session, c create, t train, w save, a sample,
 *   p poll, P poll of a sample, h heartbeat, x cancel, f finish,
 *   g change, b publish, d delete
 */
static const char calls[] = "qsctwapPhxfgbd";

static const struct {
  int status;
  const char *letters;
} statuses[] = {
    /*     qsctwapPhxfgbd */
    {200, "SSSSSSSSSSSSSS"}, {201, "SSSSSSSSSSSSSS"}, {204, "SSSSSSSSSSSSSS"},
    {299, "SSSSSSSSSSSSSS"}, {301, "FFFFFFFFFFFFFF"}, {307, "FFFFFFFFFFFFFF"},
    {400, "FFFFFFPPFFFFFF"}, {401, "FFFFFFFFFFFFFF"}, {402, "FFFZZZZZFFFFFF"},
    {403, "FFFFFFFFFFFFFF"}, {404, "FFFFFFPPFFSFFF"}, {405, "FFFFFFFFFFSFFF"},
    {406, "FFFFFFFFFFFFFF"}, {408, "RRRLLLPPFRRRRR"}, {409, "RRRLFLFFFRRRSR"},
    {410, "FFFFFFFNFFFFFF"}, {413, "FFFFFFFFFFFFFF"}, {418, "FFFFFFFFFFFFFF"},
    {422, "FFFFFFFFFFFFFF"}, {425, "FFFFFFFFFFFFFF"}, {429, "RRRLLBPPFRRRRR"},
    {500, "RRRLLLPPFRRRRR"}, {502, "RRRLLLPPFRRRRR"}, {503, "RRRLLLPPFRRRRR"},
    {529, "RRRLLLPPFRRRRR"}, {599, "RRRLLLPPFRRRRR"}, {600, "FFFFFFFFFFFFFF"},
    {999, "FFFFFFFFFFFFFF"}, {199, "FFFFFFFFFFFFFF"}, {0, "FFFFFFFFFFFFFF"},
};

static const struct {
  tnk__outcome_t outcome;
  const char *letters;
} failures[] = {
    /*                      qsctwapPhxfgbd */
    {TNK__OUTCOME_400_EMPTY, "RRRLLLPPFRRRRR"},
    {TNK__OUTCOME_UNSENT, "RRRLLLPPFRRRRR"},
    {TNK__OUTCOME_UNTRUSTED, "FFFFFFFFFFFFFF"},
    {TNK__OUTCOME_REFUSED, "FFFFFFPPFFFFFF"},
    {TNK__OUTCOME_LOST, "RRRLLLPPFRRRRR"},
    {TNK__OUTCOME_TIMEOUT, "RRRLLLPPFRRRRR"},
    {TNK__OUTCOME_TRUNCATED, "RRRLLLPPFRRRSS"},
    {TNK__OUTCOME_MALFORMED, "FFFLLLFFFFFFRR"},
    {TNK__OUTCOME_TOO_BIG, "FFFFFFFFFFFFSS"},
};

static char letter_of(const tnk__verdict_t *verdict) {
  switch (verdict->action) {
  case TNK__ACTION_SUCCEED:
    return 'S';
  case TNK__ACTION_FAIL:
    return 'F';
  case TNK__ACTION_RETRY:
    return verdict->schedule == TNK__SCHEDULE_LONG ? 'L' : 'R';
  case TNK__ACTION_REPOLL:
    return 'P';
  case TNK__ACTION_BACK_OFF:
    return 'B';
  case TNK__ACTION_PAUSE:
    return 'Z';
  case TNK__ACTION_RESUBMIT:
    return 'N';
  case TNK__ACTION_HEAL:
    return 'H';
  }
  return '?';
}

static tnk__attempt_t attempt_of(tnk__call_kind_t call,
                                 tnk__outcome_t outcome) {
  tnk__attempt_t attempt;

  memset(&attempt, 0, sizeof(attempt));
  attempt.call = call;
  attempt.outcome = outcome;
  return attempt;
}

static tnk__verdict_t judge(tnk__call_kind_t call, tnk__outcome_t outcome) {
  tnk__attempt_t attempt = attempt_of(call, outcome);

  return tnk__classify(&attempt);
}

static void check_letter(const char *what, int value, int call, char actual,
                         char expected) {
  if (actual != expected)
    test_fail(__FILE__, __LINE__, "%s %d, call %c: %c, expected %c", what,
              value, calls[call], actual, expected);
}

TEST(S3_2a_every_status_for_every_call) {
  for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
    tnk__outcome_t outcome = tnk__outcome_of_status(statuses[i].status, 1);

    for (int call = 0; call < TNK__N_CALLS; call++) {
      tnk__verdict_t verdict = judge((tnk__call_kind_t)call, outcome);

      check_letter("status", statuses[i].status, call, letter_of(&verdict),
                   statuses[i].letters[call]);
    }
  }
}

TEST(S3_2a_every_failure_for_every_call) {
  for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
    for (int call = 0; call < TNK__N_CALLS; call++) {
      tnk__verdict_t verdict =
          judge((tnk__call_kind_t)call, failures[i].outcome);

      check_letter("outcome", (int)failures[i].outcome, call,
                   letter_of(&verdict), failures[i].letters[call]);
    }
  }
}

/* All statuses x category x header x kind of call: the header wins, except
 * for polls and heartbeats; a 5xx that is the user's fault is final. */
TEST(S3_2a_the_header_and_the_category_decide_over_the_status) {
  for (int status = 100; status <= 599; status++) {
    tnk__outcome_t outcome = tnk__outcome_of_status(status, 5);

    for (int n = 0; n < TNK__N_CALLS * 9; n++) {
      tnk__attempt_t attempt = attempt_of((tnk__call_kind_t)(n / 9), outcome);
      char plain, got;
      tnk__verdict_t verdict = tnk__classify(&attempt);
      int own_rules = strchr("pPh", calls[n / 9]) != NULL;

      plain = letter_of(&verdict);
      attempt.category = (tnk_category_t)(n % 3);
      attempt.should_retry = (tnk__should_retry_t)(n / 3 % 3);
      verdict = tnk__classify(&attempt);
      got = letter_of(&verdict);
      if (own_rules || status / 100 == 2)
        check_letter("own rules", status, n / 9, got, plain);
      else if (attempt.should_retry == TNK__SHOULD_RETRY_YES && plain == 'F')
        CHECK_INT(verdict.action, TNK__ACTION_RETRY);
      else if (attempt.should_retry == TNK__SHOULD_RETRY_YES)
        check_letter("yes", status, n / 9, got, plain);
      else if (status >= 500 && attempt.category == TNK_CATEGORY_USER)
        check_letter("user", status, n / 9, got, 'F');
      else if (attempt.should_retry == TNK__SHOULD_RETRY_NO)
        check_letter("no", status, n / 9, got, plain == 'S' ? 'S' : 'F');
      else
        check_letter("unsaid", status, n / 9, got, plain);
    }
  }
}

TEST(S3_2a_every_retry_has_a_schedule_and_an_error) {
  for (int call = 0; call < TNK__N_CALLS; call++) {
    for (int outcome = 0; outcome < TNK__N_OUTCOMES; outcome++) {
      tnk__verdict_t verdict =
          judge((tnk__call_kind_t)call, (tnk__outcome_t)outcome);
      int is_retry = verdict.action == TNK__ACTION_RETRY;

      CHECK((verdict.schedule != TNK__SCHEDULE_NONE) == is_retry);
      CHECK((verdict.err == TNK_OK) == (verdict.action == TNK__ACTION_SUCCEED));
      CHECK(!is_retry || verdict.counts);
      CHECK(verdict.action != TNK__ACTION_PAUSE || !verdict.counts);
      CHECK(verdict.action != TNK__ACTION_BACK_OFF || !verdict.counts);
    }
  }
}

TEST(S3_2a_codes_of_the_errors) {
  static const struct {
    int status;
    int err;
  } rows[] = {
      {302, TNK_EREQUEST},     {400, TNK_EREQUEST}, {401, TNK_EAUTH},
      {402, TNK_EBILLING},     {403, TNK_EAUTH},    {404, TNK_ENOTFOUND},
      {405, TNK_EUNSUPPORTED}, {408, TNK_ESERVER},  {409, TNK_ECONFLICT},
      {410, TNK_EEXPIRED},     {413, TNK_EREQUEST}, {418, TNK_EREQUEST},
      {422, TNK_EREQUEST},     {429, TNK_ERATE},    {500, TNK_ESERVER},
      {503, TNK_ESERVER},      {777, TNK_EPROTO},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__outcome_t outcome = tnk__outcome_of_status(rows[i].status, 1);

    CHECK_INT(judge(TNK__CALL_TRAIN, outcome).err, rows[i].err);
  }
  CHECK_INT(judge(TNK__CALL_TRAIN, TNK__OUTCOME_UNTRUSTED).err, TNK_ECERT);
  CHECK_INT(judge(TNK__CALL_TRAIN, TNK__OUTCOME_TIMEOUT).err, TNK_ETIMEDOUT);
  CHECK_INT(judge(TNK__CALL_TRAIN, TNK__OUTCOME_MALFORMED).err, TNK_EPROTO);
  CHECK_INT(judge(TNK__CALL_TRAIN, TNK__OUTCOME_TOO_BIG).err, TNK_ETOOBIG);
}

TEST(S3_2a_codes_that_depend_on_the_call) {
  tnk__attempt_t attempt = attempt_of(TNK__CALL_QUERY, TNK__OUTCOME_404);

  attempt.optional = 1;
  CHECK_INT(tnk__classify(&attempt).err, TNK_EUNSUPPORTED);
  CHECK_INT(judge(TNK__CALL_POLL, TNK__OUTCOME_400).err, TNK_EFAILED);
  CHECK_INT(judge(TNK__CALL_POLL, TNK__OUTCOME_422).err, TNK_EFAILED);
  CHECK_INT(judge(TNK__CALL_POLL, TNK__OUTCOME_404).err, TNK_ENOTFOUND);
  CHECK_INT(judge(TNK__CALL_POLL, TNK__OUTCOME_410).err, TNK_EEXPIRED);
  CHECK_INT(judge(TNK__CALL_HEARTBEAT, TNK__OUTCOME_410).err, TNK_ESESSION);
  CHECK_INT(judge(TNK__CALL_QUERY, TNK__OUTCOME_410).err, TNK_ENOTFOUND);
  CHECK_INT(judge(TNK__CALL_CHANGE, TNK__OUTCOME_410).err, TNK_ENOTFOUND);
  CHECK_INT(judge(TNK__CALL_PUBLISH, TNK__OUTCOME_410).err, TNK_ENOTFOUND);
  CHECK_INT(judge(TNK__CALL_DELETE, TNK__OUTCOME_410).err, TNK_ENOTFOUND);
}

/* ---- What became of the request ---- */

TEST(S4_14_effect_of_a_first_attempt) {
  static const char effects[] = "ANNNNNNNNUUNNNNNNUUNNNUUAAA";

  CHECK_INT(strlen(effects), TNK__N_OUTCOMES);
  for (int outcome = 0; outcome < TNK__N_OUTCOMES; outcome++) {
    tnk__attempt_t attempt =
        attempt_of(TNK__CALL_TRAIN, (tnk__outcome_t)outcome);

    check_letter("effect", outcome, 3, "NAU"[tnk__classify(&attempt).effect],
                 effects[outcome]);
  }
}

/* After an attempt of unknown fate only what judges the bytes themselves, or
 * accepts them, tells of both. */
TEST(S4_14_effect_after_an_unknown_attempt) {
  static const char effects[] = "AUNUUUUNNUUUNNUUUUUUUUUUAAA";

  CHECK_INT(strlen(effects), TNK__N_OUTCOMES);
  for (int outcome = 0; outcome < TNK__N_OUTCOMES; outcome++) {
    tnk__attempt_t attempt =
        attempt_of(TNK__CALL_TRAIN, (tnk__outcome_t)outcome);

    attempt.was_unknown = 1;
    check_letter("effect", outcome, 3, "NAU"[tnk__classify(&attempt).effect],
                 effects[outcome]);
  }
}

TEST(S4_14_nothing_undoes_an_acceptance) {
  for (int outcome = 0; outcome < TNK__N_OUTCOMES; outcome++) {
    for (int n = 0; n < 18; n++) {
      tnk__attempt_t attempt = attempt_of(
          n % 2 ? TNK__CALL_SAVE : TNK__CALL_TRAIN, (tnk__outcome_t)outcome);

      attempt.was_accepted = 1;
      attempt.conflict = n / 2 % 3 - 1;
      attempt.category = (tnk_category_t)(n / 6);
      CHECK_INT(tnk__classify(&attempt).effect, TNK__EFFECT_ACCEPTED);
      CHECK(tnk__classify(&attempt).action != TNK__ACTION_HEAL);
    }
  }
}

TEST(S4_14_conflicts_on_a_number) {
  static const struct {
    tnk__call_kind_t call;
    int conflict;
    int was_unknown;
    int was_replayed;
    tnk__action_t action;
    tnk__effect_t effect;
  } rows[] = {
      /* it waits for a lower number: ours is free, all is known */
      {TNK__CALL_TRAIN, -1, 0, 0, TNK__ACTION_HEAL, TNK__EFFECT_NONE},
      {TNK__CALL_TRAIN, -1, 1, 0, TNK__ACTION_HEAL, TNK__EFFECT_NONE},
      {TNK__CALL_TRAIN, -1, 0, 1, TNK__ACTION_HEAL, TNK__EFFECT_NONE},
      {TNK__CALL_SAVE, -1, 0, 0, TNK__ACTION_HEAL, TNK__EFFECT_NONE},
      /* ours is used: by ourselves, or by somebody else */
      {TNK__CALL_TRAIN, 1, 1, 0, TNK__ACTION_FAIL, TNK__EFFECT_ACCEPTED},
      {TNK__CALL_TRAIN, 1, 0, 1, TNK__ACTION_FAIL, TNK__EFFECT_ACCEPTED},
      {TNK__CALL_SAVE, 1, 0, 1, TNK__ACTION_FAIL, TNK__EFFECT_ACCEPTED},
      {TNK__CALL_TRAIN, 1, 0, 0, TNK__ACTION_HEAL, TNK__EFFECT_NONE},
      /* a number was not named */
      {TNK__CALL_TRAIN, 0, 0, 0, TNK__ACTION_RETRY, TNK__EFFECT_UNKNOWN},
      {TNK__CALL_TRAIN, 0, 0, 1, TNK__ACTION_RETRY, TNK__EFFECT_UNKNOWN},
      {TNK__CALL_SAVE, 0, 0, 0, TNK__ACTION_FAIL, TNK__EFFECT_NONE},
      {TNK__CALL_SAVE, 0, 1, 0, TNK__ACTION_FAIL, TNK__EFFECT_NONE},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__attempt_t attempt = attempt_of(rows[i].call, TNK__OUTCOME_409);
    tnk__verdict_t verdict;

    attempt.conflict = rows[i].conflict;
    attempt.was_unknown = rows[i].was_unknown;
    attempt.was_replayed = rows[i].was_replayed;
    verdict = tnk__classify(&attempt);
    CHECK_INT(verdict.action, rows[i].action);
    CHECK_INT(verdict.effect, rows[i].effect);
    CHECK_INT(verdict.err, TNK_ECONFLICT);
  }
}

/* Nobody can tell whose the name is: the number is given back in doubt. */
TEST(S4_14_a_name_that_exists_after_an_unknown_attempt) {
  tnk__attempt_t attempt = attempt_of(TNK__CALL_SAVE, TNK__OUTCOME_409);

  CHECK(!tnk__classify(&attempt).in_doubt);
  attempt.was_unknown = 1;
  CHECK(tnk__classify(&attempt).in_doubt);
  attempt.conflict = -1;
  CHECK(!tnk__classify(&attempt).in_doubt);
  attempt.conflict = 0;
  attempt.was_accepted = 1;
  CHECK(!tnk__classify(&attempt).in_doubt);
}

TEST(S4_14_a_number_that_belongs_to_other_bytes) {
  static const tnk__outcome_t outcomes[] = {TNK__OUTCOME_409, TNK__OUTCOME_422};

  for (int n = 0; n < TNK__N_CALLS * 8; n++) {
    tnk__attempt_t attempt =
        attempt_of((tnk__call_kind_t)(n / 8), outcomes[n % 2]);
    tnk__verdict_t plain = tnk__classify(&attempt);
    tnk__verdict_t verdict;
    char call = calls[n / 8];

    attempt.is_taken = 1;
    attempt.was_unknown = n / 2 % 2;
    attempt.was_accepted = n / 4 % 2;
    verdict = tnk__classify(&attempt);
    if (strchr("twa", call) == NULL) {
      CHECK_INT(verdict.action, plain.action);
    } else if (attempt.was_accepted) {
      CHECK_INT(verdict.effect, TNK__EFFECT_ACCEPTED);
    } else {
      CHECK_INT(verdict.action,
                call == 'a' ? TNK__ACTION_RESUBMIT : TNK__ACTION_HEAL);
      CHECK_INT(verdict.effect, TNK__EFFECT_NONE);
      CHECK(!verdict.in_doubt);
    }
  }
}

/* A number that was given back, and is refused again and again. */
TEST(S4_14_a_conflict_that_names_nothing_and_does_not_pass) {
  tnk__attempt_t attempt = attempt_of(TNK__CALL_TRAIN, TNK__OUTCOME_409);

  attempt.doubts_number = 1;
  CHECK_INT(tnk__classify(&attempt).action, TNK__ACTION_FAIL);
  CHECK_INT(tnk__classify(&attempt).effect, TNK__EFFECT_NONE);
  attempt.was_unknown = 1;
  CHECK_INT(tnk__classify(&attempt).action, TNK__ACTION_RETRY);
  CHECK_INT(tnk__classify(&attempt).effect, TNK__EFFECT_UNKNOWN);
}

TEST(S3_2a_a_5xx_that_is_the_users_fault_was_not_accepted) {
  tnk__attempt_t attempt = attempt_of(TNK__CALL_TRAIN, TNK__OUTCOME_5XX);

  attempt.category = TNK_CATEGORY_USER;
  CHECK_INT(tnk__classify(&attempt).effect, TNK__EFFECT_NONE);
  attempt.category = TNK_CATEGORY_SERVER;
  CHECK_INT(tnk__classify(&attempt).effect, TNK__EFFECT_UNKNOWN);
}

TEST(S3_15_refusals_of_samples_set_the_shared_back_off) {
  for (int call = 0; call < TNK__N_CALLS; call++) {
    for (int outcome = 0; outcome < TNK__N_OUTCOMES; outcome++) {
      int expected = call == TNK__CALL_SAMPLE && (outcome == TNK__OUTCOME_429 ||
                                                  outcome == TNK__OUTCOME_402);

      CHECK_INT(
          judge((tnk__call_kind_t)call, (tnk__outcome_t)outcome).backs_off,
          expected);
    }
  }
}

TEST(outcome_of_a_400_depends_on_its_body) {
  CHECK_INT(tnk__outcome_of_status(400, 0), TNK__OUTCOME_400_EMPTY);
  CHECK_INT(tnk__outcome_of_status(400, 1), TNK__OUTCOME_400);
  CHECK_INT(tnk__outcome_of_status(404, 0), TNK__OUTCOME_404);
  CHECK_INT(tnk__outcome_of_status(-400, 1), TNK__OUTCOME_STRANGE);
  CHECK_INT(tnk__outcome_of_status(1400, 1), TNK__OUTCOME_STRANGE);
  CHECK_INT(tnk__outcome_of_status(100, 1), TNK__OUTCOME_STRANGE);
}

/* A poll that would end is sent again; other refusals need no body. */
TEST(S3_2a_an_answer_that_broke_off) {
  for (int status = 100; status <= 599; status++) {
    tnk__outcome_t whole = tnk__outcome_of_status(status, 1);

    for (int call = 0; call < TNK__N_CALLS; call++) {
      tnk__outcome_t cut = tnk__outcome_of_cut((tnk__call_kind_t)call, status);
      tnk__verdict_t verdict = judge((tnk__call_kind_t)call, cut);

      if (status / 100 == 2)
        CHECK_INT(cut, TNK__OUTCOME_TRUNCATED);
      else if (status == 409 && calls[call] == 'w')
        CHECK_INT(verdict.action, TNK__ACTION_RETRY);
      else if (strchr("pP", calls[call]) == NULL)
        CHECK_INT(cut, whole);
      else if (status == 402)
        CHECK_INT(verdict.action, TNK__ACTION_PAUSE);
      else
        CHECK_INT(verdict.action, TNK__ACTION_REPOLL);
    }
  }
  CHECK_INT(tnk__outcome_of_cut(TNK__CALL_POLL, 429), TNK__OUTCOME_429);
  CHECK_INT(tnk__outcome_of_cut(TNK__CALL_POLL, 409), TNK__OUTCOME_TRUNCATED);
}

TEST(S3_16_samples_that_may_be_submitted_anew) {
  static const int yes[] = {TNK_ETIMEDOUT, TNK_ECONN,  TNK_EDNS,
                            TNK_ETLS,      TNK_ERATE,  TNK_EEXPIRED,
                            TNK_ECONFLICT, TNK_ESERVER};
  static const int no[] = {TNK_OK,        TNK_EFAILED,  TNK_EREQUEST,
                           TNK_EAUTH,     TNK_EBILLING, TNK_ENOTFOUND,
                           TNK_EPROTO,    TNK_ETOOBIG,  TNK_ECERT,
                           TNK_ECANCELED, TNK_ENOMEM,   TNK_ESESSION};

  for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
    CHECK(tnk__sample_may_resubmit(yes[i]));
  for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
    CHECK(!tnk__sample_may_resubmit(no[i]));
}

TEST(a_lost_session_explains_refusals) {
  static const struct {
    tnk__call_kind_t call;
    tnk__outcome_t outcome;
    int err;
  } rows[] = {{TNK__CALL_TRAIN, TNK__OUTCOME_404, TNK_ESESSION},
              {TNK__CALL_TRAIN, TNK__OUTCOME_410, TNK_ESESSION},
              {TNK__CALL_SAVE, TNK__OUTCOME_400, TNK_ESESSION},
              {TNK__CALL_SAMPLE, TNK__OUTCOME_422, TNK_ESESSION},
              {TNK__CALL_CREATE, TNK__OUTCOME_409, TNK_ESESSION},
              {TNK__CALL_POLL, TNK__OUTCOME_404, TNK_ESESSION},
              {TNK__CALL_POLL, TNK__OUTCOME_422, TNK_EFAILED},
              {TNK__CALL_TRAIN, TNK__OUTCOME_401, TNK_EAUTH},
              {TNK__CALL_TRAIN, TNK__OUTCOME_5XX, TNK_ESERVER},
              {TNK__CALL_QUERY, TNK__OUTCOME_404, TNK_ENOTFOUND}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__attempt_t attempt = {
        .call = rows[i].call, .outcome = rows[i].outcome, .session_ended = 1};
    CHECK_INT(tnk__classify(&attempt).err, rows[i].err);
    attempt.session_ended = 0;
    CHECK(tnk__classify(&attempt).err != TNK_ESESSION);
  }
}

TEST(a_lost_session_ends_resubmission) {
  tnk__attempt_t attempt = {.call = TNK__CALL_POLL_SAMPLE,
                            .outcome = TNK__OUTCOME_410};

  CHECK_INT(tnk__classify(&attempt).action, TNK__ACTION_RESUBMIT);
  attempt.session_ended = 1;
  CHECK_INT(tnk__classify(&attempt).action, TNK__ACTION_FAIL);
  CHECK_INT(tnk__classify(&attempt).err, TNK_ESESSION);
  attempt.outcome = TNK__OUTCOME_404;
  CHECK_INT(tnk__classify(&attempt).action, TNK__ACTION_FAIL);
  attempt.session_ended = 0;
  CHECK_INT(tnk__classify(&attempt).action, TNK__ACTION_REPOLL);
}

TEST(P9_12_a_delete_that_finds_nothing_after_a_lost_answer_is_done) {
  tnk__attempt_t attempt = attempt_of(TNK__CALL_DELETE, TNK__OUTCOME_404);

  CHECK_INT(tnk__classify(&attempt).err, TNK_ENOTFOUND);
  attempt.was_unknown = 1;
  CHECK_INT(tnk__classify(&attempt).action, TNK__ACTION_SUCCEED);
  attempt.was_unknown = 0;
  attempt.was_replayed = 1;
  CHECK_INT(tnk__classify(&attempt).action, TNK__ACTION_SUCCEED);
  attempt.call = TNK__CALL_CHANGE;
  CHECK_INT(tnk__classify(&attempt).err, TNK_ENOTFOUND);
}
