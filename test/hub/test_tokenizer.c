/* SPDX-License-Identifier: MIT */
/*
 * Tokenizers by name: loaded once, kept, and given to all who ask. The plug-in
 * is a scripted one.
 */
#include "hub/models.h"

#include <stdatomic.h>

#define MAIN "{\"vocab\":1}"
#define LLAMA "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer"

static const model_entry_t entries[] = {
    {LLAMA, "main", COMMIT, "tok.json", MAIN, 1},
    {LLAMA, "main", COMMIT, "tok_config.json", "{\"bos\":2}", 0},
    {"org/second", "main", COMMIT, "tok.model", "ranks", 1},
    {"org/third", "main", COMMIT, "tok.model", "ranks too", 1},
    {"org/none", "main", COMMIT, "readme", "nothing", 0},
    {"org/broken", "main", COMMIT, "tok.json", "broken", 1},
};

/* ---- The plug-in; open and close run in the pool and on the loop ---- */

typedef struct {
  tnk_allocator_t alloc;
  char path[300];
  char overrides[100];
} toy_t;

static atomic_int n_opened;
static atomic_int n_closed;

static const char *const main_files[] = {"tok.json", "tok.model", NULL};
static const char *const more_files[] = {"tok_config.json", NULL};

static int toy_open(void **tokenizer, const char *path,
                    const tnk_pair_t *overrides, size_t n_overrides,
                    const tnk_allocator_t *allocator, char *why,
                    size_t why_size) {
  char text[64] = "";
  size_t n = 0;
  FILE *file = fopen(path, "rb");
  toy_t *toy;

  if (file != NULL) {
    n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
  }
  text[n] = '\0';
  if (strcmp(text, "broken") == 0) {
    snprintf(why, why_size, "it is broken");
    return TNK_EPROTO;
  }
  toy = allocator->calloc(1, sizeof(*toy), allocator->user);
  if (toy == NULL)
    return TNK_ENOMEM;
  toy->alloc = *allocator;
  snprintf(toy->path, sizeof(toy->path), "%s", path);
  for (size_t i = 0; i < n_overrides; i++) {
    const size_t at = strlen(toy->overrides);
    snprintf(toy->overrides + at, sizeof(toy->overrides) - at, "%s=%s;",
             overrides[i].name, overrides[i].value);
  }
  n_opened++;
  *tokenizer = toy;
  return TNK_OK;
}

static void toy_close(void *tokenizer) {
  toy_t *toy = tokenizer;
  const tnk_allocator_t alloc = toy->alloc;

  n_closed++;
  alloc.free(toy, alloc.user);
}

static const tnk_tokenizer_plugin_t toy_plugin = {.size = sizeof(toy_plugin),
                                                  .name = "toy",
                                                  .main_files = main_files,
                                                  .more_files = more_files,
                                                  .open = toy_open,
                                                  .close = toy_close};

static void open_stage(stage_t *stage) {
  n_opened = n_closed = 0;
  stage_open(stage, entries, sizeof(entries) / sizeof(entries[0]));
}

/* Everything that was opened is closed with the hub and the promises. */
static void stage_close(stage_t *stage) {
  bench_close(&stage->bench);
  CHECK_INT(n_closed, n_opened);
}

static void ask(stage_t *stage, outcome_t *outcome, const char *model,
                const tnk_hub_tokenizer_options_t *options) {
  outcome_of(outcome,
             tnk_hub_tokenizer(stage->bench.hub, &toy_plugin, model, options));
}

static void get(stage_t *stage, outcome_t *outcome, const char *model,
                const tnk_hub_tokenizer_options_t *options) {
  ask(stage, outcome, model, options);
  outcome_wait_long(&stage->bench, outcome);
}

static const toy_t *toy_of(const outcome_t *outcome) {
  return tnk_promise_tokenizer(outcome->promise);
}

enum { MANY = 50 };

static void wait_all(stage_t *stage, outcome_t outcomes[MANY], int status) {
  for (int i = 0; i < MANY; i++)
    outcome_wait_long(&stage->bench, &outcomes[i]);
  for (int i = 0; i < MANY; i++) {
    CHECK_INT(outcomes[i].n_done, 1);
    CHECK_INT(outcomes[i].status, status);
  }
}

