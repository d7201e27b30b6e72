/* SPDX-License-Identifier: MIT */
#include "gateway/keys/grant.h"
#include "record.h"

/* Keys of sessions: what they permit, on a clock of the test. */

static int64_t now_ms;

static int64_t fake(void) {
  return now_ms;
}

static tnk__gw_grants_t grants;

static int reopen(rig_t *rig, int has_file) {
  const tnk__gw_record_options_t options = {.alloc = test_allocator(),
                                            .loop = &rig->loop,
                                            .path = has_file ? rig->path : NULL,
                                            .first = 100,
                                            .take = tnk__gw_grants_take,
                                            .user = &grants,
                                            .why = rig->why,
                                            .n_why = sizeof(rig->why)};
  int err;

  tnk__gw_grants_init(&grants, test_allocator());
  grants.now_ms = fake;
  err = tnk__gw_record_open(&rig->record, &options);
  grants.record = rig->record;
  if (err != TNK_OK)
    tnk__gw_grants_deinit(&grants);
  return err;
}

static void open_grants(rig_t *rig, int has_file) {
  now_ms = 1000000;
  rig_open(rig);
  CHECK_INT(reopen(rig, has_file), TNK_OK);
}

static void shut(rig_t *rig) {
  tnk__gw_grants_deinit(&grants);
  close_record(rig);
}

static void close_grants(rig_t *rig) {
  shut(rig);
  rig_close(rig);
}

static tnk__gw_grant_t *made(const tnk__gw_limits_t *limits,
                             char key[TNK__GW_KEY_TEXT]) {
  tnk__gw_grant_t *grant;

  CHECK_INT(tnk__gw_grant_new(&grants, "me", limits, key, &grant), TNK_OK);
  return grant;
}

static tnk__gw_grant_t *by_key(const char *key) {
  return tnk__gw_grant_by_key(&grants, key, strlen(key));
}

static tnk__gw_entry_t enter(tnk__gw_grant_t *grant, uint32_t *wait_s) {
  return tnk__gw_grant_enter(&grants, grant, wait_s);
}

static int reserve(tnk__gw_grant_t *grant, tnk__gw_use_t most,
                   const char **what, uint64_t *left) {
  return tnk__gw_grant_reserve(&grants, grant, &most, what, left);
}

