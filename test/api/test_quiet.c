/* SPDX-License-Identifier: MIT */
/* Without a logger nothing is printed, whatever happens. */
#include <stdlib.h>
#include <unistd.h>

#include "task/script.h"

static void refuse(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_json(request, 400, "{\"detail\":\"no\"}");
}

/* Work, failures that nobody looks at, and the end. */
static void live(void) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  script_t script;

  script_begin(&script);
  options.api_key = script_key();
  options.base_url = mock_url(script.mock);
  CHECK_INT(tnk_service_open(&script.service, &script.uv, &options, NULL, 0),
            TNK_OK);
  tnk__context_fake_clock(&script.service->root.context, 1000000);
  mock_set_clock(script.mock, &script.service->root.context);
  script_train(&script);
  mock_on(script.mock, "POST", "/api/v1/optim_step", refuse, NULL);
  tnk_promise_unref(script_step(&script));
  tnk_promise_unref(tnk_training_save_state(script.training, NULL, NULL));
  script_later(&script, 1000);
  tnk_service_close(script.service, script_closed, &script);
  script_end(&script);
}

TEST(without_a_logger_nothing_is_printed) {
  char name[] = "/tmp/tnk-quiet-XXXXXX";
  const int file = mkstemp(name);
  const int out = dup(STDOUT_FILENO);
  const int err = dup(STDERR_FILENO);

  CHECK(file >= 0 && out >= 0 && err >= 0);
  unlink(name);
  fflush(stdout);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  live();
  fflush(stdout);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  close(out);
  close(err);
  CHECK_INT(lseek(file, 0, SEEK_END), 0);
  close(file);
}