TEST(S0_4b_fifty_loads_in_one_turn_are_one_download) {
  stage_t stage;
  outcome_t outcomes[MANY];
  outcome_t later;

  open_stage(&stage);
  for (int i = 0; i < MANY; i++)
    ask(&stage, &outcomes[i], "meta-llama/Llama-3.1-8B", NULL);
  wait_all(&stage, outcomes, TNK_OK);
  CHECK(toy_of(&outcomes[0]) != NULL);
  for (int i = 1; i < MANY; i++)
    CHECK(toy_of(&outcomes[i]) == toy_of(&outcomes[0]));
  CHECK_INT(n_opened, 1);
  CHECK_INT(mock_n_requests(stage.bench.cdn), 1);
  /* HEAD and GET of both files. */
  CHECK_INT(mock_n_requests(stage.bench.mock), 4);
  CHECK(strstr(toy_of(&outcomes[0])->path, "/snapshots/" COMMIT "/tok.json") !=
        NULL);
  bench_check_file(&stage.bench,
                   "cache/models--thinkingmachineslabinc--meta-llama-3-"
                   "instruct-tokenizer/snapshots/" COMMIT "/tok_config.json",
                   "{\"bos\":2}");
  /* And later ones get the same without a question. */
  ask(&stage, &later, "meta-llama/Llama-3.1-8B", NULL);
  CHECK_INT(later.n_done, 0);
  outcome_wait(&stage.bench, &later);
  CHECK(toy_of(&later) == toy_of(&outcomes[0]));
  CHECK_INT(mock_n_requests(stage.bench.mock), 4);
  outcome_drop(&later);
  for (int i = 0; i < MANY; i++)
    outcome_drop(&outcomes[i]);
  CHECK_INT(n_closed, 0);
  stage_close(&stage);
}

TEST(S0_4b_a_failure_rejects_all_and_the_next_one_tries_again) {
  stage_t stage;
  outcome_t outcomes[MANY];
  outcome_t next;
  size_t n;

  open_stage(&stage);
  stage.models.is_down = 1;
  for (int i = 0; i < MANY; i++)
    ask(&stage, &outcomes[i], "meta-llama/Llama-3.1-8B", NULL);
  wait_all(&stage, outcomes, TNK_ESERVER);
  n = mock_n_requests(stage.bench.mock);
  CHECK_INT(n, 5); /* one load, with its repeats */
  CHECK(strstr(outcomes[7].text, "tokenizer of " LLAMA ": ") ==
        outcomes[7].text);
  CHECK_INT(tnk_promise_error(outcomes[7].promise)->http_status, 503);
  stage.models.is_down = 0;
  get(&stage, &next, "meta-llama/Llama-3.1-8B", NULL);
  CHECK_INT(next.status, TNK_OK);
  CHECK_INT(mock_n_requests(stage.bench.mock), n + 4);
  CHECK_INT(mock_n_requests(stage.bench.cdn), 1);
  outcome_drop(&next);
  for (int i = 0; i < MANY; i++)
    outcome_drop(&outcomes[i]);
  stage_close(&stage);
}

