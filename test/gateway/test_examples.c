/* SPDX-License-Identifier: MIT */
#include "gateway/record/datum.h"
#include "gateway/record/follow.h"
#include "lib/base/alloc.h"
#include "record.h"

/* What was recorded, as examples to train on. */

typedef struct {
  json_t *lines[8];
  size_t n;
} told_t;

static int put(void *user, const char *line, size_t n) {
  told_t *told = user;

  CHECK(told->n < 8 && line[n - 1] == '\n');
  told->lines[told->n] = json_loadb(line, n, 0, NULL);
  CHECK(told->lines[told->n] != NULL);
  told->n++;
  return TNK_OK;
}

static double value(const json_t *line, const char *name, size_t i) {
  const json_t *data = json_object_get(
      json_object_get(json_object_get(line, "loss_fn_inputs"), name), "data");

  CHECK_INT(json_array_size(data), 9);
  return json_number_value(json_array_get(data, i));
}

TEST(examples_have_rewards_once) {
  /* Of ten tokens those at 3, 4, 8 and 9 were sampled; targets begin at 1. */
  static const double first[] = {0, 0, 0.5, 0.5, 0, 0, 0, 0.5, 0.5};
  static const double second[] = {0, 0, 0, 0, 0, 0, 0, 2, 2};
  static const double sampled[] = {0, 0, -0.125, -0.25, 0, 0, 0, -0.125, -0.25};
  const tnk__gw_datum_options_t all = {0};
  const tnk__gw_datum_options_t rewarded = {.only_rewarded = 1};
  told_t told = {.n = 0};
  rig_t rig;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  add_tree(&rig);
  CHECK_INT(tnk__gw_record_reward(rig.record,
                                  tnk__gw_record_find(rig.record, "a", 2), 0.5),
            TNK_OK);
  CHECK_INT(tnk__gw_record_reward(rig.record,
                                  tnk__gw_record_find(rig.record, "a", 3), 2),
            TNK_OK);
  CHECK_INT(tnk__gw_datums(rig.record, NULL, &rewarded, put, &told), TNK_OK);
  CHECK_INT(told.n, 2);
  for (size_t i = 0; i < 9; i++) {
    CHECK_NEAR(value(told.lines[0], "advantages", i), first[i], 0);
    CHECK_NEAR(value(told.lines[1], "advantages", i), second[i], 0);
    CHECK_NEAR(value(told.lines[0], "logprobs", i), sampled[i], 0);
    CHECK_NEAR(value(told.lines[0], "target_tokens", i), chain[i + 1], 0);
  }
  CHECK_INT(tnk__gw_datums(rig.record, NULL, &all, put, &told), TNK_OK);
  CHECK_INT(told.n, 5);
  for (size_t i = 0; i < told.n; i++)
    json_decref(told.lines[i]);
  close_record(&rig);
  rig_close(&rig);
}