TEST(a_key_is_found_by_all_of_it_alone) {
  const tnk__gw_limits_t limits = {0};
  char key[TNK__GW_KEY_TEXT], other[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  rig_t rig;

  open_grants(&rig, 0);
  grant = made(&limits, key);
  CHECK(made(&limits, other) != grant);
  CHECK(strcmp(key, other) != 0);
  CHECK_INT(strlen(key), TNK__GW_KEY_TEXT - 1);
  CHECK(by_key(key) == grant);
  CHECK(by_key(other) != grant);
  for (size_t i = 0; i < strlen(key); i++) {
    char c = key[i];

    CHECK(tnk__gw_grant_by_key(&grants, key, i) == NULL);
    key[i] = c == '0' ? '1' : '0';
    CHECK(by_key(key) == NULL);
    key[i] = c;
  }
  CHECK(tnk__gw_grant_by_id(&grants, grant->id) == grant);
  CHECK(tnk__gw_grant_by_id(&grants, "key-0") == NULL);
  close_grants(&rig);
}

/* The table finds a row by a part of the hash, so the rest is compared here
 * alone. */
TEST(hashes_are_compared_whole) {
  uint8_t a[TNK__GW_HASH], b[TNK__GW_HASH];

  CHECK_INT(tnk__gw_secret_hash("key", 3, a), TNK_OK);
  memcpy(b, a, sizeof(b));
  CHECK(tnk__gw_secret_is(a, b));
  for (size_t i = 0; i < 8 * sizeof(b); i++) {
    b[i / 8] ^= (uint8_t)(1U << i % 8);
    CHECK(!tnk__gw_secret_is(a, b));
    CHECK(!tnk__gw_secret_is(b, a));
    b[i / 8] = a[i / 8];
  }
}

TEST(it_expires_at_its_second) {
  char key[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  uint32_t wait_s;
  rig_t rig;

  open_grants(&rig, 0);
  grant = made(&(tnk__gw_limits_t){.expires_s = 1001}, key);
  CHECK_INT(enter(grant, &wait_s), TNK__GW_ENTERED);
  now_ms = 1000999;
  CHECK_INT(enter(grant, &wait_s), TNK__GW_ENTERED);
  now_ms = 1001000;
  CHECK_INT(enter(grant, &wait_s), TNK__GW_EXPIRED);
  tnk__gw_grant_leave(&grants, grant);
  tnk__gw_grant_leave(&grants, grant);
  CHECK_INT(grant->n_active, 0);
  close_grants(&rig);
}

TEST(requests_of_a_minute_come_back_one_by_one) {
  char key[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  uint32_t wait_s;
  rig_t rig;

  open_grants(&rig, 0);
  grant = made(&(tnk__gw_limits_t){.max_per_minute = 4}, key);
  for (int i = 0; i < 4; i++)
    CHECK_INT(enter(grant, &wait_s), TNK__GW_ENTERED);
  CHECK_INT(enter(grant, &wait_s), TNK__GW_TOO_FAST);
  CHECK_INT(wait_s, 16);
  now_ms += 14999;
  CHECK_INT(enter(grant, &wait_s), TNK__GW_TOO_FAST);
  CHECK_INT(wait_s, 1);
  now_ms += 1;
  CHECK_INT(enter(grant, &wait_s), TNK__GW_ENTERED);
  CHECK_INT(enter(grant, &wait_s), TNK__GW_TOO_FAST);
  /* The time of day is set back, and nothing is given twice. */
  now_ms -= 500000;
  CHECK_INT(enter(grant, &wait_s), TNK__GW_TOO_FAST);
  /* After a long time there is one minute's worth. */
  now_ms += 90000000;
  for (int i = 0; i < 4; i++)
    CHECK_INT(enter(grant, &wait_s), TNK__GW_ENTERED);
  CHECK_INT(enter(grant, &wait_s), TNK__GW_TOO_FAST);
  for (int i = 0; i < 9; i++)
    tnk__gw_grant_leave(&grants, grant);
  close_grants(&rig);
}

TEST(requests_in_progress_are_limited) {
  char key[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  uint32_t wait_s;
  rig_t rig;

  open_grants(&rig, 0);
  grant = made(&(tnk__gw_limits_t){.max_concurrent = 2}, key);
  CHECK_INT(enter(grant, &wait_s), TNK__GW_ENTERED);
  CHECK_INT(enter(grant, &wait_s), TNK__GW_ENTERED);
  CHECK_INT(enter(grant, &wait_s), TNK__GW_TOO_MANY);
  tnk__gw_grant_leave(&grants, grant);
  CHECK_INT(enter(grant, &wait_s), TNK__GW_ENTERED);
  tnk__gw_grant_leave(&grants, grant);
  tnk__gw_grant_leave(&grants, grant);
  close_grants(&rig);
}

TEST(each_total_is_exact) {
  static const struct {
    tnk__gw_limits_t limits;
    tnk__gw_use_t most;
    const char *what;
  } rows[] = {{{.max_requests = 3}, {.n_requests = 1}, "requests"},
              {{.max_tokens = 31}, {.n_tokens = 10}, "tokens"},
              {{.max_turns = 7}, {.n_turns = 2}, "turns"},
              {{.max_pico = 3999}, {.pico = 1000}, "USD"}};
  const tnk__gw_use_t nothing = {0};
  char key[TNK__GW_KEY_TEXT];
  rig_t rig;

  open_grants(&rig, 0);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    tnk__gw_grant_t *grant = made(&rows[i].limits, key);
    const char *what;
    uint64_t left;

    for (int n = 0; n < 3; n++)
      CHECK_INT(reserve(grant, rows[i].most, &what, &left), TNK_OK);
    CHECK_INT(reserve(grant, rows[i].most, &what, &left), TNK_EBUDGET);
    CHECK_STR(what, rows[i].what);
    tnk__gw_grant_settle(&grants, grant, &rows[i].most, &nothing);
    CHECK_INT(reserve(grant, rows[i].most, &what, &left), TNK_OK);
    CHECK_INT(reserve(grant, rows[i].most, &what, &left), TNK_EBUDGET);
  }
  close_grants(&rig);
}

/* Numbers that a line of the record could not have are refused. */
TEST(sums_do_not_overflow) {
  const tnk__gw_use_t most = {.pico = UINT64_C(1) << 62};
  const tnk__gw_limits_t none = {0};
  char key[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  const char *what;
  uint64_t left;
  rig_t rig;

  open_grants(&rig, 1);
  grant = made(&none, key);
  CHECK_INT(reserve(grant, most, &what, &left), TNK_OK);
  CHECK_INT(reserve(grant, most, &what, &left), TNK_EBUDGET);
  shut(&rig);
  CHECK_INT(reopen(&rig, 1), TNK_OK);
  CHECK(by_key(key) != NULL);
  close_grants(&rig);
}

/* Member by member: what is between them has no value. */
static void check_limits(const tnk__gw_limits_t *a, const tnk__gw_limits_t *b) {
  CHECK_INT(a->expires_s, b->expires_s);
  CHECK_INT(a->max_requests, b->max_requests);
  CHECK_INT(a->max_tokens, b->max_tokens);
  CHECK_INT(a->max_turns, b->max_turns);
  CHECK_INT(a->max_pico, b->max_pico);
  CHECK_INT(a->max_body, b->max_body);
  CHECK_INT(a->max_concurrent, b->max_concurrent);
  CHECK_INT(a->max_per_minute, b->max_per_minute);
  CHECK_INT(a->may_reward, b->may_reward);
  CHECK_STR(a->certificate, b->certificate);
}

TEST(a_restart_keeps_keys_and_their_use) {
  const tnk__gw_limits_t all = {2000, 3, 100, 5, 6000, 7, 8, 9, 1, "CN:a"};
  const tnk__gw_use_t most = {1, 40, 2, 500};
  const tnk__gw_use_t used = {1, 30, 1, 400};
  char key[TNK__GW_KEY_TEXT], old[TNK__GW_KEY_TEXT], id[TNK__GW_ID_TEXT];
  char ended[TNK__GW_KEY_TEXT], late[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  const char *what;
  uint64_t left;
  rig_t rig;

  open_grants(&rig, 1);
  grant = made(&all, old);
  memcpy(id, grant->id, sizeof(id));
  CHECK_INT(reserve(grant, most, &what, &left), TNK_OK);
  tnk__gw_grant_settle(&grants, grant, &most, &used);
  /* This one is in progress when the process ends. */
  CHECK_INT(reserve(grant, most, &what, &left), TNK_OK);
  CHECK_INT(tnk__gw_grant_rotate(&grants, grant, key), TNK_OK);
  CHECK(by_key(old) == NULL);
  CHECK(by_key(key) == grant);
  CHECK_INT(tnk__gw_grant_revoke(&grants, made(&all, ended)), TNK_OK);
  made(&(tnk__gw_limits_t){.expires_s = 1001}, late);
  shut(&rig);
  now_ms = 1500000;
  CHECK_INT(reopen(&rig, 1), TNK_OK);
  CHECK(by_key(old) == NULL);
  CHECK(by_key(ended) == NULL);
  CHECK(by_key(late) == NULL);
  CHECK_INT(grants.n, 1);
  grant = by_key(key);
  CHECK(grant != NULL && grant == tnk__gw_grant_by_id(&grants, id));
  CHECK_STR(grant->session, "me");
  check_limits(&grant->limits, &all);
  CHECK_INT(grant->used.n_requests, 2);
  CHECK_INT(grant->used.n_tokens, 70);
  CHECK_INT(grant->used.n_turns, 3);
  CHECK_INT(grant->used.pico, 900);
  close_grants(&rig);
}

TEST(a_revoked_key_lasts_until_its_requests_have_ended) {
  const tnk__gw_limits_t none = {0};
  char key[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  uint32_t wait_s;
  rig_t rig;

  open_grants(&rig, 0);
  grant = made(&none, key);
  CHECK_INT(enter(grant, &wait_s), TNK__GW_ENTERED);
  CHECK_INT(tnk__gw_grant_revoke(&grants, grant), TNK_OK);
  CHECK(by_key(key) == NULL);
  CHECK_INT(grants.n, 0);
  CHECK_STR(grant->session, "me");
  tnk__gw_grant_leave(&grants, grant);
  close_grants(&rig);
}

static void write_line(const rig_t *rig, const char *line) {
  FILE *file = fopen(rig->path, "w");

  CHECK(file != NULL);
  CHECK(fprintf(file, "%s\n", line) > 0);
  CHECK_INT(fclose(file), 0);
}

TEST(malformed_lines_are_refused) {
  static const char *const lines[] = {
      "{\"type\":\"key\"}",
      "{\"type\":\"key\",\"id\":\"key-1\",\"session\":\"a\",\"hash\":\"00\"}",
      "{\"type\":\"key\",\"id\":\"key-0123456789abcdef0\"}",
      "{\"type\":\"key_used\",\"id\":5}"};
  rig_t rig;

  rig_open(&rig);
  for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
    write_line(&rig, lines[i]);
    CHECK_INT(reopen(&rig, 1), TNK_EFILE);
    CHECK(strstr(rig.why, "line 1: is malformed") != NULL);
  }
  /* Types of later versions, and keys that are not there. */
  write_line(&rig, "{\"type\":\"keys\"}");
  CHECK_INT(reopen(&rig, 1), TNK_OK);
  shut(&rig);
  write_line(&rig, "{\"type\":\"key_revoked\",\"id\":\"key-1\"}");
  CHECK_INT(reopen(&rig, 1), TNK_OK);
  close_grants(&rig);
}

/* Processes that write their lines again to an older copy do so in any order.
 */
TEST(a_key_that_was_revoked_before_it_is_read_stays_so) {
  static const char revoked[] = "{\"type\":\"key_revoked\",\"id\":\"%s\"}\n";
  const tnk__gw_limits_t none = {0};
  char key[TNK__GW_KEY_TEXT], id[TNK__GW_ID_TEXT], line[1024];

  for (int is_same = 0; is_same < 2; is_same++) {
    FILE *file;
    rig_t rig;

    open_grants(&rig, 1);
    snprintf(id, sizeof(id), "%s", made(&none, key)->id);
    shut(&rig);
    file = fopen(rig.path, "r");
    CHECK(file != NULL && fgets(line, sizeof(line), file) != NULL);
    CHECK_INT(fclose(file), 0);
    file = fopen(rig.path, "w");
    CHECK(file != NULL);
    CHECK(fprintf(file, revoked, is_same ? id : "key-other") > 0);
    CHECK(fprintf(file, "%s", line) > 0);
    CHECK_INT(fclose(file), 0);
    CHECK_INT(reopen(&rig, 1), TNK_OK);
    CHECK_INT(by_key(key) == NULL, is_same);
    CHECK_INT(grants.n, !is_same);
    close_grants(&rig);
  }
}

/* A store that has come back as an older copy may lack the lines before. */
TEST(a_use_is_never_below_zero) {
  static const struct {
    const char *changes[3]; /* NULL: no more */
    uint64_t used;
    int err;
  } all[] = {{{"5", "-5", NULL}, 0, TNK_OK},
             {{"5", "-3", NULL}, 2, TNK_OK},
             {{"-5", NULL, NULL}, 0, TNK_OK},
             {{"3", "-5", "4"}, 4, TNK_OK},
             {{"-9223372036854775807", "7", NULL}, 7, TNK_OK},
             {{"9223372036854775807", "1", NULL}, 0, TNK_EFILE}};
  const tnk__gw_limits_t none = {0};
  char key[TNK__GW_KEY_TEXT], id[TNK__GW_ID_TEXT];
  rig_t rig;

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    FILE *file;
    int err;

    test_context(all[i].changes[0]);
    open_grants(&rig, 1);
    snprintf(id, sizeof(id), "%s", made(&none, key)->id);
    shut(&rig);
    file = fopen(rig.path, "a");
    CHECK(file != NULL);
    for (size_t k = 0; k < 3 && all[i].changes[k] != NULL; k++)
      CHECK(fprintf(file,
                    "{\"type\":\"key_change\",\"id\":\"%s\",\"requests\":0,"
                    "\"tokens\":%s,\"turns\":0,\"pico_usd\":0}\n",
                    id, all[i].changes[k]) > 0);
    CHECK_INT(fclose(file), 0);
    err = reopen(&rig, 1);
    CHECK_INT(err, all[i].err);
    if (err == TNK_OK) {
      CHECK_INT(by_key(key)->used.n_tokens, all[i].used);
      CHECK_INT(by_key(key)->told.n_tokens, all[i].used);
      shut(&rig);
    }
    rig_close(&rig);
  }
}

/* A key that could not be made is not there, and an old one stays. */
TEST(each_allocation_fails_in_turn) {
  const tnk__gw_limits_t none = {0};
  char key[TNK__GW_KEY_TEXT], next[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  int n_failed = 0;
  rig_t rig;

  for (int did_fail = 1, n = 0; did_fail; n++) {
    int err;

    open_grants(&rig, 1);
    test_alloc_fail_at(n);
    err = tnk__gw_grant_new(&grants, "me", &none, key, &grant);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(grants.n, err == TNK_OK);
    n_failed += err != TNK_OK;
    if (err != TNK_OK)
      CHECK_INT(err, TNK_ENOMEM);
    close_grants(&rig);
  }
  CHECK(n_failed >= 3);
  open_grants(&rig, 1);
  grant = made(&none, key);
  for (int did_fail = 1, n = 0; did_fail; n++) {
    int err;

    test_alloc_fail_at(n);
    err = tnk__gw_grant_rotate(&grants, grant, next);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK(by_key(err == TNK_OK ? next : key) == grant);
    if (err == TNK_OK)
      memcpy(key, next, sizeof(key));
  }
  for (int did_fail = 1, n = 0; did_fail; n++) {
    int err;

    test_alloc_fail_at(n);
    err = tnk__gw_grant_revoke(&grants, grant);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK((by_key(key) == NULL) == (err == TNK_OK));
    if (err == TNK_OK)
      break;
  }
  close_grants(&rig);
}