TEST(S0_4_names_of_one_id_share_and_others_do_not) {
  static const tnk_pair_t ab[] = {{"a", "1"}, {"b", "2"}};
  static const tnk_pair_t ba[] = {{"b", "2"}, {"a", "1"}};
  static const tnk_pair_t ac[] = {{"a", "1"}, {"b", "3"}};
  tnk_hub_tokenizer_options_t options[5];
  stage_t stage;
  outcome_t outcomes[7];

  open_stage(&stage);
  for (int i = 0; i < 5; i++)
    options[i] = (tnk_hub_tokenizer_options_t)TNK_HUB_TOKENIZER_OPTIONS_INIT;
  options[0].tokenizer_id = LLAMA ":x";
  options[1].revision = COMMIT;
  options[2].overrides = ab;
  options[3].overrides = ba;
  options[4].overrides = ac;
  options[2].n_overrides = options[3].n_overrides = options[4].n_overrides = 2;
  get(&stage, &outcomes[0], "meta-llama/Llama-3.1-8B", NULL);
  get(&stage, &outcomes[1], "meta-llama/Llama-3.1-70B:peft", NULL);
  get(&stage, &outcomes[2], "whatever/name", &options[0]);
  get(&stage, &outcomes[3], "meta-llama/Llama-3.1-8B", &options[1]);
  get(&stage, &outcomes[4], "meta-llama/Llama-3.1-8B", &options[2]);
  get(&stage, &outcomes[5], "meta-llama/Llama-3.1-8B", &options[3]);
  get(&stage, &outcomes[6], "meta-llama/Llama-3.1-8B", &options[4]);
  for (int i = 0; i < 7; i++)
    if (outcomes[i].status != TNK_OK)
      test_fail(__FILE__, __LINE__, "%d: %s", i, outcomes[i].text);
  CHECK(toy_of(&outcomes[0]) == toy_of(&outcomes[1]));
  CHECK(toy_of(&outcomes[0]) == toy_of(&outcomes[2]));
  CHECK(toy_of(&outcomes[0]) != toy_of(&outcomes[3]));
  CHECK(toy_of(&outcomes[0]) != toy_of(&outcomes[4]));
  CHECK(toy_of(&outcomes[4]) == toy_of(&outcomes[5]));
  CHECK(toy_of(&outcomes[4]) != toy_of(&outcomes[6]));
  CHECK_STR(toy_of(&outcomes[5])->overrides, "a=1;b=2;");
  CHECK_INT(n_opened, 4);
  CHECK_INT(mock_n_requests(stage.bench.cdn), 1);
  for (int i = 0; i < 7; i++)
    outcome_drop(&outcomes[i]);
  stage_close(&stage);
}

TEST(S0_4_a_tokenizer_outlives_its_hub_with_the_promise) {
  stage_t stage;
  outcome_t outcome;

  open_stage(&stage);
  get(&stage, &outcome, "meta-llama/Llama-3.1-8B", NULL);
  bench_close_hub(&stage.bench);
  CHECK_INT(n_closed, 0);
  CHECK(strstr(toy_of(&outcome)->path, "/tok.json") != NULL);
  outcome_drop(&outcome);
  CHECK_INT(n_closed, 1);
  stage_close(&stage);
}

/* Whether a call is answered by what is loaded already. */
static int is_kept(stage_t *stage, const char *model) {
  const int n = n_opened;
  outcome_t outcome;

  get(stage, &outcome, model, NULL);
  CHECK_INT(outcome.status, TNK_OK);
  outcome_drop(&outcome);
  return n_opened == n;
}

TEST(K7_a_hub_forgets_a_tokenizer_that_others_still_hold) {
  stage_t stage;
  outcome_t outcome;
  outcome_t loading;

  open_stage(&stage);
  get(&stage, &outcome, "meta-llama/Llama-3.1-8B", NULL);
  CHECK(!is_kept(&stage, "org/second"));
  CHECK_INT(tnk_hub_forget(stage.bench.hub, toy_of(&outcome)), TNK_OK);
  CHECK_INT(n_closed, 0);
  CHECK(strstr(toy_of(&outcome)->path, "/tok.json") != NULL);
  CHECK(is_kept(&stage, "org/second"));
  CHECK(!is_kept(&stage, "meta-llama/Llama-3.1-8B"));
  /* It is not the one that has been loaded since. */
  CHECK_INT(tnk_hub_forget(stage.bench.hub, toy_of(&outcome)), TNK_OK);
  CHECK(is_kept(&stage, "meta-llama/Llama-3.1-8B"));
  outcome_drop(&outcome);
  CHECK_INT(n_closed, 1);
  /* All that is loaded, and not what is being loaded. */
  ask(&stage, &loading, "org/second",
      &(tnk_hub_tokenizer_options_t){
          .size = sizeof(tnk_hub_tokenizer_options_t), .revision = COMMIT});
  CHECK_INT(tnk_hub_forget(stage.bench.hub, NULL), TNK_OK);
  CHECK_INT(n_closed, 3);
  outcome_wait(&stage.bench, &loading);
  CHECK_INT(loading.status, TNK_OK);
  outcome_drop(&loading);
  CHECK(!is_kept(&stage, "org/second"));
  CHECK_INT(tnk_hub_forget(NULL, NULL), TNK_EINVAL);
  stage_close(&stage);
}