static char *text_of(const json_t *line, const char *name) {
  char *text = json_dumps(json_object_get(line, name),
                          JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

  CHECK(text != NULL);
  return text;
}

static void check_member(const json_t *line, const char *name,
                         const char *expected) {
  char *text = text_of(line, name);

  CHECK_STR(text, expected);
  free(text);
}

/* A conversation of two turns; the ids of the service are these. */
static void tell_two_turns(rig_t *rig, const char *first, const char *second,
                           told_t *told) {
  const tnk__gw_datum_options_t all = {0};
  tnk__gw_turn_t *turn;

  told->n = 0;
  CHECK_INT(open_record(rig, 0, 0, 0), TNK_OK);
  version = 3;
  sequence = first;
  turn = added(rig, "a", NULL, 1, 10);
  version = 4;
  sequence = second;
  turn = added(rig, "a", turn, 2, 20);
  version = 1;
  sequence = NULL;
  CHECK_INT(tnk__gw_record_reward(rig->record, turn, 0.5), TNK_OK);
  CHECK_INT(tnk__gw_datums(rig->record, NULL, &all, put, told), TNK_OK);
  CHECK_INT(told->n, 1);
  close_record(rig);
}

/* Both lists tile: the input lacks the last token, the targets the first. */
TEST(examples_say_where_their_tokens_are_from) {
  told_t told;
  rig_t rig;

  rig_open(&rig);
  tell_two_turns(&rig, "p", "q", &told);
  check_member(told.lines[0], "session", "\"a\"");
  check_member(told.lines[0], "turns",
               "[{\"length\":2,\"offset\":2,\"turn\":100,\"version\":3},"
               "{\"length\":2,\"offset\":7,\"reward\":0.5,\"turn\":101,"
               "\"version\":4}]");
  check_member(
      told.lines[0], "model_input_spans",
      "[{\"kind\":\"prompt\",\"length\":3,\"offset\":0,\"sequence_id\":\"p\"},"
      "{\"kind\":\"sampled\",\"length\":2,\"offset\":0,\"sequence_id\":\"p\"},"
      "{\"kind\":\"prompt\",\"length\":3,\"offset\":5,\"sequence_id\":\"q\"},"
      "{\"kind\":\"sampled\",\"length\":1,\"offset\":0,\"sequence_id\":\"q\"}"
      "]");
  check_member(
      told.lines[0], "loss_fn_input_spans",
      "[{\"kind\":\"prompt\",\"length\":2,\"offset\":1,\"sequence_id\":\"p\"},"
      "{\"kind\":\"sampled\",\"length\":2,\"offset\":0,\"sequence_id\":\"p\"},"
      "{\"kind\":\"prompt\",\"length\":3,\"offset\":5,\"sequence_id\":\"q\"},"
      "{\"kind\":\"sampled\",\"length\":2,\"offset\":0,\"sequence_id\":\"q\"}"
      "]");
  json_decref(told.lines[0]);
  /* One that is not known cannot be told, and half of a list is none. */
  tell_two_turns(&rig, "p", NULL, &told);
  CHECK(json_object_get(told.lines[0], "model_input_spans") == NULL);
  CHECK(json_object_get(told.lines[0], "loss_fn_input_spans") == NULL);
  CHECK_INT(json_array_size(json_object_get(told.lines[0], "turns")), 2);
  json_decref(told.lines[0]);
  rig_close(&rig);
}

/* ---- Following ---- */

enum { QUIET_MS = 1000 };

/* What happens at a time, and the last turns of the examples that come then.
 * Turns are numbered from 100 on. */
typedef struct {
  uint64_t now_ms;
  const char *what;     /* a session that gets a turn; "+" in front: one that
                           continues its last one; "!": its last one gets a reward;
                           NULL: nothing */
  uint64_t all[3];      /* 0: no more */
  uint64_t rewarded[3]; /* with only_rewarded */
} moment_t;

/* A session counts as ended when it was quiet; another one has no part in
 * that. */
static const moment_t moments[] = {
    {0, "a", {0}, {0}},       {999, NULL, {0}, {0}},
    {999, "b", {0}, {0}},     {1000, NULL, {100}, {0}},
    {1500, "!a", {0}, {0}},   {1998, NULL, {0}, {0}},
    {1999, NULL, {101}, {0}}, {2499, NULL, {0}, {0}},
    {2500, NULL, {0}, {100}}, {9000, NULL, {0}, {0}},
    {9000, "+a", {0}, {0}},   {9500, "+a", {0}, {0}},
    {10000, NULL, {0}, {0}},  {10500, NULL, {103}, {0}},
    {11000, "!a", {0}, {0}},  {11000, "+b", {0}, {0}},
    {11000, "!b", {0}, {0}},  {12000, NULL, {104}, {103, 104}},
    {99000, NULL, {0}, {0}},
};

static void happen(rig_t *rig, const char *what, tnk__gw_turn_t **last) {
  const char *name = what != NULL ? what + strspn(what, "+!") : NULL;

  if (what == NULL)
    return;
  if (what[0] == '!') {
    CHECK_INT(tnk__gw_record_reward(rig->record, last[name[0] - 'a'], 1),
              TNK_OK);
    return;
  }
  last[name[0] - 'a'] =
      added(rig, name, what[0] == '+' ? last[name[0] - 'a'] : NULL, 1, 10);
}

static void check_leaves(const told_t *told, const uint64_t *expected) {
  size_t n = 0;

  while (n < 3 && expected[n] != 0)
    n++;
  CHECK_INT(told->n, n);
  for (size_t i = 0; i < n; i++) {
    const json_t *turns = json_object_get(told->lines[i], "turns");
    const json_t *leaf = json_array_get(turns, json_array_size(turns) - 1);

    CHECK_INT(json_integer_value(json_object_get(leaf, "turn")), expected[i]);
    json_decref(told->lines[i]);
  }
}

TEST(examples_of_a_session_come_once_when_it_is_quiet) {
  for (int rewarded = 0; rewarded < 2; rewarded++) {
    const tnk__gw_follow_options_t how = {.only_rewarded = rewarded,
                                          .quiet_ms = QUIET_MS};
    tnk__gw_turn_t *last[2] = {NULL, NULL};
    rig_t rig;

    rig_open(&rig);
    CHECK_INT(open_record(&rig, 0, 0, 0), TNK_OK);
    for (size_t i = 0; i < sizeof(moments) / sizeof(*moments); i++) {
      const moment_t *moment = &moments[i];
      told_t told = {.n = 0};

      happen(&rig, moment->what, last);
      CHECK_INT(tnk__gw_follow(rig.record, &how, moment->now_ms, put, &told),
                TNK_OK);
      check_leaves(&told, rewarded ? moment->rewarded : moment->all);
    }
    close_record(&rig);
    rig_close(&rig);
  }
}

/* ---- A reader of a file ---- */

/* What the writer has added is there for the reader once it is written. */
static void read_more(rig_t *rig, tnk__gw_record_t *reader, told_t *told) {
  const tnk__gw_follow_options_t how = {.only_rewarded = 1};

  told->n = 0;
  close_record(rig);
  CHECK_INT(tnk__gw_record_more(reader, rig->path, rig->why, sizeof(rig->why)),
            TNK_OK);
  CHECK_INT(tnk__gw_follow(reader, &how, 0, put, told), TNK_OK);
  CHECK_INT(open_record(rig, 1, 0, 0), TNK_OK);
}

TEST(a_reader_takes_the_lines_that_are_appended) {
  tnk__gw_record_options_t how = {.alloc = test_allocator()};
  tnk__gw_record_t *reader;
  told_t told;
  rig_t rig;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  how.path = rig.path;
  how.follows = &rig.loop;
  CHECK_INT(tnk__gw_record_open(&reader, &how), TNK_OK);
  for (int i = 0; i < 3; i++) {
    tnk__gw_turn_t *turn = tnk__gw_record_find(rig.record, "a", 1);

    added(&rig, "a", turn, 1, 10 * i);
    read_more(&rig, reader, &told);
    CHECK_INT(told.n, 0);
    turn = tnk__gw_record_find(rig.record, "a", 1);
    CHECK_INT(tnk__gw_record_reward(rig.record, turn, i), TNK_OK);
    read_more(&rig, reader, &told);
    check_leaves(&told, (const uint64_t[]){100 + (uint64_t)i, 0, 0});
    turn = tnk__gw_record_find(reader, "a", 1);
    CHECK_INT(tnk__gw_turn_n_ids(turn), 5 * (i + 1));
    CHECK_NEAR(turn->reward, i, 0);
  }
  tnk__gw_record_close(reader, NULL, NULL);
  close_record(&rig);
  rig_close(&rig);
}

/* ---- A reader that starts again ---- */

/* Nothing of this allocates. */
typedef struct {
  size_t n_put;
  size_t n_half; /* lines that are not whole */
  uint64_t leaves[8];
  size_t n_leaves;
  size_t max; /* the program ends when it has so many */
  int is_all;
} seen_t;

static int see(void *user, const char *line, size_t n) {
  seen_t *seen = user;

  seen->n_half += n < 2 || line[0] != '{' || line[n - 1] != '\n' ||
                  memchr(line, '\n', n - 1) != NULL;
  seen->n_put++;
  return TNK_OK;
}

static int see_done(void *user, const tnk__gw_session_t *session,
                    const tnk__gw_branch_t *branches, size_t n, int is_all) {
  seen_t *seen = user;

  CHECK(session->name[0] != '\0');
  for (size_t i = 0; i < n; i++) {
    CHECK(seen->n_leaves < 8);
    seen->leaves[seen->n_leaves++] = branches[i].leaf;
  }
  seen->is_all = is_all;
  return seen->n_leaves >= seen->max ? TNK_ECANCELED : TNK_OK;
}

/* Read the file as a new process that knows what is in `seen`, and add what it
 * has written. `n`: the allocation that fails, or -1. */
static int read_again(rig_t *rig, seen_t *seen, const char *rewarded, long n,
                      int *did_fail) {
  const tnk__gw_follow_options_t how = {.only_rewarded = rewarded != NULL,
                                        .done = see_done};
  const tnk__gw_record_options_t what = {
      .alloc = test_allocator(), .path = rig->path, .follows = &rig->loop};
  size_t n_skipped = seen->n_leaves;
  tnk__gw_record_t *record;
  int err;

  test_alloc_fail_at(n);
  err = tnk__gw_record_open(&record, &what);
  for (size_t i = 0; err == TNK_OK && i < n_skipped; i++)
    tnk__gw_skip(record, seen->leaves[i]);
  if (err == TNK_OK)
    err = tnk__gw_record_more(record, rig->path, rig->why, sizeof(rig->why));
  if (err == TNK_OK)
    err = tnk__gw_follow(record, &how, 0, see, seen);
  *did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  if (record != NULL)
    tnk__gw_record_close(record, NULL, NULL);
  return err;
}

static void check_each_once(const seen_t *seen, size_t n) {
  CHECK_INT(seen->n_half, 0);
  CHECK_INT(seen->n_leaves, n);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++)
      CHECK(seen->leaves[i] != seen->leaves[j]);
}

