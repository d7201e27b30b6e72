/* SPDX-License-Identifier: MIT */
#include "local/e2e.h"

/* What a service keeps, by the client and the local server together. */

static const tnk_page_t *page_of(tnk_promise_t *promise) {
  return tnk_promise_page(promise);
}

/* A state and weights for sampling; the path of the state. */
static void save_two(e2e_t *e2e, char *path, size_t size) {
  tnk_promise_t *saved;

  e2e_train(e2e, 2);
  saved = e2e_ok(tnk_training_save_state(e2e->training, "one", NULL));
  snprintf(path, size, "%s", tnk_promise_path(saved));
  tnk_promise_unref(saved);
  e2e_done(tnk_training_save_weights_for_sampler(e2e->training, "two", NULL));
}

static size_t count(e2e_t *e2e, const char *path) {
  tnk_promise_t *list = e2e_ok(tnk_rest_list_checkpoints(e2e->service, NULL));
  size_t n = 0;

  for (size_t i = 0; i < tnk_page_count(page_of(list)); i++)
    n += path == NULL ||
         strcmp(tnk_page_checkpoint(page_of(list), i)->path, path) == 0;
  tnk_promise_unref(list);
  return n;
}

static void fails(tnk_promise_t *promise, int code) {
  CHECK_INT(tnk_wait(promise), code);
  tnk_promise_unref(promise);
}

/* A clock by which no two saves are made at once. */
static int64_t later_each_time(void *user) {
  int64_t *ms = user;

  return (*ms)++;
}

TEST_LIMIT(N5_N6_N8_checkpoints_are_listed_and_deleted, 60) {
  int64_t ms = INT64_C(1700000000000);
  const tnk_checkpoint_t *checkpoint;
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_promise_t *runs;
  tnk_promise_t *list;
  char path[256];
  e2e_t e2e;

  options.now_ms = later_each_time;
  options.user = &ms;
  e2e_open(&e2e, options);
  save_two(&e2e, path, sizeof(path));
  CHECK_INT(count(&e2e, NULL), 2);
  runs = e2e_ok(tnk_rest_list_runs(e2e.service, NULL));
  CHECK_INT(tnk_page_count(page_of(runs)), 1);
  CHECK_INT(tnk_page_run(page_of(runs), 0)->is_lora, 1);
  CHECK_STR(tnk_page_run(page_of(runs), 0)->last_checkpoint->path, path);
  list = e2e_ok(tnk_rest_list_run_checkpoints(
      e2e.service, tnk_page_run(page_of(runs), 0)->id));
  CHECK_INT(tnk_page_count(page_of(list)), 2);
  checkpoint = tnk_page_checkpoint(page_of(list), 1);
  CHECK_STR(checkpoint->path, path);
  CHECK_INT(checkpoint->kind, TNK_CHECKPOINT_TRAINING);
  CHECK(checkpoint->size_bytes > 0 && checkpoint->time_us > 0);
  CHECK_INT(checkpoint->expires_us, 0);
  tnk_promise_unref(list);
  tnk_promise_unref(runs);
  e2e_done(tnk_rest_delete_checkpoint(e2e.service, path));
  CHECK_INT(count(&e2e, NULL), 1);
  CHECK_INT(count(&e2e, path), 0);
  fails(tnk_rest_delete_checkpoint(e2e.service, path), TNK_ENOTFOUND);
  e2e_close(&e2e);
}

TEST_LIMIT(N9_N10_checkpoints_are_published_and_expire, 60) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  const tnk_checkpoint_t *checkpoint;
  tnk_promise_t *list;
  char path[256];
  e2e_t e2e;

  e2e_open(&e2e, options);
  save_two(&e2e, path, sizeof(path));
  for (int i = 0; i < 2; i++) /* the second time it is so already: 409 */
    e2e_done(tnk_rest_publish_checkpoint(e2e.service, path));
  e2e_done(tnk_rest_set_checkpoint_ttl(e2e.service, path, 3600));
  list = e2e_ok(tnk_rest_list_checkpoints(e2e.service, NULL));
  for (size_t i = 0; i < tnk_page_count(page_of(list)); i++) {
    checkpoint = tnk_page_checkpoint(page_of(list), i);
    if (strcmp(checkpoint->path, path) != 0)
      continue;
    CHECK_INT(checkpoint->is_public, 1);
    CHECK(checkpoint->expires_us >
          checkpoint->time_us + INT64_C(3590) * 1000000);
  }
  tnk_promise_unref(list);
  for (int i = 0; i < 2; i++)
    e2e_done(tnk_rest_unpublish_checkpoint(e2e.service, path));
  e2e_done(tnk_rest_set_checkpoint_ttl(e2e.service, path, 0));
  fails(tnk_rest_publish_checkpoint(e2e.service, "tinker://r/weights/none"),
        TNK_ENOTFOUND);
  e2e_close(&e2e);
}