TEST(K7_a_hub_keeps_so_many_tokenizers_and_the_youngest) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  stage_t stage;
  outcome_t first;

  open_stage(&stage);
  options.max_tokenizers = 2;
  bench_reopen_hub(&stage.bench, &options);
  get(&stage, &first, "org/second", NULL);
  CHECK(!is_kept(&stage, "org/third"));
  CHECK(is_kept(&stage, "org/second"));
  CHECK(!is_kept(&stage, LLAMA));
  CHECK_INT(n_closed, 1); /* the third */
  CHECK(is_kept(&stage, "org/second"));
  CHECK(is_kept(&stage, LLAMA));
  CHECK(!is_kept(&stage, "org/third"));
  /* Its turn has come, but its promise holds it. */
  CHECK_INT(n_closed, 1);
  CHECK(strstr(toy_of(&first)->path, "/tok.model") != NULL);
  outcome_drop(&first);
  CHECK_INT(n_closed, 2);
  stage_close(&stage);
}

TEST(K4_the_next_main_file_is_tried_and_none_is_told) {
  stage_t stage;
  outcome_t outcome;

  open_stage(&stage);
  get(&stage, &outcome, "org/second", NULL);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK(strstr(toy_of(&outcome)->path, "/tok.model") != NULL);
  outcome_drop(&outcome);
  get(&stage, &outcome, "org/none", NULL);
  CHECK_INT(outcome.status, TNK_ENOTFOUND);
  CHECK(strstr(outcome.text, "org/none/tok.json") != NULL);
  outcome_drop(&outcome);
  get(&stage, &outcome, "org/unknown", NULL);
  CHECK_INT(outcome.status, TNK_EAUTH);
  outcome_drop(&outcome);
  stage_close(&stage);
}

TEST(S0_4_what_the_plug_in_refuses_is_told_and_forgotten) {
  stage_t stage;
  outcome_t outcome;

  open_stage(&stage);
  for (int i = 0; i < 2; i++) {
    get(&stage, &outcome, "org/broken", NULL);
    CHECK_INT(outcome.status, TNK_EPROTO);
    CHECK_STR(outcome.text, "tokenizer of org/broken: it is broken");
    CHECK(toy_of(&outcome) == NULL);
    outcome_drop(&outcome);
  }
  CHECK_INT(mock_n_requests(stage.bench.cdn), 1);
  stage_close(&stage);
}

TEST(S0_4_folders_need_no_hub) {
  tnk_hub_tokenizer_options_t options = TNK_HUB_TOKENIZER_OPTIONS_INIT;
  stage_t stage;
  outcome_t one;
  outcome_t other;
  char path[200];

  open_stage(&stage);
  bench_write(&stage.bench, "mine/tok.json", "mine");
  snprintf(path, sizeof(path), "%s/mine", stage.bench.dir);
  options.directory = path;
  get(&stage, &one, "TML/private", &options);
  CHECK_INT(one.status, TNK_OK);
  CHECK_STR(toy_of(&one)->path, path);
  get(&stage, &other, "meta-llama/Llama-3.1-8B", NULL);
  CHECK_INT(mock_n_requests(stage.bench.mock), 4);
  CHECK(toy_of(&one) != toy_of(&other));
  outcome_drop(&one);
  outcome_drop(&other);
  stage_close(&stage);
}

TEST(S0_4_bad_arguments_are_refused) {
  tnk_hub_tokenizer_options_t options = TNK_HUB_TOKENIZER_OPTIONS_INIT;
  tnk_tokenizer_plugin_t empty = TNK_TOKENIZER_PLUGIN_INIT;
  stage_t stage;
  outcome_t outcome;

  open_stage(&stage);
  get(&stage, &outcome, "../x", NULL);
  CHECK_INT(outcome.status, TNK_EINVAL);
  outcome_drop(&outcome);
  get(&stage, &outcome, NULL, NULL);
  CHECK_INT(outcome.status, TNK_EINVAL);
  outcome_drop(&outcome);
  get(&stage, &outcome, "thinkingmachines/Inkling", NULL);
  CHECK_INT(outcome.status, TNK_EUNSUPPORTED);
  outcome_drop(&outcome);
  options.n_overrides = 1;
  get(&stage, &outcome, "org/second", &options);
  CHECK_INT(outcome.status, TNK_EINVAL);
  outcome_drop(&outcome);
  outcome_of(&outcome,
             tnk_hub_tokenizer(stage.bench.hub, &empty, "org/second", NULL));
  outcome_wait(&stage.bench, &outcome);
  CHECK_INT(outcome.status, TNK_EINVAL);
  outcome_drop(&outcome);
  CHECK(tnk_hub_tokenizer(NULL, &toy_plugin, "org/second", NULL) == NULL);
  CHECK_INT(mock_n_requests(stage.bench.mock), 0);
  stage_close(&stage);
}