static void write_tree(rig_t *rig) {
  CHECK_INT(open_record(rig, 1, 0, 0), TNK_OK);
  add_tree(rig);
  added(rig, "c", NULL, 1, 50);
  CHECK_INT(tnk__gw_record_reward(rig->record,
                                  tnk__gw_record_find(rig->record, "a", 3), 2),
            TNK_OK);
  close_record(rig);
}

/* It ends after any of the sessions. */
TEST(a_reader_that_starts_again_continues) {
  rig_t rig;

  rig_open(&rig);
  write_tree(&rig);
  for (size_t max = 1; max <= 4; max++) {
    seen_t seen = {.max = max};
    size_t n_put;
    int ignored;

    while (read_again(&rig, &seen, NULL, -1, &ignored) == TNK_ECANCELED)
      seen.max = seen.n_leaves + max;
    check_each_once(&seen, 4);
    CHECK_INT(seen.n_put, 4);
    CHECK(seen.is_all);
    n_put = seen.n_put;
    CHECK_INT(read_again(&rig, &seen, NULL, -1, &ignored), TNK_OK);
    CHECK_INT(seen.n_put, n_put);
  }
  rig_close(&rig);
}

/* A turn that continues what was written before is new alone. */
TEST(a_session_goes_on_after_a_restart) {
  seen_t seen = {.max = SIZE_MAX};
  int ignored;
  rig_t rig;

  rig_open(&rig);
  write_tree(&rig);
  CHECK_INT(read_again(&rig, &seen, "", -1, &ignored), TNK_OK);
  check_each_once(&seen, 1);
  CHECK(!seen.is_all); /* other examples have no reward */
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  added(&rig, "a", tnk__gw_record_find(rig.record, "a", 3), 4, 60);
  CHECK_INT(tnk__gw_record_reward(rig.record,
                                  tnk__gw_record_find(rig.record, "a", 4), 3),
            TNK_OK);
  close_record(&rig);
  CHECK_INT(read_again(&rig, &seen, "", -1, &ignored), TNK_OK);
  check_each_once(&seen, 2);
  CHECK_INT(seen.leaves[1], 105);
  rig_close(&rig);
}

