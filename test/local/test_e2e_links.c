/* SPDX-License-Identifier: MIT */
#include "local/e2e.h"

/* Files of external weights, bills, the audit log and traces, by the client and
 * the local server together. */

static const tnk_page_t *page_of(tnk_promise_t *promise) {
  return tnk_promise_page(promise);
}

/* A pass, and the adapter for other programs; its path. */
static void work(e2e_t *e2e, char *path, size_t size) {
  tnk_promise_t *saved;

  e2e_train(e2e, 2);
  e2e_loss(e2e_pass(e2e, 0));
  saved = e2e_ok(tnk_training_save_weights_external(e2e->training, "e", NULL));
  snprintf(path, size, "%s", tnk_promise_path(saved));
  tnk_promise_unref(saved);
}

TEST_LIMIT(links_to_files_of_external_weights_are_told, 60) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  const tnk_external_files_t *files;
  tnk_promise_t *told;
  char path[256];
  char own[64];
  e2e_t e2e;

  e2e_open(&e2e, options);
  work(&e2e, path, sizeof(path));
  told = e2e_ok(tnk_rest_get_external_files(e2e.service, path));
  files = tnk_page_external_files(page_of(told), 0);
  CHECK_INT(files->n_files, 2);
  CHECK_STR(files->files[0].name, "adapter_config.json");
  CHECK_STR(files->files[1].name, "adapter_model.safetensors");
  snprintf(own, sizeof(own), "http%s://127.0.0.1:%d/files/",
           strncmp(e2e.wire, "tls", 3) == 0 ? "s" : "",
           local_server_port(e2e.server));
  CHECK_INT(strncmp(files->files[0].value, own, strlen(own)), 0);
  CHECK(files->expires_us > 0);
  tnk_promise_unref(told);
  e2e_close(&e2e);
}

TEST_LIMIT(N15_N16_what_was_used_and_done_is_told, 60) {
  const int64_t hour = INT64_C(3600000000);
  local_options_t options = LOCAL_OPTIONS_INIT;
  const tnk_usage_t *usage;
  tnk_promise_t *told;
  uv_timeval64_t now;
  int64_t n_tokens = 0;
  int64_t first;
  char path[256];
  e2e_t e2e;

  e2e_open(&e2e, options);
  CHECK_INT(uv_gettimeofday(&now), 0);
  first = now.tv_sec * 1000000 / hour * hour;
  work(&e2e, path, sizeof(path));
  /* The hour may change meanwhile. */
  told = e2e_ok(tnk_rest_get_usage(e2e.service, first, first + 2 * hour));
  for (size_t i = 0; i < tnk_page_count(page_of(told)); i++) {
    usage = tnk_page_usage(page_of(told), i);
    if (usage->event->kind != TNK_USAGE_TRAINING)
      continue;
    n_tokens += usage->event->n_tokens;
    CHECK_STR(usage->session_id, tnk_service_session_id(e2e.service));
  }
  CHECK_INT(n_tokens, E2E_LENGTH);
  tnk_promise_unref(told);
  told = e2e_ok(tnk_rest_get_audit_log(e2e.service, "checkpoints", NULL));
  CHECK_INT(tnk_page_count(page_of(told)), 1);
  CHECK_STR(tnk_page_audit_entry(page_of(told), 0)->event, "checkpoint_create");
  CHECK_STR(tnk_page_audit_entry(page_of(told), 0)->tinker_path, path);
  tnk_promise_unref(told);
  e2e_close(&e2e);
}

TEST_LIMIT(N13_the_trace_of_a_session_is_told, 60) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_promise_t *told;
  char path[256];
  e2e_t e2e;

  e2e_open(&e2e, options);
  work(&e2e, path, sizeof(path));
  told = e2e_ok(
      tnk_rest_export_trace(e2e.service, tnk_service_session_id(e2e.service)));
  CHECK(strstr(tnk_promise_path(told), ".pftrace?expires=") != NULL);
  tnk_promise_unref(told);
  e2e_close(&e2e);
}