/* ---- Cancel and close ---- */

TEST(S0_4b_one_who_cancels_does_not_take_it_from_the_others) {
  stage_t stage;
  outcome_t outcomes[3];
  outcome_t again;

  open_stage(&stage);
  for (int i = 0; i < 3; i++)
    ask(&stage, &outcomes[i], "meta-llama/Llama-3.1-8B", NULL);
  mock_wait(stage.bench.mock, 1);
  tnk_promise_cancel(outcomes[0].promise);
  outcome_wait_long(&stage.bench, &outcomes[2]);
  CHECK_INT(outcomes[0].status, TNK_ECANCELED);
  CHECK_STR(outcomes[0].text, "tokenizer: canceled");
  CHECK_INT(outcomes[1].status, TNK_OK);
  CHECK_INT(outcomes[2].status, TNK_OK);
  /* When all have, it ends; and may begin again. */
  ask(&stage, &again, "org/second", NULL);
  tnk_promise_cancel(again.promise);
  outcome_wait(&stage.bench, &again);
  CHECK_INT(again.status, TNK_ECANCELED);
  outcome_drop(&again);
  get(&stage, &again, "org/second", NULL);
  CHECK_INT(again.status, TNK_OK);
  outcome_drop(&again);
  for (int i = 0; i < 3; i++)
    outcome_drop(&outcomes[i]);
  stage_close(&stage);
}

TEST(S0_4b_a_tokenizer_and_its_files_come_once) {
  stage_t stage;
  outcome_t outcomes[3];

  open_stage(&stage);
  ask(&stage, &outcomes[0], "org/second", NULL);
  stage_ask(&stage, &outcomes[1], "org/second", "tok.json", NULL);
  stage_ask(&stage, &outcomes[2], "org/second", "tok.model", COMMIT);
  for (int i = 0; i < 3; i++)
    outcome_wait_long(&stage.bench, &outcomes[i]);
  CHECK_INT(outcomes[0].status, TNK_OK);
  CHECK_INT(outcomes[1].status, TNK_ENOTFOUND);
  CHECK_INT(outcomes[2].status, TNK_OK);
  CHECK_INT(mock_n_requests(stage.bench.cdn), 1);
  for (int i = 0; i < 3; i++)
    outcome_drop(&outcomes[i]);
  stage_close(&stage);
}

static int end_after(int n, int closes) {
  stage_t stage;
  outcome_t outcomes[2];
  int was_done;

  open_stage(&stage);
  for (int i = 0; i < 2; i++)
    ask(&stage, &outcomes[i], "meta-llama/Llama-3.1-8B", NULL);
  was_done = bench_end_after(&stage.bench, n, closes, outcomes, 2);
  for (int i = 0; i < 2; i++)
    outcome_drop(&outcomes[i]);
  stage_close(&stage);
  return was_done;
}

TEST_LIMIT(S3_26_loads_are_canceled_and_closed_at_every_turn, 60) {
  bench_end_everywhere(end_after);
}

static int run_without_memory(long n) {
  static const tnk_pair_t pair = {"a", "1"};
  tnk_hub_tokenizer_options_t options = TNK_HUB_TOKENIZER_OPTIONS_INIT;
  stage_t stage;
  outcome_t outcome;
  int is_over;

  options.overrides = &pair;
  options.n_overrides = 1;
  open_stage(&stage);
  test_alloc_fail_at(n);
  get(&stage, &outcome, "org/second", &options);
  is_over = bench_check_memory(&outcome, n);
  outcome_drop(&outcome);
  get(&stage, &outcome, "org/second", &options);
  CHECK_INT(outcome.status, TNK_OK);
  outcome_drop(&outcome);
  stage_close(&stage);
  CHECK_INT(test_alloc_live(), 0);
  return is_over;
}

TEST_LIMIT(S3_26a_tokenizers_without_memory, 60) {
  bench_without_memory(run_without_memory);
}