static void *json_alloc(size_t n) {
  return tnk__malloc(test_allocator(), n);
}

static void json_release(void *at) {
  tnk__free(test_allocator(), at);
}

/* Whatever fails, it says so. The next process writes what is left. Some
 * failures of jansson look like malformed JSON. */
static void fail_each(rig_t *rig, int has_jansson) {
  int did_fail = 1;
  long n;

  for (n = 0; did_fail; n++) {
    seen_t seen = {.max = SIZE_MAX};
    int err = read_again(rig, &seen, NULL, n, &did_fail);
    int ignored;

    CHECK(did_fail ? err == TNK_ENOMEM || (has_jansson && err == TNK_EFILE)
                   : err == TNK_OK);
    CHECK(seen.n_put >= seen.n_leaves);
    CHECK_INT(read_again(rig, &seen, NULL, -1, &ignored), TNK_OK);
    check_each_once(&seen, 4);
  }
  CHECK(n > 50);
}

TEST(each_allocation_of_a_reader_fails_in_turn) {
  rig_t rig;

  rig_open(&rig);
  write_tree(&rig);
  fail_each(&rig, 0);
  json_set_alloc_funcs(json_alloc, json_release);
  fail_each(&rig, 1);
  rig_close(&rig);
}

/* Marks wait in memory for a store. */
TEST(each_allocation_of_a_mark_fails_in_turn) {
  const tnk__gw_datum_options_t all = {0};
  tnk__gw_where_t where;
  const tnk__gw_shared_options_t options = {
      .alloc = test_allocator(), .where = &where, .is_read_only = 1};
  int did_fail = 1;
  rig_t rig;
  long n;

  rig_open(&rig);
  CHECK(tnk__gw_where_read("valkey://127.0.0.1:1/x", &where) == NULL);
  for (n = 0; did_fail; n++) {
    int err;

    CHECK_INT(open_record(&rig, 0, 0, 0), TNK_OK);
    add_tree(&rig);
    if (tnk__gw_shared_new(&rig.record->shared, &options) == TNK_ENOTSUP) {
      close_record(&rig);
      break;
    }
    test_alloc_fail_at(n);
    err = tnk__gw_mark_all(rig.record, &all);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(err, did_fail ? TNK_ENOMEM : TNK_OK);
    close_record(&rig);
  }
  CHECK(rig.record != NULL);
  rig_close(&rig);
}