TEST_LIMIT(a_copy_outlives_what_it_was_made_from, 60) {
  tnk_copy_options_t copy = TNK_COPY_OPTIONS_INIT;
  tnk_restore_options_t restore = TNK_RESTORE_OPTIONS_INIT;
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_promise_t *copied;
  tnk_promise_t *info;
  char path[256];
  e2e_t e2e;

  e2e_open(&e2e, options);
  save_two(&e2e, path, sizeof(path));
  copy.path = path;
  copy.project_id = "p";
  copied = e2e_ok(tnk_rest_copy_weights(e2e.service, &copy));
  CHECK(strcmp(tnk_promise_path(copied), path) != 0);
  CHECK_INT(count(&e2e, NULL), 3);
  e2e_done(tnk_rest_delete_checkpoint(e2e.service, path));
  CHECK_INT(count(&e2e, tnk_promise_path(copied)), 1);
  info =
      e2e_ok(tnk_rest_get_weights_info(e2e.service, tnk_promise_path(copied)));
  CHECK_INT(tnk_page_weights_info(page_of(info), 0)->is_lora, 1);
  tnk_promise_unref(info);
  restore.path = tnk_promise_path(copied);
  e2e_done(tnk_service_restore(e2e.service, &restore));
  tnk_promise_unref(copied);
  copy.path = "tinker://r/weights/none";
  fails(tnk_rest_copy_weights(e2e.service, &copy), TNK_ENOTFOUND);
  e2e_close(&e2e);
}

/* ---- Sessions ---- */

static size_t n_found(e2e_t *e2e, const tnk_search_options_t *options) {
  tnk_promise_t *p = e2e_ok(tnk_rest_search_sessions(e2e->service, options));
  size_t n = tnk_page_count(page_of(p));

  while (!tnk_page_is_last(page_of(p))) {
    tnk_promise_t *next = e2e_ok(tnk_rest_next_page(e2e->service, page_of(p)));

    tnk_promise_unref(p);
    p = next;
    n += tnk_page_count(page_of(p));
  }
  tnk_promise_unref(p);
  return n;
}

static void make_session(e2e_t *e2e, const char *name, const char *color) {
  const tnk_pair_t pair = {"color", color};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_sampling_options_t sampling = TNK_SAMPLING_OPTIONS_INIT;
  int n_closed = e2e->n_closed;
  tnk_service_t *service;
  char url[64];

  snprintf(url, sizeof(url), "http://127.0.0.1:%d",
           local_server_port(e2e->server));
  options.base_url = url;
  options.api_key = "tml-local";
  options.display_name = name;
  options.project_id = "first";
  options.user_metadata = &pair;
  options.n_user_metadata = 1;
  CHECK_INT(tnk_service_open(&service, &e2e->uv, &options, NULL, 0), TNK_OK);
  sampling.base_model = "tnk/byte-lm";
  e2e_done(tnk_service_create_sampling(service, &sampling));
  tnk_service_close(service, e2e_closed, e2e);
  while (e2e->n_closed == n_closed)
    uv_run(&e2e->uv, UV_RUN_ONCE);
}

TEST_LIMIT(N1_N14_sessions_are_searched_and_moved, 60) {
  static const tnk_pair_t red = {"color", "red"};
  static const char *const moved[] = {"second"};
  tnk_search_options_t search = TNK_SEARCH_OPTIONS_INIT;
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_promise_t *found;
  char id[64];
  e2e_t e2e;

  e2e_open(&e2e, options);
  make_session(&e2e, "A Big run", "red");
  make_session(&e2e, "a small RUN", "blue");
  make_session(&e2e, NULL, "red");
  search.limit = 1; /* three pages */
  CHECK_INT(n_found(&e2e, &search), 3);
  search.display_name = "run a";
  CHECK_INT(n_found(&e2e, &search), 2);
  search.user_metadata = &red;
  search.n_user_metadata = 1;
  found = e2e_ok(tnk_rest_search_sessions(e2e.service, &search));
  CHECK_INT(tnk_page_count(page_of(found)), 1);
  CHECK_STR(tnk_page_session(page_of(found), 0)->display_name, "A Big run");
  CHECK_STR(tnk_page_session(page_of(found), 0)->project_id, "first");
  CHECK_STR(tnk_page_session(page_of(found), 0)->status->type,
            "client_finished");
  snprintf(id, sizeof(id), "%s", tnk_page_session(page_of(found), 0)->id);
  tnk_promise_unref(found);
  e2e_done(tnk_rest_move_session(e2e.service, id, "second"));
  search = (tnk_search_options_t)TNK_SEARCH_OPTIONS_INIT;
  search.project_ids = moved;
  search.n_project_ids = 1;
  CHECK_INT(n_found(&e2e, &search), 1);
  search.states = TNK_SESSION_ACTIVE | TNK_SESSION_ERRORED;
  CHECK_INT(n_found(&e2e, &search), 0);
  search.states = TNK_SESSION_SUCCESS;
  CHECK_INT(n_found(&e2e, &search), 1);
  found = e2e_ok(tnk_rest_get_session(e2e.service, id, TNK_SCOPE_OWNED));
  CHECK_STR(tnk_page_session(page_of(found), 0)->display_name, "A Big run");
  tnk_promise_unref(found);
  fails(tnk_rest_move_session(e2e.service, "none", "p"), TNK_ENOTFOUND);
  CHECK(tnk_service_session_id(e2e.service) == NULL);
  e2e_close(&e2e);
}

TEST_LIMIT(what_is_stored_is_counted, 60) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_promise_t *stored;
  char path[256];
  e2e_t e2e;

  e2e_open(&e2e, options);
  stored = e2e_ok(tnk_rest_get_storage(e2e.service, NULL));
  CHECK_INT(tnk_page_count(page_of(stored)), 0);
  tnk_promise_unref(stored);
  save_two(&e2e, path, sizeof(path));
  stored = e2e_ok(tnk_rest_get_storage(e2e.service, NULL));
  CHECK_INT(tnk_page_storage(page_of(stored), 0)->n_checkpoints, 2);
  CHECK(tnk_page_storage(page_of(stored), 0)->size_bytes > 0);
  tnk_promise_unref(stored);
  e2e_close(&e2e);
}
